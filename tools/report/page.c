#include "page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "page_files.h"
#include "svg.h"

#include "dpr.h"

/* ---- Figures ---------------------------------------------------------------------------------------------------- */

static void put_key(page *p, int series, int line, const char *name) {
    html_put(&p->h, "<li>");
    svg_key(p->h.f, series, line);
    html_text(&p->h, name);
}

static void put_heat_legend(page *p) {
    char text[64];
    html_put(&p->h, "<ul class=\"legend\">");
    for (int level = 0; level < PLOT_LEVELS; level++) {
        if (level + 1 < PLOT_LEVELS)
            snprintf(text, sizeof text, "%g to %g %%", plot_levels[level], plot_levels[level + 1]);
        else
            snprintf(text, sizeof text, "%g %% and more", plot_levels[level]);
        put_key(p, SERIES_LEVEL - level, 0, text);
    }
    html_put(&p->h, "</ul>\n");
}

static void put_legend(page *p, const grid *g, const plot_look *look) {
    if (look->form == PLOT_HEAT) {
        put_heat_legend(p);
        return;
    }
    html_put(&p->h, "<ul class=\"legend\">");
    for (size_t i = 0; i < g->columns && look->form != PLOT_BARS; i++)
        put_key(p, look->colours ? look->colours[i] : (int)i, look->form == PLOT_SIZES, g->column[i]);
    if (look->choice)
        put_key(p, SERIES_CHOICE, 0, look->choice);
    if (look->crossover_count)
        put_key(p, SERIES_CROSSOVERS, 1, "the planner chooses another strategy");
    if (isfinite(look->rule))
        put_key(p, SERIES_RULE, 1, look->rule_name);
    html_put(&p->h, "</ul>\n");
}

size_t page_result_number(const result *one) {
    return result_group_begin(one) + 1;
}

static void put_origin(page *p, const page_figure *figure, const plot *drawn) {
    html_put(&p->h, "<p class=\"from\">The values are from ");
    if (figure->from) {
        html_put(&p->h, "<a href=\"#r%zu\">", page_result_number(figure->from));
        html_text(&p->h, result_file(figure->from));
        html_put(&p->h, "</a>, ");
        html_text(&p->h, figure->from->device);
    } else {
        html_put(&p->h, "the results of this case");
    }
    if (drawn)
        html_put(&p->h, ". The plot is called <code>%s</code>", drawn->name);
    html_put(&p->h, ".</p>\n");
}

/* Why a figure has no plot, unless there is nothing that a plot could show. */
static void put_left_out(page *p, const page_figure *figure, size_t left_out_before) {
    if (plot_is_too_long(figure->g, &figure->look))
        html_put(&p->h,
                 "<p class=\"note\">The plot is left out, because the table has %zu rows, and a plot has room for "
                 "%d.</p>\n",
                 figure->g->rows, PLOT_LINES);
    else if (p->plots.left_out > left_out_before)
        html_put(&p->h,
                 "<p class=\"note\">The plot is left out, because a page has at most %d, and each section a share of "
                 "them.</p>\n",
                 PLOT_MOST);
}

const char *page_plot_name(const char *what, const result *one, char text[PLOT_NAME]) {
    const char *slash = strrchr(result_file(one), '/'), *file = slash ? slash + 1 : result_file(one);
    const char *end = strrchr(file, '.');
    snprintf(text, PLOT_NAME, "%.30s-%.*s", what, end ? (int)(end - file) : PLOT_NAME, file);
    return text;
}

void page_show(page *p, const page_figure *figure) {
    const plot *drawn = NULL;
    const size_t left_out = p->plots.left_out;
    html_put(&p->h, "<figure><figcaption>");
    html_text(&p->h, figure->title);
    html_put(&p->h, "</figcaption>\n");
    drawn = plot_add(&p->plots, figure->name, figure->g, &figure->look, html_place(&p->h));
    if (drawn && !p->no_plots)
        put_legend(p, figure->g, &figure->look);
    put_origin(p, figure, drawn);
    if (!drawn && !p->no_plots)
        put_left_out(p, figure, left_out);
    if (figure->note)
        html_put(&p->h, "<p class=\"note\">%s</p>\n", figure->note);
    html_put(&p->h, "<details%s><summary>Table</summary>\n", drawn && !p->no_plots ? "" : " open");
    grid_table(figure->g, &p->h, figure->title);
    html_put(&p->h, "</details></figure>\n");
    p->out_of_memory |= figure->g->failed;
}

const char page_marks[] = "Behind a number, * is the planner's choice, ~ a median that is less certain than was asked "
                          "for, and ? one that was taken while the machine was slower than before.";

grid_cell page_cell(const result_row *row, double value) {
    static const char *const marks[2][2][2] = {{{NULL, " *"}, {"?", "? *"}}, {{"~", "~ *"}, {"~?", "~? *"}}};
    if (!row->ok)
        return (grid_cell){.value = NAN, .mark = "failed"};
    return (grid_cell){.value = value, .mark = marks[!row->settled][row->doubtful][row->chosen], .chosen = row->chosen};
}

