#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_lineup.h"
#include "bench_walk.h"
#include "nested.h"
#include "progress.h"

/* A caller whose calls leave counters of nested launches behind their result, from where they come to the cell. The
 * kernels write them anyway, elsewhere, so calls take no longer for it. */
typedef struct lineup_caller {
    bench_caller caller;
    lineup_cell *cell;
} lineup_caller;

/* Bytes from a result to the counters. */
enum { COUNTERS_AT = 32 };
static_assert(COUNTERS_AT + sizeof(dpr_launch_report) <= BENCH_RESULT_STRIDE, "a result has no room for counters");

typedef struct scene {
    bench_asked asked; /* with the strategies' share of the budget, and the bandwidth's case */
    bench_walk walk;
    lineup_results *out;
    bench_subject subjects[BENCH_SUBJECTS];
    lineup_caller callers[BENCH_SUBJECTS];
} scene;

static int stopped(const scene *s) {
    return s->asked.stop && *s->asked.stop;
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    lineup_caller *c = user;
    c->caller.options.launch_report = (void *)((unsigned char *)out + COUNTERS_AT);
    return caller_enqueue(user, in, out, stream);
}

static int count_wrong(void *user, const void *results, int n) {
    const lineup_caller *c = user;
    const unsigned char *last = (const unsigned char *)results + (size_t)(n - 1) * BENCH_RESULT_STRIDE;
    memcpy(&c->cell->nested, last + COUNTERS_AT, sizeof c->cell->nested);
    c->cell->ran = 1;
    return caller_count_wrong(user, results, n);
}

/* Sets the strategy that runs. 0, or -1 with the reason if the call cannot be made. */
static int resolve(bench_caller *c, char why[BENCH_WHY]) {
    dpr_plan *plan = NULL;
    const dpr_status status = caller_plan(c, &plan);
    dpr_plan_destroy(plan);
    if (status != DPR_OK)
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
    return status == DPR_OK ? 0 : -1;
}

/* What the strategy's kernel uses, and how much of the device its grid has. */
static void look_at_kernel(const bench_caller *c, lineup_cell *cell) {
    const dpr_machine *machine = dpr_ctx_machine(c->ctx);
    const dpr_problem problem = caller_problem(c);
    dpr_step step = DPR_STEP_INIT;
    dpr_decision *decision = NULL;
    if (dpr_decision_create(machine, &problem, &decision) == DPR_OK
        && dpr_decision_step(decision, c->count, &step) == DPR_OK
        && dpr_kernel_describe(machine, &problem, &cell->kernel) == DPR_OK)
        lineup_set_grid(cell, machine, step.max_blocks);
    dpr_decision_destroy(decision);
}

/* Adds a strategy by its name; without a cell, as it is by default. 0, or -1 with the reason if it cannot run. */
static int add_subject(scene *s, const char *name, const char *choice, lineup_cell *cell, char why[BENCH_WHY]) {
    bench_walk *w = &s->walk;
    lineup_caller *c = &s->callers[w->n];
    *c = (lineup_caller){.caller = caller_at(w->ctx, &w->at, name), .cell = cell};
    if (cell) {
        caller_set_block(&c->caller, s->asked.block);
        c->caller.options.max_depth = s->asked.depth;
    }
    if (resolve(&c->caller, why) != 0)
        return -1;
    c->caller.expected = w->expected;
    c->caller.chosen = strcmp(name, choice) == 0 && !c->caller.options.block;
    bench_subject *subject = &s->subjects[w->n++];
    *subject = caller_subject(&c->caller);
    if (cell && s->out->nested) {
        subject->enqueue = enqueue;
        subject->count_wrong = count_wrong;
    }
    return 0;
}

/* The number of the case among the sizes; -1: it is the bandwidth's alone. */
static int size_of(const lineup_results *out, const bench_case *at) {
    int size = out->sizes - 1;
    while (size >= 0 && !results_same_case(&out->at[size], at))
        size--;
    return size;
}

/* The strategies that can run the case; in --nested after the planner's choice, which is none of them. A strategy that
 * cannot run keeps the reason. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    scene *s = w->user;
    lineup_results *out = s->out;
    const int size = size_of(out, &w->at);
    bench_caller choice = caller_at(w->ctx, &w->at, NULL);
    w->subjects = s->subjects;
    w->n = 0;
    if (resolve(&choice, why) != 0)
        return -1;
    if (size < 0)
        return add_subject(s, LADDER_READER, choice.strategy, NULL, why);
    if (out->nested && add_subject(s, choice.strategy, choice.strategy, NULL, why) != 0)
        return -1;
    for (int i = 0; i < out->n; i++) {
        lineup_cell *cell = &out->cells[size][i];
        cell->kernel = (dpr_kernel_info)DPR_KERNEL_INFO_INIT;
        if (add_subject(s, out->strategies[i].name, choice.strategy, cell, why) != 0)
            snprintf(cell->refusal, sizeof cell->refusal, "%.150s", why);
        else if (!out->nested)
            look_at_kernel(w->subjects[w->n - 1].user, cell);
    }
    return w->n > 0 ? 0 : -1;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* A sum of F32 keeps no device from reading 1 GiB. Where memory is short, half of what there is room for. */
