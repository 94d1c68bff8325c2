/* CUDA contexts other than the one that a program of the runtime's has: whose they are, which of them calls work in,
 * and what is left of those that are gone; green contexts; and calls while another thread captures a stream. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

enum { COUNT = 100000 };
static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2, canary = 0x5a5a5a5a;

#define NEED_GPUS(N)                                                                                                   \
    do {                                                                                                               \
        NEED_GPU();                                                                                                    \
        if (gpu_count() < (N))                                                                                         \
            SKIP("needs two CUDA devices");                                                                            \
    } while (0)

/* 1, 2, ... COUNT in device memory of the current context; NULL if that failed, which is noted. */
static int32_t *make_array(void) {
    static int32_t host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = i + 1;
    int32_t *in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof host);
    return EXPECT_THAT(in && gpu_copy(in, host, sizeof host), "%s", gpu_error()) ? in : NULL;
}

/* dpr_reduce() gives the sum, to host memory and to device memory next to the array. */
static void expect_simple_sum(const int32_t *in, const char *where) {
    int64_t sum = canary;
    EXPECT_THAT(dpr_reduce(in, &sum, COUNT, DPR_I32, DPR_SUM) == DPR_OK, "%s: %s", where, dpr_last_error());
    EXPECT_THAT(sum == expected_sum, "%s: %lld", where, (long long)sum);
}

static void expect_sum_on(dpr_ctx *ctx, const int32_t *in) {
    int64_t sum = canary;
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, &sum, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_EQ_I64(expected_sum, sum);
}

/* ---- Whose context ---- */

/* In a thread without a context. */
static void *use_far_memory(void *array) {
    dpr_ctx *ctx = NULL;
    EXPECT_EQ_PTR(NULL, gpu_context_current());
    expect_simple_sum(array, "far memory");
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(1, &ctx));
    expect_sum_on(ctx, array);
    dpr_ctx_destroy(ctx);
    EXPECT_EQ_PTR(NULL, gpu_context_current());
    return NULL;
}

static void *make_far_memory(void *array) {
    if (EXPECT_TRUE(gpu_use(1)))
        *(int32_t **)array = make_array();
    return NULL;
}

static void in_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    ASSERT_EQ_I64(0, pthread_create(&thread, NULL, body, argument));
    ASSERT_EQ_I64(0, pthread_join(thread, NULL));
}

TEST(GpuContexts, memory_of_device_1_makes_no_context_on_device_0) {
    int32_t *in = NULL;
    NEED_GPUS(2);
    if (gpu_primary_is_made(0))
        SKIP("device 0 has a context from another test in this process");
    in_thread(make_far_memory, &in);
    ASSERT_TRUE(in != NULL);
    in_thread(use_far_memory, in);
    EXPECT_TRUE(gpu_primary_is_made(1) && !gpu_primary_is_made(0));
    dpr_shutdown();
}

/* Contexts that a thread may have current, and an array in each. */
enum { PRIMARY, OWN, GREEN, CONTEXTS };

typedef struct scene {
    gpu_context *context[CONTEXTS]; /* the primary one's is NULL */
    int32_t *in[CONTEXTS];
} scene;

static int enter(const scene *s, int which) {
    return which == PRIMARY || gpu_context_push(s->context[which]);
}

static int leave(int which) {
    return which == PRIMARY || gpu_context_pop();
}

static void scene_open(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    ASSERT_TRUE(gpu_use(0));
    s->in[PRIMARY] = make_array();
    ASSERT_TRUE((s->context[OWN] = gpu_context_create(0)) != NULL);
    s->context[GREEN] = gpu_green_create(0, 8); /* NULL: the driver does not know such */
    for (int i = OWN; i < CONTEXTS && s->context[i]; i++) {
        ASSERT_TRUE(gpu_context_push(s->context[i]));
        s->in[i] = make_array();
        ASSERT_TRUE(gpu_context_pop());
    }
}

static void scene_close(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    dpr_shutdown();
    for (int i = 0; i < CONTEXTS; i++) {
        if (!s->in[i] || !EXPECT_TRUE(enter(s, i)))
            continue;
        gpu_free(DPR_MEMORY_DEVICE, s->in[i]);
        EXPECT_TRUE(leave(i));
    }
    for (int i = OWN; i < CONTEXTS; i++)
        EXPECT_TRUE(!s->context[i] || gpu_context_destroy(s->context[i]));
}

