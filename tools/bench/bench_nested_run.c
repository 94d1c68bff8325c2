#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ctx.h"
#include "bench_nested.h"
#include "bench_walk.h"
#include "plan/registry.h"
#include "progress.h"

/* A caller that leaves a report of one call. */
typedef struct nested_caller {
    bench_caller caller;
    dpr_launch_report *report; /* pinned memory; NULL: none is wanted */
    int reported;
} nested_caller;

typedef struct scene {
    bench_asked asked; /* with the strategies' share of the budget */
    bench_walk walk;
    nested_results *out;
    dpr_launch_report *reports; /* of NESTED_STRATEGIES, in pinned memory */
    int size;                   /* number of the case that was prepared last; -1: none was */
    bench_subject subjects[NESTED_STRATEGIES + 1];
    nested_caller callers[NESTED_STRATEGIES + 1];
    int cell[NESTED_STRATEGIES + 1]; /* which strategy of nested_order() each is; -1: the planner's choice */
} scene;

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* The report comes from the first call, which the engine makes to warm up: it costs a copy, so that calls that are
 * timed have none. */
static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    nested_caller *c = user;
    c->caller.options.launch_report = c->reported ? NULL : c->report;
    c->reported = 1;
    return caller_enqueue(user, in, out, stream);
}

/* Adds a strategy by its name. 0, or -1 with the reason in dpr_last_error() if it cannot run the case. */
static int add_subject(scene *s, const char *strategy, int cell) {
    bench_walk *w = &s->walk;
    nested_caller *c = &s->callers[w->n];
    dpr_plan *plan = NULL;
    *c = (nested_caller){.caller = caller_at(w->ctx, &w->at, strategy)};
    if (cell >= 0) {
        caller_set_block(&c->caller, s->asked.block);
        c->caller.options.max_depth = s->asked.depth;
        c->report = &s->reports[cell];
    }
    if (caller_plan(&c->caller, &plan) != DPR_OK)
        return -1;
    dpr_plan_destroy(plan);
    c->caller.expected = w->expected;
    c->caller.chosen = cell < 0;
    s->cell[w->n] = cell;
    s->subjects[w->n] = caller_subject(&c->caller);
    s->subjects[w->n].user = c;
    s->subjects[w->n++].enqueue = enqueue;
    return 0;
}

/* Takes over the reports of the case that was measured last. */
static void take_reports(scene *s) {
    for (int i = 0; s->size >= 0 && i < s->walk.n; i++) {
        const nested_caller *c = &s->callers[i];
        if (s->cell[i] < 0 || !c->reported || c->caller.why[0])
            continue;
        nested_cell *cell = &s->out->cells[s->size][s->cell[i]];
        cell->ran = 1;
        cell->report = *c->report;
    }
    s->size = -1;
}

/* The planner's choice by its name. */
static const char *find_choice(const bench_walk *w) {
    dpr_plan *plan = NULL;
    bench_caller c = caller_at(w->ctx, &w->at, NULL);
    if (caller_plan(&c, &plan) != DPR_OK)
        return NULL;
    dpr_plan_destroy(plan);
    return c.strategy;
}

static int size_of(const nested_results *out, const bench_case *at) {
    int size = 0;
    while (size < out->sizes - 1 && !results_same_case(&out->at[size], at))
        size++;
    return size;
}

/* The planner's choice, and the strategies that can run the case. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    scene *s = w->user;
    nested_results *out = s->out;
    take_reports(s);
    w->subjects = s->subjects;
    w->n = 0;
    const char *choice = find_choice(w);
    if (!choice || add_subject(s, choice, -1) != 0) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    s->size = size_of(out, &w->at);
    for (int i = 0; i < out->n; i++) {
        nested_cell *cell = &out->cells[s->size][i];
        if (add_subject(s, out->strategies[i]->name, i) != 0)
            snprintf(cell->refusal, sizeof cell->refusal, "%.150s", dpr_last_error());
    }
    return 0;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

/* What a process has to start CUDA and wake the device, which takes a second or two, on a slow machine as well. */
static const double start_seconds = 60;

static int stopped(const scene *s) {
    return s->asked.stop && *s->asked.stop;
}

/* Has a process of its own measure `launches` with the pool of part->asked. Whether it said anything, even if it is
 * that nothing could be measured. */
static int run_part(scene *s, const char *launches, double seconds, nested_part *part) {
    char device[16], pending[32], time[32], accuracy[32], line[PART_LINE], why[BENCH_WHY] = "";
    snprintf(device, sizeof device, "%d", s->out->bench.device.ordinal);
    snprintf(pending, sizeof pending, "%llu", (unsigned long long)part->asked);
    snprintf(time, sizeof time, "%.9gs", seconds);
    snprintf(accuracy, sizeof accuracy, "%.9g%%", 100 * s->asked.accuracy);
    char name[] = "dpr", command[] = "bench", option[] = NESTED_PART, list[64];
    snprintf(list, sizeof list, "%s", launches);
    char *const argv[] = {name, command, option, device, pending, time, accuracy, list, NULL};
    if (!s->asked.quiet)
        progress_line(part->asked ? "launches from kernels, other pools" : "launches from kernels");
    int status = part_run("/proc/self/exe", argv, start_seconds + 4 * seconds, s->asked.stop, line, why);
    if (status == 0 && part_read(line, part) != 0) {
        snprintf(why, sizeof why, "its process wrote what is no result: %.80s", line);
        status = -1;
    }
    progress_clear();
    if (status == 0 && part->there && part->costs.hung) {
        snprintf(why, sizeof why, "the device did not end its work");
        status = -1;
    }
    if (status != 0 && !part->there)
        snprintf(part->why, sizeof part->why, "%.250s", why);
    if (status != 0 && !stopped(s))
        (void)cli_error("launches from kernels: %s", why);
    outfile_refresh(s->asked.file);
    return status == 0;
}

