/* Recursions on the GPU that end with an error: wrong numbers of children, limits, and functions that do not return.
 * These come last in a process, because no graph launches itself any more after a run that was given up. */
#include <stdio.h>

#include "apart.h"
#include "gpu_memory.h"
#include "gpu_recursion_scene.h"
#include "plan/planner.h"

/* Runs trees, by lanes or teams, whose results are joined or folded. */
static dpr_status run_trees(scene *s, int teams, int folds, const tree_task *roots, size_t n, const tree_shape *shape,
                            tree_result *results) {
    uint64_t *sums = (uint64_t *)results;
    return folds ? (teams ? team_fold_run : fold_DPR_SUM_run)(s->ctx, roots, n, shape, sums, &s->options, NULL, NULL)
                 : (teams ? team_tree_run : tree_run)(s->ctx, roots, n, shape, results, &s->options, NULL, NULL);
}

/* divide() returns a wrong number at some depth: that of children of a single root, or further down. */
static void expect_wrong_number(scene *s, int teams, int folds, const tree_shape *shape) {
    enum { ROOTS = 300 };
    const size_t n = shape->wrong == 1 ? 1 : teams ? ROOTS / 20 : ROOTS;
    tree_task roots[ROOTS];
    static tree_result results[ROOTS], untouched[ROOTS];
    char text[32];
    for (size_t i = 0; i < n; i++) {
        roots[i] = (tree_task){i, 0, 0};
        results[i] = untouched[i] = (tree_result){77, 77};
    }
    EXPECT_STATUS(DPR_ERR_DIVIDE, run_trees(s, teams, folds, roots, n, shape, results));
    (void)snprintf(text, sizeof text, "returned %d", shape->returned);
    EXPECT_CONTAINS(dpr_last_error(), text);
    EXPECT_EQ_BYTES(untouched, results, n * sizeof *results);
    expect_trees(s, &large, 3, 100);
}

GPU_TEST(wrong_numbers_of_children) {
    static const int32_t wrong[] = {-1, TREE_MOST + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < LENGTH(wrong); i++)
        for (uint32_t depth = 1; depth < 40; depth += 12)
            for (int by = 0; by < 4; by++) {
                tree_shape shape = large;
                shape.wrong = depth;
                shape.returned = wrong[i];
                expect_wrong_number(s, by % 2, by / 2, &shape);
            }
}

GPU_TEST(limits) {
    uint64_t root = 1000, result = 5;
    s->options.max_depth = 1000;
    EXPECT_STATUS(DPR_OK, chain_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_EQ_U64(1001, result);
    root = 1001;
    EXPECT_STATUS(DPR_ERR_LIMIT, chain_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "has a task that is deeper than options->max_depth, which is 1000");
    s->options.max_depth = 100;
    EXPECT_STATUS(DPR_ERR_LIMIT, endless_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    s->options.max_depth = 0;
    for (s->options.arena_tasks = 0; s->options.arena_tasks <= 10 && !is_engine(s, "naive");
         s->options.arena_tasks += 5) /* memory is the limit; one thread alone takes too long */
        EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, endless_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_EQ_U64(1001, result);
    s->options.arena_tasks = 2;
    s->options.engine = NULL;
    const uint64_t three[3] = {1, 2, 3};
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s->ctx, three, 3, NULL, &result, &s->options, NULL, NULL));
    expect_trees(s, &large, 3, 1);
}

