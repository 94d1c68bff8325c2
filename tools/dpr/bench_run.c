#include "bench_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_known.h"
#include "cli.h"
#include "ctx.h"
#include "lists.h"
#include "progress.h"
#include "registry.h"

/* One strategy at one case, as the engine's callbacks see it. */
typedef struct caller {
    dpr_ctx *ctx;
    dpr_op op;
    dpr_dtype dtype;
    size_t count;
    dpr_options options;
    const known_result *expected;
    int chosen;
    char why[256]; /* of a call that failed */
} caller;

typedef struct scene {
    const bench_asked *asked;
    const volatile sig_atomic_t *flag;
    bench_results *results;
    axis_counts counts;
    unsigned char modes[AXIS_SET];
    dpr_ctx *ctx; /* where calls run */
    dpr_ctx *cpu; /* where results to compare with come from */
    bench_timer *timer;
    known known;
    known_result expected;
    bench_case at;
    int n;
    bench_subject subjects[AXIS_SET];
    caller callers[AXIS_SET];
    bench_outcome *outcomes;          /* AXIS_SET of them */
    char refusals[AXIS_SET][160];     /* of strategies, the last */
    unsigned char measured[AXIS_SET]; /* 1: the strategy ran somewhere */
    size_t cases, done;
    double began;
    const char *ended; /* why nothing more is measured; NULL: it goes on */
    int code;
} scene;

static size_t saturating_bytes(uint64_t count, dpr_dtype dtype) {
    const size_t size = dpr_dtypes[dtype].size;
    return count > SIZE_MAX / 4 / size ? SIZE_MAX / 4 : (size_t)count * size;
}

/* ---- Callbacks -------------------------------------------------------------------------------------------------- */

static int note_status(caller *c, dpr_status status) {
    if (status != DPR_OK)
        snprintf(c->why, sizeof c->why, "%.200s", dpr_last_error());
    return (int)status;
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    caller *c = user;
    return note_status(c, dpr_reduce_async(c->ctx, in, out, c->count, c->dtype, c->op, &c->options, stream));
}

static int call(void *user, const void *in, void *host_out) {
    caller *c = user;
    return note_status(c, dpr_reduce_ex(c->ctx, in, host_out, c->count, c->dtype, c->op, &c->options));
}

static int count_wrong(void *user, const void *results, int n) {
    const caller *c = user;
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += !known_matches(c->expected, (const unsigned char *)results + (size_t)i * BENCH_RESULT_STRIDE);
    return wrong;
}

/* ---- The live line ---------------------------------------------------------------------------------------------- */

static double elapsed(const scene *s) {
    return cli_now() - s->began;
}

/* Seconds until the end: as the cases so far took, and no more than the budget has. */
static double time_left(const scene *s) {
    const double spent = elapsed(s), budget = s->asked->budget - spent;
    const double left = s->done ? spent / (double)s->done * (double)(s->cases - s->done) : budget;
    return left < budget ? left : budget > 0 ? budget : 0;
}

static void show_progress(void *user) {
    const scene *s = user;
    char text[160];
    if (s->asked->quiet || elapsed(s) < 1)
        return;
    snprintf(text, sizeof text, "%zu of %zu  %s of %s, %s, %s, %llu elements  %.0f s left", s->done, s->cases,
             dpr_ops[s->at.op].name, dpr_dtypes[s->at.dtype].name, bench_mode_name(s->at.mode),
             bench_cache_name(s->at.cache), (unsigned long long)s->at.count, time_left(s));
    progress_line(text);
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* The strategy that a plan has; NULL, with the reason in dpr_last_error(), if none can run the case. `name` NULL: the
 * planner's choice. */
static const char *planned(const scene *s, const char *name) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan;
    options.strategy = name;
    problem.op = s->at.op;
    problem.dtype = s->at.dtype;
    problem.count = (size_t)s->at.count;
    problem.options = &options;
    if (dpr_plan_create(s->ctx, &problem, &plan) != DPR_OK)
        return NULL;
    const char *strategy = dpr_plan_strategy(plan);
    dpr_plan_destroy(plan);
    return strategy;
}