/* The launches with the pool as it is, and then a tail launch with each pool. */
static int run_parts(scene *s, double launch_seconds, double pool_seconds) {
    nested_results *out = s->out;
    int code = CLI_OK;
    for (int i = -1; i < out->pools; i++) {
        nested_part *part = i < 0 ? &out->launches : &out->pool[i];
        if (stopped(s)) {
            snprintf(part->why, sizeof part->why, "interrupted");
            out->bench.interrupted = 1;
        } else if (!run_part(s, i < 0 ? "all" : bench_launch_name(BENCH_LAUNCH_CHAIN_TAIL),
                             i < 0 ? launch_seconds : pool_seconds, part)) {
            code = CLI_FAILED;
        }
    }
    out->bench.interrupted |= stopped(s);
    return code;
}

int nested_part_main(int argc, char **argv) {
    unsigned char launches[AXIS_SET];
    bench_costs_asked asked = {.rule = {.min_samples = 7, .max_samples = 500}};
    bench_costs costs = {.hung = 0};
    char why[BENCH_WHY] = "";
    uint64_t pending;
    if (argc != 7)
        return cli_usage(NESTED_PART " takes DEVICE PENDING SECONDS ACCURACY LAUNCHES");
    if (cli_device(argv[2], &asked.device) != CLI_OK || cli_count(argv[3], &pending) != CLI_OK
        || axis_parse_seconds(argv[4], &asked.rule.seconds) != CLI_OK
        || axis_parse_share(argv[5], &asked.rule.half_width) != CLI_OK
        || axis_parse_set(argv[6], bench_launch_name, launches) != CLI_OK)
        return CLI_USAGE;
    asked.pending = (size_t)pending;
    memcpy(asked.wanted, launches, sizeof asked.wanted);
    const int status = bench_costs_measure(&asked, &costs, why);
    const int written = status == 0 ? part_write(stdout, &costs) : part_write_failure(stdout, why);
    (void)fflush(stdout);
    if (costs.hung)
        _exit(CLI_FAILED); /* what is done at the end of a process would wait for the device */
    return written == 0 ? CLI_OK : CLI_FAILED;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int report_missing(const scene *s, int code) {
    const bench_results *r = &s->out->bench;
    for (size_t i = 0; i < r->omission_count && !r->interrupted && code != CLI_USAGE; i++)
        code = cli_error("%llu elements: nothing was measured: %s", (unsigned long long)r->omissions[i].at.count,
                         r->omissions[i].why);
    return code;
}

/* What is known before anything is measured. */
static void set_scene(scene *s) {
    const bench_asked *a = &s->asked;
    nested_results *out = s->out;
    out->block = a->block;
    out->depth = a->depth;
    out->pending = (size_t)dpr_ctx_machine(s->walk.ctx)->caps.gpu.pending_launches;
    out->n = nested_order(out->strategies);
    out->sizes = a->counts.n;
    for (int i = 0; i < out->sizes; i++)
        out->at[i] = (bench_case){.op = (dpr_op)axis_first(a->ops),
                                  .dtype = (dpr_dtype)axis_first(a->dtypes),
                                  .mode = BENCH_GRAPH,
                                  .cache = BENCH_COLD,
                                  .count = a->counts.at[i]};
    out->pools = a->pool_count;
    for (int i = 0; i < out->pools; i++)
        out->pool[i].asked = a->pools[i];
}

/* The strategies, in this process. */
static int measure_strategies(scene *s) {
    bench_walk *w = &s->walk;
    int code = walk_open(w);
    if (code != CLI_OK)
        return code;
    if (dpr_ctx_device(w->ctx) == DPR_DEVICE_CPU)
        return cli_error("--nested needs a GPU, and there is none: %s", walk_why_no_gpu());
    s->reports = bench_pinned(NESTED_STRATEGIES * sizeof *s->reports);
    if (!s->reports)
        return cli_error("no pinned memory");
    set_scene(s);
    code = walk_run(w);
    take_reports(s);
    return report_missing(s, code);
}

/* The rest, with the memory free again that the strategies' arrays had. */
static int measure(scene *s) {
    const double budget = s->asked.budget, launch_share = 0.2, pools_share = 0.2;
    s->asked.budget = budget * (1 - launch_share - pools_share);
    const int code = measure_strategies(s);
    bench_pinned_free(s->reports);
    walk_close(&s->walk);
    s->out->bench.rule.seconds = budget;
    if (!s->out->bench.device.name[0])
        return code;
    const int parts = run_parts(s, launch_share * budget, pools_share * budget / s->asked.pool_count);
    return code != CLI_OK ? code : parts;
}

int nested_measure(const bench_asked *asked, nested_results *out) {
    scene *s = calloc(1, sizeof *s);
    memset(out, 0, sizeof *out);
    if (!s)
        return cli_error("out of memory");
    s->asked = *asked;
    s->out = out;
    s->size = -1;
    s->walk = (bench_walk){.asked = &s->asked, .results = &out->bench, .prepare = prepare, .user = s};
    const int code = measure(s);
    free(s);
    return code;
}
