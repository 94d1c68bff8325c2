/* Blocking calls in a stream of the caller's: their order, and the streams that they refuse. Work in a stream is done
 * here when somebody waits for that stream, so a call that does not wait sees what was there before. */
#include <string.h>

#include "fake_cuda.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

enum { COUNT = 1000, FAR_DEVICE = 1 };
static const int64_t before = (int64_t)COUNT * 0x01010101, after = (int64_t)COUNT * 0x02020202, canary = 0x5a5a5a5a;

typedef struct scene {
    dpr_ctx *ctx;
    int32_t *in[DPR_MEMORY_DEVICE + 1];  /* arrays in every kind of memory: COUNT elements of 0x01010101 */
    int64_t *out[DPR_MEMORY_DEVICE + 1]; /* a place for a result in every kind of memory */
    int32_t *later;                      /* COUNT elements of 0x02020202 in device memory */
    dpr_stream stream, other;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++) {
        s->in[kind] = gpu_alloc(kind, COUNT * sizeof(int32_t));
        s->out[kind] = gpu_alloc(kind, sizeof(int64_t));
        ASSERT_TRUE(s->in[kind] && s->out[kind]);
    }
    const int32_t two = 0x02020202;
    s->later = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof two);
    s->stream = gpu_stream_create();
    s->other = gpu_stream_create();
    ASSERT_TRUE(s->later && s->stream && s->other && gpu_repeat(s->later, COUNT * sizeof two, &two, sizeof two));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++) {
        gpu_free(kind, s->in[kind]);
        gpu_free(kind, s->out[kind]);
    }
    gpu_free(DPR_MEMORY_DEVICE, s->later);
    EXPECT_TRUE(gpu_stream_destroy(s->stream) && gpu_stream_destroy(s->other));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
}

#define STREAM_TEST(NAME) TEST_FIXTURE(BlockingStreams, NAME, scene, scene_open, scene_close)

static dpr_status call(const scene *s, const char *strategy, dpr_memory in, dpr_memory out, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.stream = stream;
    return dpr_reduce_ex(s->ctx, s->in[in], s->out[out], COUNT, DPR_I32, DPR_SUM, &options);
}

static int64_t result_in(const scene *s, dpr_memory out) {
    int64_t value = -1;
    EXPECT_TRUE(gpu_copy(&value, s->out[out], sizeof value));
    return value;
}

/* The array, and canaries where results go. Afterwards `stream` has work that changes the array, where the stream
 * reaches it, and the result. */
static void set_up(const scene *s, dpr_memory in, dpr_memory out, dpr_stream stream) {
    static int32_t one[COUNT];
    for (int i = 0; i < COUNT; i++)
        one[i] = 0x01010101;
    EXPECT_TRUE(gpu_copy(s->in[in], one, sizeof one) && gpu_copy(s->out[out], &canary, sizeof canary));
    if (in != DPR_MEMORY_HOST)
        EXPECT_TRUE(gpu_copy_async(s->in[in], s->later, sizeof one, stream));
    if (out != DPR_MEMORY_HOST)
        EXPECT_TRUE(gpu_fill_async(s->out[out], 0x77, sizeof canary, stream));
}

/* Whether strategy number i of the registry can reduce the array; past the last one the planner chooses. */
static int takes(size_t i, dpr_memory in) {
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM),
                               .dtype = DPR_ROW(DPR_I32),
                               .in_memory = (uint8_t)in,
                               .strategy = UINT8_MAX}}; /* asked for by name */
    return i == dpr_strategy_count() || !dpr_refusal(dpr_strategies[i], &key, gpu_caps());
}

