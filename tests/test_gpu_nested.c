/* Strategies with nested launches: random runs under every limit, what their reports say, and how they stand beside
 * other work. Nothing is waited for longer than a watchdog allows: a device that hangs ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "data.h"
#include "gpu_pools.h"
#include "gpu_watch.h"

enum { LARGEST = 1 << 22 };

static const char *const forms[] = {"dp.recursive", "dp.nosync", "dp.recursive2", "dp.tree"};
static const dpr_dtype dtypes[] = {DPR_I32, DPR_I64, DPR_F32, DPR_F64};

/* Arrays of LARGEST small integers, of which every sum of all types is exact. */
typedef struct world {
    void *in[LENGTH(dtypes)]; /* device memory */
    int8_t *values;           /* the same numbers */
    int64_t *sums;            /* of the first i of them */
    dpr_ctx *cpu;
    unsigned char *out;        /* pinned memory: a result */
    dpr_launch_report *report; /* pinned memory */
    atomic_uint *done;         /* pinned memory */
    dpr_stream stream;
} world;

static void put_value(void *at, dpr_dtype dtype, size_t i, int value) {
    switch (dtype) {
    case DPR_I32:
        ((int32_t *)at)[i] = value;
        break;
    case DPR_I64:
        ((int64_t *)at)[i] = value;
        break;
    case DPR_F32:
        ((float *)at)[i] = (float)value;
        break;
    default:
        ((double *)at)[i] = value;
    }
}

static int fill_arrays(world *w) {
    void *host = malloc(LARGEST * sizeof(double));
    int good = host != NULL;
    for (size_t t = 0; t < LENGTH(dtypes) && good; t++) {
        const size_t bytes = LARGEST * dpr_dtype_size(dtypes[t]);
        for (size_t i = 0; i < LARGEST; i++)
            put_value(host, dtypes[t], i, w->values[i]);
        w->in[t] = gpu_alloc(DPR_MEMORY_DEVICE, bytes);
        good = w->in[t] && gpu_copy(w->in[t], host, bytes);
    }
    free(host);
    return good;
}

