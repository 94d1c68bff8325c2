/* Many streams, threads and graphs at once, with every result checked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"
#include "support.h"

enum { THREADS = 8, STREAMS = 4, ROUNDS = 25 };

/* Sizes on both sides of where strategies change. */
static const size_t counts[] = {1, 1000, 65537, 1000003};
enum { SIZES = LENGTH(counts), LARGEST = 1000003 };

/* Element i of I32 is i % 1000 - 300, and 5000 at i = 777, where it is the first of the greatest. */
typedef struct expected {
    int64_t sum, argmax;
    int32_t least;
} expected;

typedef struct world {
    dpr_ctx *ctx;
    int32_t *in; /* device memory */
    expected of[SIZES];
} world;

static int world_open(world *w) {
    int32_t *host = malloc(LARGEST * sizeof *host);
    int64_t sum = 0;
    int32_t least = INT32_MAX;
    w->in = gpu_alloc(DPR_MEMORY_DEVICE, LARGEST * sizeof *host);
    if (!host || !w->in) {
        free(host);
        return 0;
    }
    size_t next = 0;
    for (size_t i = 0; i < LARGEST; i++) {
        host[i] = i == 777 ? 5000 : (int32_t)(i % 1000) - 300;
        sum += host[i];
        least = host[i] < least ? host[i] : least;
        if (i + 1 == counts[next])
            w->of[next++] = (expected){sum, i < 777 ? 0 : 777, least};
    }
    const int copied = gpu_copy(w->in, host, LARGEST * sizeof *host);
    free(host);
    return copied && dpr_ctx_create(0, &w->ctx) == DPR_OK;
}

static void world_close(world *w) {
    dpr_ctx_destroy(w->ctx);
    if (w->in)
        gpu_free(DPR_MEMORY_DEVICE, w->in);
}

/* One reduction's place for a result of any of the operations, in pinned memory. */
typedef union slot {
    int64_t i64;
    int32_t i32;
} slot;

static dpr_op op_of(int i) {
    static const dpr_op ops[] = {DPR_SUM, DPR_MIN, DPR_ARGMAX};
    return ops[i % 3];
}

static void enqueue(const world *w, int i, slot *out, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = i % 5 == 3 ? "flat.ticket" : i % 5 == 4 ? "flat.block" : NULL;
    out->i64 = -1;
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(w->ctx, w->in, out, counts[i % SIZES], DPR_I32, op_of(i), &options, stream));
}

static void check(const world *w, int i, const slot *got) {
    const expected *e = &w->of[i % SIZES];
    switch (op_of(i)) {
    case DPR_SUM:
        EXPECT_EQ_I64(e->sum, got->i64);
        break;
    case DPR_MIN:
        EXPECT_EQ_I64(e->least, got->i32);
        break;
    default:
        EXPECT_EQ_I64(i % SIZES == 0 ? 0 : e->argmax, got->i64);
    }
}

typedef struct worker {
    const world *w;
    int number;
} worker;

static void *work(void *argument) {
    const worker *me = argument;
    dpr_stream stream[STREAMS] = {NULL};
    slot *out = gpu_alloc(DPR_MEMORY_PINNED, STREAMS * ROUNDS * sizeof *out);
    if (!EXPECT_THAT(out != NULL, "%s", gpu_error()))
        return NULL;
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE((stream[s] = gpu_stream_create()) != NULL);
    for (int r = 0; r < ROUNDS; r++)
        for (int s = 0; s < STREAMS; s++)
            enqueue(me->w, me->number + r * 7 + s, &out[r * STREAMS + s], stream[s]);
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE(gpu_stream_wait(stream[s]) && gpu_stream_destroy(stream[s]));
    for (int r = 0; r < ROUNDS; r++)
        for (int s = 0; s < STREAMS; s++)
            check(me->w, me->number + r * 7 + s, &out[r * STREAMS + s]);
    gpu_free(DPR_MEMORY_PINNED, out);
    return NULL;
}

