/* Costs that the choice among engines of recursions depends on: when they are measured, when they are not, and what
 * follows from them. Nested launches that are pending for ever are not undone, so each test is for a process of its
 * own, as ctest runs it. */
#define _GNU_SOURCE /* setenv(), mkstemp() */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apart.h"
#include "fake_cuda.h"
#include "fake_recursion.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "recursion/costs.h"
#include "support.h"

/* With 2 threads, engine `cpu` should take 0.22 ms for MIDDLE tasks, and `persistent` 0.4 ms. */
enum { FEW = 1000, MIDDLE = 100000, MANY = 1000000000 };

/* A graph that is measured launches itself so often, in each of two runs. */
enum { RELAUNCHES = 32, RUNS_OF_GRAPH = 2 };

/* A policy that is never run, and costs as much as its root says. */
static uint64_t cost_of_number(const void *data, const void *task) {
    (void)data;
    return *(const uint64_t *)task;
}

static const dpr_recursion_kernels kernels = {.persistent = fake_recursion_persistent,
                                              .phase = fake_recursion_phase,
                                              .node_bytes = 28,
                                              .slot_bytes = 8,
                                              .header_bytes = 2,
                                              .most_lanes = DPR_MOST_LANES};
static const dpr_recursion numbers = {.name = "numbers",
                                      .cost = cost_of_number,
                                      .task_bytes = sizeof(uint64_t),
                                      .most_children = 2,
                                      .host_data = 1,
                                      .gpu = &kernels};

/* As on a device where `meeting` and `operation` take so many ns, in the 8 rounds that there are. */
static void set_times(uint32_t meeting, uint32_t operation) {
    enum { ROUNDS = 8 };
    fake_recursion = (fake_recursion_state){.times = {ROUNDS * meeting, ROUNDS * (meeting + operation)},
                                            .relaunch_ns = RELAUNCHES * 5000};
}

typedef struct scene {
    dpr_ctx *ctx;
} scene;

