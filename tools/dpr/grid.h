/* Text in columns. */
#ifndef DPR_TOOLS_GRID_H
#define DPR_TOOLS_GRID_H

#include <stddef.h>
#include <stdio.h>

enum { GRID_CELL = 64 }; /* bytes of a cell's text, with the zero at its end */

typedef struct grid {
    size_t columns; /* set by the caller; the rest is 0 at first */

    /* Private. */
    size_t rows, room;
    char (*cells)[GRID_CELL]; /* row by row */
} grid;

/* A new row of empty cells, the first being the heading; the cells hold until the next row is added. NULL when out of
 * memory. */
char (*grid_add(grid *g))[GRID_CELL];

/* Prints all rows, aligned to the right; as Markdown if wanted. */
void grid_print(FILE *f, const grid *g, int markdown);

void grid_free(grid *g);

#endif
