/* Values by row and column: what one plot shows, and its table. */
#ifndef DPR_TOOLS_GRID_H
#define DPR_TOOLS_GRID_H

#include <stddef.h>

#include "html.h"

/* More rows or columns are counted and left out, so that no file makes a page too long to read. */
enum { GRID_ROWS = 2000, GRID_COLUMNS = 40, GRID_NAME = 160 };

typedef struct grid_row {
    char name[GRID_NAME];
    double at; /* its place on the plot's axis, and what the table is sorted by; NAN: its number and its name */
} grid_row;

typedef struct grid_cell {
    double value;     /* NAN: none */
    const char *mark; /* behind the value in the table; NULL: none. Static storage */
    int chosen;       /* 1: the planner's choice */
} grid_cell;

typedef struct grid {
    const char *heading; /* of the rows' names */
    grid_row *row;
    grid_cell *cells;
    char column[GRID_COLUMNS][GRID_NAME];
    size_t rows, columns;
    size_t left_out; /* values without a row or a column */
    int failed;      /* 1: memory has run out */

    /* Private. */
    size_t room;
} grid;

/* The row with that name and place, and the column with that name, which are added if they are new. -1: there are too
 * many. */
int grid_row_of(grid *g, const char *name, double at);
int grid_column_of(grid *g, const char *name);

/* Sets the cell of a row and a column; of -1, counts it as left out. */
void grid_set(grid *g, int row, int column, grid_cell cell);

/* NULL where nothing was set. */
const grid_cell *grid_at(const grid *g, size_t row, size_t column);

/* The least and the greatest value that is more than `above`. 0 if there is none. */
int grid_range(const grid *g, double above, double *low, double *high);

/* Rows in the order of their places. */
void grid_sort(grid *g);

/* The table. */
void grid_table(const grid *g, html *h, const char *caption);

void grid_free(grid *g);

#endif