/* Work is done at once, so that a launch takes no time to speak of. */
static void open_scene(void *state) {
    scene *s = state;
    set_times(2000, 6000);
    fake_set_eager(1);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void close_scene(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    fake_set_eager(0);
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define COSTS_TEST(NAME) TEST_FIXTURE(Costs, NAME, scene, open_scene, close_scene)

/* In a new context nothing is measured. */
static void reopen(scene *s) {
    dpr_ctx_destroy(s->ctx);
    s->ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static const dpr_engine *choose(dpr_ctx *ctx, uint64_t tasks) {
    const char *reason;
    double waited = 0;
    dpr_recursion_call call = {
        .ctx = ctx, .recursion = &numbers, .roots = &tasks, .n = 1, .waited = &waited, .options.threads = 2};
    dpr_engine_size(&call);
    return dpr_engine_choose(&call, &reason);
}

static dpr_costs known(dpr_ctx *ctx) {
    const dpr_recursion_call call = {.ctx = ctx, .recursion = &numbers, .n = 1};
    return dpr_costs_here(&call);
}

/* Whether costs are as they were before anything was measured. */
static int are_assumed(dpr_ctx *ctx) {
    dpr_ctx *other = NULL;
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(1, &other));
    const dpr_costs here = known(ctx), there = known(other);
    dpr_ctx_destroy(other);
    return here.launch == there.launch && here.meeting == there.meeting && here.queue == there.queue;
}

/* ---- Predictions ---- */

COSTS_TEST(predictions_follow_each_cost) {
    const uint64_t tasks = 300000000;
    const dpr_costs h100 = known(fixture->ctx);
    dpr_costs launch = h100, meeting = h100, queue = h100;
    launch.launch *= 2;
    meeting.meeting *= 2;
    queue.queue *= 2;
    EXPECT_NEAR_F64(15e-6, dpr_costs_persistent(&h100, 64, 27, 1024), 1e-9);
    EXPECT_NEAR_F64(3.4e-3, dpr_costs_persistent(&h100, tasks, 27, 1024), 1e-9);
    EXPECT_NEAR_F64(3.4e-3 + 15e-6, dpr_costs_persistent(&launch, tasks, 27, 1024), 1e-9);
    EXPECT_NEAR_F64(3.4e-3 + 385e-6, dpr_costs_persistent(&meeting, tasks, 27, 1024), 1e-9);
    EXPECT_NEAR_F64(6.4e-3, dpr_costs_persistent(&queue, tasks, 27, 1024), 1e-9);
    EXPECT_NEAR_F64(3.4e-3 + 3 * 3e-3, dpr_costs_persistent(&h100, tasks, 27, 256), 1e-9);
    EXPECT_NEAR_F64(15e-6 + 3.3e-3 + 1e-6, dpr_costs_persistent(&h100, 100000, 1000, 1024), 1e-9);
    EXPECT_NEAR_F64(15e-6 + 6.6e-3 + 1e-6, dpr_costs_persistent(&meeting, 100000, 1000, 1024), 1e-9);
}

/* A chain has no parallelism, so `serial` is chosen, although a tree of as many tasks goes to the GPU. */
COSTS_TEST(levels_follow_the_most_children) {
    dpr_recursion chain = numbers;
    chain.most_children = 1;
    uint64_t tasks = MANY;
    const char *reason;
    double waited = 0;
    dpr_recursion_call call = {.ctx = fixture->ctx, .recursion = &chain, .roots = &tasks, .n = 1, .waited = &waited};
    dpr_engine_size(&call);
    EXPECT_NEAR_F64(MANY, dpr_engine_levels(&call, tasks), 1e-3);
    EXPECT_TRUE(dpr_engine_choose(&call, &reason) == &dpr_engine_serial);
    const dpr_recursion_report report = {.tasks = MANY, .seconds = 4};
    for (int i = 0; i < 2; i++)
        dpr_engine_note(&call, &dpr_engine_serial, &report);
    EXPECT_TRUE(dpr_engine_choose(&call, &reason) == &dpr_engine_serial); /* no other is worth a try */
    call.recursion = &numbers;
    EXPECT_NEAR_F64(29.9, dpr_engine_levels(&call, tasks), 0.01);
    EXPECT_TRUE(dpr_engine_choose(&call, &reason) == &dpr_engine_persistent);
    call.n = MANY;
    EXPECT_NEAR_F64(1, dpr_engine_levels(&call, tasks), 1e-9);
    chain.most_children = 3;
    call.recursion = &chain;
    call.n = 2;
    EXPECT_NEAR_F64(3, dpr_engine_levels(&call, 26), 1e-9); /* 2, 6 and 18 tasks */
}

/* What the levels take does not depend on the launch. */
COSTS_TEST(least_times_follow_the_launch_and_measure_nothing) {
    const dpr_recursion_call call = {.ctx = fixture->ctx, .recursion = &numbers, .n = 1};
    const dpr_engine *const engines[] = {&dpr_engine_persistent, &dpr_engine_host};
    const double assumed = known(fixture->ctx).launch, levels = 0.25e-6 * log2(MIDDLE + 1);
    double before[LENGTH(engines)];
    for (size_t i = 0; i < LENGTH(engines); i++)
        before[i] = engines[i]->least_seconds(&call, MIDDLE) - levels;
    EXPECT_EQ_I64(0, fake_recursion.probes);
    (void)choose(fixture->ctx, MIDDLE);
    const double ratio = known(fixture->ctx).launch / assumed;
    for (size_t i = 0; i < LENGTH(engines); i++)
        EXPECT_NEAR_F64(ratio * before[i] + levels, engines[i]->least_seconds(&call, MIDDLE), 1e-12);
}

/* ---- When costs are measured ---- */

COSTS_TEST(are_measured_where_the_choice_is_not_clear) {
    EXPECT_TRUE(choose(fixture->ctx, FEW) == &dpr_engine_serial);
    EXPECT_TRUE(choose(fixture->ctx, MANY) == &dpr_engine_persistent);
    EXPECT_EQ_I64(0, fake_recursion.probes);
    EXPECT_TRUE(are_assumed(fixture->ctx));
    (void)choose(fixture->ctx, MIDDLE);
    EXPECT_EQ_I64(1, fake_recursion.probes);
    const dpr_costs here = known(fixture->ctx);
    EXPECT_NEAR_F64(2e-6, here.meeting, 1e-12);
    EXPECT_NEAR_F64(6e-6 / (132 * 1024), here.queue, 1e-15);
    EXPECT_TRUE(here.launch > 0);
}

COSTS_TEST(are_measured_once_for_a_context) {
    dpr_ctx *other = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(1, &other));
    for (int i = 0; i < 3; i++)
        (void)choose(fixture->ctx, MIDDLE);
    EXPECT_EQ_I64(1, fake_recursion.probes);
    for (int i = 0; i < 3; i++)
        (void)choose(other, MIDDLE);
    EXPECT_EQ_I64(2, fake_recursion.probes);
    dpr_ctx_destroy(other);
}

static void *choose_in_thread(void *ctx) {
    (void)choose(ctx, MIDDLE);
    return NULL;
}

COSTS_TEST(are_measured_once_by_threads) {
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        ASSERT_TRUE(pthread_create(&thread[i], NULL, choose_in_thread, fixture->ctx) == 0);
    for (int i = 0; i < THREADS; i++)
        EXPECT_TRUE(pthread_join(thread[i], NULL) == 0);
    EXPECT_EQ_I64(1, fake_recursion.probes);
    EXPECT_TRUE(!are_assumed(fixture->ctx));
}

COSTS_TEST(decide) {
    static const struct {
        uint32_t meeting, operation;
        const dpr_engine *engine;
    } cases[] = {{100, 1000, &dpr_engine_persistent}, {20000, 6000, &dpr_engine_cpu}, {500, 3000000, &dpr_engine_cpu}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        reopen(fixture);
        set_times(cases[i].meeting, cases[i].operation);
        EXPECT_THAT(choose(fixture->ctx, 4 * MIDDLE) == cases[i].engine, "case %zu: another engine than %s", i,
                    cases[i].engine->name);
        EXPECT_EQ_I64(1, fake_recursion.probes);
    }
}

/* ---- Launches by kernels ---- */

static const double assumed_nested = 10.6e-6, assumed_relaunch = 4.6e-6;

static void measure_nested(dpr_ctx *ctx) {
    const dpr_recursion_call call = {.ctx = ctx, .recursion = &numbers, .n = 1};
    dpr_costs_measure_nested(&call);
}

static void expect_nested(dpr_ctx *ctx, double nested, double relaunch) {
    const dpr_costs here = known(ctx);
    EXPECT_NEAR_F64(nested, here.nested, 1e-12);
    EXPECT_NEAR_F64(relaunch, here.relaunch, 1e-12);
}

/* Whether a graph may launch itself. */
static int graphs_may_run(void) {
    const int may = dpr_apart_begin(DPR_APART_GRAPH, 0) == DPR_APART_BEGUN;
    if (may)
        dpr_apart_end(DPR_APART_GRAPH);
    return may;
}

COSTS_TEST(of_launches_by_kernels_are_measured_once) {
    expect_nested(fixture->ctx, assumed_nested, assumed_relaunch);
    for (int i = 0; i < 3; i++) {
        measure_nested(fixture->ctx);
        expect_nested(fixture->ctx, 1e-9 * FAKE_TAIL_NS, 5e-6);
        EXPECT_EQ_I64(RUNS_OF_GRAPH, fake_recursion.relaunches);
    }
    EXPECT_TRUE(are_assumed(fixture->ctx)); /* the others */
    (void)choose(fixture->ctx, MIDDLE);
    EXPECT_TRUE(!are_assumed(fixture->ctx));
    expect_nested(fixture->ctx, 1e-9 * FAKE_TAIL_NS, 5e-6);
    EXPECT_TRUE(graphs_may_run());
}

/* Nobody waits for runs of other threads in order to measure. */
COSTS_TEST(of_launches_by_kernels_are_measured_when_none_are_in_flight) {
    static const dpr_apart kinds[] = {DPR_APART_GRAPH, DPR_APART_NESTED};
    if (!graphs_may_run())
        SKIP("an earlier test's nested launches may be pending, so no graph launches itself");
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        ASSERT_EQ_I64(DPR_APART_BEGUN, dpr_apart_begin(kinds[i], 0));
        measure_nested(fixture->ctx);
        dpr_apart_end(kinds[i]);
        expect_nested(fixture->ctx, assumed_nested, assumed_relaunch);
        EXPECT_EQ_I64(0, fake_recursion.relaunches);
    }
    measure_nested(fixture->ctx);
    expect_nested(fixture->ctx, 1e-9 * FAKE_TAIL_NS, 5e-6);
}

