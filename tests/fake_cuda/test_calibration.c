/* What nested launches cost, as it is measured on the fake devices and as plans have it; and the memory that is asked
 * for before their code is loaded. */
#include <pthread.h>
#include <string.h>

#include "apart.h"
#include "api/ctx.h"
#include "nested_host.h"
#include "one_sum.h"
#include "plan/planner.h"
#include "pool_contexts.h"

static const int64_t canary = 0x5a5a5a5a;
static const char *const forms[] = {"dp.tree", "dp.recursive", "dp.nosync", "dp.recursive2"};

typedef struct scene {
    one_sum sum;
    dpr_stream stream;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    one_sum_open(&s->sum);
    s->stream = gpu_stream_create();
    ASSERT_TRUE(s->stream != NULL);
}

static void scene_close(void *state) {
    scene *s = state;
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    one_sum_close(&s->sum);
}

#define CALIBRATION_TEST(NAME) TEST_FIXTURE(Calibration, NAME, scene, scene_open, scene_close)

static const char tail_measured[] = "costs:     30 us a level of launches (measured), ",
                  level_measured[] = "costs:     20 us a level of launches (measured), ",
                  assumed[] = "us a level of launches (assumed), ";

static void expect_planned(dpr_ctx *ctx, const char *strategy, const char *words, dpr_plan **plan) {
    char text[8192];
    size_t len = sizeof text;
    ASSERT_STATUS(DPR_OK, plan_for(ctx, COUNT, strategy, NULL, plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(*plan, text, &len));
    EXPECT_CONTAINS(text, words);
}

static void expect_costs(const scene *s, dpr_ctx *ctx, const char *strategy, const char *words) {
    dpr_plan *plan = NULL;
    expect_planned(ctx, strategy, words, &plan);
    *s->sum.out = canary;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->sum.in, s->sum.out, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(expected_sum, *s->sum.out);
    dpr_plan_destroy(plan);
}

/* With a device that does other work until the plan is made. */
static void expect_assumed_if_busy(const scene *s, dpr_ctx *ctx) {
    dpr_plan *plan = NULL;
    fake_set_busy(1);
    expect_planned(ctx, "dp.tree", assumed, &plan);
    fake_set_busy(0);
    dpr_plan_destroy(plan);
    expect_costs(s, ctx, "dp.nosync", assumed);
    expect_costs(s, ctx, "dp.tree", assumed);
}

/* What is known of the costs at this moment. */
static dpr_gpu_caps known(dpr_ctx *ctx) {
    dpr_machine machine;
    EXPECT_STATUS(DPR_OK, dpr_machine_known(dpr_ctx_machine(ctx), 0, &machine));
    return machine.caps.gpu;
}

CALIBRATION_TEST(costs_are_measured_when_they_are_first_asked_for) {
    const scene *s = fixture;
    int64_t out = canary;
    const int fresh = fake_module_loads() == 0;
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->sum.ctx, s->sum.in, &out, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_EQ_I64(0, known(s->sum.ctx).nested_times_measured);
    for (size_t i = 0; i < LENGTH(forms); i++) {
        expect_costs(s, s->sum.ctx, forms[i], i == 0 ? tail_measured : level_measured);
        const dpr_gpu_caps gpu = known(s->sum.ctx);
        EXPECT_EQ_I64(1, gpu.nested_times_measured);
        EXPECT_EQ_I64(FAKE_LEVEL_NS, gpu.nested_level_ns);
        EXPECT_EQ_I64(FAKE_TAIL_NS, gpu.nested_tail_ns);
        EXPECT_EQ_I64(FAKE_FIRST_NS, gpu.nested_first_ns);
        EXPECT_EQ_I64(FAKE_FAN_NS, gpu.nested_fan_ns);
        if (fresh) {
            EXPECT_EQ_I64(FAKE_MODULE_BYTES, gpu.nested_bytes);
            EXPECT_EQ_I64(1, gpu.nested_bytes_measured);
        }
    }
}

/* Times are measured for each context; memory is what went with the pool of the first. */
CALIBRATION_TEST(each_context_measures_its_own_pool) {
    const scene *s = fixture;
    dpr_ctx *ctx = NULL;
    expect_costs(s, s->sum.ctx, "dp.tree", tail_measured);
    ASSERT_STATUS(DPR_OK, create(0, 4096, &ctx));
    EXPECT_EQ_I64(0, known(ctx).nested_times_measured);
    expect_costs(s, ctx, "dp.tree", tail_measured);
    EXPECT_EQ_I64(0, known(ctx).nested_bytes_measured);
    EXPECT_EQ_I64(dpr_nested_bytes(4096), known(ctx).nested_bytes);
    dpr_ctx_destroy(ctx);
}

/* Once for a context: a device that stays busy is not waited for again and again. */
CALIBRATION_TEST(costs_are_assumed_where_they_cannot_be_measured) {
    const scene *s = fixture;
    dpr_ctx *ctx = NULL;
    expect_assumed_if_busy(s, s->sum.ctx);
    ASSERT_STATUS(DPR_OK, create(0, 15, &ctx)); /* too few launches at a time to measure many */
    expect_costs(s, ctx, "dp.tree", assumed);
    dpr_ctx_destroy(ctx);
    ASSERT_STATUS(DPR_OK, create(0, 16, &ctx));
    expect_costs(s, ctx, "dp.tree", tail_measured);
    dpr_ctx_destroy(ctx);
    ASSERT_STATUS(DPR_OK, create(0, 0, &ctx));
    fake_refuse_launches(1);
    expect_costs(s, ctx, "dp.tree", assumed);
    fake_refuse_launches(0);
    dpr_ctx_destroy(ctx);
}

/* Launches of measurements must not meet a graph that launches itself. Whoever plans does not wait until it ends, and
 * goes by assumed costs. */
CALIBRATION_TEST(costs_are_measured_when_no_graph_runs) {
    const scene *s = fixture;
    dpr_plan *plan = NULL;
    if (dpr_apart_begin(DPR_APART_GRAPH, 0) == DPR_APART_REFUSED)
        SKIP("an earlier test's nested launches may be pending, so no graph launches itself");
    expect_planned(s->sum.ctx, "dp.tree", assumed, &plan);
    dpr_apart_end(DPR_APART_GRAPH);
    EXPECT_EQ_I64(0, known(s->sum.ctx).nested_times_measured);
    dpr_plan_destroy(plan);
    expect_costs(s, s->sum.ctx, "dp.nosync", level_measured);
    expect_costs(s, s->sum.ctx, "dp.tree", assumed); /* the context has kept its choice */
}

/* The other device's code takes memory of its own. */
CALIBRATION_TEST(each_device_is_measured) {
    const scene *s = fixture;
    dpr_ctx *far = NULL;
    dpr_plan *plan = NULL;
    const int fresh = fake_module_loads() == 0;
    expect_costs(s, s->sum.ctx, "dp.tree", tail_measured);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(1, &far));
    EXPECT_EQ_I64(0, known(far).nested_times_measured);
    EXPECT_STATUS(DPR_OK, plan_for(far, COUNT, "dp.nosync", NULL, &plan));
    EXPECT_EQ_I64(1, known(far).nested_times_measured);
    if (fresh)
        EXPECT_EQ_I64(FAKE_MODULE_BYTES, known(far).nested_bytes);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(far);
}

