/* The ladder, and launches from kernels: strategies to learn from. */
#include <math.h>

#include "figures.h"
#include "page.h"

static void show(page *p, const result *one, const grid *g, const char *what, const plot_look *look) {
    char name[PLOT_NAME];
    const page_figure figure = {
        .name = page_plot_name(what, one, name), .title = look->title, .from = one, .g = g, .look = *look};
    page_show(p, &figure);
}

static void show_rows(page *p, const result *one, const char *caption, const page_column *columns) {
    html_put(&p->h, "<details><summary>All that was measured</summary>\n");
    page_rows(p, caption, json_member(one->document, "rows"), columns);
    html_put(&p->h, "</details>\n");
}

/* ---- The ladder ------------------------------------------------------------------------------------------------- */

static void show_ladder(page *p, const result *one) {
    static const page_column columns[] = {{"strategy", "strategy", PAGE_TEXT},
                                          {"count", "elements", PAGE_ELEMENTS},
                                          {"median_us", "us", PAGE_NUMBER},
                                          {"gb_per_s", "GB/s", PAGE_NUMBER},
                                          {"share", "of bandwidth", PAGE_PERCENT},
                                          {"speedup", "speed-up", PAGE_NUMBER},
                                          {"threads", "threads a block", PAGE_NUMBER},
                                          {"registers", "registers", PAGE_NUMBER},
                                          {"shared_bytes", "shared memory", PAGE_BYTES},
                                          {"blocks_per_sm", "blocks an SM", PAGE_NUMBER},
                                          {"blocks", "blocks", PAGE_NUMBER},
                                          {"occupancy", "occupancy", PAGE_PERCENT},
                                          {"limited_by", "limited by", PAGE_TEXT},
                                          {"text", "how", PAGE_TEXT},
                                          {0}};
    char title[256], size[32] = "";
    grid g = {.heading = "strategy"};
    for (size_t i = 0; i < one->count; i++) {
        const result_row *row = &one->rows[i];
        grid_set(&g, grid_row_of(&g, row->subject, (double)i), grid_column_of(&g, "percent of bandwidth"),
                 page_cell(row, 100 * json_number(row->json, "share")));
        if (row->count >= 0 && row->count < 0x1p63)
            figure_elements((uint64_t)row->count, size);
    }
    snprintf(title, sizeof title, "Share of the bandwidth: %s elements, %.100s", size, one->device);
    plot_look look = plot_plain(PLOT_BARS, title, "percent of the measured rate");
    look.rule = 100;
    look.rule_name = "measured read rate";
    html_put(&p->h, "<div>");
    show(p, one, &g, "ladder", &look);
    show_rows(p, one, title, columns);
    html_put(&p->h, "</div>");
    grid_free(&g);
}

void section_ladder(page *p) {
    html_put(&p->h, "<p>What each way to reduce an array is worth, in the order of teaching: from divergent warps to "
                    "what the library itself uses.</p>\n<div class=\"side\">\n");
    for (size_t i = 0; i < p->r->count; i++)
        if (p->r->at[i].kind == RESULT_LADDER)
            show_ladder(p, &p->r->at[i]);
    html_put(&p->h, "</div>\n");
}

/* ---- Nested launches -------------------------------------------------------------------------------------------- */

static void show_launches(page *p, const result *one) {
    static const page_column columns[] = {{"launch", "launch", PAGE_TEXT},
                                          {"median_us", "us", PAGE_NUMBER},
                                          {"low_us", "from us", PAGE_NUMBER},
                                          {"high_us", "to us", PAGE_NUMBER},
                                          {"samples", "samples", PAGE_NUMBER},
                                          {"text", "what it is", PAGE_TEXT},
                                          {0}};
    const cJSON *list = json_member(one->document, "launches"), *row = NULL;
    char title[160];
    double at = 0;
    grid g = {.heading = "launch"};
    cJSON_ArrayForEach(row, list) {
        grid_set(&g, grid_row_of(&g, json_text(row, "launch"), at++), grid_column_of(&g, "us"),
                 (grid_cell){.value = json_number(row, "median_us")});
    }
    snprintf(title, sizeof title, "Time of one launch: %.100s", one->device);
    const plot_look look = plot_plain(PLOT_BARS, title, "us");
    html_put(&p->h, "<div>");
    show(p, one, &g, "launches", &look);
    html_put(&p->h, "<details><summary>What the launches are</summary>\n");
    page_rows(p, title, list, columns);
    html_put(&p->h, "</details></div>\n");
    grid_free(&g);
}

