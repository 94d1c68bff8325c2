#include "bench_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "figures.h"
#include "grow.h"

bench_row *results_add_row(bench_results *r) {
    bench_row *rows = grow(r->rows, r->row_count, sizeof *rows);
    if (!rows)
        return NULL;
    r->rows = rows;
    rows[r->row_count] = (bench_row){.subject = NULL};
    return &rows[r->row_count++];
}

bench_omission *results_add_omission(bench_results *r) {
    bench_omission *omissions = grow(r->omissions, r->omission_count, sizeof *omissions);
    if (!omissions)
        return NULL;
    r->omissions = omissions;
    omissions[r->omission_count] = (bench_omission){.why = ""};
    return &omissions[r->omission_count++];
}

void results_free(bench_results *r) {
    free(r->rows);
    free(r->omissions);
    *r = (bench_results){0};
}

/* Whether the two cases differ in nothing but the count and the shape. */
static int is_alike(const bench_case *a, const bench_case *b) {
    return ops_same(&a->ops, &b->ops) && a->dtype == b->dtype && a->mode == b->mode && a->cache == b->cache
           && a->memory == b->memory;
}

int results_same_case(const bench_case *a, const bench_case *b) {
    return is_alike(a, b) && a->count == b->count && a->shape == b->shape;
}

const char *results_memory(const bench_case *at, char text[RESULTS_MEMORY]) {
    text[0] = 0;
    if (at->memory != DPR_MEMORY_AUTO)
        snprintf(text, RESULTS_MEMORY, ", %s memory", cli_memory_name(at->memory));
    return text;
}

const char *results_name(const bench_case *at, char text[RESULTS_TEXT]) {
    char count[32], ops[OPS_TEXT], memory[RESULTS_MEMORY];
    snprintf(text, RESULTS_TEXT, "%s of %s, %s%s%s, %s%s, %s elements", ops_name(&at->ops, ops),
             dpr_dtype_name(at->dtype), at->shape ? at->shape->name : "", at->shape ? ", " : "",
             bench_mode_name(at->mode), bench_cache_name(at->cache), results_memory(at, memory),
             figure_elements(at->count, count));
    return text;
}

const char *results_trouble(const bench_row *row, char text[RESULTS_TEXT]) {
    char name[RESULTS_TEXT];
    results_name(&row->at, name);
    text[0] = 0;
    if (row->wrong)
        snprintf(text, RESULTS_TEXT, "%.120s: %s gave %ld WRONG results of %ld", name, row->subject, row->wrong,
                 row->checked);
    else if (row->state == BENCH_FAILED)
        snprintf(text, RESULTS_TEXT, "%.120s: %s failed: %s", name, row->subject, row->why);
    return text;
}

size_t results_alike(const bench_results *r, size_t first, int any_count) {
    const bench_row *row = &r->rows[first];
    size_t n = 1;
    while (first + n < r->row_count && is_alike(&row->at, &row[n].at)
           && (any_count || results_same_case(&row->at, &row[n].at)))
        n++;
    return n;
}

const bench_row *results_find(const bench_results *r, const bench_case *at, const char *subject) {
    for (size_t i = 0; i < r->row_count; i++) {
        const bench_row *row = &r->rows[i];
        if (results_same_case(&row->at, at) && (subject ? strcmp(row->subject, subject) == 0 : row->chosen))
            return row;
    }
    return NULL;
}

int results_timed(const bench_row *row) {
    return row->state == BENCH_DONE && row->us.n > 0;
}

int results_right(const bench_row *row) {
    return results_timed(row) && row->wrong == 0;
}

/* The mean spread of the n rows from `first` on: subjects take turns, so what disturbs one disturbs all. */
static double mean_spread(const bench_results *r, size_t first, size_t n) {
    double sum = 0;
    size_t timed = 0;
    for (size_t i = first; i < first + n; i++)
        if (results_timed(&r->rows[i])) {
            sum += r->rows[i].us.spread;
            timed++;
        }
    return timed ? sum / (double)timed : 0;
}

static int has_trouble(const bench_results *r, size_t first, size_t n) {
    char text[RESULTS_TEXT];
    for (size_t i = first; i < first + n; i++)
        if (*results_trouble(&r->rows[i], text))
            return 1;
    return 0;
}

