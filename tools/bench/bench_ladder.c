#include "bench_ladder.h"

#include <string.h>

#include "cli.h"
#include "lists.h"
#include "plan/registry.h"

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

static int check(const bench_asked *a) {
    if (a->device == DPR_DEVICE_CPU)
        return cli_usage("--ladder is of a GPU's strategies: the CPU has none of them");
    if (!asked_is_cold_graph(a))
        return cli_usage("--ladder is of calls in a graph with a cold cache: leave --mode and --cache out");
    if (axis_members(a->strategies))
        return cli_usage("--ladder has all strategies: leave --strategy out");
    if (a->counts.n > 1 || axis_members(a->ops) > 1 || axis_members(a->dtypes) > 1)
        return cli_usage("--ladder is of one size, one operation and one type");
    return CLI_OK;
}

int ladder_complete(bench_asked *a) {
    const int code = check(a);
    if (code != CLI_OK)
        return code;
    if (a->counts.n == 0)
        a->counts = (axis_counts){.n = 1, .at = {UINT64_C(1) << 24}};
    if (!axis_members(a->ops))
        a->ops[DPR_SUM] = 1;
    if (!axis_members(a->dtypes))
        a->dtypes[DPR_I32] = 1;
    a->modes[BENCH_GRAPH] = a->caches[BENCH_COLD] = 1;
    const int op = axis_first(a->ops), dtype = axis_first(a->dtypes);
    if (!dpr_supported((dpr_op)op, (dpr_dtype)dtype))
        return cli_usage("%s has no meaning for %s", dpr_ops[op].name, dpr_dtypes[dtype].name);
    return CLI_OK;
}

static const char *const families[] = {"ladder.", "atomic.", "coop.", "flat."};
enum { FAMILIES = sizeof families / sizeof *families };

/* The family's number; FAMILIES for others, which come last. */
static int family_of(const char *strategy) {
    int f = 0;
    while (f < FAMILIES && strncmp(strategy, families[f], strlen(families[f])) != 0)
        f++;
    return f;
}

int ladder_order(const dpr_strategy *out[BENCH_SUBJECTS]) {
    int n = 0;
    for (int f = 0; f <= FAMILIES; f++)
        for (size_t i = 0; i < dpr_strategy_count() && n < BENCH_SUBJECTS; i++)
            if (dpr_strategies[i]->side == DPR_ON_GPU && !dpr_strategies[i]->workspace_bytes
                && family_of(dpr_strategies[i]->name) == f)
                out[n++] = dpr_strategies[i];
    return n;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

void ladder_set_grid(ladder_rung *rung, const dpr_gpu_caps *gpu, int blocks) {
    const int64_t threads = gpu->sm_count * gpu->max_threads_per_sm;
    rung->blocks = blocks;
    if (threads < 1 || blocks >= rung->occupancy.blocks_per_sm * gpu->sm_count)
        return;
    rung->occupancy.fraction = (double)blocks * rung->use.threads / (double)threads;
    rung->occupancy.limit = LADDER_GRID;
}

const bench_row *ladder_row(const ladder_results *l, const ladder_rung *rung) {
    return results_find(&l->bench, &l->at, rung->strategy);
}

const char *ladder_why_none(const ladder_results *l) {
    const bench_results *r = &l->bench;
    for (size_t i = 0; i < r->omission_count; i++)
        if (results_same_case(&r->omissions[i].at, &l->at))
            return r->omissions[i].why;
    return NULL;
}

const char *ladder_why_not(const ladder_results *l, const ladder_rung *rung) {
    const char *none = ladder_why_none(l);
    if (rung->refusal[0])
        return rung->refusal;
    if (none)
        return none;
    return l->bench.ended ? l->bench.ended : "it was not measured";
}

const bench_row *ladder_reader(const ladder_results *l) {
    const bench_row *row = results_find(&l->bench, &l->read, LADDER_READER);
    return row && results_right(row) ? row : NULL;
}

double ladder_bandwidth(const ladder_results *l) {
    const bench_row *row = ladder_reader(l);
    return row && row->us.least > 0 ? row->gb_per_s * row->us.median / row->us.least : 0;
}

double ladder_share(const ladder_results *l, const bench_row *row) {
    const double bandwidth = ladder_bandwidth(l);
    return results_right(row) && bandwidth > 0 ? row->gb_per_s / bandwidth : 0;
}

double ladder_speedup(const ladder_results *l, const bench_row *row) {
    const bench_row *first = results_find(&l->bench, &l->at, LADDER_FIRST);
    if (!first || !results_right(first) || !results_right(row) || row->us.median <= 0)
        return 0;
    return first->us.median / row->us.median;
}