/* Every strategy, on arrays and with results in every kind of memory. */
STREAM_TEST(calls_come_after_the_work_in_their_stream) {
    const scene *s = fixture;
    for (size_t i = 0; i <= dpr_strategy_count(); i++)
        for (dpr_memory in = DPR_MEMORY_HOST; in <= DPR_MEMORY_DEVICE; in++)
            for (dpr_memory out = DPR_MEMORY_HOST; out <= DPR_MEMORY_DEVICE; out++) {
                const char *strategy = dpr_strategy_name(i); /* the last one is NULL */
                if (!takes(i, in))
                    continue;
                set_up(s, in, out, s->stream);
                const dpr_status status = call(s, strategy, in, out, s->stream);
                const int working = fake_is_working();
                const int64_t expected = in == DPR_MEMORY_HOST ? before : after, result = result_in(s, out);
                EXPECT_THAT(status == DPR_OK && result == expected, "%s, %s to %s: %s, %lld; %s",
                            strategy ? strategy : "auto", dpr_memory_name(in), dpr_memory_name(out),
                            dpr_status_name(status), (long long)result, dpr_last_error());
                EXPECT_THAT(!working, "%s, %s to %s: work is under way after the call", strategy ? strategy : "auto",
                            dpr_memory_name(in), dpr_memory_name(out));
                EXPECT_TRUE(gpu_stream_wait(s->stream));
                EXPECT_EQ_I64(expected, result_in(s, out));
            }
}

/* Without the option, and with another stream. */
STREAM_TEST(calls_do_not_wait_for_other_streams) {
    const scene *s = fixture;
    const dpr_stream streams[] = {NULL, s->other, cudaStreamLegacy, gpu_stream_per_thread()};
    static const char *const strategies[] = {"cpu.serial", "flat.ticket"};
    for (size_t i = 0; i < LENGTH(streams) * LENGTH(strategies); i++) {
        set_up(s, DPR_MEMORY_PINNED, DPR_MEMORY_HOST, s->stream);
        EXPECT_STATUS(DPR_OK, call(s, strategies[i % LENGTH(strategies)], DPR_MEMORY_PINNED, DPR_MEMORY_HOST,
                                   streams[i / LENGTH(strategies)]));
        EXPECT_EQ_I64(before, result_in(s, DPR_MEMORY_HOST));
        EXPECT_TRUE(fake_is_working() && gpu_stream_wait(s->stream));
    }
}

STREAM_TEST(default_streams_have_handles) {
    const scene *s = fixture;
    const dpr_stream streams[] = {cudaStreamLegacy, gpu_stream_per_thread()};
    static const char *const strategies[] = {"cpu.serial", "flat.ticket", "flat.block", "dp.tree"};
    for (size_t i = 0; i < LENGTH(streams) * LENGTH(strategies); i++) {
        const dpr_stream stream = streams[i / LENGTH(strategies)];
        for (dpr_memory out = DPR_MEMORY_HOST; out <= DPR_MEMORY_DEVICE; out++) {
            set_up(s, DPR_MEMORY_PINNED, out, stream);
            EXPECT_STATUS(DPR_OK, call(s, strategies[i % LENGTH(strategies)], DPR_MEMORY_PINNED, out, stream));
            EXPECT_EQ_I64(after, result_in(s, out));
        }
    }
}

STREAM_TEST(reports_are_there_when_the_call_returns) {
    const scene *s = fixture;
    static const char *const strategies[] = {"cpu.serial", "flat.ticket", "dp.tree"};
    for (size_t i = 0; i < LENGTH(strategies); i++)
        for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++) {
            dpr_launch_report report, *place = gpu_alloc(kind, sizeof report);
            const dpr_launch_options launch = {.size = sizeof launch, .report = place};
            dpr_options options = DPR_OPTIONS_INIT;
            ASSERT_TRUE(place != NULL);
            memset(&report, 0xee, sizeof report);
            EXPECT_TRUE(gpu_copy(place, &report, sizeof report));
            options.strategy = strategies[i];
            options.stream = s->stream;
            options.launch = &launch;
            set_up(s, DPR_MEMORY_PINNED, DPR_MEMORY_HOST, s->stream);
            EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, s->in[DPR_MEMORY_PINNED], s->out[DPR_MEMORY_HOST], COUNT,
                                                DPR_I32, DPR_SUM, &options));
            EXPECT_TRUE(!fake_is_working() && gpu_copy(&report, place, sizeof report));
            EXPECT_EQ_U64(i == 2, report.launched);
            EXPECT_EQ_U64(0, report.refused + report.in_line + report.failed);
            gpu_free(kind, place);
        }
}