COSTS_TEST(of_launches_by_kernels_enter_least_times) {
    const dpr_recursion_call call = {.ctx = fixture->ctx, .recursion = &numbers, .n = 1};
    const double launch = known(fixture->ctx).launch + 0.25e-6 * log2(MIDDLE + 1); /* and levels of two children */
    EXPECT_NEAR_F64(launch + 10 * assumed_nested, dpr_engine_level.least_seconds(&call, MIDDLE), 1e-12);
    EXPECT_NEAR_F64(launch + 10 * assumed_relaunch, dpr_engine_graph.least_seconds(&call, MIDDLE), 1e-12);
    measure_nested(fixture->ctx);
    EXPECT_NEAR_F64(launch + 10e-9 * FAKE_TAIL_NS, dpr_engine_level.least_seconds(&call, MIDDLE), 1e-12);
    EXPECT_NEAR_F64(launch + 50e-6, dpr_engine_graph.least_seconds(&call, MIDDLE), 1e-12);
    EXPECT_TRUE(!dpr_engine_naive.least_seconds);
}

/* The engine that is chosen for a root of so many tasks when all that need no nested launches have run for so many
 * seconds. */
static const dpr_engine *choose_after_others(dpr_ctx *ctx, uint64_t tasks, double seconds, int allow_nested) {
    enum { RUNS = 4 };
    static const dpr_engine *const others[] = {&dpr_engine_persistent, &dpr_engine_cpu, &dpr_engine_serial,
                                               &dpr_engine_host};
    const char *reason;
    double waited = 0;
    dpr_recursion_call call = {.ctx = ctx,
                               .recursion = &numbers,
                               .roots = &tasks,
                               .n = 1,
                               .waited = &waited,
                               .options.allow_nested = allow_nested};
    dpr_engine_size(&call);
    for (size_t i = 0; i < RUNS * LENGTH(others); i++) {
        const dpr_recursion_report report = {.tasks = tasks, .seconds = seconds};
        dpr_engine_note(&call, others[i / RUNS], &report);
    }
    return dpr_engine_choose(&call, &reason);
}