#define CONTEXT_TEST(NAME) TEST_FIXTURE(GpuContexts, NAME, scene, scene_open, scene_close)

CONTEXT_TEST(simple_calls_work_in_any_context) {
    NEED_GPUS(1);
    for (int current = 0; current < CONTEXTS; current++) {
        for (int of = 0; of < CONTEXTS; of++) {
            if (!fixture->in[current] || !fixture->in[of])
                continue;
            ASSERT_TRUE(enter(fixture, current));
            const void *before = gpu_context_current();
            expect_simple_sum(fixture->in[of], "some context");
            EXPECT_EQ_PTR(before, gpu_context_current());
            ASSERT_TRUE(leave(current));
        }
    }
}

/* The caller's context stays whatever a call does, on whichever device, also if it fails. */
CONTEXT_TEST(callers_context_stays) {
    dpr_ctx *ctx = NULL;
    int64_t sum;
    NEED_GPUS(2);
    ASSERT_TRUE(gpu_use(1));
    int32_t *far = make_array();
    ASSERT_TRUE(gpu_use(0) && gpu_context_push(fixture->context[OWN]));
    const void *mine = gpu_context_current();
    expect_simple_sum(far, "the other device");
    EXPECT_EQ_PTR(mine, gpu_context_current());
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_reduce(NULL, &sum, COUNT, DPR_I32, DPR_SUM));
    EXPECT_EQ_PTR(mine, gpu_context_current());
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(1, &ctx));
    EXPECT_EQ_PTR(mine, gpu_context_current());
    expect_sum_on(ctx, far);
    EXPECT_EQ_PTR(mine, gpu_context_current());
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, dpr_reduce_ex(ctx, fixture->in[0], &sum, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_EQ_PTR(mine, gpu_context_current());
    dpr_ctx_destroy(ctx);
    EXPECT_EQ_PTR(mine, gpu_context_current());
    expect_simple_sum(fixture->in[OWN], "the own context");
    EXPECT_TRUE(gpu_context_pop());
    dpr_shutdown();
    EXPECT_TRUE(gpu_use(1));
    gpu_free(DPR_MEMORY_DEVICE, far);
    EXPECT_TRUE(gpu_use(0));
}

static dpr_status call_in(dpr_ctx *ctx, const int32_t *in, int64_t *out, const char *strategy, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    return dpr_reduce_async(ctx, in, out, COUNT, DPR_I32, DPR_SUM, &options, stream);
}

/* A blocking call in a stream. */
static dpr_status wait_in(dpr_ctx *ctx, const int32_t *in, int64_t *out, const char *strategy, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.stream = stream;
    return dpr_reduce_ex(ctx, in, out, COUNT, DPR_I32, DPR_SUM, &options);
}

/* A context of the library's works in the CUDA context that it was made in, whatever the caller's is; streams of
 * another one are refused, which costs nothing that would stay. */
