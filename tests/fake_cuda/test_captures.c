/* Captures of other threads that begin at the worst moment: right before each CUDA call that the library makes. */
#include <string.h>

#include "fake_cuda.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "support.h"

enum { MOST_RUNS = 2, COUNT = 1000, SUM = COUNT * (COUNT + 1) / 2 };
static const int64_t expected_sum = SUM, canary = 0x5a5a5a5a;

/* The array 1, 2, ... COUNT on device 0 with equal keys, and places for a result and the number of runs there. */
typedef struct scene {
    int32_t *in;
    uint8_t *keys;
    int64_t *device_out;
    uint64_t *runs;
    dpr_stream stream, blocking, own; /* the first two are captured, and calls use the third */
} scene;

static void scene_open(void *state) {
    scene *s = state;
    int32_t host[COUNT];
    const uint8_t keys[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        host[i] = i + 1;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof host);
    s->device_out = gpu_alloc(DPR_MEMORY_DEVICE, MOST_RUNS * sizeof *s->device_out);
    s->keys = gpu_alloc(DPR_MEMORY_DEVICE, sizeof keys);
    s->runs = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *s->runs);
    ASSERT_TRUE(s->keys && s->runs && gpu_copy(s->keys, keys, sizeof keys));
    s->stream = gpu_stream_create();
    s->blocking = gpu_blocking_stream_create();
    s->own = gpu_stream_create();
    ASSERT_TRUE(s->in && s->device_out && s->stream && s->blocking && s->own && gpu_copy(s->in, host, sizeof host));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_shutdown();
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_DEVICE, s->device_out);
    gpu_free(DPR_MEMORY_DEVICE, s->keys);
    gpu_free(DPR_MEMORY_DEVICE, s->runs);
    EXPECT_TRUE(gpu_stream_destroy(s->stream) && gpu_stream_destroy(s->blocking) && gpu_stream_destroy(s->own));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define CAPTURES_TEST(NAME) TEST_FIXTURE(Captures, NAME, scene, scene_open, scene_close)

/* ---- What a thread may do that knows nothing of the capture: returns the status of what fails first ---- */

static dpr_status call_simply(const scene *s) {
    int64_t sum = canary;
    const dpr_status status = dpr_reduce(s->in, &sum, COUNT, DPR_I32, DPR_SUM);
    EXPECT_EQ_I64(status == DPR_OK ? expected_sum : canary, sum);
    return status;
}

static dpr_status call_for_device_memory(const scene *s) {
    return dpr_reduce(s->in, s->device_out, COUNT, DPR_I32, DPR_SUM);
}

static dpr_status put_a_result(const scene *s) {
    static const int32_t host[4] = {1, 2, 3, 4};
    return dpr_reduce(host, s->device_out, 4, DPR_I32, DPR_SUM);
}

static dpr_status use_a_context(const scene *s) {
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_launch_report report;
    const dpr_launch_options launch = {.size = sizeof launch, .report = &report};
    int64_t sum = canary;
    options.strategy = "dp.tree";
    options.launch = &launch;
    dpr_status status = dpr_ctx_create(0, &ctx);
    if (status != DPR_OK)
        return status;
    status = dpr_reduce_ex(ctx, s->in, &sum, COUNT, DPR_I32, DPR_SUM, &options);
    EXPECT_EQ_I64(status == DPR_OK ? expected_sum : canary, sum);
    dpr_ctx_destroy(ctx);
    return status;
}

static dpr_status use_a_launcher(const scene *s) {
    dpr_ctx *ctx = NULL;
    dpr_launcher launcher;
    dpr_launch_report report;
    (void)s;
    dpr_status status = dpr_ctx_create(0, &ctx);
    if (status != DPR_OK)
        return status;
    status = dpr_launcher_create(ctx, 0, &launcher);
    if (status == DPR_OK) {
        status = dpr_launcher_report(&launcher, &report, sizeof report);
        dpr_launcher_destroy(&launcher);
    }
    dpr_ctx_destroy(ctx);
    return status;
}

/* Blocking calls in a stream, on the GPU and on the CPU. */
static dpr_status call_in_a_stream(const scene *s) {
    static const int32_t host[4] = {1, 2, 3, 4};
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    int64_t sum = canary;
    options.stream = s->own;
    dpr_status status = dpr_ctx_create(0, &ctx);
    if (status == DPR_OK)
        status = dpr_reduce_ex(ctx, s->in, &sum, COUNT, DPR_I32, DPR_SUM, &options);
    EXPECT_EQ_I64(status == DPR_OK ? expected_sum : canary, sum);
    if (status == DPR_OK)
        status = dpr_reduce_ex(ctx, host, s->device_out, 4, DPR_I32, DPR_SUM, &options);
    dpr_ctx_destroy(ctx);
    return status;
}

static dpr_status reduce_runs(const scene *s) {
    dpr_ctx *ctx = NULL;
    uint64_t runs = MOST_RUNS;
    dpr_status status = dpr_ctx_create(0, &ctx);
    if (status == DPR_OK)
        status =
            dpr_reduce_by_key(ctx, s->keys, DPR_U8, s->in, NULL, s->device_out, &runs, COUNT, DPR_I32, DPR_SUM, NULL);
    EXPECT_EQ_U64(status == DPR_OK ? 1 : MOST_RUNS, runs);
    dpr_ctx_destroy(ctx);
    return status;
}

static dpr_status enqueue_runs_in(const scene *s, dpr_stream stream) {
    dpr_ctx *ctx = NULL;
    dpr_status status = dpr_ctx_create(0, &ctx);
    if (status == DPR_OK)
        status = dpr_reduce_by_key_async(ctx, s->keys, DPR_U8, s->in, NULL, s->device_out, s->runs, MOST_RUNS, COUNT,
                                         NULL, DPR_I32, DPR_SUM, NULL, stream);
    dpr_ctx_destroy(ctx);
    return status;
}