STREAM_TEST(partial_results_come_after_the_work_in_their_stream) {
    const scene *s = fixture;
    static const char *const strategies[] = {"cpu.serial", "flat.ticket", "flat.block"};
    uint64_t partial[32];
    ASSERT_TRUE(dpr_partial_size(DPR_SUM, DPR_I32) <= sizeof partial);
    for (size_t i = 0; i < LENGTH(strategies); i++) {
        int64_t sum = 0;
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = strategies[i];
        options.stream = s->stream;
        set_up(s, DPR_MEMORY_PINNED, DPR_MEMORY_HOST, s->stream);
        EXPECT_STATUS(DPR_OK, dpr_reduce_partial(s->ctx, s->in[DPR_MEMORY_PINNED], partial, COUNT, DPR_I32, DPR_SUM, 0,
                                                 &options));
        EXPECT_TRUE(!fake_is_working());
        EXPECT_STATUS(DPR_OK, dpr_partial_finish(partial, 1, DPR_I32, DPR_SUM, NULL, &sum));
        EXPECT_EQ_I64(after, sum);
    }
}

/* ---- Streams that are refused ---- */

static void set_canaries(const scene *s) {
    for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++)
        EXPECT_TRUE(gpu_copy(s->out[kind], &canary, sizeof canary));
}

static void expect_canaries(const scene *s) {
    for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++)
        EXPECT_EQ_I64(canary, result_in(s, kind));
}

/* Calls that the GPU would do, and that the CPU would, end alike. Copies nothing, because a stream may be captured. */
static void expect_refused(const scene *s, dpr_stream stream, dpr_status expected, const char *words) {
    static const struct {
        const char *strategy;
        dpr_memory in, out;
    } calls[] = {
        {"flat.ticket", DPR_MEMORY_DEVICE, DPR_MEMORY_HOST}, {"flat.ticket", DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE},
        {"flat.block", DPR_MEMORY_MANAGED, DPR_MEMORY_HOST}, {"dp.tree", DPR_MEMORY_PINNED, DPR_MEMORY_PINNED},
        {NULL, DPR_MEMORY_DEVICE, DPR_MEMORY_HOST},          {NULL, DPR_MEMORY_HOST, DPR_MEMORY_HOST},
        {"cpu.serial", DPR_MEMORY_PINNED, DPR_MEMORY_HOST},  {"cpu.simd", DPR_MEMORY_MANAGED, DPR_MEMORY_PINNED},
        {"cpu.serial", DPR_MEMORY_HOST, DPR_MEMORY_DEVICE},  {NULL, DPR_MEMORY_HOST, DPR_MEMORY_MANAGED},
    };
    for (size_t i = 0; i < LENGTH(calls); i++) {
        const dpr_status status = call(s, calls[i].strategy, calls[i].in, calls[i].out, stream);
        EXPECT_THAT(status == expected, "call %zu: %s, %s", i, dpr_status_name(status), dpr_last_error());
        EXPECT_CONTAINS(dpr_last_error(), words);
    }
}

/* The sentence is that of dpr_reduce_async(). */
STREAM_TEST(of_other_devices_and_contexts) {
    const scene *s = fixture;
    char words[512];
    gpu_context *context = gpu_context_create(0);
    ASSERT_TRUE(context && gpu_context_push(context));
    const dpr_stream foreign = gpu_stream_create();
    ASSERT_TRUE(foreign && gpu_context_pop() && gpu_use(FAR_DEVICE));
    const dpr_stream far = gpu_stream_create(), streams[] = {foreign, far};
    ASSERT_TRUE(far && gpu_use(0));
    set_canaries(s);
    for (size_t i = 0; i < LENGTH(streams); i++) {
        EXPECT_STATUS(DPR_ERR_WRONG_DEVICE,
                      dpr_reduce_async(s->ctx, s->in[DPR_MEMORY_DEVICE], s->out[DPR_MEMORY_DEVICE], COUNT, DPR_I32,
                                       DPR_SUM, NULL, streams[i]));
        (void)strcpy(words, dpr_last_error());
        expect_refused(s, streams[i], DPR_ERR_WRONG_DEVICE, words);
    }
    expect_canaries(s);
    EXPECT_TRUE(gpu_stream_destroy(far) && gpu_stream_destroy(foreign) && gpu_context_destroy(context));
}

