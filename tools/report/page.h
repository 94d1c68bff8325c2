/* The page: one HTML file from results, which needs nothing else. */
#ifndef DPR_TOOLS_PAGE_H
#define DPR_TOOLS_PAGE_H

#include "grid.h"
#include "html.h"
#include "page_results.h"
#include "plots.h"

/* A page that is written. Its plots are drawn all at once when its text is complete. */
typedef struct page {
    html h;
    const results *r;
    plots plots;
    const char *no_plots; /* why there are none; NULL: gnuplot is there */
    int out_of_memory;
} page;

/* Writes the text of a page with all sections. -1 when out of memory, else 0. page_free() is due in any case. */
int page_write(page *p, const results *r, const char *no_plots);

/* Puts the drawn pictures into the text. `pictures` is what gnuplot wrote, and is changed; NULL: there are none. */
int page_finish(const page *p, char *pictures, FILE *f);
void page_free(page *p);

/* ---- For sections ----------------------------------------------------------------------------------------------- */

typedef struct page_figure {
    const char *name, *title; /* the title may have text from files */
    const char *note;         /* of the program's own; NULL: none */
    const result *from;       /* NULL: from several */
    const grid *g;
    plot_look look;
} page_figure;

/* "regret-h200-tuned": what a plot shows, and its file without the folders and the ending. The text is returned. */
const char *page_plot_name(const char *what, const result *one, char text[PLOT_NAME]);

/* A grid with its plot, the legend, where it comes from, and its table. */
void page_show(page *p, const page_figure *figure);

/* A paragraph if the measurement ended early, or left out cases. */
void page_warn(page *p, const result *one);

/* The number in the id of the place where readers find how a result was made: that of the first of its group. */
size_t page_result_number(const result *one);

/* A row's time or rate with its marks. */
grid_cell page_cell(const result_row *row, double value);
extern const char page_marks[]; /* what the marks mean */

/* A column of a table of JSON rows. */
typedef enum page_unit { PAGE_TEXT, PAGE_NUMBER, PAGE_PERCENT, PAGE_BYTES, PAGE_ELEMENTS, PAGE_YES } page_unit;
typedef struct page_column {
    const char *key, *heading; /* key: "nested.launched" is a member's member */
    page_unit unit;
} page_column;

/* A table of the rows of a list. Columns end with the key NULL; one that no row has is left out. The first is the
 * rows' name. */
void page_rows(page *p, const char *caption, const cJSON *list, const page_column *columns);

/* ---- Sections --------------------------------------------------------------------------------------------------- */

void section_machines(page *p);
void section_sizes(page *p);
void section_regret(page *p);
void section_peers(page *p);
void section_ladder(page *p);
void section_nested(page *p);
void section_shapes(page *p);
void section_recursions(page *p);
void section_cpu(page *p);
void section_reproduce(page *p);

#endif