typedef struct planner_thread {
    pthread_t thread;
    dpr_ctx *ctx;
    const char *form;
    dpr_status status;
} planner_thread;

static void *plan_in_thread(void *user) {
    planner_thread *t = user;
    dpr_plan *plan = NULL;
    t->status = plan_for(t->ctx, COUNT, t->form, NULL, &plan);
    dpr_plan_destroy(plan);
    return NULL;
}

/* Each in a context of its own. */
CALIBRATION_TEST(threads_may_ask_at_once) {
    enum { THREADS = 8 };
    planner_thread threads[THREADS];
    (void)fixture;
    const int fresh = fake_module_loads() == 0;
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = (planner_thread){.form = forms[i % LENGTH(forms)]};
        ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &threads[i].ctx)); /* its memory must not count as the module's */
    }
    for (size_t i = 0; i < THREADS; i++)
        ASSERT_EQ_I64(0, pthread_create(&threads[i].thread, NULL, plan_in_thread, &threads[i]));
    for (int i = 0; i < THREADS; i++) {
        EXPECT_EQ_I64(0, pthread_join(threads[i].thread, NULL));
        EXPECT_STATUS(DPR_OK, threads[i].status);
        const dpr_gpu_caps gpu = known(threads[i].ctx);
        EXPECT_EQ_I64(FAKE_TAIL_NS, gpu.nested_tail_ns);
        if (fresh)
            EXPECT_EQ_I64(FAKE_MODULE_BYTES, gpu.nested_bytes);
        dpr_ctx_destroy(threads[i].ctx);
    }
}

