/* Captured graphs: replayed with other data and other numbers of elements, several at once, after work of every kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cycle.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

enum { MANY = 300001, CALLS = 4, REPLAYS = 6 };

/* An array of I32 in device memory and places for results in pinned memory, on device 0. */
typedef struct scene {
    dpr_ctx *ctx;
    int32_t *in;  /* MANY elements */
    int64_t *out; /* CALLS elements */
    int64_t *far; /* CALLS elements of device memory */
    dpr_stream stream, other;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *s->in);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, CALLS * sizeof *s->out);
    s->far = gpu_alloc(DPR_MEMORY_DEVICE, CALLS * sizeof *s->far);
    s->stream = gpu_stream_create();
    s->other = gpu_stream_create();
    ASSERT_THAT(s->in && s->out && s->far && s->stream && s->other, "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    if (gpu_unavailable())
        return;
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    gpu_free(DPR_MEMORY_DEVICE, s->far);
    EXPECT_TRUE(gpu_stream_destroy(s->stream) && gpu_stream_destroy(s->other));
}

#define GRAPH_TEST(NAME) TEST_FIXTURE(GpuGraphs, NAME, scene, scene_open, scene_close)

static void reduce(const scene *s, const char *strategy, const void *in, void *out, size_t count, dpr_dtype dtype,
                   dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(s->ctx, in, out, count, dtype, DPR_SUM, &options, stream));
}

static gpu_graph *end_capture(dpr_stream stream) {
    gpu_graph *graph = gpu_capture_end(stream);
    EXPECT_THAT(graph != NULL, "%s", gpu_error());
    return graph;
}

/* A graph of several calls on the same array, each of a different length. */
static gpu_graph *capture_calls(const scene *s, const char *strategy, dpr_stream stream) {
    if (!EXPECT_THAT(gpu_capture_begin(stream), "%s", gpu_error()))
        return NULL;
    for (size_t i = 0; i < CALLS; i++)
        reduce(s, strategy, s->in, &s->out[i], MANY - i, DPR_I32, stream);
    return end_capture(stream);
}

static void check_calls(const scene *s, const char *strategy, int32_t value) {
    for (int64_t i = 0; i < CALLS; i++)
        EXPECT_THAT(s->out[i] == (MANY - i) * value, "%s: call %lld gives %lld, not %lld", strategy ? strategy : "auto",
                    (long long)i, (long long)s->out[i], (long long)((MANY - i) * value));
}

/* Two graphs in flight at a time, on arrays of their own. */
static void replay_two(scene *of[2], const char *strategy) {
    gpu_graph *graph[2];
    for (int g = 0; g < 2; g++)
        ASSERT_TRUE((graph[g] = capture_calls(of[g], strategy, of[g]->stream)) != NULL);
    for (int32_t r = 1; r <= REPLAYS && !test_failed(); r++) {
        for (int g = 0; g < 2; g++) {
            const int32_t value = r * 3 + g;
            memset(of[g]->out, 0xee, CALLS * sizeof *of[g]->out);
            EXPECT_TRUE(gpu_repeat(of[g]->in, MANY * sizeof value, &value, sizeof value));
        }
        for (int g = 0; g < 2; g++)
            EXPECT_TRUE(gpu_graph_launch(graph[g], of[g]->stream));
        for (int g = 0; g < 2; g++)
            EXPECT_TRUE(gpu_stream_wait(of[g]->stream));
        for (int g = 0; g < 2; g++)
            check_calls(of[g], strategy, r * 3 + g);
    }
    for (int g = 0; g < 2; g++)
        gpu_graph_destroy(graph[g]);
}

GRAPH_TEST(replayed_with_other_data_two_at_once) {
    NEED_GPU();
    scene second = {0};
    scene_open(&second);
    ASSERT_TRUE(second.ctx && second.in && second.out);
    dpr_ctx *const own = second.ctx;
    second.ctx = fixture->ctx; /* both of one context */
    for (size_t i = 0; i <= gpu_strategy_count() && !test_failed(); i++)
        replay_two((scene *[]){fixture, &second}, gpu_strategy(i));
    second.ctx = own;
    scene_close(&second);
}

