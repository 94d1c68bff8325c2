#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_tables.h"
#include "lists.h"
#include "peers_floors.h"
#include "peers_report.h"

enum { CELL = 64 };

/* ---- Cells ------------------------------------------------------------------------------------------------------ */

/* Three digits or so, without an exponent. */
static int print_number(char *cell, size_t size, double x) {
    return snprintf(cell, size, "%.*f", x < 10 ? 2 : x < 100 ? 1 : 0, x);
}

static void print_count(char cell[CELL], uint64_t count) {
    int exponent = 0;
    while (exponent < 63 && UINT64_C(1) << exponent < count)
        exponent++;
    if (count == UINT64_C(1) << exponent)
        snprintf(cell, CELL, "2^%d", exponent);
    else
        snprintf(cell, CELL, "%" PRIu64, count);
}

static void print_time(char cell[CELL], const peers_results *r, const peers_row *row) {
    const bench_row *b = &row->row;
    if (!results_timed(b)) {
        snprintf(cell, CELL, "failed");
        return;
    }
    const int n = print_number(cell, CELL, b->us.median);
    snprintf(cell + n, CELL - (size_t)n, "%s%s%s \u00b1%.1f%%", b->wrong ? "!" : "",
             b->verdict == BENCH_SETTLED ? "" : "~", results_doubtful(&r->common, b) ? "?" : "", 50 * b->us.spread);
}

static void print_ratio(char cell[CELL], const bench_summary *ratio) {
    if (ratio->n)
        snprintf(cell, CELL, "%.3f [%.3f, %.3f]", ratio->median, ratio->low, ratio->high);
}

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* Rows of one operation, type, mode and cache. Columns: elements, dpr's choice, the time of each subject, the ratio of
 * each peer, dpr's rate. */
typedef struct table {
    const peers_results *results;
    size_t first, n;
    int subjects, columns;
    const char *subject[BENCH_SUBJECTS];
    int peer[BENCH_SUBJECTS], peers; /* numbers of subjects that are peers */
} table;

static int subject_of(const table *t, const char *name) {
    for (int i = 0; i < t->subjects; i++)
        if (strcmp(t->subject[i], name) == 0)
            return i;
    return -1;
}

static table table_at(const peers_results *r, size_t first) {
    table t = {.results = r, .first = first, .n = peers_table_rows(r, first)};
    for (size_t i = first; i < first + t.n; i++) {
        const char *name = r->rows[i].row.strategy;
        if (subject_of(&t, name) >= 0 || t.subjects == BENCH_SUBJECTS)
            continue;
        if (!r->rows[i].ran)
            t.peer[t.peers++] = t.subjects;
        t.subject[t.subjects++] = name;
    }
    t.columns = 3 + t.subjects + t.peers;
    return t;
}

static void print_heading(const table *t, int column, char cell[CELL]) {
    const int ratio = column - 2 - t->subjects;
    if (column < 2)
        snprintf(cell, CELL, "%s", column == 0 ? "elements" : "choice");
    else if (ratio < 0)
        snprintf(cell, CELL, "%.40s us", t->subject[column - 2]);
    else if (ratio < t->peers)
        snprintf(cell, CELL, "%.40s/" PEERS_OURS, t->subject[t->peer[ratio]]);
    else
        snprintf(cell, CELL, PEERS_OURS " GB/s");
}

/* One cell of the line whose rows begin at `first`. */
static void print_cell(const table *t, size_t first, int column, char cell[CELL]) {
    const peers_results *r = t->results;
    const bench_case *at = &r->rows[first].row.at;
    const int ratio = column - 2 - t->subjects;
    const char *name = column < 2 || ratio >= t->peers ? PEERS_OURS
                       : ratio < 0                     ? t->subject[column - 2]
                                                       : t->subject[t->peer[ratio]];
    const peers_row *row = peers_find(r, at, name);
    snprintf(cell, CELL, "-");
    if (column == 0)
        print_count(cell, at->count);
    else if (!row)
        return;
    else if (column == 1)
        snprintf(cell, CELL, "%s", row->ran ? row->ran : "-");
    else if (ratio < 0)
        print_time(cell, r, row);
    else if (ratio < t->peers)
        print_ratio(cell, &row->ratio);
    else if (results_timed(&row->row))
        print_number(cell, CELL, row->row.gb_per_s);
}

