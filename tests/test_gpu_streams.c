/* Many streams and threads at once, and the order within and between streams, with every result checked. */
#include <pthread.h>
#include <stdlib.h>

#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

enum { THREADS = 64, STREAMS = 8, CALLS = 4, ROUNDS = 25 };

/* Sizes on both sides of where strategies change. */
static const size_t counts[] = {1, 1000, 65537, 1000003};
enum { SIZES = LENGTH(counts), LARGEST = 1000003 };

/* Element i of I32 is i % 1000 - 300, and 5000 at i = 777, where it is the first of the greatest. */
typedef struct expected {
    int64_t sum, argmax;
    int32_t least;
} expected;

enum { MOST_STRATEGIES = 32 };

typedef struct world {
    dpr_ctx *ctx;
    int32_t *in; /* device memory */
    expected of[SIZES];
    int refused[MOST_STRATEGIES][DPR_OP_COUNT]; /* by GPU strategy and operation on I32 */
} world;

static void find_refused(world *w) {
    for (size_t i = 0; i < gpu_strategy_count(); i++)
        for (int op = DPR_SUM; op <= DPR_COUNT; op++)
            w->refused[i][DPR_ROW(op)] = !gpu_strategy_runs(i, (dpr_op)op, DPR_I32);
}

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
    if (!copied || dpr_ctx_create(0, &w->ctx) != DPR_OK || gpu_strategy_count() > MOST_STRATEGIES)
        return 0;
    find_refused(w);
    return 1;
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

/* Each in turn, and the planner's choice between them. Not every one can run every operation. */
static const char *strategy_of(const world *w, int i) {
    const size_t n = (size_t)i / 12 % (2 * gpu_strategy_count() + 1);
    return n % 2 == 0 || w->refused[n / 2][DPR_ROW(op_of(i))] ? NULL : gpu_strategy(n / 2);
}

static void enqueue(const world *w, int i, slot *out, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy_of(w, i);
    out->i64 = -1;
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(w->ctx, w->in, out, counts[i % SIZES], DPR_I32, op_of(i), &options, stream));
}

static void check(const world *w, int i, const slot *got) {
    const expected *e = &w->of[i % SIZES];
    const dpr_op op = op_of(i);
    const int64_t is = op == DPR_MIN ? got->i32 : got->i64;
    const int64_t wanted = op == DPR_SUM ? e->sum : op == DPR_MIN ? e->least : i % SIZES == 0 ? 0 : e->argmax;
    const char *strategy = strategy_of(w, i);
    EXPECT_THAT(is == wanted, "%s of %zu by %s: %" PRId64 ", not %" PRId64, dpr_op_name(op), counts[i % SIZES],
                strategy ? strategy : "the planner's choice", is, wanted);
}

typedef struct worker {
    const world *w;
    int number;
} worker;

/* DPR_TEST_SECONDS, or 5. */
static double seconds_of_stress(void) {
    const char *text = getenv("DPR_TEST_SECONDS");
    return text ? strtod(text, NULL) : 5;
}

/* Calls in all streams of the thread, and then a look at each result. */
static void one_round(const worker *me, int round, slot *out, const dpr_stream *stream) {
    for (int i = 0; i < STREAMS * CALLS; i++)
        enqueue(me->w, me->number * 5 + round * 7 + i, &out[i], stream[i % STREAMS]);
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE(gpu_stream_wait(stream[s]));
    for (int i = 0; i < STREAMS * CALLS; i++)
        check(me->w, me->number * 5 + round * 7 + i, &out[i]);
}

static void *work(void *argument) {
    const worker *me = argument;
    dpr_stream stream[STREAMS] = {NULL};
    slot *out = gpu_alloc(DPR_MEMORY_PINNED, STREAMS * CALLS * sizeof *out);
    if (!EXPECT_THAT(out != NULL, "%s", gpu_error()))
        return NULL;
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE((stream[s] = gpu_stream_create()) != NULL);
    const double end = test_now() + seconds_of_stress();
    int round = 0;
    do {
        one_round(me, round++, out, stream);
    } while (test_now() < end && !test_failed());
    for (int s = 0; s < STREAMS; s++)
        EXPECT_TRUE(gpu_stream_destroy(stream[s]));
    gpu_free(DPR_MEMORY_PINNED, out);
    return NULL;
}

/* Runs `body` with a worker in each of THREADS threads at once, on one context. */
static void run_in_threads(void *(*body)(void *)) {
    NEED_GPU();
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
    for (int i = 0; i < ROUNDS; i++) {
        slot out = {-1};
        const int n = me->number + i;
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = strategy_of(me->w, n);
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_ex(me->w->ctx, me->w->in, &out, counts[n % SIZES], DPR_I32, op_of(n), &options));
        check(me->w, n, &out);
    }
    return NULL;
}

TEST(GpuStreams, threads_calling_at_once) {
    run_in_threads(call_blocking);
}

/* More streams than a context takes scratch memory for without waiting, most of them destroyed with their work perhaps
 * still running. */