/* A graph does not hold up, or share scratch memory with, calls in the stream it was captured from. */
GRAPH_TEST(graph_and_stream_at_once) {
    NEED_GPU();
    enum { ROUNDS = 25 };
    const int32_t value = 3;
    int64_t *direct = gpu_alloc(DPR_MEMORY_PINNED, ROUNDS * sizeof *direct);
    ASSERT_TRUE(direct && gpu_repeat(fixture->in, MANY * sizeof value, &value, sizeof value));
    for (size_t i = 0; i <= gpu_strategy_count() && !test_failed(); i++) {
        const char *strategy = gpu_strategy(i);
        gpu_graph *graph = capture_calls(fixture, strategy, fixture->stream);
        ASSERT_TRUE(graph != NULL);
        for (int r = 0; r < ROUNDS; r++) {
            EXPECT_TRUE(gpu_graph_launch(graph, fixture->other));
            reduce(fixture, strategy, fixture->in, &direct[r], MANY - (size_t)r, DPR_I32, fixture->stream);
        }
        EXPECT_TRUE(gpu_stream_wait(fixture->other) && gpu_stream_wait(fixture->stream));
        check_calls(fixture, strategy, value);
        for (int64_t r = 0; r < ROUNDS; r++)
            EXPECT_EQ_I64((MANY - r) * value, direct[r]);
        gpu_graph_destroy(graph);
    }
    gpu_free(DPR_MEMORY_PINNED, direct);
}

/* ---- What comes before a call in its graph ---- */

/* Captures fills and copies of the input, some in another stream that joins again, and the sum of what they leave. The
 * second half of the input comes from `from`, so that a replay follows it. */
static gpu_graph *capture_after_copies(const scene *s, const char *strategy, const int32_t *from, int forked) {
    const size_t half = MANY / 2;
    const dpr_stream second = forked ? s->other : s->stream;
    if (!EXPECT_THAT(gpu_capture_begin(s->stream), "%s", gpu_error()))
        return NULL;
    EXPECT_TRUE(!forked || gpu_stream_after(s->other, s->stream));
    EXPECT_TRUE(gpu_fill_async(s->in, 0, half * sizeof *s->in, s->stream)
                && gpu_copy_async(s->in + half, from, (MANY - half) * sizeof *from, second));
    EXPECT_TRUE(!forked || gpu_stream_after(s->stream, s->other)); /* then the call has two predecessors */
    reduce(s, strategy, s->in, &s->far[0], MANY, DPR_I32, s->stream);
    EXPECT_TRUE(gpu_copy_async(&s->out[0], &s->far[0], sizeof *s->out, s->stream));
    EXPECT_TRUE(gpu_fill_async(s->in, 0x7f, MANY * sizeof *s->in, s->stream)); /* not before the call has read it */
    return end_capture(s->stream);
}

GRAPH_TEST(calls_after_fills_and_copies) {
    NEED_GPU();
    const int64_t copied = MANY - MANY / 2;
    int32_t *from = gpu_alloc(DPR_MEMORY_DEVICE, (size_t)copied * sizeof *from);
    ASSERT_TRUE(from != NULL);
    for (size_t i = 0; i < 2 * (gpu_strategy_count() + 1) && !test_failed(); i++) {
        gpu_graph *graph = capture_after_copies(fixture, gpu_strategy(i / 2), from, (int)(i % 2));
        ASSERT_TRUE(graph != NULL);
        for (int32_t value = 1; value <= REPLAYS; value++) {
            EXPECT_TRUE(gpu_repeat(from, (size_t)copied * sizeof value, &value, sizeof value));
            EXPECT_TRUE(gpu_graph_launch(graph, fixture->stream) && gpu_stream_wait(fixture->stream));
            EXPECT_THAT(fixture->out[0] == value * copied, "%s, %s: %lld, not %lld",
                        gpu_strategy(i / 2) ? gpu_strategy(i / 2) : "auto", i % 2 ? "forked" : "in a row",
                        (long long)fixture->out[0], (long long)(value * copied));
        }
        gpu_graph_destroy(graph);
    }
    gpu_free(DPR_MEMORY_DEVICE, from);
}