/* A limit of tasks counts those of all lanes. */
GPU_TEST(limit_of_tasks) {
    static const uint64_t roots[] = {2, 9, 16};
    static const uint64_t arenas[] = {0, 8};
    for (size_t i = 0; i < LENGTH(roots) * LENGTH(arenas); i++) {
        const uint64_t root = roots[i / LENGTH(arenas)], tasks = (UINT64_C(2) << root) - 1;
        s->options.arena_tasks = arenas[i % LENGTH(arenas)];
        for (s->options.max_tasks = tasks - 1; s->options.max_tasks <= tasks; s->options.max_tasks++) {
            const int has_room = s->options.max_tasks == tasks;
            uint64_t result = 5;
            EXPECT_STATUS(has_room ? DPR_OK : DPR_ERR_LIMIT,
                          binary_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
            EXPECT_EQ_U64(has_room ? tasks : 5, result);
        }
    }
    uint64_t root = 1, result = 5;
    for (s->options.arena_tasks = 0; s->options.arena_tasks <= 10; s->options.arena_tasks += 5) {
        s->options.max_tasks = 20000;
        EXPECT_STATUS(DPR_ERR_LIMIT, endless_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "has more tasks than options->max_tasks, which is 20000");
    }
    s->options.arena_tasks = 0;
    s->options.max_seconds = 20;
    for (s->options.max_tasks = 1000; s->options.max_tasks < 1070; s->options.max_tasks++) /* at any level of a block */
        for (int i = 0; i < 2; i++) {
            root = 100000;
            EXPECT_STATUS(DPR_ERR_LIMIT,
                          (i ? ladder_run : chain_run)(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
            EXPECT_CONTAINS(dpr_last_error(), "has more tasks than options->max_tasks");
        }
    EXPECT_EQ_U64(5, result);
}

/* Launches by kernels may be only so deep; what is below is solved otherwise. */
static void limit_of_nesting(scene *s) {
    for (s->options.max_nesting = 1; s->options.max_nesting <= 24; s->options.max_nesting *= 3) {
        expect_trees(s, &large, 3, 100);
        EXPECT_TRUE(s->options.max_nesting > 1 || !is_engine(s, "naive") || s->report.serialised > 0);
    }
}
ENGINE_TEST(level, limit_of_nesting)
ENGINE_TEST(naive, limit_of_nesting)

/* Launches by kernels wait for graphs that launch themselves, and the reverse, but not for longer than the limit. */
static void limit_of_waiting(scene *s) {
    const dpr_apart other = is_engine(s, "graph") ? DPR_APART_NESTED : DPR_APART_GRAPH;
    const uint64_t root = 10;
    uint64_t result = 5;
    if (dpr_apart_begin(DPR_APART_GRAPH, 0) == DPR_APART_REFUSED)
        SKIP("an earlier test's nested launches may be pending, so no graph launches itself");
    dpr_apart_end(DPR_APART_GRAPH);
    s->options.max_seconds = 0.1;
    ASSERT_EQ_I64(DPR_APART_BEGUN, dpr_apart_begin(other, 0));
    EXPECT_STATUS(DPR_ERR_LIMIT, binary_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "\"binary\" has waited for 0.1 seconds");
    EXPECT_EQ_U64(5, result);
    dpr_apart_end(other);
    s->options.max_seconds = 60;
    EXPECT_STATUS(DPR_OK, binary_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_EQ_U64(2047, result);
}
ENGINE_TEST(level, limit_of_waiting)
ENGINE_TEST(graph, limit_of_waiting)
ENGINE_TEST(naive, limit_of_waiting)

/* With arenas that are never full, and with one that always is. */
GPU_TEST(limit_of_time) {
    uint64_t root, result;
    for (s->options.arena_tasks = 0; s->options.arena_tasks <= 16; s->options.arena_tasks += 16) {
        root = BINARY_MOST;
        result = 5;
        s->options.max_seconds = 0.2;
        const double began = test_now();
        EXPECT_STATUS(DPR_ERR_LIMIT, binary_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
        EXPECT_TRUE(test_now() - began >= 0.2);
        EXPECT_CONTAINS(dpr_last_error(), "\"binary\" takes longer than 0.2 seconds");
        EXPECT_TRUE(strstr(dpr_last_error(), "still running") == NULL);
        EXPECT_EQ_U64(5, result);
        root = 10;
        s->options.max_seconds = 0;
        EXPECT_STATUS(DPR_OK, binary_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
        EXPECT_EQ_U64(2047, result);
    }
    s->options.arena_tasks = 0;
    expect_trees(s, &large, 3, 100);
}

GPU_TEST(too_many_children_for_shared_memory) {
    const uint64_t root = 10;
    uint64_t result = 5;
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, star_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "no room in shared memory");
    s->options.engine = NULL;
    EXPECT_STATUS(DPR_OK, star_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
    EXPECT_TRUE(strcmp("cpu", s->report.engine) == 0 || strcmp("serial", s->report.engine) == 0);
    EXPECT_EQ_U64(11, result);
}

GPU_TEST(results_too_large_for_shared_memory) {
    const uint64_t root = 9;
    static bulk_result result, untouched;
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, bulk_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "no room in shared memory");
    EXPECT_EQ_BYTES(&untouched, &result, sizeof result);
    s->options.engine = NULL;
    expect_large_result(s->ctx, &s->options, &s->report);
}

/* If the library chooses, the policy runs on the CPU. `level` and `naive` would need relocatable code. */
static void code_for_another_architecture(scene *s) {
    const uint64_t root = 100;
    uint64_t result = 5;
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(s->ctx)->caps.gpu;
    if (gpu->cc_major == 7 && gpu->cc_minor == 5)
        SKIP("the device is of the architecture that the policy is compiled for");
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, elsewhere_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "recursion \"elsewhere\" has no kernel for device 0");
    EXPECT_EQ_U64(5, result);
    s->options.engine = NULL;
    EXPECT_STATUS(DPR_OK, elsewhere_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
    EXPECT_EQ_U64(101, result);
    EXPECT_TRUE(strcmp("cpu", s->report.engine) == 0 || strcmp("serial", s->report.engine) == 0);
}
ENGINE_TEST(persistent, code_for_another_architecture)
ENGINE_TEST(host, code_for_another_architecture)
ENGINE_TEST(graph, code_for_another_architecture)

/* ---- Runs that are given up ---- */

/* What is given up ends later, while another stream's runs go on. Afterwards no graph launches itself any more: nested
 * launches that were given up may be pending. */
GPU_TEST(a_function_that_does_not_return) {
    enum { TASKS = 3000 };
    static uint64_t roots[TASKS], results[TASKS];
    volatile int *flag = gpu_alloc(DPR_MEMORY_PINNED, sizeof *flag);
    const stuck_data data = {(const int *)flag};
    dpr_stream stream = gpu_stream_create();
    s->options.max_seconds = 0.1;
    *flag = 0;
    results[0] = 5;
    EXPECT_STATUS(DPR_ERR_LIMIT, stuck_run(s->ctx, roots, TASKS, &data, results, &s->options, NULL, stream));
    EXPECT_CONTAINS(dpr_last_error(), "are still running: perhaps a function of the policy does not return");
    EXPECT_EQ_U64(5, results[0]);
    s->options.max_seconds = 0;
    *flag = 1;
    for (int i = 0; i < 20; i++) {
        roots[TASKS - 1] = (uint64_t)i;
        EXPECT_STATUS(DPR_OK,
                      stuck_run(s->ctx, roots, TASKS, &data, results, &s->options, NULL, i % 2 ? stream : NULL));
        EXPECT_EQ_U64(0, results[0]);
        EXPECT_EQ_U64((uint64_t)i, results[TASKS - 1]);
    }
    roots[TASKS - 1] = 0;
    EXPECT_TRUE(gpu_stream_wait(stream));
    expect_trees(s, &large, 3, 100);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    gpu_free(DPR_MEMORY_PINNED, (void *)flag);
}