static bench_case read_case(int device) {
    const size_t most = bench_pool_most(device) / 2, gib = (size_t)1 << 30;
    return (bench_case){.op = DPR_SUM,
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
    a->ops |= axis_one(read->op);
    a->dtypes |= axis_one(read->dtype);
}

static int wants(void *user, const bench_case *at) {
    const lineup_results *out = ((const scene *)user)->out;
    return size_of(out, at) >= 0 || results_same_case(at, &out->read);
}

/* What is known before anything is measured. */
static void set_scene(scene *s) {
    bench_asked *a = &s->asked;
    lineup_results *out = s->out;
    for (int i = 0; i < out->sizes; i++)
        out->at[i] = (bench_case){.op = (dpr_op)axis_first(a->ops),
                                  .dtype = (dpr_dtype)axis_first(a->dtypes),
                                  .mode = BENCH_GRAPH,
                                  .cache = BENCH_COLD,
                                  .count = a->counts.at[i]};
    out->n = lineup_order(out->nested, out->strategies);
    for (int i = 1; i < out->parts; i++)
        out->part[i].asked = a->pools.at[i - 1];
    out->read = out->nested ? out->at[0] : read_case(dpr_ctx_device(s->walk.ctx));
    add_read(a, &out->read);
}

static int report_missing(const scene *s, int code) {
    const bench_results *r = &s->out->bench;
    for (size_t i = 0; i < r->omission_count && !r->interrupted && code != CLI_USAGE; i++) {
        const bench_omission *o = &r->omissions[i];
        if (size_of(s->out, &o->at) >= 0)
            code = cli_error("%llu elements: nothing was measured: %s", (unsigned long long)o->at.count, o->why);
        else if (!s->asked.quiet)
            cli_note("the bandwidth was not measured: %s", o->why);
    }
    return code;
}

static int measure_strategies(scene *s) {
    bench_walk *w = &s->walk;
    const int code = walk_open(w);
    if (code != CLI_OK)
        return code;
    if (dpr_ctx_device(w->ctx) == DPR_DEVICE_CPU)
        return cli_error("%s needs a GPU, and there is none: %s", s->out->nested ? "--nested" : "--ladder",
                         walk_why_no_gpu());
    set_scene(s);
    return report_missing(s, walk_run(w));
}

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

/* What a process has to start CUDA and wake the device, which takes a second or two, on a slow machine as well. */
static const double start_seconds = 60;

/* Has a process of its own measure launches. */
static int run_part(scene *s, lineup_part *part, double seconds) {
    char device[16], pending[32], time[32], accuracy[32];
    char name[] = "dpr", command[] = "bench", option[] = NESTED_PART;
    char *const argv[] = {name, command, option, device, pending, time, accuracy, NULL};
    snprintf(device, sizeof device, "%d", s->out->bench.device.ordinal);
    snprintf(pending, sizeof pending, "%llu", (unsigned long long)part->asked);
    snprintf(time, sizeof time, "%.9gs", seconds);
    snprintf(accuracy, sizeof accuracy, "%.9g%%", 100 * s->asked.accuracy);
    if (!s->asked.quiet)
        progress_line(part->asked ? "launches from kernels, other pools" : "launches from kernels");
    const int status =
        part_run("/proc/self/exe", argv, start_seconds + 4 * seconds, s->asked.stop, part->line, part->why);
    progress_clear();
    outfile_refresh(s->asked.file);
    return status == 0 || stopped(s) ? CLI_OK : cli_error("launches from kernels: %s", part->why);
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* The parts come last, when the memory is free again that the strategies' arrays had. */
static int measure(scene *s) {
    lineup_results *out = s->out;
    const double budget = s->asked.budget, launches = 0.2 * budget, pools = 0.2 * budget;
    s->asked.budget -= out->parts ? launches + pools : 0;
    int code = measure_strategies(s);
    walk_close(&s->walk);
    out->bench.rule.seconds = budget;
    for (int i = 0; out->bench.device.name[0] && i < out->parts && !stopped(s); i++) {
        const int part = run_part(s, &out->part[i], i == 0 ? launches : pools / (out->parts - 1));
        code = code != CLI_OK ? code : part;
    }
    out->bench.interrupted |= stopped(s);
    return code;
}

int lineup_measure(const bench_asked *asked, lineup_results *out) {
    scene *s = calloc(1, sizeof *s);
    memset(out, 0, sizeof *out);
    if (!s)
        return cli_error("out of memory");
    s->asked = *asked;
    s->out = out;
    out->nested = asked->nested;
    out->sizes = asked->counts.n;
    out->block = asked->block;
    out->depth = asked->depth;
    out->parts = asked->nested ? 1 + asked->pools.n : 0;
    s->walk = (bench_walk){.asked = &s->asked, .results = &out->bench, .wants = wants, .prepare = prepare, .user = s};
    const int code = measure(s);
    free(s);
    return code;
}
