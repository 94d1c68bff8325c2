/* gnuplot as a child process. It gets scripts of plots.h by a file without a name, and no shell is between. */
#ifndef DPR_TOOLS_GNUPLOT_H
#define DPR_TOOLS_GNUPLOT_H

#include "plots.h"

typedef enum picture_format { PICTURE_SVG, PICTURE_PNG } picture_format;

/* Whether gnuplot can be run. If not, a clause says why. */
enum { GNUPLOT_WHY = 256 };
int gnuplot_is_there(char why[GNUPLOT_WHY]);

/* The height of a picture, which is more with a key. */
int gnuplot_height(const plot *p, int key);

/* Draws n plots, one after another, in the given format; with `key`, names of series are in the picture. Returns what
 * gnuplot wrote, with a zero behind it, which the caller frees; NULL with a clause if it failed, or drew
 * fewer than n. */
char *gnuplot_draw(const plot *drawn, size_t n, picture_format format, int key, size_t *length, char why[GNUPLOT_WHY]);

#endif