/* Characters, of which all but the first bytes of UTF-8 sequences are parts. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void put(FILE *f, const char *cell, int width, int markdown) {
    fprintf(f, "%s%*s%s%s", markdown ? "| " : "", width - width_of(cell), "", cell, markdown ? " " : "  ");
}

static void print_line(FILE *f, const table *t, const int widths[], size_t first, int is_heading, int markdown) {
    char cell[CELL];
    for (int c = 0; c < t->columns; c++) {
        if (is_heading)
            print_heading(t, c, cell);
        else
            print_cell(t, first, c, cell);
        put(f, cell, widths[c], markdown);
    }
    fputs(markdown ? "|\n" : "\n", f);
}

static void measure_widths(const table *t, int widths[]) {
    char cell[CELL];
    for (int c = 0; c < t->columns; c++) {
        print_heading(t, c, cell);
        widths[c] = width_of(cell);
        for (size_t i = t->first; i < t->first + t->n; i += peers_case_rows(t->results, i)) {
            print_cell(t, i, c, cell);
            widths[c] = width_of(cell) > widths[c] ? width_of(cell) : widths[c];
        }
    }
}

static void print_table(FILE *f, const table *t, int markdown) {
    const bench_case *at = &t->results->rows[t->first].row.at;
    int widths[2 * BENCH_SUBJECTS + 3] = {0};
    fprintf(f, "%s%s of %s, %s, %s cache%s", markdown ? "### " : "", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
            bench_mode_name(at->mode), bench_cache_name(at->cache), markdown ? "\n\n" : ":\n");
    measure_widths(t, widths);
    print_line(f, t, widths, 0, 1, markdown);
    for (int c = 0; markdown && c < t->columns; c++)
        fprintf(f, "|--:%s", c + 1 == t->columns ? "|\n" : "");
    for (size_t i = t->first; i < t->first + t->n; i += peers_case_rows(t->results, i))
        print_line(f, t, widths, i, 0, markdown);
    fputs("\n", f);
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
    if (r->ended)
        fprintf(f, "It ended early: %s.\n", r->ended);
}

void peers_write_tables(FILE *f, const peers_results *r, int markdown) {
    fprintf(f, "%s%s, dpr %s%s%s", markdown ? "## " : "", r->common.device.name, dpr_version(),
            *r->common.commit ? " " : "", r->common.commit);
    fprintf(f, "%s%s%s%s\n\n", *r->cub ? ", CUB " : "", r->cub, *r->cublas ? ", cuBLAS " : "", r->cublas);
    for (size_t i = 0; i < r->count; i += peers_table_rows(r, i)) {
        const table t = table_at(r, i);
        print_table(f, &t, markdown);
    }
    print_legend(f, r);
    for (size_t i = 0; i < r->count; i++)
        tables_trouble(f, &r->rows[i].row);
    tables_omissions(f, &r->common);
}

/* ---- Floors ----------------------------------------------------------------------------------------------------- */

static void describe_worst(char text[2 * CELL], const floor_rule *rule, const floor_verdict *v) {
    char count[CELL];
    print_count(count, v->worst_count);
    if (rule->kind == FLOOR_RATIO)
        snprintf(text, 2 * (size_t)CELL, "%.3f [%.3f, %.3f] at %s, ", v->worst, v->low, v->high, count);
    else
        snprintf(text, 2 * (size_t)CELL, "%.3f at %s, ", v->worst, count);
}

static void print_floor(FILE *f, const floor_rule *rule, const floor_verdict *v, int markdown) {
    const int at_most = rule->kind == FLOOR_TIME || rule->kind == FLOOR_GROWTH;
    const char *verdict = v->counts == 0 ? "not measured" : v->missed ? "MISSES" : "holds";
    char low[CELL], high[CELL], bound[CELL], worst[2 * CELL] = "";
    print_count(low, rule->low);
    print_count(high, rule->high);
    snprintf(bound, CELL, "%s %s %g", floors_kind_text(rule->kind), at_most ? "<=" : ">=", rule->bound);
    if (v->worst_count)
        describe_worst(worst, rule, v);
    fprintf(f,
            markdown ? "| %s of %s | %s, %s | %s to %s | %s | %s | "
                     : "%6s of %-4s  %-8s %-4s  %4s to %-4s  %-16s  %-12s  ",
            dpr_ops[rule->op].name, dpr_dtypes[rule->dtype].name, bench_mode_name(rule->mode),
            bench_cache_name(rule->cache), low, high, bound, verdict);
    if (v->counts)
        fprintf(f, "%s%d of %d counts miss", worst, v->missed, v->counts);
    if (v->failed)
        fprintf(f, ", %d failed", v->failed);
    fputs(markdown ? " |\n" : "\n", f);
}

void peers_write_floors(FILE *f, const peers_results *r, int markdown) {
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
