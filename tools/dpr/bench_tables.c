#include "bench_tables.h"

#include <string.h>

#include "defuse.h"
#include "figures.h"
#include "grid.h"
#include "lists.h"

/* ---- Cells ------------------------------------------------------------------------------------------------------ */

const char *tables_marks(const bench_results *r, const bench_row *row, char text[4]) {
    snprintf(text, 4, "%s%s%s", row->wrong ? "!" : "", row->verdict == BENCH_SETTLED ? "" : "~",
             results_doubtful(r, row) ? "?" : "");
    return text;
}

static void print_row(char cell[GRID_CELL], const bench_results *r, const bench_row *row, int as_rate) {
    const char *chosen = row->chosen ? "*" : "";
    char marks[4], number[32];
    if (!results_timed(row))
        snprintf(cell, GRID_CELL, "failed%s", chosen);
    else
        snprintf(cell, GRID_CELL, "%s%s%s", figure_digits(as_rate ? row->gb_per_s : row->us.median, number),
                 tables_marks(r, row, marks), chosen);
}

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* Best strategy, choice and regret, in the last columns. */
static void print_verdict(char (*line)[GRID_CELL], const bench_row *rows, size_t n) {
    bench_regret regret;
    const bench_row *winner = results_winner(rows, n);
    snprintf(line[0], GRID_CELL, "%s", winner ? winner->strategy : "-");
    if (!results_regret(rows, n, &regret)) {
        snprintf(line[1], GRID_CELL, "-");
        snprintf(line[2], GRID_CELL, "-");
        return;
    }
    snprintf(line[1], GRID_CELL, "%s", regret.chosen->strategy);
    if (regret.chosen == regret.winner)
        snprintf(line[2], GRID_CELL, "0");
    else
        snprintf(line[2], GRID_CELL, "%.1f %%, %.2f us", 100 * regret.fraction, regret.us);
}

static int print_line(grid *g, const results_table *t, size_t first, size_t n, int as_rate) {
    const bench_row *rows = t->results->rows + first;
    char text[32], (*line)[GRID_CELL] = grid_add(g);
    if (!line)
        return -1;
    snprintf(line[0], GRID_CELL, "%s", figure_elements(rows->at.count, text));
    snprintf(line[1], GRID_CELL, "%s", figure_bytes(rows->at.count * dpr_dtypes[rows->at.dtype].size, text));
    for (int i = 0; i < t->subjects; i++)
        snprintf(line[2 + i], GRID_CELL, "-");
    for (size_t i = 0; i < n; i++) {
        const int column = results_subject(t, rows[i].subject);
        if (column >= 0)
            print_row(line[2 + column], t->results, &rows[i], as_rate);
    }
    if (!as_rate)
        print_verdict(line + 2 + t->subjects, rows, n);
    return 0;
}

static int print_table(FILE *f, const results_table *t, int as_rate, int markdown) {
    static const char *const last[] = {"best", "choice", "regret"};
    grid g = {.columns = 2 + (size_t)t->subjects + (as_rate ? 0 : 3)};
    char(*heading)[GRID_CELL] = grid_add(&g);
    int status = heading ? 0 : -1;
    if (heading) {
        snprintf(heading[0], GRID_CELL, "elements");
        snprintf(heading[1], GRID_CELL, "bytes");
        for (int i = 0; i < t->subjects; i++)
            snprintf(heading[2 + i], GRID_CELL, "%s", t->subject[i]);
        for (int i = 0; !as_rate && i < 3; i++)
            snprintf(heading[2 + t->subjects + i], GRID_CELL, "%s", last[i]);
    }
    for (size_t i = 0, n; i < t->n && status == 0; i += n) {
        n = results_case_rows(t->results, t->first + i);
        status = print_line(&g, t, t->first + i, n, as_rate);
    }
    if (status == 0)
        grid_print(f, &g, markdown);
    grid_free(&g);
    return status;
}

/* The block size that rows of the table were asked to have; 0: none was. */
static int block_of(const results_table *t) {
    int block = 0;
    for (size_t i = 0; i < t->n; i++)
        block = t->results->rows[t->first + i].block ? t->results->rows[t->first + i].block : block;
    return block;
}

void tables_title(FILE *f, const bench_case *at, int block) {
    const char *calls = at->mode == BENCH_GRAPH    ? "calls in a graph"
                        : at->mode == BENCH_STREAM ? "calls into a stream"
                                                   : "blocking calls";
    fprintf(f, "%s of %s, %s, %s cache", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name, calls,
            bench_cache_name(at->cache));
    if (block)
        fprintf(f, ", %d threads a block where that can be chosen", block);
}

static void print_title(FILE *f, const results_table *t, int markdown) {
    const bench_case *at = &t->results->rows[t->first].at;
    fputs(markdown ? "### " : "", f);
    tables_title(f, at, block_of(t));
    fputs(markdown ? "\n\n" : ":\n", f);
}

/* ---- Summary ---------------------------------------------------------------------------------------------------- */

static void print_case(FILE *f, const bench_case *at) {
    char count[32];
    fprintf(f, "%s of %s, %s, %s, %s elements", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
            bench_mode_name(at->mode), bench_cache_name(at->cache), figure_elements(at->count, count));
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
        fprintf(f, ": %s gave %ld WRONG results of %ld", row->subject, row->wrong, row->checked);
    else
        fprintf(f, ": %s failed: ", row->subject);
    defuse_put(f, row->wrong ? "" : row->why);
    fputs("\n", f);
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
        fputs(": ", f);
        defuse_put(f, r->omissions[i].why);
        fputs("\n", f);
    }
}

void tables_legend(FILE *f, const bench_results *r) {
    int unsettled = 0, doubtful = 0;
    double slowdown = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        const bench_row *row = &r->rows[i];
        unsettled |= results_timed(row) && row->verdict != BENCH_SETTLED;
        doubtful |= results_timed(row) && results_doubtful(r, row);
        slowdown = row->slowdown > slowdown ? row->slowdown : slowdown;
    }
    fputs("Marks: * the planner's choice", f);
    if (unsettled)
        fprintf(f, "; ~ the median is not certain to %.2g %%", 100 * r->rule.half_width);
    if (doubtful)
        fprintf(f, "; ? the machine was slower than before, by up to %.0f %%", 100 * slowdown);
    fputs("\n", f);
}

void tables_begin(FILE *f, const bench_results *r, int markdown) {
    fputs(markdown ? "## " : "", f);
    defuse_put(f, r->device.name);
    fprintf(f, ", dpr %s%s", dpr_version(), *r->commit ? " " : "");
    defuse_put(f, r->commit);
}

int tables_write(FILE *f, const bench_results *r, int markdown) {
    tables_begin(f, r, markdown);
    fputs("\n\n", f);
    for (size_t i = 0; i < r->row_count;) {
        const results_table t = results_table_at(r, i);
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
    if (r->row_count) {
        tables_legend(f, r);
        fputs(markdown ? "\n" : "", f);
    }
    print_regret(f, r);
    for (size_t i = 0; i < r->row_count; i++)
        tables_trouble(f, &r->rows[i]);
    tables_omissions(f, r);
    return 0;
}
