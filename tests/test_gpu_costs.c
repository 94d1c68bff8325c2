/* What a call costs the host beyond its kernel's launch; the device memory that a context holds; and what the library
 * measures for the choice among engines of recursions. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cuda/driver.h"
#include "gpu_kernels.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "lists.h"
#include "recursion/costs.h"
#include "support.h"

/* Batches of calls, fewer than a stream takes before it holds up the host. */
enum { BATCHES = 41, CALLS = 200, TRIES = 20 };

/* Seconds of the host for a call, beyond the launch of an empty kernel. */
static const double most_beyond_launch = 0.5e-6;

typedef struct scene {
    dpr_ctx *ctx;
    dpr_plan *plan;
    dpr_stream stream;
    float *in; /* device memory */
    size_t count;
    float *out;       /* device memory */
    CUfunction empty; /* a kernel that does nothing */
} scene;

/* ---- The time of the host ---- */

/* One call; 1 if it worked. */
typedef int (*contender)(const scene *s);

static int launch_empty(const scene *s) {
    dpr_kernel_args args = {.in = s->in, .out = s->out, .count = s->count};
    CUlaunchAttribute programmatic = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    programmatic.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {.gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 256,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = s->stream,
                                   .attrs = &programmatic,
                                   .numAttrs = 1};
    void *params[] = {&args};
    return dpr_driver()->launch_kernel_ex(&config, s->empty, params, NULL) == CUDA_SUCCESS;
}

static int call_async(const scene *s) {
    return dpr_reduce_async(s->ctx, s->in, s->out, s->count, DPR_F32, DPR_SUM, NULL, s->stream) == DPR_OK;
}

static int run_plan(const scene *s) {
    return dpr_plan_run(s->plan, s->in, s->out, s->stream) == DPR_OK;
}

/* Seconds of the host a call; the device, which may take longer, is waited for outside of that. */
static double time_batch(const scene *s, contender call) {
    int good = 1;
    const double start = test_now();
    for (int i = 0; i < CALLS; i++)
        good &= call(s);
    const double seconds = (test_now() - start) / CALLS;
    EXPECT_THAT(good && gpu_stream_wait(s->stream), "%s %s", dpr_last_error(), gpu_error());
    return seconds;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double seconds[BATCHES]) {
    qsort(seconds, BATCHES, sizeof *seconds, by_value);
    return seconds[BATCHES / 2];
}

/* What one call takes more than the other: the difference of the medians of batches that take turns. */
static double difference(const scene *s, contender call, contender base, double *of_base) {
    double seconds[2][BATCHES];
    for (int i = 0; i < BATCHES && !test_failed(); i++) {
        seconds[0][i] = time_batch(s, call);
        seconds[1][i] = time_batch(s, base);
    }
    if (test_failed())
        return 0;
    *of_base = median(seconds[1]);
    return median(seconds[0]) - *of_base;
}

static int scene_open(scene *s, size_t count) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    const float one = 1;
    s->count = problem.count = count;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, count * sizeof *s->in);
    s->out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *s->out);
    s->stream = gpu_stream_create();
    return EXPECT_THAT(s->in && s->out && s->stream && gpu_repeat(s->in, count * sizeof one, &one, sizeof one), "%s",
                       gpu_error())
           && EXPECT_EQ_I64(cudaSuccess, cudaGetFuncBySymbol(&s->empty, gpu_empty_kernel()))
           && EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx))
           && EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &s->plan));
}

static void scene_close(scene *s) {
    dpr_plan_destroy(s->plan);
    dpr_ctx_destroy(s->ctx);
    if (s->stream)
        EXPECT_TRUE(gpu_stream_destroy(s->stream));
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_DEVICE, s->out);
}

static void check_result(const scene *s) {
    float got = 0;
    EXPECT_TRUE(gpu_copy(&got, s->out, sizeof got));
    EXPECT_NEAR_F64((double)s->count, (double)got, 0.0);
}

/* Other load on the host disturbs whole tries, so the least difference of several counts; the first that is small
 * enough ends them. */
static void beyond_launch(contender call, size_t count) {
    scene s = {0};
    double least = 1, of_launch = 0;
    NEED_GPU();
    if (scene_open(&s, count)) {
        (void)time_batch(&s, call); /* loads the kernels */
        (void)time_batch(&s, launch_empty);
        for (int i = 0; i < TRIES && least > most_beyond_launch && !test_failed(); i++) {
            double base = 0;
            const double beyond = difference(&s, call, launch_empty, &base);
            of_launch = beyond < least ? base : of_launch;
            least = beyond < least ? beyond : least;
        }
        check_result(&s);
    }
    scene_close(&s);
    test_record("launch_ns", "%.0f", 1e9 * of_launch);
    test_record("beyond_launch_ns", "%.0f", 1e9 * least);
    EXPECT_THAT(least <= most_beyond_launch, "%.0f ns beyond the %.0f ns of a launch, at most %.0f expected",
                1e9 * least, 1e9 * of_launch, 1e9 * most_beyond_launch);
}