static void add_subject(scene *s, const char *strategy, int chosen) {
    caller *c = &s->callers[s->n];
    *c = (caller){.ctx = s->ctx,
                  .op = s->at.op,
                  .dtype = s->at.dtype,
                  .count = (size_t)s->at.count,
                  .options = DPR_OPTIONS_INIT,
                  .expected = &s->expected,
                  .chosen = chosen};
    c->options.strategy = strategy;
    s->subjects[s->n++] =
        (bench_subject){.name = strategy, .user = c, .enqueue = enqueue, .call = call, .count_wrong = count_wrong};
}

/* The strategies that are asked for and can run the case, and the planner's choice. -1 if there is none, with the
 * reason in dpr_last_error(). */
static int find_subjects(scene *s) {
    const char *choice = planned(s, NULL);
    s->n = 0;
    if (!choice)
        return -1;
    for (int i = 0; i < AXIS_SET && (size_t)i < dpr_strategy_count(); i++) {
        const int chosen = strcmp(dpr_strategies[i]->name, choice) == 0;
        if (!s->asked->strategies[i] && !chosen)
            continue;
        if (!chosen && !planned(s, dpr_strategies[i]->name)) {
            snprintf(s->refusals[i], sizeof s->refusals[i], "%.150s", dpr_last_error());
            continue;
        }
        s->measured[i] = 1;
        add_subject(s, dpr_strategies[i]->name, chosen);
    }
    return 0;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static void leave_out(scene *s, const char *why) {
    bench_omission *o = results_add_omission(s->results);
    if (!o) {
        s->ended = "out of memory";
        s->code = CLI_FAILED;
        return;
    }
    o->at = s->at;
    snprintf(o->why, sizeof o->why, "%.150s", why);
}

static void report_trouble(const bench_row *row) {
    const bench_case *at = &row->at;
    char what[160];
    snprintf(what, sizeof what, "%s, %s of %s, %s, %s, %llu elements", row->strategy, dpr_ops[at->op].name,
             dpr_dtypes[at->dtype].name, bench_mode_name(at->mode), bench_cache_name(at->cache),
             (unsigned long long)at->count);
    if (row->wrong)
        cli_error("%s: %ld WRONG results of %ld", what, row->wrong, row->checked);
    else
        cli_error("%s: failed: %s", what, row->why);
}

static void keep(scene *s, int i) {
    const bench_outcome *o = &s->outcomes[i];
    const caller *c = &s->callers[i];
    if (o->state != BENCH_DONE && o->state != BENCH_FAILED)
        return;
    bench_row *row = results_add_row(s->results);
    if (!row) {
        s->ended = "out of memory";
        s->code = CLI_FAILED;
        return;
    }
    *row = (bench_row){.at = s->at,
                       .strategy = s->subjects[i].name,
                       .chosen = c->chosen,
                       .state = o->state,
                       .verdict = o->verdict,
                       .calls = o->calls,
                       .late = o->late,
                       .checked = o->checked,
                       .wrong = o->wrong,
                       .slowdown = o->slowdown,
                       .us = o->us};
    if (o->state == BENCH_FAILED)
        snprintf(row->why, sizeof row->why, "%.250s", c->why[0] ? c->why : o->why);
    if (o->us.median > 0)
        row->gb_per_s = (double)saturating_bytes(s->at.count, s->at.dtype) / o->us.median * 1e-3;
    if (o->state == BENCH_FAILED || o->wrong) {
        report_trouble(row);
        s->code = CLI_FAILED;
    }
}

/* ---- One case --------------------------------------------------------------------------------------------------- */

static bench_rule rule_of(const scene *s) {
    bench_rule rule = s->results->rule;
    rule.seconds = (s->asked->budget - elapsed(s)) / (double)(s->cases - s->done);
    return rule;
}

static void measure(scene *s) {
    const size_t bytes = saturating_bytes(s->at.count, s->at.dtype);
    bench_point point = {.mode = s->at.mode, .cache = s->at.cache, .bytes = bytes};
    const bench_rule rule = rule_of(s);
    char why[BENCH_WHY] = "";
    if (s->known.marked && s->at.count) {
        point.mark = s->known.last.bytes;
        point.mark_bytes = dpr_dtypes[s->at.dtype].size;
        point.mark_at = bytes - point.mark_bytes;
    }
    if (bench_fits(s->timer, &point, why) != 0) {
        leave_out(s, why);
        return;
    }
    if (find_subjects(s) != 0 || known_expect(&s->known, (size_t)s->at.count, &s->expected) != DPR_OK) {
        leave_out(s, dpr_last_error());
        return;
    }
    if (bench_run(s->timer, &point, &rule, s->subjects, s->n, s->outcomes, why) != 0) {
        cli_error("%s", why);
        s->code = CLI_FAILED;
        s->ended = "the device failed before";
    }
    for (int i = 0; i < s->n; i++)
        keep(s, i);
}

static void take_case(scene *s) {
    show_progress(s);
    if (!s->ended && *s->flag)
        s->ended = "interrupted";
    if (!s->ended && elapsed(s) >= s->asked->budget)
        s->ended = "the budget was spent";
    if (s->ended)
        leave_out(s, s->ended);
    else
        measure(s);
    s->done++;
    if (!s->ended && s->asked->grown)
        s->asked->grown(s->asked->user);
}

/* Calls visit() for every case of a pair of operation and type, in order. */
static void each_case(scene *s, void (*visit)(scene *s)) {
    for (int m = 0; m < BENCH_MODES; m++)
        for (int c = 0; c < BENCH_CACHES; c++)
            for (int i = 0; s->modes[m] && s->asked->caches[c] && i < s->counts.n; i++) {
                s->at.mode = (bench_mode)m;
                s->at.cache = (bench_cache)c;
                s->at.count = s->counts.at[i];
                visit(s);
            }
}

static void count_case(scene *s) {
    s->cases++;
}

/* Makes the data of the pair and measures its cases. */
static void measure_pair(scene *s) {
    char why[BENCH_WHY];
    if (!s->ended) {
        const dpr_status status = known_make(&s->known, s->cpu, s->at.op, s->at.dtype);
        const int made = status == DPR_OK && bench_fill(s->timer, s->known.block, KNOWN_BLOCK, why) == 0;
        if (!made) {
            cli_error("%s", status == DPR_OK ? why : dpr_status_text(status));
            s->ended = "its data could not be made";
            s->code = CLI_FAILED;
        }
    }
    each_case(s, take_case);
    known_free(&s->known);
}

static void count_pair(scene *s) {
    each_case(s, count_case);
}

static int each_pair(scene *s, void (*visit)(scene *s)) {
    int some = 0;
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int d = 0; d < DPR_DTYPE_COUNT; d++) {
            if (!s->asked->ops[op] || !s->asked->dtypes[d] || !dpr_supported((dpr_op)op, (dpr_dtype)d))
                continue;
            some = 1;
            s->at = (bench_case){.op = (dpr_op)op, .dtype = (dpr_dtype)d};
            visit(s);
        }
    return some;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* Of those that may fit. */
static size_t largest_array(const scene *s) {
    const size_t most = bench_pool_most(dpr_ctx_device(s->ctx));
    size_t largest = 0;
    for (int d = 0; d < DPR_DTYPE_COUNT; d++)
        for (int i = 0; s->asked->dtypes[d] && i < s->counts.n; i++) {
            const size_t bytes = saturating_bytes(s->counts.at[i], (dpr_dtype)d);
            largest = bytes > largest && bytes <= most ? bytes : largest;
        }
    return largest;
}

/* Two buffers of the largest array, and enough of the small ones that none is read twice in a batch. */
static size_t wanted_pool(const scene *s, int on_gpu) {
    const size_t largest = largest_array(s), mib = (size_t)1 << 20;
    if (on_gpu)
        return largest > 4096 * mib ? 2 * largest : 8192 * mib;
    const size_t cache = 4 * (size_t)dpr_ctx_machine(s->cpu)->caps.cpu.cache_bytes;
    const size_t some = cache > 1024 * mib ? 1024 * mib : cache < 64 * mib ? 64 * mib : cache;
    return largest > some ? largest : some;
}

static void choose_axes(scene *s, int on_gpu) {
    char gpu_counts[] = "2^10:2^28:x4", cpu_counts[] = "2^10:2^24:x4";
    s->counts = s->asked->counts;
    if (s->counts.n == 0)
        (void)axis_parse_counts(on_gpu ? gpu_counts : cpu_counts, &s->counts);
    memcpy(s->modes, s->asked->modes, sizeof s->modes);
    if (!s->asked->modes_named)
        s->modes[on_gpu ? BENCH_GRAPH : BENCH_BLOCKING] = 1;
}

static int open_scene(scene *s) {
    char why[BENCH_WHY];
    if (dpr_ctx_create(s->asked->device, &s->ctx) != DPR_OK || dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu) != DPR_OK) {
        cli_error("%s", dpr_last_error());
        return CLI_FAILED;
    }
    const int device = dpr_ctx_device(s->ctx), on_gpu = device != DPR_DEVICE_CPU;
    choose_axes(s, on_gpu);
    if (!on_gpu && (s->modes[BENCH_GRAPH] || s->modes[BENCH_STREAM]))
        return cli_usage("the CPU has blocking calls only: --mode blocking");
    s->outcomes = calloc(AXIS_SET, sizeof *s->outcomes);
    if (!s->outcomes) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (bench_timer_create(device, wanted_pool(s, on_gpu), &s->timer, why) != 0) {
        cli_error("%s", why);
        return CLI_FAILED;
    }
    bench_stop_at(s->timer, s->flag);
    bench_tick_at(s->timer, show_progress, s);
    s->results->device = *bench_timer_device(s->timer);
    s->results->pool_bytes = bench_pool_bytes(s->timer);
    return CLI_OK;
}