static void world_open(void *state) {
    world *w = state;
    if (gpu_unavailable())
        return;
    w->values = malloc(LARGEST);
    w->sums = calloc(LARGEST + 1, sizeof *w->sums);
    ASSERT_TRUE(w->values && w->sums);
    uint32_t random = 12345;
    for (size_t i = 0; i < LARGEST; i++) {
        random = random * 1664525u + 1013904223u;
        w->values[i] = (int8_t)((int)(random >> 24) % 7 - 3);
        w->sums[i + 1] = w->sums[i] + w->values[i];
    }
    w->out = gpu_alloc(DPR_MEMORY_PINNED, 64);
    w->report = gpu_alloc(DPR_MEMORY_PINNED, sizeof *w->report);
    w->done = gpu_alloc(DPR_MEMORY_PINNED, sizeof *w->done);
    w->stream = gpu_stream_create();
    ASSERT_THAT(w->out && w->report && w->done && w->stream && fill_arrays(w), "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &w->cpu));
}

static void world_close(void *state) {
    world *w = state;
    dpr_ctx_destroy(w->cpu);
    if (gpu_unavailable())
        return;
    for (size_t t = 0; t < LENGTH(dtypes); t++)
        gpu_free(DPR_MEMORY_DEVICE, w->in[t]);
    gpu_free(DPR_MEMORY_PINNED, w->out);
    gpu_free(DPR_MEMORY_PINNED, w->report);
    gpu_free(DPR_MEMORY_PINNED, w->done);
    EXPECT_TRUE(gpu_stream_destroy(w->stream));
    free(w->values);
    free(w->sums);
}

#define NESTED_TEST(NAME) TEST_FIXTURE(GpuNested, NAME, world, world_open, world_close)

/* ---- Runs ---- */

typedef struct trial {
    const char *form;
    dpr_op op;
    size_t type; /* in dtypes */
    size_t first, count;
    int block, max_depth, max_pending;
} trial;

static const char *describe(const trial *t) {
    static char text[160];
    snprintf(text, sizeof text, "%s %s %s, elements %zu to %zu, block %d, depth %d, pending %d", t->form,
             dpr_op_name(t->op), dpr_dtype_name(dtypes[t->type]), t->first, t->first + t->count, t->block, t->max_depth,
             t->max_pending);
    return text;
}

static void watch(const world *w, const char *what) {
    gpu_watch(w->stream, w->done, 20, what);
}

static double result_as_number(const world *w, dpr_op op, dpr_dtype dtype) {
    switch (dpr_result_dtype(op, dtype)) {
    case DPR_I32:
        return *(const int32_t *)(const void *)w->out;
    case DPR_I64:
        return (double)*(const int64_t *)(const void *)w->out;
    case DPR_F32:
        return (double)*(const float *)(const void *)w->out;
    default:
        return *(const double *)(const void *)w->out;
    }
}

static double expected(const world *w, const trial *t) {
    int8_t extreme = 0;
    if (t->op == DPR_SUM)
        return (double)(w->sums[t->first + t->count] - w->sums[t->first]);
    EXPECT_STATUS(DPR_OK, dpr_reduce(w->values + t->first, &extreme, t->count, DPR_I8, t->op));
    return extreme;
}

/* The trial's options, of which a part is in *launch. */
static dpr_options options_of(const trial *t, dpr_launch_options *launch) {
    dpr_options options = DPR_OPTIONS_INIT;
    *launch = (dpr_launch_options)DPR_LAUNCH_OPTIONS_INIT;
    launch->block = strcmp(t->form, "dp.tree") == 0 ? 0 : t->block;
    launch->max_depth = t->max_depth;
    launch->max_pending = t->max_pending;
    options.strategy = t->form;
    options.launch = launch;
    return options;
}

/* One run, with its report in w->report. */
static int run(const world *w, dpr_ctx *ctx, const trial *t) {
    const dpr_dtype dtype = dtypes[t->type];
    const char *in = (const char *)w->in[t->type] + t->first * dpr_dtype_size(dtype);
    dpr_launch_options launch;
    const dpr_options options = options_of(t, &launch);
    launch.report = w->report;
    memset(w->out, 0x5a, 16);
    if (!EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, in, w->out, t->count, dtype, t->op, &options, w->stream)))
        return 0;
    watch(w, describe(t));
    const double got = result_as_number(w, t->op, dtype), want = expected(w, t);
    const dpr_launch_report *n = w->report;
    const uint32_t limit = t->max_depth ? (uint32_t)t->max_depth : 24;
    return EXPECT_THAT(got == want, "%s: %.17g, expected %.17g", describe(t), got, want)
           && EXPECT_THAT(n->failed == 0 && n->error == 0, "%s: %u launches failed, error %d at depth %u, block %u",
                          describe(t), n->failed, n->error, n->error_depth, n->error_block)
           && EXPECT_THAT(n->deepest <= limit, "%s: depth %u", describe(t), n->deepest)
           && EXPECT_THAT((n->launched > 0) == (n->deepest > 0), "%s: %u launches, depth %u", describe(t), n->launched,
                          n->deepest);
}

/* ---- Random runs ---- */

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t n) {
    return data_below(&random_state, n);
}

/* As many small ones as large. */
static trial random_trial(void) {
    static const dpr_op ops[] = {DPR_SUM, DPR_SUM, DPR_MIN, DPR_MAX};
    trial t = {.form = forms[random_below(LENGTH(forms))],
               .op = ops[random_below(LENGTH(ops))],
               .type = random_below(LENGTH(dtypes)),
               .block = random_below(4) == 0 ? 0 : 32 << random_below(6),
               .max_depth = (int)random_below(25)};
    const uint32_t most = 2u << random_below(random_below(20) == 0 ? 22 : 18);
    t.count = 1 + random_below(most < LARGEST ? most : LARGEST);
    t.first = random_below((uint32_t)(LARGEST - t.count + 1));
    if (random_below(4) == 0)
        t.max_pending = random_below(4) == 0 ? DPR_NO_LAUNCHES : 1 + (int)random_below(100);
    return t;
}

/* DPR_TEST_NESTED_RUNS: how many. */
static size_t random_runs(void) {
    const char *text = getenv("DPR_TEST_NESTED_RUNS");
    return text ? strtoull(text, NULL, 10) : 600;
}