/* Calls whose input is what the calls right before them give: in a row, and two that join. */
GRAPH_TEST(calls_after_calls) {
    NEED_GPU();
    for (size_t i = 0; i <= gpu_strategy_count() && !test_failed(); i++) {
        const char *strategy = gpu_strategy(i);
        const scene *s = fixture;
        ASSERT_THAT(gpu_capture_begin(s->stream), "%s", gpu_error());
        EXPECT_TRUE(gpu_stream_after(s->other, s->stream));
        reduce(s, strategy, s->in, &s->far[0], MANY, DPR_I32, s->stream);
        reduce(s, strategy, s->in, &s->far[1], MANY - 1, DPR_I32, s->other);
        EXPECT_TRUE(gpu_stream_after(s->stream, s->other));
        reduce(s, strategy, &s->far[0], &s->far[2], 2, DPR_I64, s->stream);
        reduce(s, strategy, &s->far[0], &s->far[3], 3, DPR_I64, s->stream);
        reduce(s, strategy, &s->far[0], &s->out[0], 4, DPR_I64, s->stream);
        gpu_graph *graph = end_capture(s->stream);
        ASSERT_TRUE(graph != NULL);
        for (int32_t value = 1; value <= REPLAYS; value++) {
            EXPECT_TRUE(gpu_repeat(s->in, MANY * sizeof value, &value, sizeof value));
            EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
            EXPECT_THAT(s->out[0] == 4 * (2 * MANY - 1) * (int64_t)value, "%s: %lld, not %lld",
                        strategy ? strategy : "auto", (long long)s->out[0],
                        (long long)(4 * (2 * MANY - 1) * (int64_t)value));
        }
        gpu_graph_destroy(graph);
    }
}

/* ---- The number of elements in device memory ---- */

/* Element i is i % 1000 - 300. */
static int32_t element(uint64_t i) {
    return (int32_t)(i % 1000) - 300;
}

/* The result of the first `count` elements. */
static int64_t expected_of(dpr_op op, uint64_t count) {
    int64_t sum = 0, at = -1;
    for (uint64_t i = 0; i < count; i++) {
        sum += element(i);
        at = at < 0 || element(i) > element((uint64_t)at) ? (int64_t)i : at;
    }
    return op == DPR_SUM ? sum : at;
}

static void fill_elements(int32_t *to) {
    int32_t *host = malloc(MANY * sizeof *host);
    ASSERT_TRUE(host != NULL);
    for (uint64_t i = 0; i < MANY; i++)
        host[i] = element(i);
    EXPECT_TRUE(gpu_copy(to, host, MANY * sizeof *host));
    free(host);
}

/* A plan for the problem with the strategy; NULL if there is none. */
static dpr_plan *plan_by(const scene *s, const char *strategy, dpr_problem problem) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_plan *plan = NULL;
    options.strategy = strategy;
    problem.options = &options;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    return plan;
}

static dpr_plan *plan_with_count(const scene *s, const char *strategy, dpr_op op, const uint64_t *count) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.op = op;
    problem.dtype = DPR_I32;
    problem.count = MANY;
    problem.device_count = count;
    return plan_by(s, strategy, problem);
}

