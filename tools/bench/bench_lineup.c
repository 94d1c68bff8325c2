#include "bench_lineup.h"

#include <stdio.h>
#include <string.h>

#include "available.h"
#include "bench_walk.h"
#include "nested.h"
#include "progress.h"

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
    if (a->ops.n > 1 || (a->ops.n == 1 && a->ops.at[0].n > 1) || axis_members(a->dtypes) > 1)
        return cli_usage("%s is of one operation and one type", option);
    if (a->counts.n > LINEUP_SIZES)
        return cli_usage("%s is of at most %d sizes, and --count has %d", option, LINEUP_SIZES, a->counts.n);
    return CLI_OK;
}

static int check_pair(const bench_asked *a) {
    const dpr_op op = a->ops.at[0].at[0];
    const dpr_dtype dtype = dpr_dtype_at((size_t)axis_first(a->dtypes));
    return dpr_supported(op, dtype) ? CLI_OK
                                    : cli_usage("%s has no meaning for %s", dpr_op_name(op), dpr_dtype_name(dtype));
}

int lineup_complete(bench_asked *a) {
    const int code = check(a);
    if (code != CLI_OK)
        return code;
    if (a->counts.n == 0)
        (void)axis_parse_counts(a->nested ? "2^20,2^24" : "2^24", &a->counts);
    if (a->pools.n == 0)
        (void)asked_take_pools("64,512,2048,4096,65536", &a->pools);
    asked_default_op(&a->ops);
    axis_default(&a->dtypes, DPR_ROW(DPR_I32));
    axis_default(&a->modes, BENCH_GRAPH);
    axis_default(&a->caches, BENCH_COLD);
    return check_pair(a);
}

/* Whether it is one of those that reduce segments, and no whole array. */
static int is_of_segments(const char *strategy) {
    return strncmp(strategy, "segments.", 9) == 0 || strcmp(strategy, "dp.segments") == 0;
}

/* Families as they are taught, and within one the library's order. */
int lineup_order(int nested, lineup_strategy out[BENCH_SUBJECTS]) {
    static const char *const ladder[] = {"ladder.", "atomic.", "coop.", "flat.", NULL}, *const dp[] = {"dp.", NULL};
    int n = 0;
    for (const char *const *family = nested ? dp : ladder; *family; family++)
        for (size_t i = 0; i < dpr_strategy_count() && n < BENCH_SUBJECTS; i++)
            if (cli_strategy_at(i).on_gpu && strncmp(dpr_strategy_name(i), *family, strlen(*family)) == 0
                && !is_of_segments(dpr_strategy_name(i)))
                out[n++] = (lineup_strategy){dpr_strategy_name(i), dpr_strategy_text(i)};
    return n;
}