CONTEXT_TEST(contexts_know_where_they_belong) {
    enum { TIMES = 5000, MOST_KEPT = 1 << 20 };
    static const int32_t on_host[COUNT];
    dpr_ctx *ctx = NULL;
    NEED_GPUS(1);
    dpr_stream foreign = gpu_stream_create();
    ASSERT_TRUE(foreign && gpu_context_push(fixture->context[OWN]));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    dpr_stream own = gpu_stream_create();
    int64_t *out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *out);
    ASSERT_TRUE(own && out && gpu_context_pop());
    expect_sum_on(ctx, fixture->in[OWN]);
    *out = canary;
    EXPECT_STATUS(DPR_OK, call_in(ctx, fixture->in[OWN], out, "flat.lastblock", own));
    EXPECT_TRUE(gpu_stream_wait(own));
    EXPECT_EQ_I64(expected_sum, *out);
    const size_t before = gpu_free_bytes();
    for (int i = 0; i < TIMES && !test_failed(); i++) {
        *out = canary;
        EXPECT_STATUS(DPR_ERR_WRONG_DEVICE,
                      call_in(ctx, fixture->in[OWN], out, i % 2 ? "flat.lastblock" : "flat.block", foreign));
        EXPECT_CONTAINS(dpr_last_error(), "stream is 0x");
        EXPECT_EQ_I64(canary, *out);
        EXPECT_STATUS(DPR_ERR_WRONG_DEVICE,
                      wait_in(ctx, fixture->in[OWN], out, i % 2 ? "flat.lastblock" : "flat.block", foreign));
        EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, wait_in(ctx, on_host, out, "cpu.serial", foreign));
        EXPECT_CONTAINS(dpr_last_error(), "stream is 0x");
        EXPECT_EQ_I64(canary, *out);
    }
    EXPECT_STATUS(DPR_OK, wait_in(ctx, fixture->in[OWN], out, "flat.lastblock", own));
    EXPECT_EQ_I64(expected_sum, *out);
    const size_t after = gpu_free_bytes();
    EXPECT_THAT(after + MOST_KEPT >= before, "%zu bytes of device memory are lost", before - after);
    EXPECT_TRUE(gpu_stream_destroy(foreign) && gpu_context_push(fixture->context[OWN]));
    dpr_ctx_destroy(ctx);
    EXPECT_TRUE(gpu_stream_destroy(own));
    gpu_free(DPR_MEMORY_PINNED, out);
    EXPECT_TRUE(gpu_context_pop());
}

/* The CUDA context goes first. */
CONTEXT_TEST(contexts_that_are_gone_say_so) {
    dpr_ctx *ctx = NULL;
    int64_t sum = canary;
    NEED_GPUS(1);
    gpu_context *doomed = gpu_context_create(0);
    ASSERT_TRUE(doomed && gpu_context_push(doomed));
    int32_t *in = make_array();
    expect_simple_sum(in, "a further context");
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    expect_sum_on(ctx, in);
    ASSERT_TRUE(gpu_context_pop() && gpu_context_destroy(doomed));
    EXPECT_STATUS(DPR_ERR_CUDA, dpr_reduce_ex(ctx, fixture->in[PRIMARY], &sum, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "is gone");
    EXPECT_EQ_I64(canary, sum);
    dpr_ctx_destroy(ctx);
    expect_simple_sum(fixture->in[PRIMARY], "the primary context, after another one's end");
}

/* More contexts than the library keeps contexts of its own for, one after another. */
CONTEXT_TEST(contexts_come_and_go) {
    (void)fixture;
    NEED_GPUS(1);
    for (int i = 0; i < 70 && !test_failed(); i++) {
        gpu_context *context = gpu_context_create(0);
        ASSERT_TRUE(context && gpu_context_push(context));
        int32_t *in = make_array();
        expect_simple_sum(in, "one of many contexts");
        ASSERT_TRUE(gpu_context_pop() && gpu_context_destroy(context));
    }
}

TEST(GpuContexts, simple_calls_work_after_a_reset) {
    NEED_GPUS(1);
    ASSERT_TRUE(gpu_use(0));
    for (int i = 0; i < 5 && !test_failed(); i++) {
        dpr_ctx *ctx = NULL;
        int64_t sum = canary;
        int32_t *in = make_array();
        expect_simple_sum(in, "after a reset");
        EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
        expect_sum_on(ctx, in);
        ASSERT_TRUE(gpu_reset());
        in = make_array();
        EXPECT_STATUS(DPR_ERR_CUDA, dpr_reduce_ex(ctx, in, &sum, COUNT, DPR_I32, DPR_SUM, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "is gone");
        EXPECT_EQ_I64(canary, sum);
        dpr_ctx_destroy(ctx);
        expect_simple_sum(in, "after a reset");
        gpu_free(DPR_MEMORY_DEVICE, in);
    }
    dpr_shutdown();
}

/* ---- A thread that is to be cancelled ---- */

static atomic_int calls_completed;

/* The request acts where the caller lets it, and not inside a call. */
static void *call_and_be_cancelled(void *array) {
    dpr_ctx *ctx = NULL;
    dpr_launcher launcher;
    int64_t sum = canary;
    EXPECT_TRUE(gpu_use(0));
    (void)pthread_cancel(pthread_self());
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    expect_sum_on(ctx, array);
    EXPECT_STATUS(DPR_OK, dpr_launcher_create(ctx, 0, &launcher));
    dpr_launcher_destroy(&launcher);
    dpr_ctx_destroy(ctx);
    EXPECT_STATUS(DPR_OK, dpr_reduce(array, &sum, COUNT, DPR_I32, DPR_SUM));
    EXPECT_EQ_I64(expected_sum, sum);
    dpr_shutdown();
    atomic_fetch_add(&calls_completed, 1);
    pthread_testcancel();
    EXPECT_TRUE(0); /* it should have been cancelled */
    return NULL;
}

TEST(GpuContexts, calls_are_no_cancellation_points) {
    NEED_GPUS(1);
    ASSERT_TRUE(gpu_use(0));
    int32_t *in = make_array();
    for (int i = 0; i < 3 && !test_failed(); i++) {
        pthread_t thread;
        void *result = NULL;
        ASSERT_EQ_I64(0, pthread_create(&thread, NULL, call_and_be_cancelled, in));
        ASSERT_EQ_I64(0, pthread_join(thread, &result));
        EXPECT_TRUE(result == PTHREAD_CANCELED);
        EXPECT_EQ_I64(i + 1, atomic_load(&calls_completed));
    }
    expect_simple_sum(in, "after threads that were cancelled");
    dpr_shutdown();
    gpu_free(DPR_MEMORY_DEVICE, in);
}

/* ---- Streams with some of the SMs ---- */

/* A stream of the green context, and an array of ones in the primary one. */
typedef struct green_scene {
    gpu_context *green;
    dpr_stream stream;
    dpr_ctx *ctx;
    float *in;
    float *out; /* pinned memory */
    size_t most;
} green_scene;

static void green_open(void *state) {
    green_scene *s = state;
    const float one = 1;
    if (gpu_unavailable())
        return;
    s->most = (size_t)1 << 22;
    ASSERT_TRUE(gpu_use(0));
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, s->most * sizeof *s->in);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->out);
    ASSERT_THAT(s->in && s->out && gpu_repeat(s->in, s->most * sizeof one, &one, sizeof one), "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    s->green = gpu_green_create(0, 8);
    if (!s->green)
        return;
    ASSERT_TRUE(gpu_context_push(s->green));
    s->stream = gpu_stream_create();
    ASSERT_TRUE(s->stream && gpu_context_pop());
}

static void green_close(void *state) {
    green_scene *s = state;
    dpr_ctx_destroy(s->ctx);
    if (gpu_unavailable())
        return;
    if (s->stream)
        EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_TRUE(!s->green || gpu_context_destroy(s->green));
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->out);
}