/* Runs the plan by a graph and by itself, while the count at `count` changes in stream order. */
static void follow_counts(const scene *s, const char *strategy, dpr_op op, uint64_t *count) {
    static const uint64_t counts[] = {0, 1, 5, 4097, 0, MANY - 1, MANY, MANY + 1, UINT64_MAX, 2};
    dpr_plan *plan = plan_with_count(s, strategy, op, count);
    if (!plan || !EXPECT_THAT(gpu_capture_begin(s->stream), "%s", gpu_error()))
        return;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, &s->out[0], s->stream));
    gpu_graph *graph = end_capture(s->stream);
    for (size_t i = 0; graph && i < LENGTH(counts); i++) {
        const int64_t expected = expected_of(op, counts[i] < MANY ? counts[i] : MANY);
        s->out[0] = s->out[1] = -77;
        EXPECT_TRUE(gpu_copy(count, &counts[i], sizeof counts[i]));
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream));
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, &s->out[1], s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        for (int way = 0; way < 2; way++)
            EXPECT_THAT(s->out[way] == expected, "%s %s of %llu, %s: %lld, not %lld", strategy ? strategy : "auto",
                        dpr_op_name(op), (unsigned long long)counts[i], way ? "plan" : "graph", (long long)s->out[way],
                        (long long)expected);
    }
    gpu_graph_destroy(graph);
    dpr_plan_destroy(plan);
}

GRAPH_TEST(counts_in_device_memory) {
    NEED_GPU();
    const dpr_op ops[] = {DPR_SUM, DPR_ARGMAX};
    const dpr_memory kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
    fill_elements(fixture->in);
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        uint64_t *count = gpu_alloc(kinds[k], sizeof *count);
        ASSERT_TRUE(count != NULL);
        for (size_t i = 0; i < 2 * (gpu_strategy_count() + 1) && !test_failed(); i++)
            if (gpu_strategy_runs(i / 2, ops[i % 2], DPR_I32))
                follow_counts(fixture, gpu_strategy(i / 2), ops[i % 2], count);
        gpu_free(kinds[k], count);
    }
}

/* A count that the work before a run in its stream writes. */
GRAPH_TEST(counts_made_by_a_call) {
    NEED_GPU();
    const int32_t one = 1;
    ASSERT_TRUE(gpu_repeat(fixture->in, MANY * sizeof one, &one, sizeof one));
    for (size_t i = 0; i <= gpu_strategy_count() && !test_failed(); i++) {
        const scene *s = fixture;
        const char *strategy = gpu_strategy(i);
        dpr_plan *plan = plan_with_count(s, strategy, DPR_SUM, (const uint64_t *)&s->far[0]);
        ASSERT_TRUE(plan != NULL);
        for (size_t n = 1; n < MANY; n = n * 5 + 1) {
            reduce(s, strategy, s->in, &s->far[0], n, DPR_I32, s->stream);
            EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, &s->out[0], s->stream));
            EXPECT_TRUE(gpu_stream_wait(s->stream));
            EXPECT_EQ_I64(n, s->out[0]);
        }
        dpr_plan_destroy(plan);
    }
}

/* ---- Numbers of elements at which the division of an array changes ---- */

enum { VECTOR_BYTES = 16, SHIFTS = 2, SLACK_BYTES = 64, MOST_COUNTS = 128 };

/* Bytes of elements where the greatest is sought; floats of such bytes are in the same order. */
enum { OTHERS = 0x01, PEAK = 0x40, OUTSIDE = 0x50 };

/* From 1 to 31, so that none counts for nothing. */
static const cycle elements = {1, 0};

/* Runs of which each finds another number of elements in device memory. */
typedef struct series {
    const scene *s;
    dpr_op op;
    dpr_dtype dtype;
    size_t size;           /* bytes of an element */
    size_t most;           /* elements that the plans are made for */
    size_t shift;          /* elements between a vector's boundary and the array */
    unsigned char *memory; /* of the device, aligned: `most` elements and SLACK_BYTES */
    uint64_t *count;       /* device memory: where the plans find the number of elements */
    uint64_t *counts;      /* pinned memory: those that it becomes one after the other */
    int64_t *out;  /* pinned memory: the results for each of them, that of a graph and that of the plan itself */
    size_t length; /* how many they are, at most MOST_COUNTS */
} series;

static void add_count(series *c, uint64_t count) {
    if (EXPECT_THAT(c->length < MOST_COUNTS, "more than %d counts", MOST_COUNTS))
        c->counts[c->length++] = count;
}