/* Of the calls that only measuring makes. */
CALIBRATION_TEST(memory_that_lacks_for_measuring_is_no_failure) {
    static const char *const only[] = {"cudaEventCreateWithFlags", "cudaEventRecord", "cuEventQuery",
                                       "cudaEventElapsedTime",     "cudaHostAlloc",   "cudaMemsetAsync"};
    const scene *s = fixture;
    int seen[LENGTH(only)] = {0};
    expect_costs(s, s->sum.ctx, "dp.tree", tail_measured);
    for (int fail = 1, failed = 1; failed; fail++) {
        dpr_ctx *ctx = NULL;
        dpr_plan *plan = NULL;
        ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
        fake_fail_call(fail, cudaErrorMemoryAllocation);
        const dpr_status status = plan_for(ctx, COUNT, "dp.tree", NULL, &plan);
        const char *name = fake_failed_call();
        failed = name != NULL;
        fake_fail_call(0, cudaSuccess);
        for (size_t i = 0; name && i < LENGTH(only); i++)
            if (strcmp(name, only[i]) == 0) {
                seen[i] = 1;
                EXPECT_THAT(status == DPR_OK, "call %d, %s: %s", fail, name, dpr_last_error());
                EXPECT_EQ_I64(0, known(ctx).nested_times_measured);
            }
        dpr_plan_destroy(plan);
        dpr_ctx_destroy(ctx);
    }
    for (size_t i = 0; i < LENGTH(only); i++)
        EXPECT_THAT(seen[i], "%s was not made to fail", only[i]);
}

CALIBRATION_TEST(costs_are_measured_while_a_stream_is_captured) {
    const scene *s = fixture;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "dp.recursive2";
    *s->sum.out = canary;
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_async(s->sum.ctx, s->sum.in, s->sum.out, COUNT, DPR_I32, DPR_SUM, &options, s->stream));
    gpu_graph *graph = gpu_capture_end(s->stream);
    ASSERT_TRUE(graph != NULL);
    EXPECT_EQ_I64(1, known(s->sum.ctx).nested_times_measured);
    EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(expected_sum, *s->sum.out);
    gpu_graph_destroy(graph);
}

/* As after the first run: code and costs are there, and all else was given back. */
CALIBRATION_TEST(measuring_leaves_nothing_behind) {
    const scene *s = fixture;
    dpr_ctx *ctx = NULL;
    expect_costs(s, s->sum.ctx, "dp.tree", tail_measured);
    const int before = fake_live_objects();
    for (int i = 0; i < 3; i++) {
        ASSERT_STATUS(DPR_OK, create(0, 0, &ctx));
        if (i == 1)
            expect_assumed_if_busy(s, ctx);
        else
            expect_costs(s, ctx, "dp.tree", tail_measured);
        dpr_ctx_destroy(ctx);
        EXPECT_EQ_I64(before, fake_live_objects());
    }
}

/* Loading it could leave a device that launches nothing any more, so that nothing is asked of the driver. */
CALIBRATION_TEST(the_module_is_not_loaded_without_memory_for_its_pool) {
    const scene *s = fixture;
    dpr_launcher launcher;
    int64_t out = canary;
    dpr_options options = DPR_OPTIONS_INIT;
    size_t available;
    size_t total;
    if (fake_module_loads() > 0)
        SKIP("the module was loaded before, by another test in this process");
    ASSERT_EQ_I64(cudaSuccess, cudaMemGetInfo(&available, &total));
    fake_set_memory(total - available + ((size_t)120 << 20));
    for (size_t i = 0; i < LENGTH(forms); i++) {
        options.strategy = forms[i];
        EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY,
                      dpr_reduce_ex(s->sum.ctx, s->sum.in, &out, COUNT, DPR_I32, DPR_SUM, &options));
        EXPECT_CONTAINS(dpr_last_error(),
                        "a pool of 2048 pending launches take some 106 MiB, and device 0 has 120 free");
        EXPECT_EQ_I64(canary, out);
    }
    EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, dpr_launcher_create(s->sum.ctx, 0, &launcher));
    EXPECT_EQ_I64(0, fake_module_loads());
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->sum.ctx, s->sum.in, &out, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_EQ_I64(expected_sum, out);
    fake_set_memory((size_t)1 << 30);
    expect_costs(s, s->sum.ctx, "dp.tree", tail_measured);
    fake_set_memory(total - available + ((size_t)120 << 20)); /* too little again, but the module is there */
    expect_costs(s, s->sum.ctx, "dp.nosync", level_measured);
    fake_set_memory((size_t)1 << 30);
}