NESTED_TEST(random_runs_are_right_in_pools_of_all_sizes) {
    static const size_t pools[] = {64, 128, 500, 1024, 2048, 4096};
    NEED_GPU();
    const size_t runs = random_runs();
    uint64_t launched = 0, refused = 0, in_line = 0;
    for (size_t p = 0; p < LENGTH(pools); p++) {
        dpr_ctx *ctx = context_of(pools[p]);
        ASSERT_TRUE(ctx != NULL);
        for (size_t i = 0; i < (runs + LENGTH(pools) - 1) / LENGTH(pools); i++) {
            const trial t = random_trial();
            if (!run(fixture, ctx, &t))
                break;
            launched += fixture->report->launched;
            refused += fixture->report->refused;
            in_line += fixture->report->in_line;
        }
        dpr_ctx_destroy(ctx);
        if (test_failed())
            return;
    }
    EXPECT_TRUE(launched > 0 && refused > 0 && in_line > 0);
    test_record("launched", "%llu", (unsigned long long)launched);
    test_record("refused", "%llu", (unsigned long long)refused);
    test_record("in_line", "%llu", (unsigned long long)in_line);
}

/* ---- Counts on the device ---- */

/* The trial's plan, run for the first *count elements, which the host has put on the device. */
static int run_plan(const world *w, dpr_plan *plan, const trial *t, uint64_t *count, uint64_t value) {
    const dpr_dtype dtype = dtypes[t->type];
    trial now = *t;
    now.count = value;
    memset(w->out, 0x5a, 16);
    if (!EXPECT_TRUE(gpu_copy(count, &value, sizeof value))
        || !EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, w->in[t->type], w->out, w->stream)))
        return 0;
    watch(w, describe(&now));
    const double got = result_as_number(w, t->op, dtype), want = expected(w, &now);
    return EXPECT_THAT(got == want, "%s of up to %zu: %.17g, expected %.17g", describe(&now), t->count, got, want);
}

/* Shorter ones each after the whole array, whose words are still in the workspace. */
static void run_with_counts(const world *w, dpr_ctx *ctx, const trial *t, uint64_t *count) {
    static const uint64_t counts[] = {0, 1, 5, 31, 32, 33, 700, 1024, 4097, 65536, 99999};
    dpr_launch_options launch;
    const dpr_options options = options_of(t, &launch);
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    problem.op = t->op;
    problem.dtype = dtypes[t->type];
    problem.count = t->count;
    problem.device_count = count;
    problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    for (size_t i = 0; i < LENGTH(counts) + 10; i++) {
        const uint64_t value = i < LENGTH(counts) ? counts[i] : 1 + random_below((uint32_t)t->count);
        if (value == 0 && t->op != DPR_SUM) /* expected() knows no identities of types */
            continue;
        if (!run_plan(w, plan, t, count, t->count) || !run_plan(w, plan, t, count, value))
            break;
    }
    dpr_plan_destroy(plan);
}

NESTED_TEST(counts_on_the_device_may_be_smaller) {
    static const int blocks[] = {32, 64, 512, 1024}, pending[] = {0, DPR_NO_LAUNCHES, 3};
    static const dpr_op ops[] = {DPR_SUM, DPR_MAX};
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    uint64_t *count = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *count);
    ASSERT_TRUE(count != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t i = 0; i < LENGTH(forms) * LENGTH(blocks) * LENGTH(pending) * LENGTH(ops) && !test_failed(); i++) {
        trial t = {.form = forms[i % LENGTH(forms)], .count = 100003, .type = (i + i / LENGTH(forms)) % LENGTH(dtypes)};
        t.block = blocks[i / LENGTH(forms) % LENGTH(blocks)];
        t.max_pending = pending[i / (LENGTH(forms) * LENGTH(blocks)) % LENGTH(pending)];
        t.op = ops[i / (LENGTH(forms) * LENGTH(blocks) * LENGTH(pending))];
        run_with_counts(fixture, ctx, &t, count);
    }
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, count);
}

/* ---- Reports ---- */

/* Of one whole tile of 512 words, which is halved nine times, the first time by the host's kernel. */
NESTED_TEST(reports_say_what_was_launched) {
    static const struct {
        const char *form;
        int max_depth;
        uint32_t launched, deepest, in_line;
    } of[] = {
        {"dp.nosync", 0, 8, 8, 0},     {"dp.nosync", 3, 3, 3, 1},     {"dp.recursive2", 0, 8, 8, 0},
        {"dp.recursive2", 5, 5, 5, 1}, {"dp.recursive", 0, 15, 8, 0}, {"dp.recursive", 1, 1, 1, 1},
    };
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t i = 0; i < LENGTH(of); i++) {
        const trial t = {.op = DPR_SUM, .form = of[i].form, .count = 512, .block = 512, .max_depth = of[i].max_depth};
        const dpr_launch_report *n = fixture->report;
        EXPECT_TRUE(run(fixture, ctx, &t));
        EXPECT_THAT(n->launched == of[i].launched && n->deepest == of[i].deepest && n->in_line == of[i].in_line
                        && n->refused == 0,
                    "%s: %u launched, %u deep, %u in line, %u refused", describe(&t), n->launched, n->deepest,
                    n->in_line, n->refused);
    }
    dpr_ctx_destroy(ctx);
}