static dpr_status enqueue_runs(const scene *s) {
    return enqueue_runs_in(s, s->own);
}

static dpr_status enqueue_runs_in_legacy(const scene *s) {
    return enqueue_runs_in(s, NULL);
}

static dpr_status shut_down(const scene *s) {
    const dpr_status status = call_simply(s);
    dpr_shutdown();
    return status;
}

static const struct {
    dpr_status (*run)(const scene *s);
    int64_t device_sum; /* what it leaves in device memory; 0: nothing */
    int no_legacy;      /* 1: it does not use the legacy default stream */
    int asks_for_it;    /* 1: the caller names that stream, and is refused while a capture forbids it */
} works[] = {{call_simply, 0, 0, 0},   {call_for_device_memory, SUM, 0, 0}, {put_a_result, 10, 0, 0},
             {use_a_context, 0, 0, 0}, {use_a_launcher, 0, 0, 0},           {call_in_a_stream, 10, 1, 0},
             {reduce_runs, SUM, 0, 0}, {enqueue_runs, SUM, 1, 0},           {enqueue_runs_in_legacy, SUM, 0, 1},
             {shut_down, 0, 0, 0}};

/* ---- The moments ---- */

/* Does the work while a capture of the stream begins before the given call. Returns that call's name; NULL: there are
 * not so many. *graph is what was captured; NULL if it was spoilt. */
static const char *work_at(const scene *s, size_t i, int call, dpr_stream stream, dpr_status *status,
                           gpu_graph **graph) {
    int64_t sum = canary;
    EXPECT_TRUE(gpu_copy(s->device_out, &sum, sizeof sum));
    fake_capture_at(call, stream);
    *status = works[i].run(s);
    const char *began = fake_captured_call();
    fake_capture_at(0, NULL);
    *graph = began ? gpu_capture_end(stream) : NULL;
    EXPECT_TRUE(gpu_stream_wait(s->own) && gpu_copy(&sum, s->device_out, sizeof sum));
    if (works[i].device_sum != 0 && *status == DPR_OK)
        EXPECT_EQ_I64(works[i].device_sum, sum);
    return began;
}

CAPTURES_TEST(may_begin_at_any_time) {
    const scene *s = fixture;
    gpu_graph *graph;
    dpr_status status;
    for (size_t i = 0; i < LENGTH(works); i++) {
        int call = 1;
        dpr_shutdown();
        for (const char *began; !test_failed() && (began = work_at(s, i, call, s->stream, &status, &graph)); call++) {
            EXPECT_THAT(status == DPR_OK, "work %zu, before %s: %s", i, began, dpr_last_error());
            EXPECT_THAT(graph != NULL, "work %zu spoils a capture that begins before %s", i, began);
            gpu_graph_destroy(graph);
            dpr_shutdown();
        }
        EXPECT_THAT(call > 5, "work %zu makes only %d calls", i, call);
    }
}

/* Whether the call is one that uses the legacy default stream, or one between the look at that stream and its use. */
static int precedes_default_stream(const char *call) {
    static const char *const calls[] = {
        "cuLaunchKernelEx",        "cudaStreamSynchronize",   "cudaMemcpyAsync",
        "cudaGetFuncBySymbol",     "cuStreamGetCtx",          "cuCtxGetDevResource",
        "cudaMallocFromPoolAsync", "cudaDeviceGetLimit",      "cuThreadExchangeStreamCaptureMode",
        "cudaMemPoolCreate",       "cudaMemPoolSetAttribute", "cuCtxGetId"};
    for (size_t i = 0; i < LENGTH(calls); i++)
        if (strcmp(call, calls[i]) == 0)
            return 1;
    return 0;
}

/* A blocking stream waits for the legacy default stream. Its capture may begin after the library has looked whether it
 * may use the legacy default stream, and before it does. The call then fails, unless its run has been enqueued and only
 * workspace is still to be given back; nothing is lost, and the next call works. */
CAPTURES_TEST(of_blocking_streams_are_spoilt_by_use_of_the_default_stream_alone) {
    const scene *s = fixture;
    gpu_graph *graph;
    dpr_status status;
    for (size_t i = 0; i < LENGTH(works); i++) {
        int failed = 0, call = 1;
        dpr_shutdown();
        const int objects = fake_live_objects();
        for (const char *began; !test_failed() && (began = work_at(s, i, call, s->blocking, &status, &graph)); call++) {
            EXPECT_THAT(status == DPR_OK || status == DPR_ERR_CUDA, "work %zu, before %s: %s", i, began,
                        dpr_last_error());
            const int gives_back = !works[i].no_legacy && status == DPR_OK && strcmp(began, "cudaFreeAsync") == 0;
            const int is_refused = works[i].asks_for_it && status != DPR_OK && graph;
            EXPECT_THAT((status == DPR_OK) == (graph != NULL) || gives_back || is_refused, "work %zu, before %s: %s", i,
                        began, graph ? dpr_last_error() : "the capture is spoilt");
            EXPECT_THAT(status == DPR_OK || is_refused || precedes_default_stream(began), "work %zu fails before %s", i,
                        began);
            failed += status != DPR_OK;
            gpu_graph_destroy(graph);
            EXPECT_STATUS(DPR_OK, works[i].run(s));
            dpr_shutdown();
            EXPECT_EQ_I64(objects, fake_live_objects());
        }
        EXPECT_THAT((failed == 0) == works[i].no_legacy && (works[i].asks_for_it || failed < call / 5),
                    "work %zu fails at %d of %d calls", i, failed, call);
    }
}
