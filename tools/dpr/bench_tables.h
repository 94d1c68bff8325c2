/* Tables of `dpr bench`: sizes by strategies. */
#ifndef DPR_TOOLS_BENCH_TABLES_H
#define DPR_TOOLS_BENCH_TABLES_H

#include <stdio.h>

#include "bench_results.h"

/* Writes a table for each operation, type, mode and cache, and a summary; `markdown`: as Markdown. -1 when out of
 * memory, else 0. */
int tables_write(FILE *f, const bench_results *r, int markdown);

/* What dpr_peers and the ladder have, too. */

/* The first line without its end: the device and what was built. */
void tables_begin(FILE *f, const bench_results *r, int markdown);

/* What a table is of, without an end of line: the case but for its count, and the block size that was asked for (0:
 * none was). */
void tables_title(FILE *f, const bench_case *at, int block);

/* A line that says what the marks mean that are in use; in Markdown no item of a list, as one that began with a mark
 * would be. */
void tables_legend(FILE *f, const bench_results *r);

/* "!", "~" and "?", as far as they are due: wrong results, a median that is not certain, a machine that was slower. The
 * buffer's text is returned. */
const char *tables_marks(const bench_results *r, const bench_row *row, char text[4]);

/* A line if the row failed or has wrong results. */
void tables_trouble(FILE *f, const bench_row *row);

/* A line for each reason for which something was left out, with how many it left out. */
void tables_omissions(FILE *f, const bench_results *r);

#endif