/* tools/bench/README.md has the measurements behind the 3 %. Samples that scatter by less than the accuracy cannot make
 * their median less certain than that. */
int results_disturbed(const bench_results *r, size_t first, size_t n) {
    const double calm = fmax(0.03, r->rule.half_width);
    return r->rows[first].at.mode != BENCH_GRAPH && mean_spread(r, first, n) > calm && !has_trouble(r, first, n);
}

/* Whether the rows from `from` on have enough samples, taken while the machine was as fast as before. */
static int is_complete(const bench_results *r, size_t from) {
    for (size_t i = from; i < r->row_count; i++)
        if (results_timed(&r->rows[i]) && (r->rows[i].verdict == BENCH_MORE || results_doubtful(r, &r->rows[i])))
            return 0;
    return 1;
}

void results_keep_later(bench_results *r, size_t first, size_t n, size_t again, int only_if_calmer) {
    const int is_whole = r->row_count - again == n;
    const int is_wanted =
        is_whole && is_complete(r, again) && (!only_if_calmer || mean_spread(r, again, n) < mean_spread(r, first, n));
    if (is_wanted || (is_whole && has_trouble(r, again, n)))
        memcpy(&r->rows[first], &r->rows[again], n * sizeof *r->rows);
    r->row_count = again;
}

int results_choice_seems_slow(const bench_results *r, size_t first, size_t n) {
    bench_regret regret;
    return !has_trouble(r, first, n) && results_regret(r->rows + first, n, &regret) && regret.winner->strategy
           && regret.fraction > 0.05;
}

/* Other programs disturb the reference of the CPU more than that of a GPU. */
static double most_slowdown(const bench_results *r) {
    static const double on_cpu = 0.15, on_gpu = 0.03;
    return r->device.ordinal == DPR_DEVICE_CPU ? on_cpu : on_gpu;
}

int results_doubtful(const bench_results *r, const bench_row *row) {
    return row->slowdown > most_slowdown(r);
}

int results_slower_than_usual(const bench_results *r, size_t i) {
    enum { LATEST = 255 };
    const size_t n = i < LATEST ? i + 1 : LATEST;
    double slowdowns[LATEST];
    for (size_t k = 0; k < n; k++)
        slowdowns[k] = r->rows[i - k].slowdown;
    const double usual = bench_summarise(slowdowns, (int)n).median;
    return 1 - r->rows[i].slowdown < (1 - usual) * (1 - most_slowdown(r));
}

void results_regrets(const bench_results *r, bench_regrets *sum) {
    bench_regret one;
    for (size_t i = 0; i < r->row_count; i += results_alike(r, i, 0)) {
        if (!results_regret(r->rows + i, results_alike(r, i, 0), &one))
            continue;
        if (sum->cases++ == 0 || one.fraction > sum->worst.fraction)
            sum->worst = one;
        sum->past += one.fraction > 0.05 && one.us > 0.2;
        sum->logarithms += log1p(one.fraction);
    }
}

double results_mean_regret(const bench_regrets *sum) {
    return sum->cases > 0 ? expm1(sum->logarithms / sum->cases) : 0;
}

double results_over_floor(const bench_results *r, const bench_row *row) {
    return row->bytes ? 1e3 * row->us.median * r->read_gb_per_s / (double)row->bytes : 0;
}

const bench_row *results_winner(const bench_row *rows, size_t n) {
    const bench_row *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (results_right(&rows[i]) && (!best || rows[i].us.median < best->us.median))
            best = &rows[i];
    return best;
}

int results_regret(const bench_row *rows, size_t n, bench_regret *out) {
    const bench_row *winner = results_winner(rows, n), *chosen = NULL;
    for (size_t i = 0; i < n; i++)
        if (rows[i].chosen && results_right(&rows[i]))
            chosen = &rows[i];
    if (!chosen || winner->us.median <= 0)
        return 0;
    const double us = chosen->us.median - winner->us.median;
    *out = (bench_regret){chosen->at, winner, chosen, us, us / winner->us.median};
    return 1;
}
