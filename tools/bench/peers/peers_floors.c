#include "peers_floors.h"

#include <string.h>

#define P(exponent) (UINT64_C(1) << (exponent))

/* For each of the pairs below. */
static const floor_rule spans[] = {
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(0), .high = P(12), .kind = FLOOR_RATIO, .bound = 1.0},
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(13), .high = P(17), .kind = FLOOR_RATIO, .bound = 1.4},
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(18), .high = P(20), .kind = FLOOR_RATIO, .bound = 1.25},
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(21), .high = P(23), .kind = FLOOR_RATIO, .bound = 1.15},
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(24), .high = P(25), .kind = FLOOR_RATIO, .bound = 1.05},
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(26), .high = P(33), .kind = FLOOR_RATIO, .bound = 0.998},
    {.mode = BENCH_GRAPH, .cache = BENCH_COLD, .low = P(31), .high = P(33), .kind = FLOOR_GROWTH, .bound = 1.02},
    {.mode = BENCH_GRAPH, .cache = BENCH_HOT, .low = P(13), .high = P(23), .kind = FLOOR_RATIO, .bound = 1.1},
    {.mode = BENCH_STREAM, .cache = BENCH_COLD, .low = P(0), .high = P(20), .kind = FLOOR_RATIO, .bound = 2.0},
    {.mode = BENCH_BLOCKING, .cache = BENCH_COLD, .low = P(0), .high = P(20), .kind = FLOOR_RATIO, .bound = 2.3},
    {.mode = BENCH_BLOCKING, .cache = BENCH_COLD, .low = P(0), .high = P(14), .kind = FLOOR_TIME, .bound = 9},
};

static const struct {
    dpr_op op;
    dpr_dtype dtype;
} pairs[] = {{DPR_SUM, DPR_F32}, {DPR_SUM, DPR_I32}, {DPR_SUM, DPR_F64}, {DPR_MIN, DPR_F32}, {DPR_MAX, DPR_F32}};

/* In a graph, with a cold cache. */
static const struct {
    dpr_op op;
    dpr_dtype dtype;
    uint64_t count;
    double tb_per_s;
} rates[] = {
    {DPR_SUM, DPR_U8, P(30), 4.2},     {DPR_ARGMAX, DPR_U8, P(30), 4.2}, {DPR_COUNT, DPR_BOOL, P(30), 4.2},
    {DPR_ANY, DPR_BOOL, P(30), 4.2},   {DPR_SUM, DPR_F16, P(30), 4.4},   {DPR_SUM, DPR_BF16, P(30), 4.4},
    {DPR_ARGMAX, DPR_F32, P(30), 4.5},
};

enum { SPANS = sizeof spans / sizeof spans[0], PAIRS = sizeof pairs / sizeof pairs[0] };
enum { RATES = sizeof rates / sizeof rates[0] };

int floors_rule(size_t i, floor_rule *out) {
    if (i < (size_t)SPANS * PAIRS) {
        *out = spans[i % SPANS];
        out->op = pairs[i / SPANS].op;
        out->dtype = pairs[i / SPANS].dtype;
        return 0;
    }
    i -= (size_t)SPANS * PAIRS;
    if (i >= RATES)
        return -1;
    *out = (floor_rule){rates[i].op,    rates[i].dtype, BENCH_GRAPH, BENCH_COLD,
                        rates[i].count, rates[i].count, FLOOR_RATE,  rates[i].tb_per_s};
    return 0;
}

static int is_of(const floor_rule *rule, const bench_case *at) {
    return rule->op == at->op && rule->dtype == at->dtype && rule->mode == at->mode && rule->cache == at->cache;
}

int floors_want(const bench_case *at) {
    floor_rule rule;
    for (size_t i = 0; floors_rule(i, &rule) == 0; i++) {
        const uint64_t low = rule.kind == FLOOR_GROWTH ? rule.low / 2 : rule.low;
        if (is_of(&rule, at) && low <= at->count && at->count <= rule.high)
            return 1;
    }
    return 0;
}

const char *floors_kind_text(floor_kind kind) {
    static const char *const texts[] = {
        [FLOOR_RATIO] = "CUB/dpr", [FLOOR_RATE] = "TB/s", [FLOOR_TIME] = "us", [FLOOR_GROWTH] = "growth"};
    return kind < FLOOR_KINDS ? texts[kind] : "";
}

static int is_least(floor_kind kind) {
    return kind == FLOOR_RATIO || kind == FLOOR_RATE;
}

/* What the rule asks of one row of dpr. 1; 0 if that takes another row that is not there; -1 if one of them is bad. */
static int value_at(const floor_rule *rule, const bench_results *r, const bench_row *ours, double *value,
                    bench_summary *ratio) {
    const bench_row *other = NULL;
    *ratio = (bench_summary){0};
    if (rule->kind == FLOOR_GROWTH) {
        bench_case half = ours->at;
        half.count /= 2;
        other = results_find(r, &half, PEERS_OURS);
    } else if (rule->kind == FLOOR_RATIO) {
        other = results_find(r, &ours->at, PEERS_CUB);
    }
    if (!results_right(ours) || (other && !results_right(other)))
        return -1;
    if (rule->kind == FLOOR_RATE)
        *value = ours->gb_per_s * 1e-3;
    else if (rule->kind == FLOOR_TIME)
        *value = ours->us.median;
    else if (!other || (rule->kind == FLOOR_RATIO && other->ratio.n == 0))
        return 0;
    else if (rule->kind == FLOOR_GROWTH)
        *value = ours->us.median / other->us.median / 2;
    else {
        *ratio = other->ratio;
        *value = ratio->median;
    }
    return 1;
}

static void add_value(floor_verdict *v, const floor_rule *rule, uint64_t count, double value,
                      const bench_summary *ratio) {
    const int least = is_least(rule->kind);
    /* Written so that a NaN misses. */
    v->missed += least ? !(value >= rule->bound) : !(value <= rule->bound);
    if (v->worst_count && (least ? value >= v->worst : value <= v->worst))
        return;
    v->worst = value;
    v->worst_count = count;
    v->low = ratio->low;
    v->high = ratio->high;
}

floor_verdict floors_judge(const floor_rule *rule, const bench_results *r) {
    floor_verdict v = {0};
    for (size_t i = 0; i < r->row_count; i++) {
        const bench_row *row = &r->rows[i];
        const bench_case *at = &row->at;
        if (!is_of(rule, at) || at->count < rule->low || at->count > rule->high
            || strcmp(row->subject, PEERS_OURS) != 0)
            continue;
        double value = 0;
        bench_summary ratio;
        const int there = value_at(rule, r, row, &value, &ratio);
        v.counts += there != 0;
        v.failed += there < 0;
        v.missed += there < 0;
        if (there > 0)
            add_value(&v, rule, at->count, value, &ratio);
    }
    return v;
}

floors_tally floors_count(const bench_results *r) {
    floors_tally t = {0};
    floor_rule rule;
    for (size_t i = 0; floors_rule(i, &rule) == 0; i++) {
        const floor_verdict v = floors_judge(&rule, r);
        t.unmeasured += v.counts == 0;
        t.missed += v.missed != 0;
        t.held += v.counts != 0 && v.missed == 0;
    }
    return t;
}