static void note_refusals(const scene *s) {
    for (int i = 0; i < AXIS_SET && s->asked->strategies_named && !s->asked->quiet; i++)
        if (s->asked->strategies[i] && !s->measured[i] && s->refusals[i][0])
            cli_note("%s", s->refusals[i]);
}

static int run_scene(scene *s) {
    if (!each_pair(s, count_pair))
        return cli_usage("no operation that is asked for has a meaning for a type that is");
    const int code = open_scene(s);
    if (code != CLI_OK)
        return code;
    s->cases = 0;
    (void)each_pair(s, count_pair);
    s->began = cli_now();
    (void)each_pair(s, measure_pair);
    progress_clear();
    note_refusals(s);
    s->results->interrupted = *s->flag != 0;
    return s->code;
}

int bench_measure(const bench_asked *asked, const volatile sig_atomic_t *flag, bench_results *out) {
    scene *s = calloc(1, sizeof *s);
    *out = (bench_results){.commit = asked->commit};
    if (!s) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    out->rule = (bench_rule){asked->accuracy, 7, 500, asked->budget};
    s->asked = asked;
    s->flag = flag;
    s->results = out;
    const int code = run_scene(s);
    bench_timer_destroy(s->timer);
    dpr_ctx_destroy(s->ctx);
    dpr_ctx_destroy(s->cpu);
    free(s->outcomes);
    free(s);
    return code;
}