/* A graph takes 8.6 us, some 18 levels of 0.25 us and ten rounds: 59 us as it is assumed, and 63 us as it is measured.
 */
COSTS_TEST(of_launches_by_kernels_are_measured_where_they_decide) {
    static const struct {
        double seconds;
        int relaunches, is_graph;
    } cases[] = {{1e-6, 0, 0}, {1e-3, 0, 1}, {6.2e-5, RUNS_OF_GRAPH, 0}, {7.5e-5, RUNS_OF_GRAPH, 1}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const uint64_t tasks = (uint64_t)MIDDLE << i;
        EXPECT_TRUE(!choose_after_others(fixture->ctx, tasks, cases[i].seconds, 0)->nested);
        EXPECT_EQ_I64(i < 3 ? 0 : cases[i].relaunches, fake_recursion.relaunches);
        const dpr_engine *engine = choose_after_others(fixture->ctx, tasks, cases[i].seconds, 1);
        EXPECT_THAT((engine == &dpr_engine_graph) == cases[i].is_graph, "case %zu: engine %s", i, engine->name);
        EXPECT_EQ_I64(cases[i].relaunches, fake_recursion.relaunches);
    }
}

COSTS_TEST(of_launches_by_kernels_are_measured_once_for_a_context) {
    dpr_ctx *other = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(1, &other));
    measure_nested(fixture->ctx);
    expect_nested(other, assumed_nested, assumed_relaunch);
    measure_nested(other);
    expect_nested(other, 1e-9 * FAKE_TAIL_NS, 5e-6);
    EXPECT_EQ_I64(2 * RUNS_OF_GRAPH, fake_recursion.relaunches);
    dpr_ctx_destroy(other);
}

