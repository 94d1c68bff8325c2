#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

/* ---- Colours ---------------------------------------------------------------------------------------------------- */

static const char *name_column(const result_row *row, char text[GRID_NAME]) {
    if (isfinite(row->block))
        snprintf(text, GRID_NAME, "%.100s, block %.0f", row->subject, row->block);
    else
        snprintf(text, GRID_NAME, "%s", row->subject);
    return text;
}

static void add_name(palette *colours, const char *name) {
    for (size_t i = 0; i < colours->count; i++)
        if (strcmp(colours->names[i], name) == 0)
            return;
    if (colours->count < GRID_COLUMNS)
        snprintf(colours->names[colours->count++], GRID_NAME, "%s", name);
}

void palette_fill(palette *colours, const results *r, result_kind kind) {
    char name[GRID_NAME];
    colours->count = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; r->at[i].kind == kind && k < r->at[i].count; k++)
            if (!*r->at[i].rows[k].shape)
                add_name(colours, name_column(&r->at[i].rows[k], name));
}

void palette_of(const palette *colours, const grid *g, int out[GRID_COLUMNS]) {
    for (size_t i = 0; i < g->columns; i++) {
        size_t k = 0;
        while (k < colours->count && strcmp(colours->names[k], g->column[i]) != 0)
            k++;
        out[i] = (int)(k < colours->count ? k : colours->count + i);
    }
}

/* ---- Grids ------------------------------------------------------------------------------------------------------ */

double case_time(const result_row *row) {
    return row->us;
}
double case_rate(const result_row *row) {
    return row->gb_per_s;
}
double case_ratio(const result_row *row) {
    return row->ratio;
}

result_case case_of_result(const result_case *c, size_t i) {
    size_t end = i;
    if (i == 0 || c->rows[i - 1]->result != c->rows[i]->result)
        while (end < c->count && c->rows[end]->result == c->rows[i]->result)
            end++;
    return (result_case){.rows = c->rows + i, .count = end - i};
}

/* "2^20"; of a shape "zipf, 2^20". */
static const char *name_row(const result_row *row, char text[GRID_NAME]) {
    char size[32] = "-";
    if (row->count >= 0 && row->count < 0x1p63)
        figure_elements((uint64_t)row->count, size);
    snprintf(text, GRID_NAME, "%.100s%s%s", row->shape, *row->shape ? ", " : "", size);
    return text;
}

void case_fill(grid *g, const result_case *own, case_value value) {
    char name[GRID_NAME];
    for (size_t i = 0; i < own->count; i++) {
        const result_row *row = own->rows[i];
        if (isnan(value(row)) && row->ok)
            continue;
        const int at = grid_row_of(g, name_row(row, name), *row->shape ? NAN : row->count);
        grid_set(g, at, grid_column_of(g, name_column(row, name)), page_cell(row, value(row)));
    }
    if (own->count && !*own->rows[0]->shape)
        grid_sort(g);
}

void case_ranges(const result_case *c, case_value value, double rule, plot_look *look) {
    double low = INFINITY, high = -INFINITY, left = INFINITY, right = -INFINITY;
    for (size_t i = 0; i < c->count; i++) {
        const result_row *row = c->rows[i];
        if (!row->ok || !(value(row) >= 0) || (!*row->shape && !(row->count >= 0)))
            continue;
        if (value(row) > 0)
            low = fmin(low, value(row));
        high = fmax(high, value(row));
        left = fmin(left, row->count);
        right = fmax(right, row->count);
    }
    look->low = !look->logarithmic ? 0 : low <= high ? low / 1.4 : NAN;
    look->high = !(low <= high) ? NAN : look->logarithmic ? high * 1.4 : 1.08 * high;
    if (isfinite(rule) && isfinite(look->high)) {
        look->high = fmax(look->high, 1.08 * rule);
        look->low = fmin(look->low, rule / 1.4);
    }
    look->left = left <= right ? left : NAN;
    look->right = left <= right ? right : NAN;
}

/* ---- The planner's choices -------------------------------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b) {
    const double x = (*(const result_row *const *)a)->count, y = (*(const result_row *const *)b)->count;
    return (x > y) - (x < y);
}

size_t case_choices(const result_case *own, case_choice choices[CASE_CHOICES], size_t *left_out) {
    const result_row **chosen = calloc(own->count + 1, sizeof(const result_row *));
    size_t rows = 0, n = 0;
    *left_out = 0;
    for (size_t i = 0; chosen && i < own->count; i++)
        if (own->rows[i]->chosen && own->rows[i]->count >= 0)
            chosen[rows++] = own->rows[i];
    if (chosen)
        qsort(chosen, rows, sizeof(const result_row *), compare_counts);
    for (size_t i = 0; i < rows; i++) {
        const int is_larger = n == 0 || choices[n - 1].to < chosen[i]->count;
        if (n > 0 && *left_out == 0 && strcmp(choices[n - 1].strategy, chosen[i]->strategy) == 0)
            choices[n - 1].to = chosen[i]->count;
        else if (n == CASE_CHOICES)
            *left_out += (size_t)is_larger;
        else if (is_larger)
            choices[n++] = (case_choice){chosen[i]->count, chosen[i]->count, chosen[i]->strategy};
    }
    free(chosen);
    return n;
}

size_t case_crossovers(const case_choice *choices, size_t n, double places[CASE_CHOICES]) {
    for (size_t i = 1; i < n; i++)
        places[i - 1] = sqrt(fmax(choices[i - 1].to, 0.5) * choices[i].from);
    return n ? n - 1 : 0;
}

void case_put_choices(html *h, const result *one, const case_choice *choices, size_t n, size_t left_out) {
    char from[32], to[32];
    if (n == 0)
        return;
    html_put(h, "<p>");
    html_text(h, result_file(one));
    html_put(h, ": the planner chooses ");
    for (size_t i = 0; i < n; i++) {
        const int is_range = choices[i].from < choices[i].to;
        figure_elements((uint64_t)fmax(choices[i].from, 0), from);
        figure_elements((uint64_t)fmax(choices[i].to, 0), to);
        html_put(h, "%s<code>", i ? ", " : "");
        html_text(h, choices[i].strategy);
        html_put(h, "</code> %s %s%s%s", is_range ? "from" : "at", from, is_range ? " to " : "", is_range ? to : "");
    }
    html_put(h, " elements");
    if (left_out)
        html_put(h, ", and there are %zu larger sizes, whose choices are left out", left_out);
    html_put(h, ".</p>\n");
}

/* ---- Cases of the page ------------------------------------------------------------------------------------------ */

void case_open(page *p, const result_case *c, int open) {
    char name[RESULT_NAME];
    html_put(&p->h, "<details class=\"case\"%s><summary><h3>", open ? " open" : "");
    html_text(&p->h, result_case_name(c->rows[0], name));
    html_put(&p->h, "</h3></summary>\n");
}

void case_close(page *p) {
    html_put(&p->h, "</details>\n");
}

size_t case_main(const result_cases *cases) {
    for (size_t i = 0; i < cases->count; i++)
        if (strcmp(cases->at[i].rows[0]->op, "sum") == 0 && strcmp(cases->at[i].rows[0]->dtype, "f32") == 0)
            return i;
    return 0;
}
