/* How much longer the planner's choices take than the quickest strategy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "page.h"

enum { MOST_MODES = 8 };

/* The sizes become columns, in their order. */
static void add_sizes(page *p, grid *g, const cJSON *list) {
    const size_t most = (size_t)cJSON_GetArraySize(list);
    double *sizes = calloc(most + 1, sizeof *sizes);
    const cJSON *row = NULL;
    size_t n = 0;
    char text[32];
    p->out_of_memory |= !sizes;
    if (!sizes)
        return;
    cJSON_ArrayForEach(row, list) {
        const double count = json_number(row, "count");
        if (count >= 0 && count < 0x1p63)
            sizes[n++] = count;
    }
    qsort(sizes, n, sizeof *sizes, figure_compare);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || sizes[i] != sizes[i - 1])
            (void)grid_column_of(g, figure_elements((uint64_t)sizes[i], text));
    free(sizes);
}

/* Whether all rows have the same text there. */
static int is_common(const cJSON *list, const char *key) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        if (strcmp(json_text(row, key), json_text(list->child, key)) != 0)
            return 0;
    }
    return 1;
}

/* "sum of f32, zipf, graph, cold, pinned", without the mode, the cache and the memory where `is_short`. */
static const char *name_case(const cJSON *row, int is_short, char text[GRID_NAME]) {
    const char *segments = json_text(row, "segments"), *shape = *segments ? segments : json_text(row, "axes");
    int n = snprintf(text, GRID_NAME, "%.60s of %.20s%s%.30s", json_text(row, "op"), json_text(row, "dtype"),
                     *shape ? ", " : "", shape);
    const char *const more[] = {json_text(row, "mode"), json_text(row, "cache"), json_text(row, "memory")};
    for (size_t i = 0; i < sizeof more / sizeof *more && !is_short; i++)
        if (*more[i])
            n += snprintf(text + n, GRID_NAME - (size_t)n, ", %.16s", more[i]);
    return text;
}

/* The rows of a mode; NULL: all rows. */
static void fill(page *p, grid *g, const cJSON *list, const char *mode) {
    const cJSON *row = NULL;
    char text[GRID_NAME];
    const int is_short = (mode || is_common(list, "mode")) && is_common(list, "cache") && is_common(list, "memory");
    add_sizes(p, g, list);
    cJSON_ArrayForEach(row, list) {
        const double count = json_number(row, "count"), percent = json_number(row, "regret_percent");
        if (!(count >= 0 && count < 0x1p63) || !(percent >= 0) || (mode && strcmp(json_text(row, "mode"), mode) != 0))
            continue;
        const int at = grid_row_of(g, name_case(row, is_short, text), NAN);
        grid_set(g, at, grid_column_of(g, figure_elements((uint64_t)count, text)), (grid_cell){.value = percent});
    }
}

static void put_summary(page *p, const result *one, const cJSON *list) {
    const cJSON *row = NULL, *worst = NULL;
    double logarithms = 0, greatest = -1;
    int n = 0, past = 0;
    char text[GRID_NAME];
    cJSON_ArrayForEach(row, list) {
        const double percent = json_number(row, "regret_percent");
        if (!(percent >= 0))
            continue;
        n++;
        logarithms += log1p(percent / 100);
        past += percent > 5 && json_number(row, "regret_us") > 0.2;
        worst = percent > greatest ? row : worst;
        greatest = fmax(greatest, percent);
    }
    if (n == 0)
        return;
    html_put(&p->h, "<p>");
    html_text(&p->h, result_file(one));
    html_put(&p->h,
             ": %d choice%s, which take%s %.2f %% longer than the quickest strategy (geometric mean). %d of them "
             "take more than 5 %% and 0.2 us longer. The worst is %.3g %%: ",
             n, n == 1 ? "" : "s", n == 1 ? "s" : "", 100 * expm1(logarithms / n), past, greatest);
    html_text(&p->h, name_case(worst, 0, text));
    const double count = json_number(worst, "count");
    if (isfinite(count))
        html_put(&p->h, ", %.0f elements", count);
    html_put(&p->h, ".</p>\n");
}