TEST(GpuStreams, thousands_of_streams) {
    enum { MANY = 4600, KEPT = 8 };
    NEED_GPU();
    world w = {0};
    ASSERT_THAT(world_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    slot *out = gpu_alloc(DPR_MEMORY_PINNED, MANY * sizeof *out);
    ASSERT_THAT(out != NULL, "%s", gpu_error());
    dpr_stream alive[MANY] = {NULL};
    for (int i = 0; i < MANY && !test_failed(); i++) {
        EXPECT_TRUE((alive[i] = gpu_stream_create()) != NULL);
        enqueue(&w, i * 5 + 3, &out[i], alive[i]);
        if (i % KEPT)
            EXPECT_TRUE(gpu_stream_destroy(alive[i]));
    }
    for (int i = 0; i < MANY && !test_failed(); i += KEPT)
        EXPECT_TRUE(gpu_stream_wait(alive[i]) && gpu_stream_destroy(alive[i]));
    world_close(&w); /* waits for the rest */
    for (int i = 0; i < MANY && !test_failed(); i++)
        check(&w, i * 5 + 3, &out[i]);
    gpu_free(DPR_MEMORY_PINNED, out);
}

TEST(GpuStreams, plans_run_in_several_streams) {
    NEED_GPU();
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

/* ---- Order ---- */

/* In every kind of stream, and from several threads' calls into the same one. */
static void *call_in_one_stream(void *argument) {
    const worker *me = argument;
    const dpr_stream streams[] = {NULL, gpu_stream_per_thread()};
    slot *out = gpu_alloc(DPR_MEMORY_PINNED, ROUNDS * sizeof *out);
    if (!EXPECT_THAT(out != NULL, "%s", gpu_error()))
        return NULL;
    for (size_t s = 0; s < LENGTH(streams) && !test_failed(); s++) {
        for (int i = 0; i < ROUNDS; i++)
            enqueue(me->w, me->number * 12 + i, &out[i], streams[s]);
        EXPECT_TRUE(gpu_stream_wait(streams[s]));
        for (int i = 0; i < ROUNDS; i++)
            check(me->w, me->number * 12 + i, &out[i]);
    }
    gpu_free(DPR_MEMORY_PINNED, out);
    return NULL;
}

TEST(GpuStreams, threads_calling_into_default_streams) {
    run_in_threads(call_in_one_stream);
}

/* Each call takes what the one before it gives, in streams of every kind. */
TEST(GpuStreams, calls_wait_for_the_calls_before) {
    enum { CHAIN = 6, LONG = 100000 };
    NEED_GPU();
    world w = {0};
    ASSERT_THAT(world_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    int64_t *link = gpu_alloc(DPR_MEMORY_DEVICE, LONG * sizeof *link), zero = 0;
    const dpr_stream own = gpu_stream_create(), streams[] = {NULL, gpu_stream_per_thread(), own};
    ASSERT_TRUE(link && own);
    for (size_t i = 0; i < LENGTH(streams) * (gpu_strategy_count() + 1) && !test_failed(); i++) {
        const dpr_stream stream = streams[i % LENGTH(streams)];
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(i / LENGTH(streams));
        int64_t total = w.of[0].sum, result = -1;
        ASSERT_TRUE(gpu_repeat(link, LONG * sizeof *link, &zero, sizeof zero));
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(w.ctx, w.in, &link[1], 1, DPR_I32, DPR_SUM, &options, stream));
        for (size_t c = 0; c < CHAIN; c++) { /* the sum of all before, at the end, where a read too early sees zero */
            EXPECT_STATUS(DPR_OK, dpr_reduce_async(w.ctx, link, &link[LONG - CHAIN + c], LONG - CHAIN + c, DPR_I64,
                                                   DPR_SUM, &options, stream));
            total = c == 0 ? total : 2 * total;
        }
        EXPECT_TRUE(gpu_stream_wait(stream) && gpu_copy(&result, &link[LONG - 1], sizeof result));
        EXPECT_THAT(result == total, "%s, stream %zu: %lld, not %lld", options.strategy ? options.strategy : "auto",
                    i % LENGTH(streams), (long long)result, (long long)total);
    }
    EXPECT_TRUE(gpu_stream_destroy(own));
    gpu_free(DPR_MEMORY_DEVICE, link);
    world_close(&w);
}

/* The array is written by long work in a stream that the legacy default stream does not wait for. */
typedef struct slow_writer {
    dpr_ctx *ctx;
    char *slow;      /* device memory: SLOW bytes that are copied for a while */
    int32_t *in;     /* device memory: MANY elements */
    int32_t *pinned; /* pinned memory: the same */
    int64_t *out;    /* device memory */
    dpr_stream stream;
} slow_writer;

enum { MANY = 1 << 20, SLOW = 1 << 26 };

static int slow_writer_open(slow_writer *w) {
    w->slow = gpu_alloc(DPR_MEMORY_DEVICE, SLOW);
    w->in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *w->in);
    w->pinned = gpu_alloc(DPR_MEMORY_PINNED, MANY * sizeof *w->in);
    w->out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *w->out);
    w->stream = gpu_stream_create();
    return w->slow && w->in && w->pinned && w->out && w->stream && dpr_ctx_create(0, &w->ctx) == DPR_OK;
}