/* The elements up to the first boundary, so many vectors, and one element less and more. */
static void add_around(series *c, uint64_t vectors) {
    const uint64_t each = VECTOR_BYTES / c->size, n = (each - c->shift) % each + vectors * each;
    if (n > c->most)
        return;
    if (n > 0)
        add_count(c, n - 1);
    add_count(c, n);
    add_count(c, n + 1);
}

/* The grid is made for the largest number, in powers of two of threads, and all threads have as many vectors where the
 * number of vectors is a multiple of the grid's threads. */
static void find_counts(series *c) {
    const uint64_t sms = (uint64_t)gpu_caps()->gpu.sm_count, most = c->most;
    const uint64_t first[] = {0, 1, 7}, last[] = {most / 2, most - 1, most, most + 1, UINT64_MAX, 0, 2};
    c->length = 0;
    for (size_t i = 0; i < LENGTH(first); i++)
        add_count(c, first[i]);
    add_around(c, 0);
    for (uint64_t vectors = 1; vectors <= 1 << 18; vectors *= 2)
        add_around(c, vectors);
    for (uint64_t threads = 256; threads <= 1 << 14; threads *= 2)
        add_around(c, threads * sms);
    for (size_t i = 0; i < LENGTH(last); i++)
        add_count(c, last[i]);
}

static void series_close(series *c) {
    if (c->memory)
        gpu_free(DPR_MEMORY_DEVICE, c->memory);
    if (c->count)
        gpu_free(DPR_MEMORY_DEVICE, c->count);
    if (c->counts)
        gpu_free(DPR_MEMORY_PINNED, c->counts);
    if (c->out)
        gpu_free(DPR_MEMORY_PINNED, c->out);
}

static int series_open(series *c, const scene *s, dpr_dtype dtype, size_t bytes) {
    c->s = s;
    c->dtype = dtype;
    c->size = dpr_dtype_size(dtype);
    c->most = bytes / c->size;
    c->memory = gpu_alloc(DPR_MEMORY_DEVICE, bytes + SLACK_BYTES);
    c->count = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *c->count);
    c->counts = gpu_alloc(DPR_MEMORY_PINNED, MOST_COUNTS * sizeof *c->counts);
    c->out = gpu_alloc(DPR_MEMORY_PINNED, 2 * MOST_COUNTS * sizeof *c->out);
    return EXPECT_THAT(c->memory && c->count && c->counts && c->out && gpu_caps(), "%s", gpu_error());
}

static int fill_memory(const series *c) {
    unsigned char period[CYCLE * sizeof(double)];
    const unsigned char others = OTHERS;
    const size_t bytes = c->most * c->size + SLACK_BYTES, period_bytes = cycle_period(elements, c->dtype, period);
    const int filled = c->op == DPR_SUM ? gpu_repeat(c->memory, bytes, period, period_bytes)
                                        : gpu_repeat(c->memory, bytes, &others, sizeof others);
    return EXPECT_THAT(filled, "%s", gpu_error());
}

/* Of those that a run finds, the elements that it reduces. */
static uint64_t reduced(const series *c, size_t i) {
    return c->counts[i] < c->most ? c->counts[i] : c->most;
}

/* For ARGMAX makes the last of the elements the greatest but for the one behind it, or makes both like the others. */
static int put_greatest(const series *c, size_t i, int last, int behind) {
    const uint64_t n = reduced(c, i);
    unsigned char *end = c->memory + (c->shift + n) * c->size;
    return c->op != DPR_ARGMAX
           || EXPECT_THAT((n == 0 || gpu_fill_async(end - c->size, last, c->size, c->s->stream))
                              && gpu_fill_async(end, behind, c->size, c->s->stream),
                          "%s", gpu_error());
}