#define GREEN_TEST(NAME) TEST_FIXTURE(GpuGreen, NAME, green_scene, green_open, green_close)
#define NEED_GREEN()                                                                                                   \
    do {                                                                                                               \
        NEED_GPUS(1);                                                                                                  \
        if (!fixture->green)                                                                                           \
            SKIP("the driver has no green contexts");                                                                  \
    } while (0)

static size_t fit(const green_scene *s, size_t count) {
    return count < test_largest() && count < s->most ? count : test_largest() < s->most ? test_largest() : s->most;
}

static void expect_ones(const green_scene *s, size_t count, const char *strategy) {
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_THAT(*s->out == (float)count, "%s, %zu elements: %g", strategy ? strategy : "the planner's choice", count,
                (double)*s->out);
}

/* What the planner chooses for the whole device may need more of it than the stream has. */
GREEN_TEST(choices_fit_the_stream) {
    NEED_GREEN();
    for (size_t count = 1; count <= fixture->most; count *= 2) {
        const size_t n = fit(fixture, count);
        for (int again = 0; again < 2; again++) {
            *fixture->out = 0;
            EXPECT_STATUS(DPR_OK, dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, n, DPR_F32, DPR_SUM, NULL,
                                                   fixture->stream));
            expect_ones(fixture, n, NULL);
        }
    }
}