static void show_pools(page *p, const result *one) {
    static const page_column columns[] = {{"pending", "launches", PAGE_NUMBER},
                                          {"median_us", "us of a tail launch", PAGE_NUMBER},
                                          {"loaded_bytes", "memory taken", PAGE_BYTES},
                                          {"reserved_bytes", "and by the first run", PAGE_BYTES},
                                          {"error", "error", PAGE_TEXT},
                                          {0}};
    const cJSON *list = json_member(one->document, "pools"), *row = NULL;
    char title[160], name[32];
    grid g = {.heading = "launches in the pool"};
    cJSON_ArrayForEach(row, list) {
        const double pending = json_number(row, "pending");
        if (!(pending >= 0))
            continue;
        snprintf(name, sizeof name, "%.0f", pending);
        grid_set(&g, grid_row_of(&g, name, pending), grid_column_of(&g, "tail launch"),
                 (grid_cell){.value = json_number(row, "median_us")});
    }
    grid_sort(&g);
    snprintf(title, sizeof title, "Time of a tail launch by the size of the launch pool: %.80s", one->device);
    plot_look look = plot_plain(PLOT_SIZES, title, "pending launches that the pool has room for");
    look.upwards = "us";
    html_put(&p->h, "<div>");
    show(p, one, &g, "pools", &look);
    html_put(&p->h, "<details><summary>Memory of the pools</summary>\n");
    page_rows(p, title, list, columns);
    html_put(&p->h, "</details></div>\n");
    grid_free(&g);
}

static void show_strategies(page *p, const result *one) {
    static const page_column columns[] = {{"strategy", "strategy", PAGE_TEXT},
                                          {"count", "elements", PAGE_ELEMENTS},
                                          {"depth", "depth", PAGE_NUMBER},
                                          {"median_us", "us", PAGE_NUMBER},
                                          {"gb_per_s", "GB/s", PAGE_NUMBER},
                                          {"ratio", "over the choice", PAGE_NUMBER},
                                          {"nested.launched", "launched", PAGE_NUMBER},
                                          {"nested.refused", "refused", PAGE_NUMBER},
                                          {"nested.failed", "failed", PAGE_NUMBER},
                                          {"nested.in_line", "in line", PAGE_NUMBER},
                                          {"nested.deepest", "deepest", PAGE_NUMBER},
                                          {"text", "how", PAGE_TEXT},
                                          {0}};
    char title[160], size[32];
    grid g = {.heading = "strategy"};
    for (size_t i = 0; i < one->count; i++) {
        const result_row *row = &one->rows[i];
        if (!(row->count >= 0 && row->count < 0x1p63))
            continue;
        grid_set(&g, grid_row_of(&g, row->subject, NAN),
                 grid_column_of(&g, figure_elements((uint64_t)row->count, size)), page_cell(row, row->us));
    }
    snprintf(title, sizeof title, "Strategies with nested launches, us by number of elements: %.80s", one->device);
    plot_look look = plot_plain(PLOT_DOTS, title, "us");
    look.logarithmic = 1;
    html_put(&p->h, "<div>");
    show(p, one, &g, "nested", &look);
    show_rows(p, one, title, columns);
    html_put(&p->h, "</div>\n");
    grid_free(&g);
}

void section_nested(page *p) {
    html_put(&p->h, "<p>What launches by kernels cost next to launches by the host, how the launch pool's size "
                    "changes that, and what strategies take that launch kernels from kernels.</p>\n");
    for (size_t i = 0; i < p->r->count; i++) {
        const result *one = &p->r->at[i];
        if (one->kind != RESULT_NESTED)
            continue;
        html_put(&p->h, "<div class=\"side\">\n");
        show_launches(p, one);
        show_pools(p, one);
        show_strategies(p, one);
        html_put(&p->h, "</div>\n");
    }
}