/* Nested launches that were to be measured are then pending, and graphs do not launch themselves any more. */
COSTS_TEST(of_launches_by_kernels_on_a_busy_device_are_assumed) {
    fake_set_eager(0);
    fake_set_busy(1);
    measure_nested(fixture->ctx);
    EXPECT_TRUE(fake_is_working());
    fake_set_busy(0);
    measure_nested(fixture->ctx);
    expect_nested(fixture->ctx, assumed_nested, assumed_relaunch);
    EXPECT_EQ_I64(0, fake_recursion.relaunches);
    EXPECT_TRUE(!graphs_may_run());
    reopen(fixture);
    measure_nested(fixture->ctx);
    expect_nested(fixture->ctx, 1e-9 * FAKE_TAIL_NS, assumed_relaunch);
    EXPECT_EQ_I64(0, fake_recursion.relaunches);
}

COSTS_TEST(of_launches_by_kernels_that_are_implausible_are_assumed) {
    static const uint32_t times[] = {0, RELAUNCHES * 99, RELAUNCHES * 100001};
    for (size_t i = 0; i < LENGTH(times); i++) {
        reopen(fixture);
        fake_recursion.relaunch_ns = times[i];
        measure_nested(fixture->ctx);
        expect_nested(fixture->ctx, 1e-9 * FAKE_TAIL_NS, assumed_relaunch);
    }
}

/* Graphs that launch themselves and launched kernels have the stack of when their code was loaded. */
COSTS_TEST(of_launches_by_kernels_with_less_stack_are_assumed) {
    measure_nested(fixture->ctx);
    fake_set_stack(1023);
    reopen(fixture);
    measure_nested(fixture->ctx);
    fake_set_stack(1024);
    expect_nested(fixture->ctx, assumed_nested, assumed_relaunch);
    EXPECT_EQ_I64(RUNS_OF_GRAPH, fake_recursion.relaunches);
    EXPECT_TRUE(graphs_may_run());
}

/* The graph may be in flight until its deadline, and nested launches do not begin before. */
COSTS_TEST(of_graphs_without_an_end_are_assumed) {
    const double began = test_now();
    fake_recursion.has_no_end = 1;
    measure_nested(fixture->ctx);
    EXPECT_TRUE(test_now() - began >= 0.05);
    EXPECT_EQ_I64(1, fake_recursion.relaunches);
    expect_nested(fixture->ctx, 1e-9 * FAKE_TAIL_NS, assumed_relaunch);
    EXPECT_TRUE(graphs_may_run());
}

/* One CUDA call fails. The last error stays the one before, and what is taken is given back. */
static const char *fail_measuring(int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    const int before = fake_live_objects();
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_reduce(NULL, NULL, 1, DPR_I32, DPR_SUM));
    fake_fail_call(fail, error);
    measure_nested(ctx);
    const char *failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
    const dpr_costs here = known(ctx);
    EXPECT_THAT((here.relaunch == assumed_relaunch || here.relaunch == 5e-6) && here.nested > 0,
                "%s failing: %g and %g s", failed ? failed : "nothing", here.relaunch, here.nested);
    EXPECT_CONTAINS(dpr_last_error(), "in is NULL");
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
    dpr_ctx_destroy(ctx);
    EXPECT_THAT(fake_live_objects() == before + fake_lost_objects(failed), "%d objects before, %d after %s failed",
                before, fake_live_objects(), failed ? failed : "nothing");
    return failed;
}

COSTS_TEST(that_cannot_be_measured_fail_no_call) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    fake_set_memory((size_t)1 << 34); /* because memory is lost with a call that gives it back */
    fake_set_eager(0);
    measure_nested(fixture->ctx); /* which loads the module */
    for (size_t e = 0; e < LENGTH(errors); e++) {
        int fail = 1;
        while (fail < 2000 && !test_failed() && fail_measuring(fail, errors[e]))
            fail++;
        EXPECT_THAT(fail > 30 && fail < 2000, "%d calls", fail);
    }
}

/* ---- Costs that cannot be measured ---- */

