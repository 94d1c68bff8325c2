#include "bench_lineup.h"

#include <string.h>

#include "api/request.h"
#include "cli.h"
#include "plan/registry.h"

static int check(const bench_asked *a) {
    const char *option = a->nested ? "--nested" : "--ladder";
    if (a->nested && a->ladder)
        return cli_usage("--nested and --ladder are measured one at a time");
    if (a->device == DPR_DEVICE_CPU)
        return cli_usage("%s is of a GPU's strategies: the CPU has none of them", option);
    if (!asked_is_cold_graph(a))
        return cli_usage("%s is of calls in a graph with a cold cache: leave --mode and --cache out", option);
    if (axis_members(a->strategies))
        return cli_usage("%s has its own strategies: leave --strategy out", option);
    if (axis_members(a->ops) > 1 || axis_members(a->dtypes) > 1)
        return cli_usage("%s is of one operation and one type", option);
    if (a->counts.n > LINEUP_SIZES)
        return cli_usage("%s is of at most %d sizes, and --count has %d", option, LINEUP_SIZES, a->counts.n);
    return CLI_OK;
}

int lineup_complete(bench_asked *a) {
    const int code = check(a);
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_request request;
    if (code != CLI_OK)
        return code;
    if (a->counts.n == 0)
        (void)axis_parse_counts(a->nested ? "2^20,2^24" : "2^24", &a->counts);
    if (a->pool_count == 0)
        (void)asked_take_pools("64,512,2048,4096,65536", a);
    a->ops[DPR_SUM] |= (unsigned char)!axis_members(a->ops);
    a->dtypes[DPR_I32] |= (unsigned char)!axis_members(a->dtypes);
    a->modes[BENCH_GRAPH] = a->caches[BENCH_COLD] = 1;
    options.max_depth = a->depth;
    if (dpr_request_make((dpr_op)axis_first(a->ops), (dpr_dtype)axis_first(a->dtypes), 1, &options, &request) != DPR_OK)
        return cli_usage("%s", dpr_last_error());
    return CLI_OK;
}

/* Families as they are taught, and within one the registry's order. */
int lineup_order(int nested, const dpr_strategy *out[BENCH_SUBJECTS]) {
    static const char *const ladder[] = {"ladder.", "atomic.", "coop.", "flat.", NULL}, *const dp[] = {"dp.", NULL};
    int n = 0;
    for (const char *const *family = nested ? dp : ladder; *family; family++)
        for (size_t i = 0; i < dpr_strategy_count() && n < BENCH_SUBJECTS; i++)
            if (dpr_strategies[i]->side == DPR_ON_GPU
                && strncmp(dpr_strategies[i]->name, *family, strlen(*family)) == 0)
                out[n++] = dpr_strategies[i];
    return n;
}

void lineup_set_grid(lineup_cell *cell, const dpr_gpu_caps *gpu, int blocks) {
    const int64_t threads = gpu->sm_count * gpu->max_threads_per_sm;
    cell->blocks = blocks;
    if (threads < 1 || blocks >= cell->occupancy.blocks_per_sm * gpu->sm_count)
        return;
    cell->occupancy.fraction = (double)blocks * cell->use.threads / (double)threads;
    cell->occupancy.limit = LADDER_GRID;
}