/* The capture goes on, and so does the next call. */
STREAM_TEST(that_are_being_captured) {
    const scene *s = fixture;
    set_canaries(s);
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    expect_refused(s, s->stream, DPR_ERR_INVALID_OPTION, "which is being captured");
    EXPECT_EQ_I64(canary, *s->out[DPR_MEMORY_HOST]);
    EXPECT_STATUS(DPR_OK, call(s, NULL, DPR_MEMORY_DEVICE, DPR_MEMORY_HOST, s->other));
    EXPECT_TRUE(gpu_copy_async(s->in[DPR_MEMORY_DEVICE], s->later, COUNT * sizeof(int32_t), s->stream));
    gpu_graph *graph = gpu_capture_end(s->stream);
    ASSERT_TRUE(graph != NULL);
    *s->out[DPR_MEMORY_HOST] = canary;
    expect_canaries(s);
    EXPECT_TRUE(gpu_graph_launch(graph, s->stream));
    EXPECT_STATUS(DPR_OK, call(s, NULL, DPR_MEMORY_DEVICE, DPR_MEMORY_HOST, s->stream));
    EXPECT_EQ_I64(after, result_in(s, DPR_MEMORY_HOST));
    gpu_graph_destroy(graph);
}

/* As dpr_reduce_async() does, and without harm to the capture of the other stream. */
STREAM_TEST(the_legacy_stream_while_a_blocking_stream_is_captured) {
    const scene *s = fixture;
    const dpr_stream blocking = gpu_blocking_stream_create();
    set_canaries(s);
    set_up(s, DPR_MEMORY_PINNED, DPR_MEMORY_HOST, s->stream);
    ASSERT_TRUE(blocking && gpu_capture_begin(blocking));
    expect_refused(s, cudaStreamLegacy, DPR_ERR_CUDA, "stream is the legacy default stream");
    EXPECT_EQ_I64(canary, *s->out[DPR_MEMORY_HOST]);
    EXPECT_STATUS(DPR_OK, call(s, "flat.ticket", DPR_MEMORY_PINNED, DPR_MEMORY_HOST, s->stream));
    EXPECT_EQ_I64(after, *s->out[DPR_MEMORY_HOST]);
    gpu_graph *graph = gpu_capture_end(blocking);
    EXPECT_TRUE(graph != NULL);
    *s->out[DPR_MEMORY_HOST] = canary;
    expect_canaries(s);
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(blocking));
}

/* Calls that have a parameter for the stream. */
STREAM_TEST(where_there_is_another_place_for_the_stream) {
    const scene *s = fixture;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    dpr_decision *decision = NULL;
    options.stream = s->stream;
    problem.count = COUNT;
    problem.options = &options;
    EXPECT_TRUE(gpu_copy(s->out[DPR_MEMORY_DEVICE], &canary, sizeof canary));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_reduce_async(s->ctx, s->in[DPR_MEMORY_DEVICE], s->out[DPR_MEMORY_DEVICE],
                                                           COUNT, DPR_I32, DPR_SUM, &options, s->stream));
    EXPECT_CONTAINS(dpr_last_error(), "and should be NULL here");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_partial_finish_async(s->ctx, s->in[DPR_MEMORY_DEVICE], 1, DPR_I32, DPR_SUM, &options,
                                           s->out[DPR_MEMORY_DEVICE], s->stream));
    EXPECT_CONTAINS(dpr_last_error(), "and should be NULL here");
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(canary, result_in(s, DPR_MEMORY_DEVICE));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_create(s->ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "and should be NULL here");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_decision_create(dpr_ctx_machine(s->ctx), &problem, &decision));
    EXPECT_TRUE(plan == NULL && decision == NULL);
}