NESTED_TEST(no_launches_are_made_where_none_is_allowed) {
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t f = 0; f < LENGTH(forms); f++) {
        const trial t = {
            .op = DPR_SUM, .form = forms[f], .type = 2, .count = 100003, .block = 64, .max_pending = DPR_NO_LAUNCHES};
        const dpr_launch_report *n = fixture->report;
        EXPECT_TRUE(run(fixture, ctx, &t));
        EXPECT_THAT(n->launched == 0 && n->refused > 0 && n->in_line > 0 && n->deepest == 0,
                    "%s: %u launched, %u refused, %u in line", describe(&t), n->launched, n->refused, n->in_line);
    }
    dpr_ctx_destroy(ctx);
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The same bits come out, whatever is launched and whatever done in line. */
TEST(GpuNested, sums_of_floats_do_not_depend_on_what_is_launched) {
    static const int pending[] = {0, DPR_NO_LAUNCHES, 1, 2, 7, 40};
    enum { COUNT = 300007 };
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    float *host = malloc(COUNT * sizeof *host), *in = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *host);
    for (size_t i = 0; i < COUNT && host; i++)
        host[i] = 1.0f / (float)(i % 1000 + 1);
    const int filled = host && in && gpu_copy(in, host, COUNT * sizeof *host);
    free(host);
    ASSERT_TRUE(filled);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t f = 0; f < LENGTH(forms); f++) {
        float first = 0, sum = 0;
        uint32_t least = UINT32_MAX, most = 0;
        for (size_t p = 0; p < LENGTH(pending); p++) {
            const trial t = {
                .op = DPR_SUM, .form = forms[f], .type = 2, .count = COUNT, .block = 128, .max_pending = pending[p]};
            dpr_launch_options launch;
            const dpr_options options = options_of(&t, &launch);
            dpr_launch_report report = {0};
            launch.report = &report;
            EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, p == 0 ? &first : &sum, COUNT, DPR_F32, DPR_SUM, &options));
            EXPECT_THAT(p == 0 || bits_of(sum) == bits_of(first), "%s: %.9g, and %.9g before", describe(&t),
                        (double)sum, (double)first);
            least = report.launched < least ? report.launched : least;
            most = report.launched > most ? report.launched : most;
        }
        EXPECT_THAT(least < most, "%s: as many launches, %u, whatever is allowed", forms[f], least);
    }
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, in);
}

/* The limit is put back: what a small pool refuses, a large one launches. */
NESTED_TEST(the_pool_is_as_large_as_the_context_says) {
    const trial t = {.op = DPR_SUM, .form = "dp.nosync", .count = 1 << 20, .block = 512};
    NEED_GPU();
    uint32_t launched[2] = {0};
    for (int i = 0; i < 2; i++) {
        dpr_ctx *ctx = context_of(i == 0 ? 64 : 8192);
        ASSERT_TRUE(ctx != NULL && run(fixture, ctx, &t));
        launched[i] = fixture->report->launched;
        dpr_ctx_destroy(ctx);
    }
    test_record("launched_of_64", "%u", launched[0]);
    test_record("launched_of_8192", "%u", launched[1]);
    EXPECT_TRUE(launched[0] < launched[1]);
}

/* ---- Beside other work ---- */

