/* SVG for the page: gnuplot's pictures without their colours, fonts and ids. Style sheets colour them instead, in light
 * and in dark mode. Only elements that this file writes itself come into the page. */
#ifndef DPR_TOOLS_SVG_H
#define DPR_TOOLS_SVG_H

#include "plots.h"

/* Symbols of series, which all pictures of a page refer to: once for a page. */
void svg_symbols(FILE *f);

/* The symbol of a series, for legends; with `line`, on a piece of its line. */
void svg_key(FILE *f, int series, int line);

/* The class of a series: "s3" and so on. The text is returned. */
enum { SVG_CLASS = 16 };
const char *svg_class(int series, char text[SVG_CLASS]);

/* Writes a plot from gnuplot's SVG. With `alone`, a whole file with symbols and style sheet. 0, or -1 when out of
 * memory. */
int svg_write(html *h, const plot *p, const char *gnuplots, int alone);

/* Moves *text behind the next picture in gnuplot's output, and ends the picture with a zero. NULL: there is none. */
char *svg_next(char **text);

#endif