TEST(GpuCosts, async_call_of_2_to_10) {
    beyond_launch(call_async, (size_t)1 << 10);
}

TEST(GpuCosts, async_call_of_2_to_18) {
    beyond_launch(call_async, (size_t)1 << 18);
}

TEST(GpuCosts, run_of_a_plan_of_2_to_10) {
    beyond_launch(run_plan, (size_t)1 << 10);
}

TEST(GpuCosts, run_of_a_plan_of_2_to_18) {
    beyond_launch(run_plan, (size_t)1 << 18);
}

/* ---- Waiting for kernels of others ---- */

static void expect_no_wait(dpr_ctx *ctx, const void *in, size_t count, dpr_op op, dpr_dtype dtype) {
    unsigned char out[16];
    const double start = test_now();
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, out, count, dtype, op, NULL));
    const double seconds = test_now() - start;
    EXPECT_THAT(seconds < 0.15, "%s of %zu %s takes %.3f s", dpr_op_name(op), count, dpr_dtype_name(dtype), seconds);
}

/* CUDA waits for the other kernel wherever it loads code. */
TEST(GpuCosts, first_calls_do_not_wait_for_other_kernels) {
    static const size_t counts[] = {1, 1000, 20000, 300000, 2000000};
    NEED_GPU();
    void *in = gpu_alloc(DPR_MEMORY_DEVICE, counts[LENGTH(counts) - 1] * 16);
    dpr_stream stream = gpu_stream_create();
    dpr_ctx *ctx = NULL;
    ASSERT_THAT(in && stream, "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    EXPECT_TRUE(gpu_be_busy(0.001, stream) == 0 && gpu_stream_wait(stream)); /* which loads that kernel */
    for (int pair = 0; pair < DPR_OP_COUNT * DPR_DTYPE_COUNT && !test_failed(); pair += 7) {
        const dpr_op op = dpr_op_at((size_t)pair / DPR_DTYPE_COUNT);
        const dpr_dtype dtype = dpr_dtype_at((size_t)pair % DPR_DTYPE_COUNT);
        if (!dpr_supported(op, dtype))
            continue;
        EXPECT_TRUE(gpu_be_busy(0.3, stream) == 0);
        for (size_t i = 0; i < LENGTH(counts); i++)
            expect_no_wait(ctx, in, counts[i], op, dtype);
        EXPECT_TRUE(gpu_stream_wait(stream));
    }
    dpr_ctx_destroy(ctx);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    gpu_free(DPR_MEMORY_DEVICE, in);
}

/* ---- Device memory ---- */

enum { STREAMS = 16, MANY = 1 << 20, MOST_HELD = 4 << 20 };

/* Runs every strategy in every stream at once, and a blocking call of each: but those with nested launches, whose work
 * memory stays with the context. */
static void use_all(dpr_ctx *ctx, const int32_t *in, int64_t *out, const dpr_stream stream[STREAMS]) {
    for (size_t s = 0; s <= gpu_strategy_count(); s++) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        if (!gpu_strategy_runs(s, DPR_SUM, DPR_I32) || (options.strategy && strncmp(options.strategy, "dp.", 3) == 0))
            continue;
        for (int i = 0; i < STREAMS; i++)
            EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, in, &out[i], MANY, DPR_I32, DPR_SUM, &options, stream[i]));
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, &out[STREAMS], MANY, DPR_I32, DPR_SUM, &options));
    }
    for (int i = 0; i < STREAMS; i++)
        EXPECT_TRUE(gpu_stream_wait(stream[i]));
}

static void check_results(const int64_t *out) {
    int64_t got[STREAMS + 1] = {0};
    EXPECT_TRUE(gpu_copy(got, out, sizeof got));
    for (int i = 0; i <= STREAMS; i++)
        EXPECT_EQ_I64(MANY, got[i]);
}

/* The first context has loaded the kernels and whatever CUDA needs to run them, so that of the second only its own
 * memory is seen. Programs that share the device disturb that, so there are several tries. */
