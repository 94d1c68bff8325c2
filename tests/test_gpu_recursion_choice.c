/* Recursions on the GPU for which the library chooses the engine, and recursions in several threads at once. */
#include <pthread.h>
#include <stdio.h>

#include "gpu_memory.h"
#include "gpu_recursion_scene.h"
#include "recursion/costs.h"
#include "recursion_stress.h"

/* ---- The choice ---- */

/* The library may choose any engine, and settles on one. No other test has about as many roots, so that nothing is
 * known of similar runs. */
TEST(GpuRecursion, no_engine_named) {
    enum { ROOTS = 1500 };
    const tree_shape shape = {.deepest = 20, .chance = 90, .most = TREE_MOST};
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "persistent");
    const char *last = NULL;
    s->options.engine = NULL;
    for (int i = 0; i < 16; i++) {
        expect_trees_by(s, 0, &shape, 7, ROOTS);
        EXPECT_TRUE(strlen(s->report.reason) > 0);
        EXPECT_TRUE(strstr("naive level graph", s->report.engine) == NULL);
        if (i > 10)
            EXPECT_EQ_STR(last, s->report.engine);
        last = s->report.engine;
    }
    tear_down(s);
}

/* The shortest run of each engine, and the engine of the last run. */
typedef struct experience {
    const char *engine[8];
    double least[8];
    const char *last;
} experience;

static void remember(experience *e, const dpr_recursion_report *report) {
    size_t i = 0;
    while (e->engine[i] && strcmp(e->engine[i], report->engine) != 0)
        i++;
    if (!e->engine[i] || report->seconds < e->least[i])
        e->least[i] = report->seconds;
    e->engine[i] = e->last = report->engine;
}

/* The shortest run of all, or of the engine that ran last. */
static double find_shortest(const experience *e, int of_last) {
    double shortest = 1e9;
    for (size_t i = 0; e->engine[i]; i++)
        if ((!of_last || strcmp(e->engine[i], e->last) == 0) && e->least[i] < shortest)
            shortest = e->least[i];
    return shortest;
}

/* As many roots as in no other test. An engine whose times scatter may come out ahead of one that is somewhat faster.
 */
TEST(GpuRecursion, nested_launches_that_are_allowed) {
    enum { ROOTS = 9000 };
    const tree_shape shape = {.deepest = 20, .chance = 90, .most = TREE_MOST};
    experience seen = {.last = NULL};
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "persistent");
    s->options.engine = NULL;
    s->options.allow_nested = 1;
    for (int i = 0; i < 30; i++) {
        expect_trees_by(s, 0, &shape, 7, ROOTS);
        EXPECT_TRUE(strcmp("naive", s->report.engine) != 0);
        remember(&seen, &s->report);
    }
    EXPECT_THAT(find_shortest(&seen, 1) < 1.3 * find_shortest(&seen, 0), "engine %s takes %g s, and another one %g s",
                seen.last, find_shortest(&seen, 1), find_shortest(&seen, 0));
    test_record("engine", "%s", seen.last);
    s->options.allow_nested = 0;
    for (int i = 0; i < 10; i++) {
        expect_trees_by(s, 0, &shape, 7, ROOTS);
        EXPECT_TRUE(strstr("naive level graph", s->report.engine) == NULL);
    }
    tear_down(s);
}

/* The levels that no block divides alone are launched by the graph itself, or by kernels. The host would launch eight
 * phases, and then look whether more are left. */
static void expect_launches_by_device(scene *s) {
    enum { BY_HOST = 3, PHASES = 8 };
    const uint64_t root = 14;
    uint64_t result = 0;
    EXPECT_STATUS(DPR_OK, binary_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
    EXPECT_EQ_U64((UINT64_C(2) << root) - 1, result);
    EXPECT_TRUE(s->report.widest >= 4096);
    if (is_engine(s, "graph"))
        EXPECT_EQ_U64(BY_HOST, s->report.launches);
    else
        EXPECT_TRUE(s->report.launches > BY_HOST && s->report.launches < BY_HOST + PHASES);
}

TEST(GpuRecursion, kernels_launch_levels) {
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "level");
    expect_launches_by_device(s);
    tear_down(s);
}

/* Measuring leaves no nested launches pending, so graphs launch themselves afterwards. */
TEST(GpuRecursion, graphs_launch_themselves_after_measuring) {
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "graph");
    const dpr_recursion_call call = {.ctx = s->ctx};
    dpr_costs_measure_nested(&call);
    expect_launches_by_device(s);
    tear_down(s);
}

/* ---- All at once ---- */

TEST(GpuRecursion, threads_at_once) {
    NEED_GPU();
    stress_recursions(0, NULL, gpu_stream_create);
}

/* Graphs that launch themselves and nested launches must not be in flight together (dp/apart.h). */
TEST(GpuRecursion, threads_with_graphs_and_nested_launches) {
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "graph");
    expect_launches_by_device(s);
    tear_down(s);
    stress_recursions(0, "graph naive level", gpu_stream_create);
}

/* Sums of numbers in device memory, in a stream of their own, by a strategy, or by the library's choice. */
static void *reduce_meanwhile(void *strategy) {
    enum { COUNT = 1 << 22 };
    const double end = test_now() + stress_seconds();
    const int32_t two = 2;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_ctx *ctx;
    int32_t *x = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *x);
    int64_t *sum = gpu_alloc(DPR_MEMORY_PINNED, sizeof *sum);
    dpr_stream stream = gpu_stream_create();
    if (!EXPECT_THAT(x && sum && stream && gpu_repeat(x, COUNT * sizeof *x, &two, sizeof two), "%s", gpu_error()))
        return NULL;
    options.strategy = strategy;
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    while (test_now() < end && !test_failed()) {
        *sum = 0;
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, x, sum, COUNT, DPR_I32, DPR_SUM, &options, stream));
        EXPECT_TRUE(gpu_stream_wait(stream));
        EXPECT_EQ_I64(2 * (int64_t)COUNT, *sum);
    }
    EXPECT_TRUE(gpu_stream_destroy(stream));
    gpu_free(DPR_MEMORY_DEVICE, x);
    gpu_free(DPR_MEMORY_PINNED, sum);
    dpr_ctx_destroy(ctx);
    return NULL;
}

static void stress_beside(const char *strategy) {
    pthread_t thread;
    ASSERT_EQ_I64(0, pthread_create(&thread, NULL, reduce_meanwhile, (void *)strategy));
    stress_recursions(0, NULL, gpu_stream_create);
    EXPECT_EQ_I64(0, pthread_join(thread, NULL));
}

TEST(GpuRecursion, threads_beside_reductions) {
    NEED_GPU();
    stress_beside(NULL);
}

/* No graph launches itself any more, because nobody says when these nested launches are done. */
TEST(GpuRecursion, threads_beside_reductions_with_nested_launches) {
    NEED_GPU();
    stress_beside("dp.tree");
}
