/* Text in columns. */
#ifndef DPR_TOOLS_GRID_H
#define DPR_TOOLS_GRID_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { GRID_CELL = 128 }; /* bytes of a cell's text, with the zero at its end */

typedef struct grid {
    size_t columns; /* set by the caller; the rest is 0 at first */
    uint32_t left;  /* may be set, too: bit c is 1 where column c, of the first 32, is aligned to the left */

    /* Private. */
    size_t rows, room;
    char (*cells)[GRID_CELL]; /* row by row */
} grid;

/* A new row of empty cells, the first being the heading; the cells hold until the next row is added. NULL when out of
 * memory. */
char (*grid_add(grid *g))[GRID_CELL];

/* Prints all rows; as Markdown if wanted. */
void grid_print(FILE *f, const grid *g, int markdown);

void grid_free(grid *g);

#endif
