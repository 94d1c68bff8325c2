#include "bench_tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "lists.h"

enum { CELL = 40, COLUMNS = BENCH_SUBJECTS + 6 };

/* ---- Grids of text ---------------------------------------------------------------------------------------------- */

typedef struct grid {
    size_t rows, columns, room;
    char (*cells)[CELL]; /* row by row; the first is the heading */
} grid;

/* A new row of empty cells; NULL when out of memory. */
static char (*add_line(grid *g))[CELL] {
    if (g->rows == g->room) {
        const size_t room = g->room ? 2 * g->room : 16;
        void *cells = realloc(g->cells, room * g->columns * CELL);
        if (!cells)
            return NULL;
        g->cells = cells;
        g->room = room;
    }
    char(*line)[CELL] = g->cells + g->rows++ * g->columns;
    memset(line, 0, g->columns * CELL);
    return line;
}

static int width_of(const grid *g, size_t column) {
    size_t width = 0;
    for (size_t row = 0; row < g->rows; row++) {
        const size_t length = strlen(g->cells[row * g->columns + column]);
        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_grid(FILE *f, const grid *g, int markdown) {
    for (size_t row = 0; row < g->rows; row++) {
        for (size_t c = 0; c < g->columns; c++)
            fprintf(f, markdown ? "| %*s " : c ? "  %*s" : "%*s", width_of(g, c), g->cells[row * g->columns + c]);
        fputs(markdown ? "|\n" : "\n", f);
        for (size_t c = 0; markdown && row == 0 && c < g->columns; c++)
            fprintf(f, "|--:%s", c + 1 == g->columns ? "|\n" : "");
    }
}

/* ---- Cells ------------------------------------------------------------------------------------------------------ */

/* Three digits or so, without an exponent. */
static void print_number(char cell[CELL], double x, const char *after) {
    snprintf(cell, CELL, "%.*f%s", x < 10 ? 2 : x < 100 ? 1 : 0, x, after);
}

static void print_count(char cell[CELL], uint64_t count) {
    if (count < 1024 || (count & (count - 1)) != 0) {
        snprintf(cell, CELL, "%" PRIu64, count);
        return;
    }
    int exponent = 0;
    while (count >> exponent > 1)
        exponent++;
    snprintf(cell, CELL, "2^%d", exponent);
}

/* Marks: see the legend. */
static void print_row(char cell[CELL], const bench_results *r, const bench_row *row, int as_rate) {
    char marks[8] = "";
    if (row->wrong)
        strcat(marks, "!");
    if (row->verdict != BENCH_SETTLED)
        strcat(marks, "~");
    if (results_doubtful(r, row))
        strcat(marks, "?");
    if (row->chosen)
        strcat(marks, "*");
    if (!results_timed(row))
        snprintf(cell, CELL, "failed%s", row->chosen ? "*" : "");
    else
        print_number(cell, as_rate ? row->gb_per_s : row->us.median, marks);
}

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* Rows of one operation, type, mode and cache. */
typedef struct table {
    const bench_results *results;
    size_t first, n;
    int strategies;
    const char *strategy[BENCH_SUBJECTS];
} table;

static int column_of(const table *t, const char *strategy) {
    for (int i = 0; i < t->strategies; i++)
        if (strcmp(t->strategy[i], strategy) == 0)
            return i;
    return -1;
}

static table table_at(const bench_results *r, size_t first) {
    table t = {.results = r, .first = first};
    while (first + t.n < r->row_count && results_same_table(&r->rows[first].at, &r->rows[first + t.n].at)) {
        const char *strategy = r->rows[first + t.n++].strategy;
        if (column_of(&t, strategy) < 0 && t.strategies < BENCH_SUBJECTS)
            t.strategy[t.strategies++] = strategy;
    }
    return t;
}

/* Best strategy, choice and regret, in the last columns. */
static void print_verdict(char (*line)[CELL], const bench_row *rows, size_t n) {
    bench_regret regret;
    const bench_row *winner = results_winner(rows, n);
    snprintf(line[0], CELL, "%s", winner ? winner->strategy : "-");
    if (!results_regret(rows, n, &regret)) {
        snprintf(line[1], CELL, "-");
        snprintf(line[2], CELL, "-");
        return;
    }
    snprintf(line[1], CELL, "%s", regret.chosen->strategy);
    if (regret.chosen == regret.winner)
        snprintf(line[2], CELL, "0");
    else
        snprintf(line[2], CELL, "%.1f %%, %.2f us", 100 * regret.fraction, regret.us);
}

static int print_line(grid *g, const table *t, size_t first, size_t n, int as_rate) {
    const bench_row *rows = t->results->rows + first;
    char text[32], (*line)[CELL] = add_line(g);
    if (!line)
        return -1;
    print_count(line[0], rows->at.count);
    snprintf(line[1], CELL, "%s", cli_bytes(rows->at.count * dpr_dtypes[rows->at.dtype].size, text));
    for (int i = 0; i < t->strategies; i++)
        snprintf(line[2 + i], CELL, "-");
    for (size_t i = 0; i < n; i++) {
        const int column = column_of(t, rows[i].strategy);
        if (column >= 0)
            print_row(line[2 + column], t->results, &rows[i], as_rate);
    }
    if (!as_rate)
        print_verdict(line + 2 + t->strategies, rows, n);
    return 0;
}

static int print_table(FILE *f, const table *t, int as_rate, int markdown) {
    static const char *const last[] = {"best", "choice", "regret"};
    grid g = {.columns = 2 + (size_t)t->strategies + (as_rate ? 0 : 3)};
    char(*heading)[CELL] = add_line(&g);
    int status = heading ? 0 : -1;
    if (heading) {
        snprintf(heading[0], CELL, "elements");
        snprintf(heading[1], CELL, "bytes");
        for (int i = 0; i < t->strategies; i++)
            snprintf(heading[2 + i], CELL, "%s", t->strategy[i]);
        for (int i = 0; !as_rate && i < 3; i++)
            snprintf(heading[2 + t->strategies + i], CELL, "%s", last[i]);
    }
    for (size_t i = 0, n; i < t->n && status == 0; i += n) {
        n = results_case_rows(t->results, t->first + i);
        status = print_line(&g, t, t->first + i, n, as_rate);
    }
    if (status == 0)
        print_grid(f, &g, markdown);
    free(g.cells);
    return status;
}

static void print_title(FILE *f, const table *t, int markdown) {
    const bench_case *at = &t->results->rows[t->first].at;
    const char *calls = at->mode == BENCH_GRAPH    ? "calls in a graph"
                        : at->mode == BENCH_STREAM ? "calls into a stream"
                                                   : "blocking calls";
    fprintf(f, "%s%s of %s, %s, %s cache%s\n", markdown ? "### " : "", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
            calls, bench_cache_name(at->cache), markdown ? "\n" : ":");
}

/* ---- Summary ---------------------------------------------------------------------------------------------------- */

static void print_case(FILE *f, const bench_case *at) {
    char count[CELL];
    print_count(count, at->count);
    fprintf(f, "%s of %s, %s, %s, %s elements", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
            bench_mode_name(at->mode), bench_cache_name(at->cache), count);
}

static void print_regret(FILE *f, const bench_results *r) {
    bench_regret worst = {.fraction = -1}, one;
    int cases = 0, past = 0;
    for (size_t i = 0, n; i < r->row_count; i += n) {
        n = results_case_rows(r, i);
        if (!results_regret(r->rows + i, n, &one))
            continue;
        cases++;
        past += one.fraction > 0.05 && one.us > 0.2;
        if (one.fraction > worst.fraction)
            worst = one;
    }
    if (!worst.chosen)
        return;
    if (worst.fraction <= 0) {
        fprintf(f, "The planner's choice is the quickest in %d of %d.\n", cases, cases);
        return;
    }
    fprintf(f, "Worst regret: %.1f %%, %.2f us (", 100 * worst.fraction, worst.us);
    print_case(f, &worst.at);
    fprintf(f, ": %s chosen, %s quickest); more than 5 %% and 0.2 us in %d of %d.\n", worst.chosen->strategy,
            worst.winner->strategy, past, cases);
}

void tables_trouble(FILE *f, const bench_row *row) {
    if (row->state != BENCH_FAILED && row->wrong == 0)
        return;
    print_case(f, &row->at);
    if (row->wrong)
        fprintf(f, ": %s gave %ld WRONG results of %ld\n", row->strategy, row->wrong, row->checked);
    else
        fprintf(f, ": %s failed: %s\n", row->strategy, row->why);
}

void tables_omissions(FILE *f, const bench_results *r) {
    for (size_t i = 0; i < r->omission_count; i++) {
        size_t same = 0, before = 0;
        for (size_t j = 0; j < r->omission_count; j++)
            if (strcmp(r->omissions[i].why, r->omissions[j].why) == 0) {
                same++;
                before += j < i;
            }
        if (before)
            continue;
        fputs("Left out: ", f);
        print_case(f, &r->omissions[i].at);
        if (same > 1)
            fprintf(f, ", and %zu more", same - 1);
        fprintf(f, ": %s\n", r->omissions[i].why);
    }
}

static void print_legend(FILE *f, const bench_results *r) {
    int unsettled = 0, doubtful = 0;
    double slowdown = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        const bench_row *row = &r->rows[i];
        unsettled |= results_timed(row) && row->verdict != BENCH_SETTLED;
        doubtful |= results_timed(row) && results_doubtful(r, row);
        slowdown = row->slowdown > slowdown ? row->slowdown : slowdown;
    }
    fputs("* the planner's choice", f);
    if (unsettled)
        fprintf(f, "; ~ the median is not certain to %.2g %%", 100 * r->rule.half_width);
    if (doubtful)
        fprintf(f, "; ? the machine was slower than before, by up to %.0f %%", 100 * slowdown);
    fputs("\n", f);
}

int tables_write(FILE *f, const bench_results *r, int markdown) {
    fprintf(f, "%s%s, dpr %s%s%s\n\n", markdown ? "## " : "", r->device.name, dpr_version(), *r->commit ? " " : "",
            r->commit);
    for (size_t i = 0; i < r->row_count;) {
        const table t = table_at(r, i);
        print_title(f, &t, markdown);
        fputs("Microseconds a call:\n", f);
        if (markdown)
            fputs("\n", f);
        if (print_table(f, &t, 0, markdown) != 0)
            return -1;
        fputs(markdown ? "\nGB/s:\n\n" : "GB/s:\n", f);
        if (print_table(f, &t, 1, markdown) != 0)
            return -1;
        fputs("\n", f);
        i += t.n;
    }
    if (r->row_count)
        print_legend(f, r);
    print_regret(f, r);
    for (size_t i = 0; i < r->row_count; i++)
        tables_trouble(f, &r->rows[i]);
    tables_omissions(f, r);
    return 0;
}