/* The two runs of count number i, by the graph and by the plan. */
static int enqueue_both(const series *c, dpr_plan *plan, gpu_graph *graph, size_t i) {
    const scene *s = c->s;
    const unsigned char *in = c->memory + c->shift * c->size;
    return EXPECT_THAT(gpu_copy_async(c->count, &c->counts[i], sizeof *c->count, s->stream), "%s", gpu_error())
           && put_greatest(c, i, PEAK, OUTSIDE)
           && EXPECT_THAT(gpu_graph_launch(graph, s->stream)
                              && gpu_copy_async(&c->out[2 * i], &s->far[0], sizeof *c->out, s->stream),
                          "%s", gpu_error())
           && EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &c->out[2 * i + 1], s->stream))
           && put_greatest(c, i, OTHERS, OTHERS);
}

/* Sums are exact in F64: they are below 2^34. */
static void check_both(const series *c, const char *strategy, size_t i) {
    const uint64_t n = reduced(c, i);
    const double expected = c->op == DPR_SUM ? (double)cycle_sum(elements, c->shift, n) : (double)n - 1;
    for (size_t way = 0; way < 2; way++) {
        const int64_t bits = c->out[2 * i + way];
        double got = (double)bits;
        if (c->op == DPR_SUM && c->dtype == DPR_F64)
            memcpy(&got, &bits, sizeof got);
        EXPECT_THAT(got == expected, "%s %s of %s, %llu of %zu elements, %zu past a boundary, %s: %.17g, not %.17g",
                    strategy ? strategy : "auto", dpr_op_name(c->op), dpr_dtype_name(c->dtype),
                    (unsigned long long)c->counts[i], c->most, c->shift, way ? "plan" : "graph", got, expected);
    }
}

static gpu_graph *capture_plan(const series *c, dpr_plan *plan) {
    const scene *s = c->s;
    if (!EXPECT_THAT(gpu_capture_begin(s->stream), "%s", gpu_error()))
        return NULL;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, c->memory + c->shift * c->size, &s->far[0], s->stream));
    return end_capture(s->stream);
}

static void run_series(const series *c, const char *strategy) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.op = c->op;
    problem.dtype = c->dtype;
    problem.count = c->most;
    problem.device_count = c->count;
    dpr_plan *plan = plan_by(c->s, strategy, problem);
    gpu_graph *graph = plan ? capture_plan(c, plan) : NULL;
    memset(c->out, 0xee, 2 * MOST_COUNTS * sizeof *c->out);
    size_t done = 0;
    while (graph && done < c->length && enqueue_both(c, plan, graph, done))
        done++;
    EXPECT_THAT(gpu_stream_wait(c->s->stream), "%s", gpu_error());
    for (size_t i = 0; i < done && !test_failed(); i++)
        check_both(c, strategy, i);
    gpu_graph_destroy(graph);
    dpr_plan_destroy(plan);
}

/* Plans for an array of so many bytes, aligned and one element past a boundary, with every strategy. */
static void count_series(const scene *s, dpr_dtype dtype, size_t bytes) {
    const dpr_op ops[] = {DPR_SUM, DPR_ARGMAX};
    series c = {0};
    const int opened = series_open(&c, s, dtype, bytes);
    for (size_t o = 0; opened && o < LENGTH(ops) && !test_failed(); o++) {
        c.op = ops[o];
        if (!fill_memory(&c))
            break;
        for (c.shift = 0; c.shift < SHIFTS; c.shift++) {
            find_counts(&c);
            for (size_t i = 0; i <= gpu_strategy_count() && !test_failed(); i++)
                if (gpu_strategy_runs(i, c.op, dtype))
                    run_series(&c, gpu_strategy(i));
        }
    }
    series_close(&c);
}

/* Some vectors for each thread of a grid on all SMs, and a part of one. */
enum { SERIES_BYTES = 2500000 + 8 };

GRAPH_TEST(counts_of_u8) {
    NEED_GPU();
    count_series(fixture, DPR_U8, SERIES_BYTES + 3);
}

GRAPH_TEST(counts_of_i32) {
    NEED_GPU();
    count_series(fixture, DPR_I32, SERIES_BYTES + 4);
}

GRAPH_TEST(counts_of_f64) {
    NEED_GPU();
    count_series(fixture, DPR_F64, SERIES_BYTES);
}