static void slow_writer_close(slow_writer *w) {
    dpr_ctx_destroy(w->ctx);
    EXPECT_TRUE(gpu_stream_destroy(w->stream));
    gpu_free(DPR_MEMORY_DEVICE, w->slow);
    gpu_free(DPR_MEMORY_DEVICE, w->in);
    gpu_free(DPR_MEMORY_PINNED, w->pinned);
    gpu_free(DPR_MEMORY_DEVICE, w->out);
}

/* Enqueues the long work, and then writes the byte all over the array, and over the result. */
static int write_slowly(const slow_writer *w, int byte) {
    int good = 1;
    for (int copies = 0; copies < 8; copies++)
        good &= gpu_copy_async(w->slow, w->slow + SLOW / 2, SLOW / 2, w->stream);
    return good && gpu_fill_async(w->in, byte, MANY * sizeof *w->in, w->stream)
           && gpu_copy_async(w->pinned, w->in, MANY * sizeof *w->in, w->stream)
           && gpu_fill_async(w->out, 0x77, sizeof *w->out, w->stream);
}

/* The sum of the array, or of what is in pinned memory, to the host or to device memory; -1 after an error. */
static int64_t sum_in_stream(const slow_writer *w, const char *strategy, const int32_t *in, int to_device) {
    int64_t sum = -1;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.stream = w->stream;
    const dpr_status status = dpr_reduce_ex(w->ctx, in, to_device ? w->out : &sum, MANY, DPR_I32, DPR_SUM, &options);
    if (!EXPECT_THAT(status == DPR_OK, "%s", dpr_last_error()))
        return -1;
    return !to_device || gpu_copy(&sum, w->out, sizeof sum) ? sum : -1;
}

TEST(GpuStreams, blocking_calls_come_after_the_work_in_their_stream) {
    static const char *const on_cpu[] = {"cpu.serial", "cpu.simd", "cpu.threads"};
    NEED_GPU();
    slow_writer w = {0};
    ASSERT_THAT(slow_writer_open(&w), "%s; %s", gpu_error(), dpr_last_error());
    const size_t strategies = gpu_strategy_count() + 1 + LENGTH(on_cpu);
    for (size_t i = 0; i < 4 * strategies && !test_failed(); i++) {
        const size_t s = i / 4;
        const char *strategy = s < LENGTH(on_cpu) ? on_cpu[s] : gpu_strategy(s - LENGTH(on_cpu));
        const int byte = 1 + (int)(i % 3), in_pinned = s < LENGTH(on_cpu) || i % 4 > 1;
        const dpr_memory memory = in_pinned ? DPR_MEMORY_PINNED : DPR_MEMORY_DEVICE;
        if (s >= LENGTH(on_cpu) && !gpu_strategy_takes(s - LENGTH(on_cpu), DPR_SUM, DPR_I32, memory, 0))
            continue;
        ASSERT_THAT(write_slowly(&w, byte), "%s", gpu_error());
        const int64_t sum = sum_in_stream(&w, strategy, in_pinned ? w.pinned : w.in, i % 2 == 1);
        EXPECT_THAT(sum == (int64_t)MANY * byte * 0x01010101, "%s, array in %s memory, result in %s memory: %lld",
                    strategy ? strategy : "auto", in_pinned ? "pinned" : "device", i % 2 ? "device" : "host",
                    (long long)sum);
    }
    slow_writer_close(&w);
}

/* The input is written in another stream, slowly, and an event says when; afterwards it is written over. */
TEST(GpuStreams, calls_wait_for_events_of_other_streams) {
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    int32_t *in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *in);
    int64_t *out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *out);
    char *slow = gpu_alloc(DPR_MEMORY_DEVICE, SLOW);
    const dpr_stream writer = gpu_stream_create(), reader = gpu_stream_create();
    ASSERT_TRUE(in && out && slow && writer && reader);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (size_t i = 0; i < 3 * (gpu_strategy_count() + 1) && !test_failed(); i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(i / 3);
        const int byte = (int)(i % 3) + 1;
        for (int copies = 0; copies < 4; copies++)
            EXPECT_TRUE(gpu_copy_async(slow, slow + SLOW / 2, SLOW / 2, writer));
        EXPECT_TRUE(gpu_fill_async(in, byte, MANY * sizeof *in, writer) && gpu_stream_after(reader, writer));
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, in, out, MANY, DPR_I32, DPR_SUM, &options, reader));
        EXPECT_TRUE(gpu_stream_after(writer, reader) && gpu_fill_async(in, 0x7f, MANY * sizeof *in, writer));
        EXPECT_TRUE(gpu_stream_wait(writer) && gpu_stream_wait(reader));
        EXPECT_EQ_I64((int64_t)MANY * byte * 0x01010101, *out);
    }
    dpr_ctx_destroy(ctx);
    EXPECT_TRUE(gpu_stream_destroy(writer) && gpu_stream_destroy(reader));
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_PINNED, out);
    gpu_free(DPR_MEMORY_DEVICE, slow);
}