/* ---- Warnings --------------------------------------------------------------------------------------------------- */

void page_warn(page *p, const result *one) {
    const cJSON *left_out = json_member(one->document, "left_out");
    const int n = cJSON_IsArray(left_out) ? cJSON_GetArraySize(left_out) : 0;
    const char *ended = json_text(one->document, "ended_early");
    if (!json_true(one->document, "interrupted") && !*ended && n == 0)
        return;
    html_put(&p->h, "<p class=\"warning\">");
    html_text(&p->h, result_file(one));
    html_put(&p->h, ": ");
    if (json_true(one->document, "interrupted") || *ended) {
        html_put(&p->h, "the measurement ended early (");
        html_text(&p->h, *ended ? ended : "it was interrupted");
        html_put(&p->h, "). ");
    }
    if (n) {
        html_put(&p->h, "%d case%s left out; the first because: ", n, n == 1 ? " was" : "s were");
        html_text(&p->h, json_text(left_out->child, "why"));
        html_put(&p->h, ".");
    }
    html_put(&p->h, "</p>\n");
}

/* ---- Tables of rows --------------------------------------------------------------------------------------------- */

/* A member, or a member's member: "nested.launched". */
static const cJSON *find_member(const cJSON *row, const char *path) {
    char key[64];
    const char *dot = strchr(path, '.');
    if (!dot)
        return json_member(row, path);
    snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
    return json_member(json_member(row, key), dot + 1);
}

static void put_value(html *h, const cJSON *item, page_unit unit) {
    const double x = json_value(item);
    const int is_count = x >= 0 && x < 0x1p63;
    char text[32];
    if (unit == PAGE_TEXT)
        html_cell(h, cJSON_GetStringValue(item));
    else if (unit == PAGE_YES)
        html_cell(h, cJSON_IsTrue(item) ? "yes" : cJSON_IsFalse(item) ? "no" : NULL);
    else if (unit == PAGE_PERCENT)
        html_number(h, 100 * x, " %");
    else if (unit == PAGE_BYTES && is_count)
        html_figure(h, x, figure_bytes((uint64_t)x, text));
    else if (unit == PAGE_ELEMENTS && is_count)
        html_figure(h, x, figure_elements((uint64_t)x, text));
    else
        html_number(h, x, NULL);
}

enum { MOST_COLUMNS = 32 };

/* The columns that some row has. Returns how many. */
static size_t used_columns(const cJSON *list, const page_column *columns, const page_column *used[MOST_COLUMNS]) {
    size_t n = 0;
    for (; columns->key && n < MOST_COLUMNS; columns++) {
        const cJSON *row = list ? list->child : NULL;
        while (row && !find_member(row, columns->key))
            row = row->next;
        if (row || n == 0)
            used[n++] = columns;
    }
    return n;
}

void page_rows(page *p, const char *caption, const cJSON *list, const page_column *columns) {
    const page_column *used[MOST_COLUMNS];
    const char *headings[MOST_COLUMNS];
    const size_t n = used_columns(list, columns, used);
    const cJSON *row = NULL;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        headings[i] = used[i]->heading;
    html_table(&p->h, caption, headings, n);
    cJSON_ArrayForEach(row, list) {
        const cJSON *first = find_member(row, used[0]->key);
        const double x = json_value(first);
        char digits[32];
        snprintf(digits, sizeof digits, "%.15g", x);
        if (!html_row(&p->h, isfinite(x) ? digits : cJSON_GetStringValue(first), x))
            continue;
        for (size_t i = 1; i < n; i++)
            put_value(&p->h, find_member(row, used[i]->key), used[i]->unit);
    }
    html_table_end(&p->h);
}

/* ---- Sections --------------------------------------------------------------------------------------------------- */

static int has_kind(const results *r, result_kind kind) {
    for (size_t i = 0; i < r->count; i++)
        if (r->at[i].kind == kind)
            return 1;
    return 0;
}

/* Whether a document has rows with a shape, or other rows. */
static int has_shape(const results *r, result_kind kind, int shaped) {
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; r->at[i].kind == kind && k < r->at[i].count; k++)
            if ((*r->at[i].rows[k].shape != 0) == shaped)
                return 1;
    return 0;
}

static int has_any(const results *r) {
    return r->count > 0;
}
static int has_sizes(const results *r) {
    return has_shape(r, RESULT_BENCH, 0);
}
static int has_regret(const results *r) {
    for (size_t i = 0; i < r->count; i++)
        if (cJSON_GetArraySize(json_member(r->at[i].document, "regret")) > 0)
            return 1;
    return 0;
}
static int has_peers(const results *r) {
    return has_shape(r, RESULT_PEERS, 0);
}
static int has_ladder(const results *r) {
    return has_kind(r, RESULT_LADDER);
}
static int has_nested(const results *r) {
    return has_kind(r, RESULT_NESTED);
}
static int has_shapes(const results *r) {
    return has_shape(r, RESULT_BENCH, 1) || has_shape(r, RESULT_PEERS, 1);
}
static int has_recursions(const results *r) {
    return has_kind(r, RESULT_RECURSION);
}
static int has_cpu(const results *r) {
    return has_kind(r, RESULT_CPU);
}

