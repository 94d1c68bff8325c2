#include <string.h>

#include "bench_tables.h"
#include "figures.h"
#include "grid.h"
#include "lists.h"
#include "peers_floors.h"
#include "peers_report.h"

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* Columns: elements, dpr's choice, the time of each subject, the ratio of each peer, dpr's rate. */
typedef struct table {
    results_table rows;
    int peers, ratio[BENCH_SUBJECTS]; /* columns of subjects' ratios; 0: it is none of the peers */
} table;

enum { FIRST_TIME = 2 }; /* column */

static int rate_column(const table *t) {
    return FIRST_TIME + t->rows.subjects + t->peers;
}

static table table_at(const bench_results *r, size_t first) {
    table t = {.rows = results_table_at(r, first)};
    for (size_t i = first; i < first + t.rows.n; i++) {
        const int subject = results_subject(&t.rows, r->rows[i].subject);
        if (subject >= 0 && !r->rows[i].strategy && !t.ratio[subject])
            t.ratio[subject] = FIRST_TIME + t.rows.subjects + t.peers++;
    }
    return t;
}

static int print_heading(grid *g, const table *t) {
    char(*line)[GRID_CELL] = grid_add(g);
    if (!line)
        return -1;
    snprintf(line[0], GRID_CELL, "elements");
    snprintf(line[1], GRID_CELL, "choice");
    for (int i = 0; i < t->rows.subjects; i++) {
        snprintf(line[FIRST_TIME + i], GRID_CELL, "%.40s us", t->rows.subject[i]);
        if (t->ratio[i])
            snprintf(line[t->ratio[i]], GRID_CELL, "%.40s/" PEERS_OURS, t->rows.subject[i]);
    }
    snprintf(line[rate_column(t)], GRID_CELL, PEERS_OURS " GB/s");
    return 0;
}

static void print_time(char cell[GRID_CELL], const bench_results *r, const bench_row *row) {
    char number[32], marks[4];
    if (results_timed(row))
        snprintf(cell, GRID_CELL, "%s%s \u00b1%.1f%%", figure_digits(row->us.median, number),
                 tables_marks(r, row, marks), 50 * row->us.spread);
    else
        snprintf(cell, GRID_CELL, "failed");
}

static void print_row(char (*line)[GRID_CELL], const table *t, const bench_row *row) {
    const int subject = results_subject(&t->rows, row->subject);
    char number[32];
    if (subject < 0)
        return;
    print_time(line[FIRST_TIME + subject], t->rows.results, row);
    if (row->ratio.n && t->ratio[subject])
        snprintf(line[t->ratio[subject]], GRID_CELL, "%.3f [%.3f, %.3f]", row->ratio.median, row->ratio.low,
                 row->ratio.high);
    if (strcmp(row->subject, PEERS_OURS) != 0)
        return;
    snprintf(line[1], GRID_CELL, "%s", row->strategy);
    if (results_timed(row))
        snprintf(line[rate_column(t)], GRID_CELL, "%s", figure_digits(row->gb_per_s, number));
}

/* Of the n rows of a case. */
static int print_line(grid *g, const table *t, const bench_row *rows, size_t n) {
    char(*line)[GRID_CELL] = grid_add(g), text[32];
    if (!line)
        return -1;
    snprintf(line[0], GRID_CELL, "%s", figure_elements(rows->at.count, text));
    for (size_t c = 1; c < g->columns; c++)
        snprintf(line[c], GRID_CELL, "-");
    for (size_t i = 0; i < n; i++)
        print_row(line, t, &rows[i]);
    return 0;
}

static int print_table(FILE *f, const table *t, int markdown) {
    const bench_results *r = t->rows.results;
    const bench_case *at = &r->rows[t->rows.first].at;
    grid g = {.columns = (size_t)rate_column(t) + 1};
    int status = print_heading(&g, t);
    for (size_t i = t->rows.first, n; i < t->rows.first + t->rows.n && status == 0; i += n) {
        n = results_case_rows(r, i);
        status = print_line(&g, t, &r->rows[i], n);
    }
    fprintf(f, "%s%s of %s, %s, %s cache%s", markdown ? "### " : "", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
            bench_mode_name(at->mode), bench_cache_name(at->cache), markdown ? "\n\n" : ":\n");
    grid_print(f, &g, markdown);
    fputs("\n", f);
    grid_free(&g);
    return status;
}