/* By name a strategy runs, or says that the stream has no room for it. */
GREEN_TEST(strategies_run_or_say_that_they_do_not_fit) {
    NEED_GREEN();
    for (size_t i = 0; i < gpu_strategy_count(); i++) {
        for (size_t count = 100; count <= fixture->most; count *= 30) {
            const size_t n = fit(fixture, count);
            dpr_options options = DPR_OPTIONS_INIT;
            options.strategy = gpu_strategy(i);
            if (!gpu_strategy_runs(i, DPR_SUM, DPR_F32))
                continue;
            *fixture->out = 0;
            const dpr_status status = dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, n, DPR_F32, DPR_SUM,
                                                       &options, fixture->stream);
            if (status == DPR_OK)
                expect_ones(fixture, n, options.strategy);
            else
                EXPECT_THAT(status == DPR_ERR_STRATEGY_UNABLE && strstr(dpr_last_error(), "8 SMs"), "%s: %s",
                            options.strategy, dpr_last_error());
            EXPECT_THAT(status == DPR_OK || strncmp(options.strategy, "coop.", 5) == 0, "%s: %s", options.strategy,
                        dpr_last_error());
        }
    }
}

GREEN_TEST(plans_and_graphs_fit_the_stream) {
    NEED_GREEN();
    for (size_t count = 1 << 10; count <= fixture->most; count *= 4) {
        const size_t n = fit(fixture, count);
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_plan *plan = NULL;
        problem.count = n;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
        *fixture->out = 0;
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, fixture->out, fixture->stream));
        expect_ones(fixture, n, "a plan");
        ASSERT_TRUE(gpu_capture_begin(fixture->stream));
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, fixture->out, fixture->stream));
        gpu_graph *graph = gpu_capture_end(fixture->stream);
        ASSERT_THAT(graph != NULL, "%s", gpu_error());
        *fixture->out = 0;
        EXPECT_TRUE(gpu_graph_launch(graph, fixture->stream));
        expect_ones(fixture, n, "a graph");
        gpu_graph_destroy(graph);
        dpr_plan_destroy(plan);
    }
}

/* The context's scratch memory is enough for so many captured calls if each takes one part of it. */
GREEN_TEST(captured_calls_take_scratch_memory_once) {
    enum { CALLS = 500, MOST_TAKEN = 2 << 20 };
    dpr_options options = DPR_OPTIONS_INIT;
    NEED_GREEN();
    options.strategy = "flat.lastblock";
    *fixture->out = 0;
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, 1000, DPR_F32, DPR_SUM, &options,
                                           fixture->stream));
    expect_ones(fixture, 1000, options.strategy);
    const size_t before = gpu_free_bytes();
    ASSERT_TRUE(gpu_capture_begin(fixture->stream));
    for (int i = 0; i < CALLS && !test_failed(); i++)
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, 1000, DPR_F32, DPR_SUM,
                                               &options, fixture->stream));
    gpu_graph *graph = gpu_capture_end(fixture->stream);
    const size_t after = gpu_free_bytes();
    EXPECT_THAT(graph != NULL, "%s", gpu_error());
    EXPECT_THAT(after + MOST_TAKEN >= before, "%zu bytes of device memory are taken", before - after);
    gpu_graph_destroy(graph);
}

/* A context that is made in a green context has that one's SMs for its own. */
GREEN_TEST(contexts_in_green_contexts) {
    dpr_ctx *ctx = NULL;
    NEED_GREEN();
    ASSERT_TRUE(gpu_context_push(fixture->green));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t count = 1; count <= fixture->most; count *= 8) {
        const size_t n = fit(fixture, count);
        float sum = 0;
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, fixture->in, &sum, n, DPR_F32, DPR_SUM, NULL));
        EXPECT_TRUE(sum == (float)n);
        EXPECT_STATUS(DPR_OK, dpr_reduce(fixture->in, &sum, n, DPR_F32, DPR_SUM));
        EXPECT_TRUE(sum == (float)n);
    }
    dpr_ctx_destroy(ctx);
    dpr_shutdown();
    EXPECT_TRUE(gpu_context_pop());
}

/* ---- While another thread captures ---- */

typedef struct other_work {
    int32_t *in;
    int64_t *device_out;
    dpr_ctx *before;   /* made before the capture */
    dpr_stream stream; /* not captured */
    int blocking;      /* the stream that is captured waits for the legacy default stream */
} other_work;