/* What comes after a run in its stream starts when all that the run has launched is done. */
NESTED_TEST(work_after_a_run_waits_for_its_launches) {
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    enum { ROUNDS = 50, RUNS = 8 };
    int64_t *between = gpu_alloc(DPR_MEMORY_DEVICE, RUNS * sizeof *between);
    ASSERT_TRUE(between != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t f = 0; f < LENGTH(forms) && !test_failed(); f++) {
        const trial t = {.op = DPR_SUM, .form = forms[f], .count = 65536, .block = 64};
        dpr_launch_options launch;
        const dpr_options nested = options_of(&t, &launch);
        dpr_options flat = DPR_OPTIONS_INIT;
        flat.strategy = "flat.ticket";
        for (int round = 0; round < ROUNDS && !test_failed(); round++) {
            EXPECT_TRUE(gpu_fill_async(between, 0xee, RUNS * sizeof *between, fixture->stream));
            for (size_t i = 0; i < RUNS; i++)
                EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, (const int32_t *)fixture->in[0] + i, between + i, t.count,
                                                       DPR_I32, DPR_SUM, &nested, fixture->stream));
            EXPECT_STATUS(DPR_OK,
                          dpr_reduce_async(ctx, between, fixture->out, RUNS, DPR_I64, DPR_SUM, &flat, fixture->stream));
            watch(fixture, describe(&t));
            int64_t want = 0;
            for (size_t i = 0; i < RUNS; i++)
                want += fixture->sums[i + t.count] - fixture->sums[i];
            EXPECT_EQ_I64(want, *(const int64_t *)(const void *)fixture->out);
        }
    }
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, between);
}

NESTED_TEST(runs_are_captured_with_their_reports) {
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t f = 0; f < LENGTH(forms); f++) {
        const trial t = {.op = DPR_SUM, .form = forms[f], .count = 200000, .block = 256};
        dpr_launch_options launch;
        const dpr_options options = options_of(&t, &launch);
        launch.report = fixture->report;
        ASSERT_THAT(gpu_capture_begin(fixture->stream), "%s", gpu_error());
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, fixture->in[0], fixture->out, t.count, DPR_I32, DPR_SUM, &options,
                                               fixture->stream));
        gpu_graph *graph = gpu_capture_end(fixture->stream);
        ASSERT_THAT(graph != NULL, "%s", gpu_error());
        dpr_machine machine; /* its costs were measured while the first call was captured */
        EXPECT_STATUS(DPR_OK, dpr_machine_known(dpr_ctx_machine(ctx), 0, &machine));
        EXPECT_EQ_I64(1, machine.caps.gpu.nested_times_measured);
        for (int replay = 0; replay < 25; replay++) {
            memset(fixture->out, 0, 8);
            memset(fixture->report, 0, sizeof *fixture->report);
            EXPECT_THAT(gpu_graph_launch(graph, fixture->stream), "%s", gpu_error());
            watch(fixture, describe(&t));
            EXPECT_EQ_I64(fixture->sums[t.count], *(const int64_t *)(const void *)fixture->out);
            EXPECT_TRUE(fixture->report->launched > 0 && fixture->report->failed == 0);
        }
        gpu_graph_destroy(graph);
    }
    dpr_ctx_destroy(ctx);
}

/* Many runs at once share the pool's places. */
NESTED_TEST(streams_share_the_pool) {
    enum { STREAMS = 8, ROUNDS = 20 };
    NEED_GPU();
    dpr_ctx *ctx = context_of(256);
    dpr_stream streams[STREAMS];
    int64_t *out = gpu_alloc(DPR_MEMORY_PINNED, STREAMS * sizeof *out);
    ASSERT_TRUE(ctx && out);
    for (int s = 0; s < STREAMS; s++)
        ASSERT_TRUE((streams[s] = gpu_stream_create()) != NULL);
    for (int round = 0; round < ROUNDS && !test_failed(); round++) {
        const size_t count = 1 + random_below(1 << 18);
        for (size_t s = 0; s < STREAMS; s++) {
            const trial t = {.op = DPR_SUM, .form = forms[(s + (size_t)round) % LENGTH(forms)], .block = 128};
            dpr_launch_options launch;
            const dpr_options options = options_of(&t, &launch);
            EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, (const int32_t *)fixture->in[0] + s, out + s, count, DPR_I32,
                                                   DPR_SUM, &options, streams[s]));
        }
        for (size_t s = 0; s < STREAMS; s++)
            EXPECT_TRUE(gpu_stream_after(fixture->stream, streams[s]));
        watch(fixture, "runs in several streams");
        for (size_t s = 0; s < STREAMS; s++)
            EXPECT_EQ_I64(fixture->sums[s + count] - fixture->sums[s], out[s]);
    }
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE(gpu_stream_destroy(streams[s]));
    gpu_free(DPR_MEMORY_PINNED, out);
    dpr_ctx_destroy(ctx);
}
