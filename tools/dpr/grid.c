#include "grid.h"

#include <stdlib.h>
#include <string.h>

char (*grid_add(grid *g))[GRID_CELL] {
    if (g->rows == g->room) {
        const size_t room = g->room ? 2 * g->room : 16;
        void *cells = realloc(g->cells, room * g->columns * GRID_CELL);
        if (!cells)
            return NULL;
        g->cells = cells;
        g->room = room;
    }
    char(*row)[GRID_CELL] = g->cells + g->rows++ * g->columns;
    memset(row, 0, g->columns * GRID_CELL);
    return row;
}

/* Characters, of which all but the first bytes of UTF-8 sequences are parts. */
static int characters(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static int width_of(const grid *g, size_t column) {
    int width = 0;
    for (size_t row = 0; row < g->rows; row++) {
        const int n = characters(g->cells[row * g->columns + column]);
        width = n > width ? n : width;
    }
    return width;
}

static int is_left(const grid *g, size_t column) {
    return column < 32 && (g->left >> column & 1);
}

void grid_print(FILE *f, const grid *g, int markdown) {
    for (size_t row = 0; row < g->rows; row++) {
        for (size_t c = 0; c < g->columns; c++) {
            const char *cell = g->cells[row * g->columns + c];
            const int blanks = width_of(g, c) - characters(cell), left = is_left(g, c);
            const int after = left && (markdown || c + 1 < g->columns) ? blanks : 0;
            const char *gap = c ? "  " : "";
            fprintf(f, "%s%*s%s%*s%s", markdown ? "| " : gap, left ? 0 : blanks, "", cell, after, "",
                    markdown ? " " : "");
        }
        fputs(markdown ? "|\n" : "\n", f);
        for (size_t c = 0; markdown && row == 0 && c < g->columns; c++)
            fprintf(f, "%s%s", is_left(g, c) ? "|:--" : "|--:", c + 1 == g->columns ? "|\n" : "");
    }
}

void grid_free(grid *g) {
    free(g->cells);
    *g = (grid){.columns = g->columns, .left = g->left};
}