/* A table of the choices that are not the quickest; none if all are. */
static void show_slower(page *p, const cJSON *list, const page_column *columns) {
    cJSON *slower = cJSON_CreateArray(), *row = NULL;
    cJSON_ArrayForEach(row, list) {
        if (!(json_number(row, "regret_percent") <= 0))
            p->out_of_memory |= !cJSON_AddItemReferenceToArray(slower, row);
    }
    if (cJSON_GetArraySize(slower) > 0) {
        html_put(&p->h, "<details><summary>Choices that are not the quickest</summary>\n");
        page_rows(p, "Choices that are not the quickest, and what is", slower, columns);
        html_put(&p->h, "</details>\n");
    }
    cJSON_Delete(slower);
}

static void show_map(page *p, const result *one, const cJSON *list, const char *mode) {
    grid g = {.heading = "case"};
    const char *memory = is_common(list, "memory") ? json_text(list->child, "memory") : "";
    char what[64], name[PLOT_NAME], title[256];
    fill(p, &g, list, mode);
    snprintf(what, sizeof what, "regret %.20s %.20s", mode ? mode : "", memory);
    snprintf(title, sizeof title, "Regret in percent, by case and number of elements: %.60s%s%.20s%s%.20s%s",
             result_file(one), mode ? ", " : "", mode ? mode : "", *memory ? ", " : "", memory,
             *memory ? " memory" : "");
    const page_figure figure = {.name = page_plot_name(what, one, name),
                                .title = title,
                                .from = one,
                                .g = &g,
                                .look = plot_plain(PLOT_HEAT, title, "elements")};
    page_show(p, &figure);
    grid_free(&g);
}

/* Returns how many modes the rows have; 0: more than a program has. */
static size_t list_modes(const cJSON *list, const char *modes[MOST_MODES]) {
    const cJSON *row = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(row, list) {
        const char *mode = json_text(row, "mode");
        size_t i = 0;
        while (i < n && strcmp(modes[i], mode) != 0)
            i++;
        if (i == MOST_MODES)
            return 0;
        modes[i] = mode;
        n += i == n;
    }
    return n;
}

/* A heat map of each mode, so that each has room for its rows. */
static void show_maps(page *p, const result *one, const cJSON *list) {
    const char *modes[MOST_MODES];
    const size_t n = list_modes(list, modes);
    if (n < 2)
        show_map(p, one, list, NULL);
    for (size_t i = 0; n > 1 && i < n; i++)
        show_map(p, one, list, modes[i]);
}

static void show(page *p, const result *one) {
    static const page_column columns[] = {{"op", "op", PAGE_TEXT},
                                          {"dtype", "type", PAGE_TEXT},
                                          {"segments", "segments", PAGE_TEXT},
                                          {"axes", "axes", PAGE_TEXT},
                                          {"count", "elements", PAGE_ELEMENTS},
                                          {"mode", "mode", PAGE_TEXT},
                                          {"cache", "cache", PAGE_TEXT},
                                          {"memory", "memory", PAGE_TEXT},
                                          {"winner", "quickest", PAGE_TEXT},
                                          {"winner_us", "us of the quickest", PAGE_NUMBER},
                                          {"chosen", "choice", PAGE_TEXT},
                                          {"chosen_us", "us of the choice", PAGE_NUMBER},
                                          {"regret_percent", "longer by %", PAGE_NUMBER},
                                          {0}};
    const cJSON *list = json_member(one->document, "regret");
    put_summary(p, one, list);
    show_maps(p, one, list);
    show_slower(p, list, columns);
}

void section_regret(page *p) {
    html_put(&p->h, "<p>Regret is how much longer the planner's choice takes than the quickest strategy that was "
                    "measured: 0 %% where the choice is the quickest.</p>\n");
    for (size_t i = 0; i < p->r->count; i++)
        if (cJSON_GetArraySize(json_member(p->r->at[i].document, "regret")) > 0)
            show(p, &p->r->at[i]);
}