static void expect_assumed(const scene *s) {
    EXPECT_TRUE(choose(s->ctx, MIDDLE) == &dpr_engine_cpu);
    EXPECT_TRUE(choose(s->ctx, 10 * MIDDLE) == &dpr_engine_persistent);
    EXPECT_TRUE(are_assumed(s->ctx));
}

/* It is not waited for again. */
COSTS_TEST(of_a_busy_device_are_assumed) {
    fake_set_eager(0);
    fake_set_busy(1);
    EXPECT_TRUE(choose(fixture->ctx, MIDDLE) == &dpr_engine_cpu);
    EXPECT_TRUE(fake_is_working());
    fake_set_busy(0);
    expect_assumed(fixture);
    EXPECT_EQ_I64(0, fake_recursion.probes);
}

COSTS_TEST(that_are_implausible_are_assumed) {
    static const struct {
        dpr_probe_times times;
    } cases[] = {{{0, 0}}, {{0, 50000}}, {{16000, 16000}}, {{16000, 8000}}, {{8000000, 9000000}}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        reopen(fixture);
        fake_recursion = (fake_recursion_state){.times = cases[i].times};
        expect_assumed(fixture);
        EXPECT_EQ_I64(1, fake_recursion.probes);
    }
}

/* The call succeeds, so the last error stays the one before. */
COSTS_TEST(of_kernels_that_do_nothing_are_assumed) {
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_reduce(NULL, NULL, 1, DPR_I32, DPR_SUM));
    fake_drop_kernels(1);
    expect_assumed(fixture);
    EXPECT_CONTAINS(dpr_last_error(), "in is NULL");
    EXPECT_EQ_I64(0, fake_recursion.probes);
}

/* There the host may not touch managed memory while a kernel runs that nobody waits for. */
COSTS_TEST(are_assumed_without_concurrent_access) {
    fake_set_concurrent_managed(0);
    reopen(fixture);
    expect_assumed(fixture);
    EXPECT_EQ_I64(0, fake_recursion.probes);
    fake_set_concurrent_managed(1);
}

/* ---- Other work ---- */

/* Neither a capture nor work in the default stream is touched. */
COSTS_TEST(are_measured_while_a_stream_is_captured) {
    dpr_stream blocking = gpu_blocking_stream_create();
    fake_capture_at(1, blocking);
    (void)choose(fixture->ctx, MIDDLE);
    EXPECT_TRUE(fake_captured_call() != NULL);
    fake_capture_at(0, NULL);
    gpu_graph *graph = gpu_capture_end(blocking);
    EXPECT_TRUE(graph != NULL);
    EXPECT_TRUE(!are_assumed(fixture->ctx));
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(blocking));
}

/* ---- The log ---- */

COSTS_TEST(are_logged) {
    static char text[1 << 16];
    char path[] = "/tmp/dpr-log-XXXXXX";
    const int made = mkstemp(path);
    ASSERT_TRUE(made >= 0);
    dpr_shutdown();
    ASSERT_TRUE(setenv("DPR_LOG_FILE", path, 1) == 0 && setenv("DPR_LOG", "recursion", 1) == 0);
    (void)choose(fixture->ctx, MIDDLE);
    measure_nested(fixture->ctx);
    reopen(fixture);
    fake_recursion.relaunch_ns = 1;
    measure_nested(fixture->ctx);
    EXPECT_TRUE(unsetenv("DPR_LOG_FILE") == 0 && unsetenv("DPR_LOG") == 0);
    dpr_shutdown();
    EXPECT_TRUE(read(made, text, sizeof text - 1) > 0);
    EXPECT_CONTAINS(text, "device 0: a launch takes ");
    EXPECT_CONTAINS(text, " us, a meeting of the grid 2.00 us, a queue operation 0.0444 ns\n");
    EXPECT_CONTAINS(text, "device 0: a round of a graph that launches itself takes 5.00 us\n");
    EXPECT_CONTAINS(text, "device 0: a level of nested launches takes 30.00 us\n");
    EXPECT_CONTAINS(text, "takes 4.60 us, which is assumed, because what was measured is implausible\n");
    (void)close(made);
    (void)unlink(path);
}
