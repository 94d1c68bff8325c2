#include "bench_lineup.h"

#include <string.h>

#include "available.h"
#include "cli.h"

static int check(const bench_asked *a) {
    const char *option = a->nested ? "--nested" : "--ladder";
    if (a->nested && a->ladder)
        return cli_usage("--nested and --ladder are measured one at a time");
    if (a->device == DPR_DEVICE_CPU)
        return cli_usage("%s is of a GPU's strategies: the CPU has none of them", option);
    if ((a->modes & ~axis_one(BENCH_GRAPH)) || (a->caches & ~axis_one(BENCH_COLD)))
        return cli_usage("%s is of calls in a graph with a cold cache: leave --mode and --cache out", option);
    if (a->strategies)
        return cli_usage("%s has its own strategies: leave --strategy out", option);
    if (axis_members(a->ops) > 1 || axis_members(a->dtypes) > 1)
        return cli_usage("%s is of one operation and one type", option);
    if (a->counts.n > LINEUP_SIZES)
        return cli_usage("%s is of at most %d sizes, and --count has %d", option, LINEUP_SIZES, a->counts.n);
    return CLI_OK;
}

/* What the library says of the pair and of the depth. */
static int check_problem(const bench_asked *a) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_machine *machine;
    dpr_decision *decision = NULL;
    options.max_depth = a->depth;
    problem.op = (dpr_op)axis_first(a->ops);
    problem.dtype = (dpr_dtype)axis_first(a->dtypes);
    problem.count = 1;
    problem.options = &options;
    if (dpr_machine_read(DPR_DEVICE_CPU, 0, &machine) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    const dpr_status status = dpr_decision_create(machine, &problem, &decision);
    dpr_decision_destroy(decision);
    dpr_machine_destroy(machine);
    return status == DPR_OK ? CLI_OK : cli_usage("%s", dpr_last_error());
}

int lineup_complete(bench_asked *a) {
    const int code = check(a);
    if (code != CLI_OK)
        return code;
    if (a->counts.n == 0)
        (void)axis_parse_counts(a->nested ? "2^20,2^24" : "2^24", &a->counts);
    if (a->pools.n == 0)
        (void)asked_take_pools("64,512,2048,4096,65536", &a->pools);
    axis_default(&a->ops, DPR_SUM);
    axis_default(&a->dtypes, DPR_I32);
    axis_default(&a->modes, BENCH_GRAPH);
    axis_default(&a->caches, BENCH_COLD);
    return check_problem(a);
}

/* Families as they are taught, and within one the library's order. */
int lineup_order(int nested, lineup_strategy out[BENCH_SUBJECTS]) {
    static const char *const ladder[] = {"ladder.", "atomic.", "coop.", "flat.", NULL}, *const dp[] = {"dp.", NULL};
    int n = 0;
    for (const char *const *family = nested ? dp : ladder; *family; family++)
        for (size_t i = 0; i < dpr_strategy_count() && n < BENCH_SUBJECTS; i++)
            if (cli_strategy_at(i).on_gpu && strncmp(dpr_strategy_name(i), *family, strlen(*family)) == 0)
                out[n++] = (lineup_strategy){dpr_strategy_name(i), dpr_strategy_text(i)};
    return n;
}

void lineup_set_grid(lineup_cell *cell, const dpr_machine *machine, int blocks) {
    const int64_t sms = machine_value(machine, "gpu.sm_count");
    const int64_t threads = sms * machine_value(machine, "gpu.max_threads_per_sm");
    cell->blocks = blocks;
    if (threads < 1 || blocks >= cell->kernel.blocks_per_sm * sms)
        return;
    cell->kernel.occupancy = (double)blocks * cell->kernel.threads / (double)threads;
    cell->kernel.limit = LADDER_GRID;
}