/* ---- What is around them ---------------------------------------------------------------------------------------- */

static void print_legend(FILE *f, const peers_results *r) {
    fprintf(f,
            "Times are medians, with half the distance of the 10 %% and 90 %% quantiles. Ratios are a peer's time over "
            "dpr's, round by\nround: above 1, dpr is faster. In brackets: a 95 %% interval of the median. Copies move "
            "half of the array to other\nmemory, so that as many bytes are read and written as others read.\n"
            "~ the median is not certain to %.2g %%; ? the device was slower than before; ! wrong results\n",
            100 * r->common.rule.half_width);
    if (!r->cublas[0])
        fputs("Without cuBLAS.\n", f);
    if (r->common.ended)
        fprintf(f, "It ended early: %s.\n", r->common.ended);
}

int peers_write_tables(FILE *f, const peers_results *r, int markdown) {
    const bench_results *all = &r->common;
    tables_begin(f, all, markdown);
    fprintf(f, "%s%s%s%s\n\n", *r->cub ? ", CUB " : "", r->cub, *r->cublas ? ", cuBLAS " : "", r->cublas);
    for (size_t i = 0; i < all->row_count;) {
        const table t = table_at(all, i);
        if (print_table(f, &t, markdown) != 0)
            return -1;
        i += t.rows.n;
    }
    print_legend(f, r);
    for (size_t i = 0; i < all->row_count; i++)
        tables_trouble(f, &all->rows[i]);
    tables_omissions(f, all);
    return 0;
}

/* ---- Floors ----------------------------------------------------------------------------------------------------- */

static void describe_worst(char *text, size_t size, const floor_rule *rule, const floor_verdict *v) {
    char count[32];
    figure_elements(v->worst_count, count);
    if (rule->kind == FLOOR_RATIO)
        snprintf(text, size, "%.3f [%.3f, %.3f] at %s, ", v->worst, v->low, v->high, count);
    else
        snprintf(text, size, "%.3f at %s, ", v->worst, count);
}

static void print_floor(FILE *f, const floor_rule *rule, const floor_verdict *v, int markdown) {
    const int at_most = rule->kind == FLOOR_TIME || rule->kind == FLOOR_GROWTH;
    const char *verdict = v->counts == 0 ? "not measured" : v->missed ? "MISSES" : "holds";
    char low[32], high[32], bound[64], worst[128] = "";
    snprintf(bound, sizeof bound, "%s %s %g", floors_kind_text(rule->kind), at_most ? "<=" : ">=", rule->bound);
    if (v->worst_count)
        describe_worst(worst, sizeof worst, rule, v);
    fprintf(f,
            markdown ? "| %s of %s | %s, %s | %s to %s | %s | %s | "
                     : "%6s of %-4s  %-8s %-4s  %4s to %-4s  %-16s  %-12s  ",
            dpr_ops[rule->op].name, dpr_dtypes[rule->dtype].name, bench_mode_name(rule->mode),
            bench_cache_name(rule->cache), figure_elements(rule->low, low), figure_elements(rule->high, high), bound,
            verdict);
    if (v->counts)
        fprintf(f, "%s%d of %d counts miss", worst, v->missed, v->counts);
    if (v->failed)
        fprintf(f, ", %d failed", v->failed);
    fputs(markdown ? " |\n" : "\n", f);
}

void peers_write_floors(FILE *f, const bench_results *r, int markdown) {
    floor_rule rule;
    const floors_tally t = floors_count(r);
    fputs(markdown
              ? "\n### Floors\n\n| problem | mode | elements | bound | verdict | worst |\n|---|---|---|---|---|---|\n"
              : "\nFloors:\n",
          f);
    for (size_t i = 0; floors_rule(i, &rule) == 0; i++) {
        const floor_verdict v = floors_judge(&rule, r);
        print_floor(f, &rule, &v, markdown);
    }
    fprintf(f, "%s%d hold, %d are missed, %d were not measured.\n", markdown ? "\n" : "", t.held, t.missed,
            t.unmeasured);
}