static const struct {
    const char *id, *title;
    int (*has)(const results *r);
    void (*write)(page *p);
    int has_plots;
} sections[] = {
    {"machines", "Results and devices", has_any, section_machines, 0},
    {"sizes", "Time and bandwidth against size", has_sizes, section_sizes, 1},
    {"regret", "Regret of the planner's choices", has_regret, section_regret, 1},
    {"peers", "Next to other libraries", has_peers, section_peers, 1},
    {"ladder", "The ladder", has_ladder, section_ladder, 1},
    {"nested", "Nested launches and pools", has_nested, section_nested, 1},
    {"shapes", "Segments and axes", has_shapes, section_shapes, 1},
    {"recursions", "Recursion engines", has_recursions, section_recursions, 1},
    {"cpu", "CPU next to OpenMP", has_cpu, section_cpu, 0},
    {"reproduce", "How to reproduce each figure", has_any, section_reproduce, 0},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

/* ---- The page --------------------------------------------------------------------------------------------------- */

static void put_base64(html *h, const unsigned char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (i + k < n ? bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            html_put(h, "%c", k <= n - i ? digits[group >> (18 - 6 * k) & 63] : '=');
    }
}

static void put_head(page *p) {
    html *h = &p->h;
    html_put(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-");
    put_base64(h, page_js_sha256, sizeof page_js_sha256);
    html_put(h,
             "'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"generator\" content=\"dpr report %s\">\n<link rel=\"icon\" href=\"data:,\">\n"
             "<title>dpr: measured results</title>\n<style>",
             dpr_version());
    html_put(h, "%s", plot_css);
    html_put(h, "%s</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the results</a>\n", page_css);
    html_put(h, "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" style=\"position:absolute\">");
    svg_symbols(h->f);
    html_put(h, "</svg>\n");
}

static void put_navigation(page *p) {
    html_put(&p->h, "<nav aria-label=\"Sections\"><ul>\n");
    for (size_t i = 0; i < SECTIONS; i++)
        if (sections[i].has(p->r))
            html_put(&p->h, "<li><a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].title);
    html_put(&p->h, "</ul></nav>\n");
}

/* Plots that later sections have a right to. */
static size_t later_shares(const page *p, size_t i) {
    size_t shares = 0;
    while (++i < SECTIONS)
        shares += sections[i].has_plots && sections[i].has(p->r);
    return PLOT_SHARE * shares;
}

static void put_sections(page *p) {
    for (size_t i = 0; i < SECTIONS; i++) {
        if (!sections[i].has(p->r))
            continue;
        p->plots.reserved = later_shares(p, i);
        html_put(&p->h, "<section id=\"%s\" aria-labelledby=\"%s-h\"><h2 id=\"%s-h\">%s</h2>\n", sections[i].id,
                 sections[i].id, sections[i].id, sections[i].title);
        sections[i].write(p);
        html_put(&p->h, "</section>\n");
    }
}

int page_write(page *p, const results *r, const char *no_plots) {
    *p = (page){.r = r, .no_plots = no_plots};
    if (html_begin(&p->h) != 0)
        return -1;
    put_head(p);
    html_put(&p->h, "<header><h1>dpr: measured results</h1>\n");
    html_put(&p->h, "<p>Times of reductions and recursions, as the programs of dpr have measured them. Every plot has "
                    "its values in a table, which the buttons in its headings sort.</p>\n");
    if (no_plots) {
        html_put(&p->h, "<p class=\"warning\">This page has no plots, because plots need gnuplot: ");
        html_text(&p->h, no_plots);
        html_put(&p->h, ".</p>\n");
    }
    put_navigation(p);
    html_put(&p->h, "</header>\n<main id=\"main\">\n");
    put_sections(p);
    if (p->plots.left_out)
        html_put(&p->h, "<p class=\"note\">%zu more plots are left out, because a page has at most %d.</p>\n",
                 p->plots.left_out, PLOT_MOST);
    html_put(&p->h, "</main>\n<script>%s</script>\n</body>\n</html>\n", page_js);
    return html_failed(&p->h) || p->out_of_memory || p->plots.failed ? -1 : 0;
}

int page_finish(const page *p, char *pictures, FILE *f) {
    html drawn;
    size_t from = 0;
    int failed = 0;
    for (size_t i = 0; pictures && !failed && i < p->plots.count; i++) {
        const plot *one = &p->plots.at[i];
        const char *picture = svg_next(&pictures);
        fwrite(p->h.text + from, 1, one->place - from, f);
        from = one->place;
        if (!picture)
            continue;
        failed = html_begin(&drawn) != 0;
        if (!failed) {
            failed = svg_write(&drawn, one, picture, 0) != 0;
            fwrite(drawn.text, 1, html_place(&drawn), f);
        }
        html_free(&drawn);
    }
    fwrite(p->h.text + from, 1, p->h.length - from, f);
    return failed ? -1 : 0;
}

void page_free(page *p) {
    html_free(&p->h);
    plots_free(&p->plots);
}