/* Everything that a thread may do that knows nothing of the capture. */
static void *work(void *argument) {
    const other_work *w = argument;
    static const int32_t host[4] = {1, 2, 3, 4};
    dpr_ctx *ctx = NULL;
    dpr_launcher launcher;
    dpr_launch_report report;
    int64_t sum = canary;
    EXPECT_TRUE(gpu_use(0));
    expect_simple_sum(w->in, "while a stream is captured");
    EXPECT_STATUS(DPR_OK, dpr_reduce(w->in, w->device_out, COUNT, DPR_I32, DPR_SUM));
    EXPECT_STATUS(DPR_OK, dpr_reduce(host, w->device_out, 4, DPR_I32, DPR_SUM));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    expect_sum_on(ctx, w->in);
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, w->in, w->device_out, COUNT, DPR_I32, DPR_SUM, NULL, w->stream));
    EXPECT_STATUS(w->blocking ? DPR_ERR_CUDA : DPR_OK,
                  dpr_reduce_async(ctx, w->in, w->device_out, COUNT, DPR_I32, DPR_SUM, NULL, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(w->before, w->device_out, &sum, 0, DPR_I64, DPR_SUM, NULL));
    if (EXPECT_STATUS(DPR_OK, dpr_launcher_create(ctx, 0, &launcher))) {
        EXPECT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
        dpr_launcher_destroy(&launcher);
    }
    dpr_ctx_destroy(ctx);
    dpr_ctx_destroy(w->before);
    dpr_shutdown();
    return NULL;
}

/* The capture stands all of it, and is right. */
static void capture_beside(dpr_stream stream, int blocking) {
    other_work w = {
        .in = make_array(), .device_out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof(int64_t)), .blocking = blocking};
    int64_t *out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *out);
    dpr_ctx *ctx = NULL;
    w.stream = gpu_stream_create();
    ASSERT_TRUE(w.in && w.device_out && w.stream && out && stream);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &w.before));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    ASSERT_TRUE(gpu_capture_begin(stream));
    in_thread(work, &w);
    EXPECT_STATUS(DPR_OK, call_in(ctx, w.in, out, NULL, stream));
    gpu_graph *graph = gpu_capture_end(stream);
    EXPECT_THAT(graph != NULL, "the capture of a stream is spoilt (blocking: %d): %s", blocking, gpu_error());
    *out = canary;
    EXPECT_TRUE(graph && gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
    EXPECT_EQ_I64(expected_sum, *out);
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_wait(w.stream) && gpu_stream_destroy(w.stream));
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, w.in);
    gpu_free(DPR_MEMORY_DEVICE, w.device_out);
    gpu_free(DPR_MEMORY_PINNED, out);
}

TEST(GpuCaptures, of_other_threads_are_left_alone) {
    NEED_GPUS(1);
    ASSERT_TRUE(gpu_use(0));
    for (int again = 0; again < 3 && !test_failed(); again++) {
        dpr_stream blocking = gpu_blocking_stream_create(), other = gpu_stream_create();
        capture_beside(other, 0);
        capture_beside(blocking, 1);
        EXPECT_TRUE(gpu_stream_destroy(blocking) && gpu_stream_destroy(other));
    }
}

/* More streams than slots of scratch memory, so that the slots of streams that are gone are taken. */
TEST(GpuCaptures, of_other_threads_outlast_thousands_of_streams) {
    dpr_ctx *ctx = NULL;
    NEED_GPUS(1);
    ASSERT_TRUE(gpu_use(0));
    int32_t *in = make_array();
    int64_t *out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *out);
    dpr_stream captured = gpu_stream_create();
    ASSERT_TRUE(in && out && captured);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    ASSERT_TRUE(gpu_capture_begin(captured));
    for (int i = 0; i < 4500 && !test_failed(); i++) {
        dpr_stream stream = gpu_stream_create();
        EXPECT_STATUS(DPR_OK, call_in(ctx, in, out, "flat.lastblock", stream));
        EXPECT_TRUE(gpu_stream_destroy(stream));
    }
    EXPECT_STATUS(DPR_OK, call_in(ctx, in, out, "flat.lastblock", captured));
    gpu_graph *graph = gpu_capture_end(captured);
    EXPECT_THAT(graph != NULL, "the capture is spoilt: %s", gpu_error());
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(captured));
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_DEVICE, out);
}
