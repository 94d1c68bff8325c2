/* Recursions on each engine. Every document is one recursion; those of a file come together. */
#include <math.h>
#include <string.h>

#include "page.h"

static const char *name_recursion(const result *one, char text[GRID_NAME]) {
    static const char *const options[] = {"rank", "cutoff", "threads", "nested"};
    const cJSON *document = one->document;
    const double size = json_number(document, "size");
    if (isfinite(size))
        snprintf(text, GRID_NAME, "%.60s %.0f", json_text(document, "recursion"), size);
    else
        snprintf(text, GRID_NAME, "%.60s %.60s", json_text(document, "recursion"), json_text(document, "input"));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const double number = json_number(document, options[i]);
        const size_t used = strlen(text);
        if (isfinite(number))
            snprintf(text + used, GRID_NAME - used, ", %s %.0f", options[i], number);
        else if (*json_text(document, options[i]))
            snprintf(text + used, GRID_NAME - used, ", %s %.20s", options[i], json_text(document, options[i]));
    }
    return text;
}

/* The engine that ran where none was asked for. */
static const char *automatic(const result *one) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, json_member(one->document, "engines")) {
        if (strcmp(json_text(row, "engine"), "auto") == 0)
            return json_text(row, "ran");
    }
    return "";
}

static grid_cell cell_of(const cJSON *row, int chosen) {
    const double seconds = json_number(row, "seconds");
    if (!json_true(row, "right"))
        return (grid_cell){.value = NAN, .mark = *json_text(row, "error") ? "failed" : "wrong"};
    return (grid_cell){.value = seconds > 0 ? 1e3 * seconds : NAN, .mark = chosen ? " *" : NULL, .chosen = chosen};
}

static void fill(grid *g, const result *one) {
    char name[GRID_NAME];
    const cJSON *row = NULL;
    const int at = grid_row_of(g, name_recursion(one, name), NAN);
    const char *choice = automatic(one);
    cJSON_ArrayForEach(row, json_member(one->document, "engines")) {
        const char *engine = json_text(row, "engine");
        grid_set(g, at, grid_column_of(g, engine), cell_of(row, *choice && strcmp(engine, choice) == 0));
    }
}

static void show_engines(page *p, const result *one) {
    static const page_column columns[] = {{"engine", "engine", PAGE_TEXT},
                                          {"ran", "ran", PAGE_TEXT},
                                          {"seconds", "seconds", PAGE_NUMBER},
                                          {"tasks", "tasks", PAGE_NUMBER},
                                          {"tasks_a_second", "tasks a second", PAGE_NUMBER},
                                          {"over_cpu", "times as fast as cpu", PAGE_NUMBER},
                                          {"over_naive", "times as fast as naive", PAGE_NUMBER},
                                          {"launches", "launches", PAGE_NUMBER},
                                          {"handed_out", "handed out", PAGE_NUMBER},
                                          {"serialised", "serialised", PAGE_NUMBER},
                                          {"steals", "steals", PAGE_NUMBER},
                                          {"deepest", "deepest", PAGE_NUMBER},
                                          {"levels", "levels", PAGE_NUMBER},
                                          {"widest", "widest", PAGE_NUMBER},
                                          {"rounds", "rounds", PAGE_NUMBER},
                                          {"reason", "why this engine", PAGE_TEXT},
                                          {"error", "error", PAGE_TEXT},
                                          {0}};
    char name[GRID_NAME];
    page_rows(p, name_recursion(one, name), json_member(one->document, "engines"), columns);
}

/* Documents from number i to end - 1 are of one file. */
static void show_file(page *p, size_t i, size_t end) {
    const result *one = &p->r->at[i];
    char title[256], name[PLOT_NAME];
    grid g = {.heading = "recursion"};
    for (size_t k = i; k < end; k++)
        fill(&g, &p->r->at[k]);
    snprintf(title, sizeof title, "Time of recursions in ms, by engine: %.100s", one->device);
    page_figure figure = {.name = page_plot_name("recursions", one, name),
                          .title = title,
                          .note = "An asterisk is behind the engine that runs where none is asked for.",
                          .from = one,
                          .g = &g,
                          .look = plot_plain(PLOT_DOTS, title, "ms")};
    figure.look.logarithmic = 1;
    figure.look.choice = "the engine that runs where none is asked for";
    page_show(p, &figure);
    html_put(&p->h, "<details><summary>All that was measured</summary>\n");
    for (size_t k = i; k < end; k++)
        show_engines(p, &p->r->at[k]);
    html_put(&p->h, "</details>\n");
    grid_free(&g);
}

void section_recursions(page *p) {
    html_put(&p->h, "<p>The same recursion on each engine, from the call to the result. All engines give the same "
                    "answer, bit by bit.</p>\n");
    for (size_t i = 0, end; i < p->r->count; i = end) {
        end = result_group_end(p->r, i);
        if (p->r->at[i].kind == RESULT_RECURSION)
            show_file(p, i, end);
    }
}