void lineup_set_grid(bench_kernels *kernels, const dpr_machine *machine, int blocks) {
    const int64_t sms = machine_value(machine, "gpu.sm_count");
    const int64_t threads = sms * machine_value(machine, "gpu.max_threads_per_sm");
    kernels->blocks = blocks;
    if (threads < 1 || blocks >= kernels->info.blocks_per_sm * sms)
        return;
    kernels->info.occupancy = (double)blocks * kernels->info.threads / (double)threads;
    kernels->info.limit = LADDER_GRID;
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* What the strategy's kernel uses, and how much of the device its grid has. */
static void look_at_kernel(bench_caller *c) {
    const dpr_machine *machine = dpr_ctx_machine(c->ctx);
    const dpr_problem problem = caller_problem(c);
    dpr_step step = DPR_STEP_INIT;
    dpr_decision *decision = NULL;
    c->kernels.info = (dpr_kernel_info)DPR_KERNEL_INFO_INIT;
    if (dpr_decision_create(machine, &problem, &decision) == DPR_OK
        && dpr_decision_step(decision, c->count, &step) == DPR_OK
        && dpr_kernel_describe(machine, &problem, &c->kernels.info) == DPR_OK)
        lineup_set_grid(&c->kernels, machine, step.max_blocks);
    dpr_decision_destroy(decision);
}

/* Whether the case is one of the sizes; if not, it is the bandwidth's alone. */
static int is_size(const lineup_results *out, const bench_case *at) {
    int size = 0;
    while (size < out->sizes && !results_same_case(&out->at[size], at))
        size++;
    return size < out->sizes;
}

/* The strategies that can run the case; in --nested after the planner's choice, which is none of them. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    const lineup_results *out = w->user;
    if (walk_choose(w, why) != 0)
        return -1;
    if (!is_size(out, &w->at))
        return walk_add(w, LADDER_READER, 0, why) ? 0 : -1;
    if (out->nested && !walk_add(w, w->choice, 0, why))
        return -1;
    for (int i = 0; i < out->n; i++) {
        bench_caller *c = walk_add(w, out->strategies[i].name, 1, why);
        if (!c)
            walk_refuse(w, out->strategies[i].name, why);
        else if (out->nested)
            c->counts_launches = 1;
        else
            look_at_kernel(c);
    }
    return w->n > 0 ? 0 : -1;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* A sum of F32 keeps no device from reading 1 GiB. Where memory is short, half of what there is room for. */
static bench_case read_case(int device) {
    const size_t most = bench_pool_most(device, DPR_MEMORY_AUTO) / 2, gib = (size_t)1 << 30;
    return (bench_case){.ops = ops_of(DPR_SUM),
                        .dtype = DPR_F32,
                        .mode = BENCH_GRAPH,
                        .cache = BENCH_COLD,
                        .count = (most < gib ? most : gib) / dpr_dtype_size(DPR_F32)};
}

/* Adds the bandwidth's case to what is asked for. */
static void add_read(bench_asked *a, const bench_case *read) {
    int i = 0;
    while (i < a->counts.n && a->counts.at[i] != read->count)
        i++;
    a->counts.at[i] = read->count;
    a->counts.n += i == a->counts.n;
    (void)axis_add_ops(&a->ops, &read->ops);
    a->dtypes |= axis_one(DPR_ROW(read->dtype));
}

static int wants(void *user, const bench_case *at) {
    const lineup_results *out = user;
    return is_size(out, at) || results_same_case(at, &out->read);
}

/* What is known before anything is measured. */
static void set_scene(bench_walk *w) {
    bench_asked *a = w->asked;
    lineup_results *out = w->user;
    out->sizes = a->counts.n;
    for (int i = 0; i < out->sizes; i++)
        out->at[i] = (bench_case){.ops = a->ops.at[0],
                                  .dtype = dpr_dtype_at((size_t)axis_first(a->dtypes)),
                                  .mode = BENCH_GRAPH,
                                  .cache = BENCH_COLD,
                                  .count = a->counts.at[i]};
    out->n = lineup_order(out->nested, out->strategies);
    for (int i = 1; i < out->parts; i++)
        out->part[i].asked = a->pools.at[i - 1];
    out->read = out->nested ? out->at[0] : read_case(dpr_ctx_device(w->ctx));
    add_read(a, &out->read);
}

static int report_missing(const bench_walk *w, int code) {
    const bench_results *r = w->results;
    for (size_t i = 0; i < r->omission_count && !r->interrupted && code != CLI_USAGE; i++) {
        const bench_omission *o = &r->omissions[i];
        if (is_size(w->user, &o->at))
            code = cli_error("%llu elements: nothing was measured: %s", (unsigned long long)o->at.count, o->why);
        else if (!w->asked->quiet)
            cli_note("the bandwidth was not measured: %s", o->why);
    }
    return code;
}

static int measure_strategies(bench_walk *w) {
    const int code = walk_open(w);
    if (code != CLI_OK)
        return code;
    if (dpr_ctx_device(w->ctx) == DPR_DEVICE_CPU)
        return cli_error("%s needs a GPU, and there is none: %s", w->asked->nested ? "--nested" : "--ladder",
                         walk_why_no_gpu());
    set_scene(w);
    return report_missing(w, walk_run(w));
}

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

/* What a process has to start CUDA and wake the device, which takes a second or two, on a slow machine as well. */
static const double start_seconds = 60;

/* Has a process of its own measure launches. */
static int run_part(const bench_asked *a, int ordinal, lineup_part *part, double seconds) {
    char device[16], pending[32], time[32], accuracy[32];
    char name[] = "dpr", command[] = "bench", option[] = NESTED_PART;
    char *const argv[] = {name, command, option, device, pending, time, accuracy, NULL};
    snprintf(device, sizeof device, "%d", ordinal);
    snprintf(pending, sizeof pending, "%llu", (unsigned long long)part->asked);
    snprintf(time, sizeof time, "%.9gs", seconds);
    snprintf(accuracy, sizeof accuracy, "%.9g%%", 100 * a->accuracy);
    if (!a->quiet)
        progress_line(part->asked ? "launches from kernels, other pools" : "launches from kernels");
    const int status = part_run("/proc/self/exe", argv, start_seconds + 4 * seconds, a->stop, part->line, part->why);
    progress_clear();
    outfile_refresh(a->file);
    return status == 0 || asked_stopped(a) ? CLI_OK : cli_error("launches from kernels: %s", part->why);
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* The parts come last, when the memory is free again that the strategies' arrays had. */
int lineup_measure(bench_asked *asked, lineup_results *out) {
    bench_walk w = {.asked = asked, .results = &out->bench, .wants = wants, .prepare = prepare, .user = out};
    const double budget = asked->budget, launches = 0.2 * budget, pools = 0.2 * budget;
    out->nested = asked->nested;
    out->block = asked->block;
    out->depth = asked->depth;
    out->parts = asked->nested ? 1 + asked->pools.n : 0;
    asked->budget -= out->parts ? launches + pools : 0;
    int code = measure_strategies(&w);
    walk_close(&w);
    out->bench.rule.seconds = budget;
    for (int i = 0; out->bench.device.name[0] && i < out->parts && !asked_stopped(asked); i++) {
        const double seconds = i == 0 ? launches : pools / (out->parts - 1);
        const int part = run_part(asked, out->bench.device.ordinal, &out->part[i], seconds);
        code = code != CLI_OK ? code : part;
    }
    out->bench.interrupted |= asked_stopped(asked);
    return code;
}