/* Runs `body` with a worker in each of THREADS threads at once, on one context. */
static void run_in_threads(void *(*body)(void *)) {
    if (gpu_unavailable())
        SKIP(gpu_unavailable());
    world w = {0};
    pthread_t thread[THREADS];
    worker workers[THREADS];
    ASSERT_THAT(world_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){&w, t};
        ASSERT_EQ_I64(0, pthread_create(&thread[t], NULL, body, &workers[t]));
    }
    for (int t = 0; t < THREADS; t++)
        EXPECT_EQ_I64(0, pthread_join(thread[t], NULL));
    world_close(&w);
}

TEST(GpuStreams, threads_and_streams_at_once) {
    run_in_threads(work);
}

static void *call_blocking(void *argument) {
    const worker *me = argument;
    for (int i = 0; i < ROUNDS * STREAMS; i++) {
        slot out = {-1};
        const int n = me->number + i;
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(me->w->ctx, me->w->in, &out, counts[n % SIZES], DPR_I32, op_of(n), NULL));
        check(me->w, n, &out);
    }
    return NULL;
}

TEST(GpuStreams, threads_calling_at_once) {
    run_in_threads(call_blocking);
}

/* More streams than a context has scratch memory for at first, each destroyed with its work perhaps still running. */
TEST(GpuStreams, hundreds_of_streams) {
    enum { MANY = 700 };
    if (gpu_unavailable())
        SKIP(gpu_unavailable());
    world w = {0};
    ASSERT_THAT(world_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    slot *out = gpu_alloc(DPR_MEMORY_PINNED, MANY * sizeof *out);
    ASSERT_THAT(out != NULL, "%s", gpu_error());
    dpr_stream alive[MANY] = {NULL};
    for (int i = 0; i < MANY && !test_failed(); i++) {
        EXPECT_TRUE((alive[i] = gpu_stream_create()) != NULL);
        enqueue(&w, i * 5 + 3, &out[i], alive[i]); /* always flat.ticket, which needs scratch memory */
        if (i % 2)
            EXPECT_TRUE(gpu_stream_destroy(alive[i]));
    }
    for (int i = 0; i < MANY && !test_failed(); i += 2)
        EXPECT_TRUE(gpu_stream_wait(alive[i]) && gpu_stream_destroy(alive[i]));
    world_close(&w); /* waits for the rest */
    for (int i = 0; i < MANY && !test_failed(); i++)
        check(&w, i * 5 + 3, &out[i]);
    gpu_free(DPR_MEMORY_PINNED, out);
}

static gpu_graph *capture(const world *w, const int32_t *in, size_t count, int64_t *out, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "flat.ticket";
    if (!EXPECT_THAT(gpu_capture_begin(stream), "%s", gpu_error()))
        return NULL;
    for (int i = 0; i < 4; i++) /* a graph of several calls, the same memory for all but the results */
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_async(w->ctx, in, &out[i], count - (size_t)i, DPR_I32, DPR_SUM, &options, stream));
    gpu_graph *graph = gpu_capture_end(stream);
    EXPECT_THAT(graph != NULL, "%s", gpu_error());
    return graph;
}

static void check_graph(const int64_t *out, size_t count, int32_t value) {
    for (int i = 0; i < 4; i++)
        EXPECT_EQ_I64((int64_t)(count - (size_t)i) * value, out[i]);
}