static void check_held(const int32_t *in, int64_t *out, const dpr_stream stream[STREAMS]) {
    size_t held = SIZE_MAX, kept = SIZE_MAX;
    for (int i = 0; i < TRIES && (held > MOST_HELD || kept > 0) && !test_failed(); i++) {
        dpr_ctx *ctx = NULL;
        const int64_t nothing[STREAMS + 1] = {0};
        EXPECT_TRUE(gpu_copy(out, nothing, sizeof nothing));
        const size_t before = gpu_free_bytes();
        ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
        use_all(ctx, in, out, stream);
        const size_t during = gpu_free_bytes();
        dpr_ctx_destroy(ctx);
        const size_t after = gpu_free_bytes();
        ASSERT_THAT(before && during && after, "%s", gpu_error());
        held = during < before ? before - during : 0;
        kept = after < before ? before - after : 0;
    }
    test_record("held_bytes", "%zu", held);
    EXPECT_THAT(held <= MOST_HELD, "a context holds %zu bytes of device memory, at most %d expected", held, MOST_HELD);
    EXPECT_THAT(kept == 0, "%zu bytes of device memory are not given back", kept);
}

TEST(GpuCosts, device_memory_of_a_context) {
    NEED_GPU();
    const int32_t one = 1;
    int32_t *in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *in);
    int64_t *out = gpu_alloc(DPR_MEMORY_DEVICE, (STREAMS + 1) * sizeof *out);
    dpr_stream stream[STREAMS] = {NULL};
    dpr_ctx *first = NULL;
    ASSERT_THAT(in && out && gpu_repeat(in, MANY * sizeof one, &one, sizeof one), "%s", gpu_error());
    for (int i = 0; i < STREAMS; i++)
        ASSERT_TRUE((stream[i] = gpu_stream_create()) != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &first));
    use_all(first, in, out, stream);
    dpr_ctx_destroy(first);
    check_held(in, out, stream);
    check_results(out);
    for (int i = 0; i < STREAMS; i++)
        EXPECT_TRUE(gpu_stream_destroy(stream[i]));
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_DEVICE, out);
}

/* ---- Costs of recursions ---- */

typedef struct costs_scene {
    dpr_ctx *ctx;
    dpr_stream stream;
    dpr_recursion_call call;
} costs_scene;

static void open_costs(costs_scene *s) {
    s->stream = gpu_stream_create();
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    s->call = (dpr_recursion_call){.ctx = s->ctx};
}

static void close_costs(const costs_scene *s) {
    dpr_ctx_destroy(s->ctx);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
}

/* Measures, or tries to, and returns how many seconds this has taken. */
static double measure_costs(const costs_scene *s) {
    const double start = test_now();
    dpr_costs_measure(&s->call);
    return test_now() - start;
}

static int same_costs(dpr_costs a, dpr_costs b) {
    return a.launch == b.launch && a.meeting == b.meeting && a.queue == b.queue && a.nested == b.nested
           && a.relaunch == b.relaunch;
}

/* The same for launches by kernels. */
static double measure_nested_costs(const costs_scene *s) {
    const double start = test_now();
    dpr_costs_measure_nested(&s->call);
    return test_now() - start;
}

TEST(GpuRecursionCosts, of_launches_by_kernels_are_measured_once) {
    costs_scene s;
    NEED_GPU();
    open_costs(&s);
    const dpr_costs assumed = dpr_costs_here(&s.call);
    const double first = measure_nested_costs(&s);
    const dpr_costs found = dpr_costs_here(&s.call);
    const double second = measure_nested_costs(&s);
    EXPECT_TRUE(found.nested != assumed.nested && found.relaunch != assumed.relaunch);
    EXPECT_TRUE(found.launch == assumed.launch && same_costs(found, dpr_costs_here(&s.call)));
    EXPECT_THAT(found.relaunch > 1e-6 && found.relaunch < 30e-6, "a round of a graph takes %g s", found.relaunch);
    EXPECT_THAT(found.nested > 1e-6 && found.nested < 100e-6, "a nested level takes %g s", found.nested);
    EXPECT_THAT(second < 10e-6, "measuring again takes %g s", second);
    test_record("relaunch", "%g", found.relaunch);
    test_record("nested", "%g", found.nested);
    test_record("seconds", "%g", first);
    close_costs(&s);
    open_costs(&s);
    const double in_another = measure_nested_costs(&s); /* where the code is loaded */
    EXPECT_THAT(in_another < 0.05, "measuring in another context takes %g s", in_another);
    test_record("seconds_in_another_context", "%g", in_another);
    close_costs(&s);
}