/* Of arrays that take long unless a GPU reads them. */
static void count_large_series(const scene *s, dpr_dtype dtype, size_t bytes) {
    const size_t needed = bytes + ((size_t)1 << 30);
    char why[96];
    if (gpu_free_bytes() < needed) {
        snprintf(why, sizeof why, "needs %zu MiB of free device memory", needed >> 20);
        SKIP(why);
    }
    count_series(s, dtype, bytes);
}

/* Past L2 arrays are read as a stream. */
static void count_streamed(const scene *s, dpr_dtype dtype) {
    ASSERT_THAT(gpu_caps() != NULL, "%s", dpr_last_error());
    count_large_series(s, dtype, (size_t)gpu_caps()->gpu.l2_bytes + SERIES_BYTES);
}

GRAPH_TEST(counts_of_streamed_u8) {
    NEED_GPU();
    count_streamed(fixture, DPR_U8);
}

GRAPH_TEST(counts_of_streamed_i32) {
    NEED_GPU();
    count_streamed(fixture, DPR_I32);
}

GRAPH_TEST(counts_of_streamed_f64) {
    NEED_GPU();
    count_streamed(fixture, DPR_F64);
}

/* From 512 MiB on each block reads a run (launch.h), also where it then finds that there is less. */
GRAPH_TEST(counts_of_u8_in_runs) {
    NEED_GPU();
    count_large_series(fixture, DPR_U8, ((size_t)1 << 29) + SERIES_BYTES + 3);
}

/* ---- What is refused ---- */

static dpr_status plan_on(dpr_ctx *ctx, const void *device_count, dpr_memory memory, dpr_op op, size_t count) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    problem.op = op;
    problem.dtype = DPR_I32;
    problem.count = count;
    problem.memory = memory;
    problem.device_count = device_count;
    const dpr_status status = dpr_plan_create(ctx, &problem, &plan);
    EXPECT_TRUE((plan != NULL) == (status == DPR_OK));
    dpr_plan_destroy(plan);
    return status;
}

GRAPH_TEST(counts_out_of_reach_are_refused) {
    NEED_GPU();
    uint64_t host = 1;
    dpr_ctx *cpu = NULL;
    const char *misaligned = (const char *)fixture->far + 4;
    EXPECT_STATUS(DPR_ERR_MISALIGNED, plan_on(fixture->ctx, misaligned, DPR_MEMORY_AUTO, DPR_SUM, 5));
    EXPECT_CONTAINS(dpr_last_error(), "problem->device_count is 0x");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, plan_on(fixture->ctx, &host, DPR_MEMORY_AUTO, DPR_SUM, 5));
    EXPECT_CONTAINS(dpr_last_error(), "problem->device_count is 0x");
    EXPECT_STATUS(DPR_ERR_EMPTY, plan_on(fixture->ctx, fixture->far, DPR_MEMORY_AUTO, DPR_ARGMAX, 0));
    EXPECT_STATUS(DPR_OK, plan_on(fixture->ctx, fixture->far, DPR_MEMORY_AUTO, DPR_SUM, 0));
    EXPECT_STATUS(DPR_OK, plan_on(fixture->ctx, &host, DPR_MEMORY_HOST, DPR_SUM, 5)); /* which runs on the CPU */
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, plan_on(fixture->ctx, fixture->far, DPR_MEMORY_HOST, DPR_SUM, 5));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, plan_on(cpu, fixture->far, DPR_MEMORY_AUTO, DPR_SUM, 5));
    EXPECT_STATUS(DPR_OK, plan_on(cpu, fixture->out, DPR_MEMORY_AUTO, DPR_SUM, 5)); /* pinned */
    dpr_ctx_destroy(cpu);
    if (gpu_count() < 2)
        return;
    ASSERT_TRUE(gpu_use(1));
    uint64_t *elsewhere = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *elsewhere);
    ASSERT_TRUE(elsewhere && gpu_use(0));
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, plan_on(fixture->ctx, elsewhere, DPR_MEMORY_AUTO, DPR_SUM, 5));
    gpu_free(DPR_MEMORY_DEVICE, elsewhere);
}