TEST(GpuStreams, graphs_replayed_with_other_data) {
    enum { LENGTH_OF_ARRAY = 300001, REPLAYS = 10 };
    if (gpu_unavailable())
        SKIP(gpu_unavailable());
    world w = {0};
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &w.ctx));
    int32_t *in[2];
    int64_t *out[2];
    gpu_graph *graph[2];
    dpr_stream stream[2];
    for (int g = 0; g < 2; g++) {
        in[g] = gpu_alloc(DPR_MEMORY_DEVICE, LENGTH_OF_ARRAY * sizeof **in);
        out[g] = gpu_alloc(DPR_MEMORY_PINNED, 4 * sizeof **out);
        stream[g] = gpu_stream_create();
        ASSERT_THAT(in[g] && out[g] && stream[g], "%s", gpu_error());
        graph[g] = capture(&w, in[g], LENGTH_OF_ARRAY, out[g], stream[g]);
        ASSERT_TRUE(graph[g] != NULL);
    }
    for (int32_t r = 1; r <= REPLAYS && !test_failed(); r++) {
        for (int g = 0; g < 2; g++) {
            const int32_t value = r * 3 + g;
            memset(out[g], 0xee, 4 * sizeof **out);
            EXPECT_TRUE(gpu_repeat(in[g], LENGTH_OF_ARRAY * sizeof value, &value, sizeof value));
        }
        for (int g = 0; g < 2; g++)
            EXPECT_TRUE(gpu_graph_launch(graph[g], stream[g])); /* both in flight */
        for (int g = 0; g < 2; g++)
            EXPECT_TRUE(gpu_stream_wait(stream[g]));
        for (int g = 0; g < 2; g++)
            check_graph(out[g], LENGTH_OF_ARRAY, r * 3 + g);
    }
    for (int g = 0; g < 2; g++) {
        gpu_graph_destroy(graph[g]);
        EXPECT_TRUE(gpu_stream_destroy(stream[g]));
        gpu_free(DPR_MEMORY_DEVICE, in[g]);
        gpu_free(DPR_MEMORY_PINNED, out[g]);
    }
    world_close(&w);
}

/* A graph does not hold up, or share scratch memory with, calls in the stream it was captured from. */
TEST(GpuStreams, graph_and_stream_at_once) {
    if (gpu_unavailable())
        SKIP(gpu_unavailable());
    world w = {0};
    ASSERT_THAT(world_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    slot *direct = gpu_alloc(DPR_MEMORY_PINNED, ROUNDS * sizeof *direct);
    int64_t *out = gpu_alloc(DPR_MEMORY_PINNED, 4 * sizeof *out);
    dpr_stream capturing = gpu_stream_create(), other = gpu_stream_create();
    ASSERT_TRUE(direct && out && capturing && other);
    gpu_graph *graph = capture(&w, w.in, LARGEST, out, capturing);
    ASSERT_TRUE(graph != NULL);
    for (int r = 0; r < ROUNDS; r++) {
        EXPECT_TRUE(gpu_graph_launch(graph, other));
        enqueue(&w, 3 + 5 * r, &direct[r], capturing);
    }
    EXPECT_TRUE(gpu_stream_wait(other) && gpu_stream_wait(capturing));
    EXPECT_EQ_I64(w.of[SIZES - 1].sum, out[0]);
    for (int r = 0; r < ROUNDS; r++)
        check(&w, 3 + 5 * r, &direct[r]);
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(capturing) && gpu_stream_destroy(other));
    gpu_free(DPR_MEMORY_PINNED, direct);
    gpu_free(DPR_MEMORY_PINNED, out);
    world_close(&w);
}

TEST(GpuStreams, plans_run_in_several_streams) {
    if (gpu_unavailable())
        SKIP(gpu_unavailable());
    world w = {0};
    ASSERT_THAT(world_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    int64_t *out = gpu_alloc(DPR_MEMORY_PINNED, ROUNDS * STREAMS * sizeof *out);
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_I32;
    problem.count = LARGEST;
    dpr_plan *plan = NULL;
    dpr_stream stream[STREAMS];
    ASSERT_TRUE(out != NULL);
    ASSERT_STATUS(DPR_OK, dpr_plan_create(w.ctx, &problem, &plan));
    for (int s = 0; s < STREAMS; s++)
        ASSERT_TRUE((stream[s] = gpu_stream_create()) != NULL);
    for (int i = 0; i < ROUNDS * STREAMS; i++)
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, w.in, &out[i], stream[i % STREAMS]));
    dpr_plan_destroy(plan); /* its runs are in flight */
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE(gpu_stream_wait(stream[s]) && gpu_stream_destroy(stream[s]));
    for (int i = 0; i < ROUNDS * STREAMS; i++)
        EXPECT_EQ_I64(w.of[SIZES - 1].sum, out[i]);
    gpu_free(DPR_MEMORY_PINNED, out);
    world_close(&w);
}