/* The first context loads the code, for which CUDA waits. What could not run in time runs later. */
TEST(GpuRecursionCosts, of_launches_by_kernels_on_a_full_device_are_assumed) {
    costs_scene s;
    NEED_GPU();
    open_costs(&s);
    (void)measure_nested_costs(&s);
    close_costs(&s);
    open_costs(&s);
    const dpr_costs assumed = dpr_costs_here(&s.call);
    EXPECT_TRUE(gpu_be_full(0.001, s.stream) == 0 && gpu_stream_wait(s.stream)); /* which loads that kernel */
    EXPECT_TRUE(gpu_be_full(0.5, s.stream) == 0);
    const double seconds = measure_nested_costs(&s);
    EXPECT_THAT(seconds < 0.4, "measuring takes %g s", seconds);
    EXPECT_TRUE(same_costs(assumed, dpr_costs_here(&s.call)));
    EXPECT_TRUE(gpu_stream_wait(s.stream));
    close_costs(&s);
}

TEST(GpuRecursionCosts, are_measured_once) {
    costs_scene s;
    NEED_GPU();
    open_costs(&s);
    const dpr_costs assumed = dpr_costs_here(&s.call);
    const double first = measure_costs(&s);
    const dpr_costs found = dpr_costs_here(&s.call);
    const double second = measure_costs(&s);
    EXPECT_TRUE(!same_costs(assumed, found) && same_costs(found, dpr_costs_here(&s.call)));
    EXPECT_THAT(found.launch > 2e-6 && found.launch < 100e-6, "a launch takes %g s", found.launch);
    EXPECT_THAT(found.meeting > 0.5e-6 && found.meeting < 20e-6, "a meeting takes %g s", found.meeting);
    EXPECT_THAT(found.queue > 2e-12 && found.queue < 2e-9, "a queue operation takes %g s", found.queue);
    EXPECT_THAT(first < 0.01 && second < 10e-6, "measuring takes %g s, and again %g s", first, second);
    test_record("launch", "%g", found.launch);
    test_record("meeting", "%g", found.meeting);
    test_record("queue", "%g", found.queue);
    test_record("seconds", "%g", first);
    close_costs(&s);
}

TEST(GpuRecursionCosts, are_measured_beside_a_kernel_that_leaves_room) {
    costs_scene s;
    NEED_GPU();
    open_costs(&s);
    const dpr_costs assumed = dpr_costs_here(&s.call);
    EXPECT_TRUE(gpu_be_busy(0.3, s.stream) == 0);
    const double seconds = measure_costs(&s);
    EXPECT_THAT(seconds < 0.15, "measuring takes %g s", seconds);
    EXPECT_TRUE(!same_costs(assumed, dpr_costs_here(&s.call)));
    EXPECT_TRUE(gpu_stream_wait(s.stream));
    close_costs(&s);
}

/* The kernel that could not run in time runs later. Afterwards another context measures. */
TEST(GpuRecursionCosts, of_a_full_device_are_assumed) {
    costs_scene s;
    NEED_GPU();
    open_costs(&s);
    const dpr_costs assumed = dpr_costs_here(&s.call);
    EXPECT_TRUE(gpu_be_full(0.001, s.stream) == 0 && gpu_stream_wait(s.stream)); /* which loads that kernel */
    EXPECT_TRUE(gpu_be_full(0.5, s.stream) == 0);
    const double seconds = measure_costs(&s), again = measure_costs(&s);
    EXPECT_THAT(seconds < 0.25 && again < 0.01, "measuring takes %g s, and again %g s", seconds, again);
    EXPECT_TRUE(same_costs(assumed, dpr_costs_here(&s.call)));
    EXPECT_TRUE(gpu_stream_wait(s.stream));
    EXPECT_TRUE(same_costs(assumed, dpr_costs_here(&s.call)));
    close_costs(&s);
    open_costs(&s);
    (void)measure_costs(&s);
    EXPECT_TRUE(!same_costs(assumed, dpr_costs_here(&s.call)));
    close_costs(&s);
}

TEST(GpuRecursionCosts, are_measured_while_a_stream_is_captured) {
    costs_scene s;
    NEED_GPU();
    open_costs(&s);
    const dpr_costs assumed = dpr_costs_here(&s.call);
    ASSERT_TRUE(gpu_capture_begin(s.stream));
    (void)measure_costs(&s);
    gpu_graph *graph = gpu_capture_end(s.stream);
    EXPECT_TRUE(graph != NULL);
    EXPECT_TRUE(!same_costs(assumed, dpr_costs_here(&s.call)));
    gpu_graph_destroy(graph);
    close_costs(&s);
}
