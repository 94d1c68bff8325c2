#include "grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows and their cells have the same room. */
static int make_room(grid *g) {
    if (g->rows < g->room)
        return 0;
    const size_t room = g->room ? 2 * g->room : 32;
    grid_row *rows = realloc(g->row, room * sizeof *rows);
    g->row = rows ? rows : g->row;
    grid_cell *cells = rows ? realloc(g->cells, room * GRID_COLUMNS * sizeof *cells) : NULL;
    g->cells = cells ? cells : g->cells;
    g->room = cells ? room : g->room;
    g->failed |= !cells;
    return cells ? 0 : -1;
}

static int same_place(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

int grid_row_of(grid *g, const char *name, double at) {
    for (size_t i = g->rows; i-- > 0;)
        if (same_place(g->row[i].at, at) && strncmp(g->row[i].name, name, GRID_NAME - 1) == 0)
            return (int)i;
    if (g->rows == GRID_ROWS || make_room(g) != 0)
        return -1;
    grid_row *row = &g->row[g->rows];
    *row = (grid_row){.at = at};
    snprintf(row->name, sizeof row->name, "%s", name);
    for (size_t i = 0; i < GRID_COLUMNS; i++)
        g->cells[g->rows * GRID_COLUMNS + i] = (grid_cell){.value = NAN};
    return (int)g->rows++;
}

int grid_column_of(grid *g, const char *name) {
    for (size_t i = 0; i < g->columns; i++)
        if (strncmp(g->column[i], name, GRID_NAME - 1) == 0)
            return (int)i;
    if (g->columns == GRID_COLUMNS)
        return -1;
    snprintf(g->column[g->columns], GRID_NAME, "%s", name);
    return (int)g->columns++;
}

void grid_set(grid *g, int row, int column, grid_cell cell) {
    if (row < 0 || column < 0)
        g->left_out++;
    else
        g->cells[(size_t)row * GRID_COLUMNS + (size_t)column] = cell;
}

const grid_cell *grid_at(const grid *g, size_t row, size_t column) {
    const grid_cell *cell = &g->cells[row * GRID_COLUMNS + column];
    return isnan(cell->value) && !cell->mark ? NULL : cell;
}

int grid_range(const grid *g, double above, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < g->rows * GRID_COLUMNS; i++)
        if (g->cells[i].value > above) {
            *low = fmin(*low, g->cells[i].value);
            *high = fmax(*high, g->cells[i].value);
        }
    return *high >= *low;
}

void grid_sort(grid *g) {
    grid_cell cells[GRID_COLUMNS];
    /* By insertion: files have their rows in order. */
    for (size_t i = 1; i < g->rows; i++) {
        const grid_row row = g->row[i];
        size_t k = i;
        memcpy(cells, &g->cells[i * GRID_COLUMNS], sizeof cells);
        for (; k > 0 && g->row[k - 1].at > row.at; k--) {
            g->row[k] = g->row[k - 1];
            memcpy(&g->cells[k * GRID_COLUMNS], &g->cells[(k - 1) * GRID_COLUMNS], sizeof cells);
        }
        g->row[k] = row;
        memcpy(&g->cells[k * GRID_COLUMNS], cells, sizeof cells);
    }
}

void grid_table(const grid *g, html *h, const char *caption) {
    const char *headings[GRID_COLUMNS + 1] = {g->heading};
    for (size_t i = 0; i < g->columns; i++)
        headings[i + 1] = g->column[i];
    html_table(h, caption, headings, g->columns + 1);
    for (size_t i = 0; i < g->rows; i++) {
        if (!html_row(h, g->row[i].name, g->row[i].at))
            continue;
        for (size_t k = 0; k < g->columns; k++) {
            const grid_cell *cell = grid_at(g, i, k);
            if (cell && isnan(cell->value))
                html_cell(h, cell->mark);
            else
                html_number(h, cell ? cell->value : NAN, cell ? cell->mark : NULL);
        }
    }
    html_table_end(h);
    if (g->left_out)
        html_put(h, "<p class=\"note\">%zu more values are left out, because there are too many names or sizes.</p>\n",
                 g->left_out);
}

void grid_free(grid *g) {
    free(g->row);
    free(g->cells);
    *g = (grid){.heading = NULL};
}
