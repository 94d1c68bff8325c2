/* Times against sizes, drawn with characters: what `dpr bench --plot` shows. */
#ifndef DPR_TOOLS_BENCH_PLOT_H
#define DPR_TOOLS_BENCH_PLOT_H

#include <stdio.h>

#include "bench_results.h"

/* Columns of a plot, margins included. */
enum { PLOT_LEAST = 40, PLOT_MOST = 200 };

typedef struct plot_style {
    int columns; /* wanted; taken are PLOT_LEAST to PLOT_MOST */
    int utf8;    /* 1: braille dots between the points, and symbols; 0: ASCII alone */
} plot_style;

/* Draws a plot for each operation, type, mode and cache: microseconds of right results against numbers of elements
 * above 0, both logarithmic, with a symbol for each subject. Of one that has no such result there is none. Errors of
 * the file are for the caller to look for. -1 when out of memory, else 0. */
int plot_write(FILE *f, const bench_results *r, const plot_style *style);

#endif
