/* Recursions on the GPU, by each of its engines, against plain recursive functions. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "recursion/costs.h"
#include "recursion_checks.h"
#include "recursion_policies.h"
#include "recursion_stress.h"
#include "support.h"

typedef struct scene {
    dpr_ctx *ctx;
    dpr_recursion_options options;
    dpr_recursion_report report;
} scene;

/* For each X(engine). */
#define ENGINES(X, NAME) X(persistent, NAME) X(host, NAME) X(level, NAME) X(graph, NAME) X(naive, NAME)

static int is_engine(const scene *s, const char *name) {
    return strcmp(s->options.engine, name) == 0;
}

static void set_up(scene *s, const char *engine) {
    const dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    const dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    s->options = options;
    s->report = report;
    s->options.engine = engine;
    s->ctx = NULL; /* stays so if the device is lost */
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void tear_down(scene *s) {
    dpr_ctx_destroy(s->ctx);
}

#define ENGINE_TEST(ENGINE, NAME)                                                                                      \
    TEST(GpuRecursion, NAME##_##ENGINE) {                                                                              \
        scene s;                                                                                                       \
        NEED_GPU();                                                                                                    \
        set_up(&s, #ENGINE);                                                                                           \
        NAME(&s);                                                                                                      \
        tear_down(&s);                                                                                                 \
    }

/* A test of every engine. */
#define GPU_TEST(NAME)                                                                                                 \
    static void NAME(scene *s);                                                                                        \
    ENGINES(ENGINE_TEST, NAME)                                                                                         \
    static void NAME(scene *s)

/* ---- Results ---- */

static int same(tree_result a, tree_result b) {
    return a.nodes == b.nodes && a.order == b.order;
}

/* Solves `n` trees as roots of one run, and compares them with the reference. */
static void expect_trees_by(scene *s, int teams, const tree_shape *shape, uint64_t seed, size_t n) {
    tree_task *roots = calloc(n, sizeof *roots);
    tree_result *results = calloc(n, sizeof *results);
    uint64_t nodes = 0, wrong = 0;
    for (size_t i = 0; i < n; i++)
        roots[i] = (tree_task){seed + 1000 * (uint64_t)i, 0, 0};
    EXPECT_STATUS(DPR_OK,
                  (teams ? team_tree_run : tree_run)(s->ctx, roots, n, shape, results, &s->options, &s->report, NULL));
    for (size_t i = 0; i < n; i++) {
        wrong += !same(tree_reference(shape, roots[i]), results[i]);
        nodes += results[i].nodes;
    }
    EXPECT_EQ_U64(0, wrong);
    EXPECT_EQ_U64(nodes, s->report.tasks);
    EXPECT_TRUE(s->report.deepest <= shape->deepest);
    EXPECT_EQ_STR(s->options.engine ? s->options.engine : s->report.engine, s->report.engine);
    free(roots);
    free(results);
}

/* By lanes, and by teams: these take a hundred times as long for small tasks. */
static void expect_trees(scene *s, const tree_shape *shape, uint64_t seed, size_t n) {
    expect_trees_by(s, 0, shape, seed, n);
    expect_trees_by(s, 1, shape, seed, (n + 49) / 50);
}

GPU_TEST(random_trees) {
    static const size_t counts[] = {1, 2, 31, 33, 700, 5000};
    for (uint64_t seed = 0; seed < 60; seed++) {
        const tree_shape shape = {.deepest = 1 + (uint32_t)seed * 7 % 30,
                                  .chance = 60 + (uint32_t)seed % 40,
                                  .most = 1 + (uint32_t)seed % TREE_MOST};
        expect_trees(s, &shape, seed, counts[seed % LENGTH(counts)]);
    }
}

/* With 90 of 256 and at most 6 children a tree grows until the limit of its depth. */
static const tree_shape large = {.deepest = 45, .chance = 90, .most = TREE_MOST};

GPU_TEST(large_trees) {
    for (uint64_t seed = 0; seed < 5; seed++)
        expect_trees(s, &large, seed, 100);
}

/* Whether the children of a task may be too many for the stacks that a warp has in shared memory. Engine `naive` has
 * one lane in a block. */
static int may_lack_room(const scene *s, const random_policy *p) {
    enum { LEAST_FOR_ALL = 160 << 10 };
    int shared = 0;
    EXPECT_TRUE(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess);
    return !p->teams && p->most_children * p->slot_bytes > 1000 && !is_engine(s, "naive")
           && !(is_engine(s, "persistent") && shared >= LEAST_FOR_ALL);
}

/* The last arenas have room for little more than the roots. A team takes a hundred times as long for a small task. */
static void expect_random_policy(scene *s, const random_policy *p) {
    static const size_t counts[] = {1, 2, 33, 700};
    for (uint64_t i = 0; i < 4 * LENGTH(counts) && !test_failed(); i++) {
        const size_t count = counts[i % LENGTH(counts)], n = p->teams ? (count + 49) / 50 : count;
        const uint64_t arenas[] = {0, 3000, n + 5, n};
        s->options.arena_tasks = arenas[i / LENGTH(counts)];
        s->options.cutoff = p->serial && i % 2 ? DPR_NO_CUTOFF : 0;
        expect_random_trees(p, s->ctx, &s->options, &s->report, i, n);
    }
}

/* Whether launched kernels lack stack for the frames of a large task, with the limit that CUDA sets by default. Kernels
 * of the host's have as much as they need, so a refusal of their engines is a failure. */
static int lacks_stack(const scene *s, const random_policy *p) {
    _Alignas(16) char root[256], result[256];
    if (p->task_bytes <= 100 || is_engine(s, "persistent") || is_engine(s, "host"))
        return 0;
    EXPECT_TRUE(p->task_bytes <= sizeof root && p->result_bytes <= sizeof result);
    p->make_root(0, root);
    return dpr_recursion_run(s->ctx, p->recursion, root, 1, NULL, result, &s->options, NULL, NULL)
               == DPR_ERR_STRATEGY_UNABLE
           && strstr(dpr_last_error(), "bytes of stack a thread") != NULL;
}

GPU_TEST(random_policies) {
    const random_policy *p;
    for (size_t i = 0; (p = random_policy_at(i)); i++)
        if (!may_lack_room(s, p) && !lacks_stack(s, p))
            expect_random_policy(s, p);
}

GPU_TEST(launches_that_may_be_pending) {
    static const int most[] = {DPR_NO_LAUNCHES, 1, 2, 30};
    for (size_t i = 0; i < LENGTH(most); i++) {
        s->options.max_pending = most[i];
        expect_trees(s, &large, i, 50);
        if (most[i] == DPR_NO_LAUNCHES && is_engine(s, "naive"))
            EXPECT_EQ_U64(3, s->report.launches);
    }
}

/* Launched kernels would write beyond their stacks, if there is less than when their code was loaded, here in a CUDA
 * context of its own. So nothing is launched, until there is enough again. */
GPU_TEST(less_stack_than_at_loading) {
    static const size_t stacks[] = {4096, 1024, 8192};
    gpu_context *fresh = gpu_context_create(0);
    dpr_ctx *const usual = s->ctx;
    ASSERT_TRUE(fresh && gpu_context_push(fresh));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    for (size_t i = 0; i < LENGTH(stacks); i++) {
        EXPECT_TRUE(cudaDeviceSetLimit(cudaLimitStackSize, stacks[i]) == cudaSuccess);
        expect_trees(s, &large, i, 50);
        EXPECT_TRUE(!is_engine(s, "naive") || (s->report.launches > 3) == (stacks[i] > 1024));
    }
    dpr_ctx_destroy(s->ctx);
    s->ctx = usual;
    EXPECT_TRUE(gpu_context_pop() && gpu_context_destroy(fresh));
}

GPU_TEST(any_arena_gives_the_same_bits) {
    static const tree_shape small = {.deepest = 15, .chance = 90, .most = TREE_MOST};
    for (uint64_t arena = 1; arena <= 64; arena++) {
        s->options.arena_tasks = arena;
        expect_trees(s, &small, arena, arena < 3 ? arena : 3);
    }
    for (uint64_t arena = 100; arena < 400000; arena *= 8) {
        s->options.arena_tasks = arena;
        expect_trees(s, &large, arena, 90);
    }
}

/* Each root's thread saves its stack several times: all together far more often than there is room for at a time. */
static void saved_stacks_make_room_for_others(scene *s) {
    enum { CHAINS = 100000, LENGTH_OF_CHAIN = 1000 };
    static uint64_t roots[CHAINS], results[CHAINS];
    uint64_t wrong = 0;
    for (int i = 0; i < CHAINS; i++)
        roots[i] = LENGTH_OF_CHAIN;
    s->options.arena_tasks = CHAINS;
    s->options.max_pending = DPR_NO_LAUNCHES;
    EXPECT_STATUS(DPR_OK, chain_run(s->ctx, roots, CHAINS, NULL, results, &s->options, &s->report, NULL));
    for (int i = 0; i < CHAINS; i++)
        wrong += results[i] != LENGTH_OF_CHAIN + 1;
    EXPECT_EQ_U64(0, wrong);
    EXPECT_TRUE(s->report.serialised >= CHAINS);
}
ENGINE_TEST(naive, saved_stacks_make_room_for_others)

GPU_TEST(chains) {
    static const uint64_t lengths[] = {0, 1, 30, 31, 32, 33, 1000, 100000};
    for (size_t i = 0; i < 2 * LENGTH(lengths); i++) {
        const uint64_t root = lengths[i / 2];
        uint64_t result = 0;
        s->options.arena_tasks = i % 2 ? 3 : 0;
        ASSERT_STATUS(DPR_OK, chain_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
        EXPECT_EQ_U64(root + 1, result);
        EXPECT_EQ_U64(root, s->report.deepest);
        EXPECT_EQ_U64(root + 1, s->report.tasks);
    }
}

/* Deep, with tasks left at each level, which a full stack gives away. */
GPU_TEST(ladders) {
    static const uint64_t lengths[] = {1, 11, 12, 13, 300, 5000, 20000};
    for (size_t i = 0; i < 2 * LENGTH(lengths); i++) {
        const uint64_t roots[2] = {lengths[i / 2], lengths[i / 2]};
        uint64_t results[2] = {0, 0};
        s->options.arena_tasks = i % 2 ? 4 : 0;
        ASSERT_STATUS(DPR_OK, ladder_run(s->ctx, roots, 2, NULL, results, &s->options, &s->report, NULL));
        EXPECT_EQ_U64(2 * roots[0] + 1, results[0]);
        EXPECT_EQ_U64(results[0], results[1]);
        EXPECT_EQ_U64(2 * results[0], s->report.tasks);
    }
}

/* The costs of roots in host memory tell how many tasks there are, so that all runs but the first are sized for them.
 */
GPU_TEST(few_tasks) {
    enum { MOST = 33 };
    static const size_t counts[] = {1, 2, 8, 32, MOST};
    uint64_t roots[MOST], results[MOST], *to;
    ASSERT_TRUE(cudaMallocManaged((void **)&to, sizeof results, cudaMemAttachGlobal) == cudaSuccess);
    s->options.cutoff = DPR_NO_CUTOFF;
    for (uint64_t longest = 0; longest < 75; longest += longest < 35 ? 1 : 10)
        for (size_t i = 0; i < 4 * LENGTH(counts); i++) {
            const size_t n = counts[i / 4];
            uint64_t tasks = 0, *out = i % 4 == 3 ? to : results;
            memset(out, 0, sizeof results);
            for (size_t k = 0; k < n; k++) {
                roots[k] = longest - (longest < k ? longest : k);
                tasks += 2 * roots[k] + 1;
            }
            ASSERT_STATUS(DPR_OK, cut_ladder_run(s->ctx, roots, n, NULL, out, &s->options, &s->report, NULL));
            for (size_t k = 0; k < n; k++)
                EXPECT_EQ_U64(2 * roots[k] + 1, out[k]);
            EXPECT_EQ_U64(tasks, s->report.tasks);
            EXPECT_EQ_U64(longest, s->report.deepest);
        }
    (void)cudaFree(to);
}

GPU_TEST(device_memory_and_streams) {
    enum { ROOTS = 3000 };
    static uint64_t roots[ROOTS], results[ROOTS];
    uint64_t *from, *to;
    cudaStream_t stream;
    for (uint64_t i = 0; i < ROOTS; i++)
        roots[i] = i % 77;
    ASSERT_TRUE(cudaMalloc((void **)&from, sizeof roots) == cudaSuccess);
    ASSERT_TRUE(cudaMalloc((void **)&to, sizeof roots) == cudaSuccess);
    ASSERT_TRUE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT_TRUE(cudaMemcpyAsync(from, roots, sizeof roots, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    EXPECT_STATUS(DPR_OK, chain_run(s->ctx, from, ROOTS, NULL, to, &s->options, &s->report, stream));
    EXPECT_TRUE(cudaMemcpy(results, to, sizeof results, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (uint64_t i = 0; i < ROOTS; i++)
        EXPECT_EQ_U64(roots[i] + 1, results[i]);
    const char *engine = s->options.engine;
    s->options.engine = "cpu";
    EXPECT_STATUS(DPR_OK, chain_run(s->ctx, from, ROOTS, NULL, to, &s->options, &s->report, stream));
    s->options.engine = engine;
    ASSERT_TRUE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s->ctx, from, 1, NULL, to, &s->options, NULL, stream));
    cudaGraph_t graph;
    EXPECT_TRUE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    (void)cudaGraphDestroy(graph);
    (void)cudaStreamDestroy(stream);
    (void)cudaFree(from);
    (void)cudaFree(to);
}

GPU_TEST(folds) {
    static const size_t counts[] = {1, 33, 2000};
    for (uint64_t seed = 0; seed < 6; seed++) {
        const tree_shape shape = {
            .deepest = 1 + 4 * (uint32_t)seed, .chance = 60 + (uint32_t)seed, .most = 1 + (uint32_t)seed % TREE_MOST};
        expect_folds(s->ctx, &s->options, &s->report, &shape, seed, counts[seed % LENGTH(counts)]);
    }
    for (uint64_t arena = 20; arena < 400000; arena *= 100) {
        s->options.arena_tasks = arena;
        expect_folds(s->ctx, &s->options, &s->report, &large, arena, 5);
    }
}

/* The costs of few roots in host memory are known, and then tasks that cost little are left undivided for lanes. */
GPU_TEST(tasks_that_cost_little) {
    enum { MOST = 40 };
    static const size_t counts[] = {1, 7, MOST};
    static const uint64_t sizes[] = {1, 8000, 60000}, arenas[] = {0, MOST, 1000, 20000};
    for (size_t i = 0; i < LENGTH(counts) * LENGTH(sizes) * LENGTH(arenas); i++) {
        const size_t n = counts[i % LENGTH(counts)];
        const uint64_t size = sizes[i / LENGTH(counts) % LENGTH(sizes)];
        parts_task roots[MOST];
        tree_result joined[MOST];
        uint64_t sums[MOST], wrong = 0;
        for (size_t k = 0; k < n; k++)
            roots[k] = (parts_task){1000 * (uint64_t)i + k, k % 3 == 0 ? size : size / 100};
        s->options.arena_tasks = arenas[i / LENGTH(counts) / LENGTH(sizes)];
        ASSERT_STATUS(DPR_OK, parts_run(s->ctx, roots, n, NULL, joined, &s->options, &s->report, NULL));
        ASSERT_STATUS(DPR_OK, parts_sum_run(s->ctx, roots, n, NULL, sums, &s->options, &s->report, NULL));
        for (size_t k = 0; k < n; k++)
            wrong += !same(parts_reference(roots[k]), joined[k]) || parts_sum_reference(roots[k]) != sums[k];
        EXPECT_EQ_U64(0, wrong);
    }
}

GPU_TEST(tasks_that_serial_solves) {
    static const uint64_t cutoffs[] = {0, 1, 100, 1000, 2000, DPR_NO_CUTOFF};
    static const uint64_t tasks[] = {1991, 1999, 1801, 1, 1, 2001};
    for (size_t i = 0; i < 2 * LENGTH(cutoffs); i++) { /* the second time the library knows how many tasks there are */
        const uint64_t root = 1000;
        uint64_t result = 0;
        s->options.cutoff = cutoffs[i / 2];
        EXPECT_STATUS(DPR_OK, cut_ladder_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
        EXPECT_EQ_U64(2001, result);
        EXPECT_EQ_U64(tasks[i / 2], s->report.tasks);
    }
}

GPU_TEST(spans_of_time) {
    events seen = {0, 0};
    s->options.trace = note_event;
    s->options.trace_user = &seen;
    expect_trees(s, &large, 7, 50);
    EXPECT_TRUE(seen.count >= 2);
    EXPECT_EQ_U64(0, seen.wrong);
}

/* ---- Errors ---- */

/* A run of trees, by lanes or teams, in which divide() returns a wrong number at some depth. */
static void expect_wrong_number(scene *s, int teams, const tree_shape *shape) {
    enum { ROOTS = 300 };
    const size_t n = teams ? ROOTS / 20 : ROOTS;
    tree_task roots[ROOTS];
    static tree_result results[ROOTS], untouched[ROOTS];
    char text[32];
    for (size_t i = 0; i < n; i++) {
        roots[i] = (tree_task){i, 0, 0};
        results[i] = untouched[i] = (tree_result){77, 77};
    }
    EXPECT_STATUS(DPR_ERR_DIVIDE,
                  (teams ? team_tree_run : tree_run)(s->ctx, roots, n, shape, results, &s->options, NULL, NULL));
    (void)snprintf(text, sizeof text, "returned %d", shape->returned);
    EXPECT_CONTAINS(dpr_last_error(), text);
    EXPECT_EQ_BYTES(untouched, results, n * sizeof *results);
    expect_trees(s, &large, 3, 100);
}

GPU_TEST(wrong_numbers_of_children) {
    static const int32_t wrong[] = {-1, TREE_MOST + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < LENGTH(wrong); i++)
        for (uint32_t depth = 1; depth < 40; depth += 12) {
            tree_shape shape = large;
            shape.wrong = depth;
            shape.returned = wrong[i];
            expect_wrong_number(s, 0, &shape);
            if (i % 2)
                expect_wrong_number(s, 1, &shape);
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

/* Measuring leaves no nested launches pending, so graphs launch themselves afterwards. */
TEST(GpuRecursion, graphs_launch_themselves_after_measuring) {
    const uint64_t root = 100;
    uint64_t result;
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "graph");
    const dpr_recursion_call call = {.ctx = s->ctx};
    dpr_costs_measure_nested(&call);
    EXPECT_STATUS(DPR_OK, chain_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
    EXPECT_EQ_U64(101, result);
    EXPECT_EQ_U64(3, s->report.launches); /* the host would launch ten phases and more */
    tear_down(s);
}

/* ---- All at once ---- */

TEST(GpuRecursion, threads_at_once) {
    NEED_GPU();
    stress_recursions(0, NULL, gpu_stream_create);
}

/* Graphs that launch themselves and nested launches must not be in flight together (dp/apart.h). */
TEST(GpuRecursion, threads_with_graphs_and_nested_launches) {
    const uint64_t root = 100;
    uint64_t result;
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "graph");
    EXPECT_STATUS(DPR_OK, chain_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
    EXPECT_EQ_U64(3, s->report.launches); /* the graph launches itself: the host would launch ten phases and more */
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

/* ---- Runs that are enqueued ---- */

enum { ENQUEUED = 400 };

/* Trees as the roots of a run that is enqueued, and where it writes. */
typedef struct trees {
    scene *s;
    dpr_stream stream;
    dpr_memory memory;
    int teams; /* 1: by team_tree */
    size_t n;
    tree_task *roots;
    tree_result *out;
    dpr_recursion_outcome *outcome;
} trees;

/* No root is this deep, unless a test wants an error. */
enum { WRONG_DEPTH = 1000 };
static const tree_shape shape_to_enqueue = {
    .deepest = 25, .chance = 90, .most = TREE_MOST, .wrong = WRONG_DEPTH, .returned = -5};

static trees make_trees(scene *s, dpr_stream stream, dpr_memory memory, int teams) {
    const trees t = {s,
                     stream,
                     memory,
                     teams,
                     teams ? ENQUEUED / 20 : ENQUEUED,
                     gpu_alloc(memory, ENQUEUED * sizeof *t.roots),
                     gpu_alloc(memory, ENQUEUED * sizeof *t.out),
                     gpu_alloc(memory, sizeof *t.outcome)};
    EXPECT_THAT(t.roots && t.out && t.outcome, "%s", gpu_error());
    return t;
}

static void free_trees(const trees *t) {
    gpu_free(t->memory, t->roots);
    gpu_free(t->memory, t->out);
    gpu_free(t->memory, t->outcome);
}

static tree_task root_to_enqueue(uint64_t seed, size_t i) {
    return (tree_task){seed + 1000 * (uint64_t)i, 0, 0};
}

/* Other roots, and no results. With `depth` the last root has this depth. */
static void change_trees(const trees *t, uint64_t seed, uint32_t depth) {
    static tree_task roots[ENQUEUED];
    static tree_result none[ENQUEUED];
    const dpr_recursion_outcome untouched = {.status = 12345};
    for (size_t i = 0; i < t->n; i++) {
        roots[i] = root_to_enqueue(seed, i);
        none[i].nodes = 77;
    }
    roots[t->n - 1].depth = depth;
    EXPECT_TRUE(gpu_copy(t->roots, roots, t->n * sizeof *roots) && gpu_copy(t->out, none, t->n * sizeof *none)
                && gpu_copy(t->outcome, &untouched, sizeof untouched));
}

static dpr_status enqueue_trees(const trees *t) {
    return (t->teams ? team_tree_enqueue : tree_enqueue)(t->s->ctx, t->roots, t->n, &shape_to_enqueue, t->out,
                                                         &t->s->options, t->outcome, t->stream);
}

/* Checks what a run of the roots of change_trees() has written, when the work of its stream is done. */
static void expect_outcome(const trees *t, dpr_status status) {
    dpr_recursion_outcome outcome = {.status = DPR_ERR_CUDA};
    EXPECT_TRUE(gpu_stream_wait(t->stream));
    EXPECT_TRUE(gpu_copy(&outcome, t->outcome, sizeof outcome));
    EXPECT_STATUS(status, (t->teams ? team_tree_check : tree_check)(&outcome));
}

static void expect_trees_enqueued(const trees *t, uint64_t seed) {
    static tree_result results[ENQUEUED];
    dpr_recursion_outcome outcome = {.status = DPR_ERR_CUDA};
    uint64_t nodes = 0, wrong = 0;
    expect_outcome(t, DPR_OK);
    EXPECT_TRUE(gpu_copy(results, t->out, t->n * sizeof *results) && gpu_copy(&outcome, t->outcome, sizeof outcome));
    for (size_t i = 0; i < t->n; i++) {
        wrong += !same(tree_reference(&shape_to_enqueue, root_to_enqueue(seed, i)), results[i]);
        nodes += results[i].nodes;
    }
    EXPECT_EQ_U64(0, wrong);
    EXPECT_EQ_U64(nodes, outcome.tasks);
    EXPECT_TRUE(outcome.deepest <= shape_to_enqueue.deepest && outcome.handed_out > 0);
}

/* Checks that the run failed, and wrote no results. */
static void expect_error_enqueued(const trees *t, dpr_status status, const char *part) {
    static tree_result results[ENQUEUED];
    uint64_t written = 0;
    expect_outcome(t, status);
    EXPECT_CONTAINS(dpr_last_error(), part);
    EXPECT_TRUE(gpu_copy(results, t->out, t->n * sizeof *results));
    for (size_t i = 0; i < t->n; i++)
        written += results[i].nodes != 77;
    EXPECT_EQ_U64(0, written);
}

TEST(GpuRecursion, enqueued_in_any_stream_and_memory) {
    static const dpr_memory memories[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_MANAGED, DPR_MEMORY_PINNED};
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, NULL);
    const dpr_stream own = gpu_stream_create(), streams[] = {own, NULL, gpu_stream_per_thread()};
    for (size_t i = 0; i < 2 * LENGTH(streams) * LENGTH(memories); i++) {
        const trees t = make_trees(s, streams[i % LENGTH(streams)], memories[i / LENGTH(streams) % LENGTH(memories)],
                                   i >= LENGTH(streams) * LENGTH(memories));
        change_trees(&t, i, 0);
        EXPECT_STATUS(DPR_OK, enqueue_trees(&t));
        expect_trees_enqueued(&t, i);
        free_trees(&t);
    }
    EXPECT_TRUE(gpu_stream_destroy(own));
    tear_down(s);
}

/* Roots that one warp solves at once, small arenas that are full, and chains that fill stacks. */
TEST(GpuRecursion, enqueued_runs_of_all_sizes) {
    static const uint64_t roots[] = {0, 1, 20, 63, 64, 5000, 20000}, arenas[] = {0, 1, 3, 1000};
    scene with_gpu, *s = &with_gpu;
    NEED_GPU();
    set_up(s, "persistent");
    dpr_stream stream = gpu_stream_create();
    uint64_t *root = gpu_alloc(DPR_MEMORY_PINNED, sizeof *root), *result = gpu_alloc(DPR_MEMORY_PINNED, sizeof *result);
    dpr_recursion_outcome *outcome = gpu_alloc(DPR_MEMORY_PINNED, sizeof *outcome);
    ASSERT_TRUE(root && result && outcome);
    for (size_t i = 0; i < LENGTH(roots) * LENGTH(arenas); i++) {
        s->options.arena_tasks = arenas[i / LENGTH(roots)];
        *root = roots[i % LENGTH(roots)];
        *result = 0;
        EXPECT_STATUS(DPR_OK, ladder_enqueue(s->ctx, root, 1, NULL, result, &s->options, outcome, stream));
        EXPECT_TRUE(gpu_stream_wait(stream));
        EXPECT_STATUS(DPR_OK, ladder_check(outcome));
        EXPECT_EQ_U64(2 * *root + 1, *result);
        EXPECT_EQ_U64(*result, outcome->tasks);
        EXPECT_EQ_U64(*root, outcome->deepest);
    }
    EXPECT_STATUS(DPR_OK, ladder_enqueue(s->ctx, NULL, 0, NULL, NULL, NULL, outcome, stream));
    EXPECT_TRUE(gpu_stream_wait(stream));
    EXPECT_EQ_U64(0, outcome->tasks);
    gpu_free(DPR_MEMORY_PINNED, root);
    gpu_free(DPR_MEMORY_PINNED, result);
    gpu_free(DPR_MEMORY_PINNED, outcome);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    tear_down(s);
}

TEST(GpuRecursion, enqueued_in_several_streams_at_once) {
    enum { STREAMS = 6, RUNS = 20 };
    scene with_gpu, *s = &with_gpu;
    trees t[STREAMS];
    NEED_GPU();
    set_up(s, NULL);
    s->options.arena_tasks = 100000;
    for (int i = 0; i < STREAMS; i++)
        t[i] = make_trees(s, gpu_stream_create(), DPR_MEMORY_DEVICE, i % 2);
    for (uint64_t run = 0; run < RUNS; run++) {
        for (int i = 0; i < STREAMS; i++)
            change_trees(&t[i], 100 * run + (uint64_t)i, 0);
        for (int i = 0; i < STREAMS; i++)
            EXPECT_STATUS(DPR_OK, enqueue_trees(&t[i]));
        for (int i = 0; i < STREAMS; i++)
            expect_trees_enqueued(&t[i], 100 * run + (uint64_t)i);
    }
    for (int i = 0; i < STREAMS; i++) {
        free_trees(&t[i]);
        EXPECT_TRUE(gpu_stream_destroy(t[i].stream));
    }
    tear_down(s);
}

TEST(GpuRecursion, what_cannot_be_enqueued) {
    static const char *const others[] = {"cpu", "serial", "level", "graph", "naive", "host"};
    scene with_gpu, *s = &with_gpu;
    uint64_t root = 5, result = 9;
    dpr_recursion_outcome outcome = {.tasks = 9};
    NEED_GPU();
    set_up(s, NULL);
    dpr_stream stream = gpu_stream_create();
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, chain_enqueue(s->ctx, &root, 1, NULL, &result, &s->options, &outcome, stream));
    EXPECT_CONTAINS(dpr_last_error(), "in pageable memory");
    const trees t = make_trees(s, stream, DPR_MEMORY_DEVICE, 0);
    change_trees(&t, 1, 0);
    for (size_t i = 0; i < LENGTH(others); i++) {
        s->options.engine = others[i];
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, enqueue_trees(&t));
        EXPECT_CONTAINS(dpr_last_error(), "use engine \"persistent\"");
    }
    s->options.engine = NULL;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, tree_check(t.outcome));
    EXPECT_STATUS(DPR_OK, enqueue_trees(&t));
    expect_trees_enqueued(&t, 1);
    EXPECT_TRUE(result == 9 && outcome.tasks == 9);
    free_trees(&t);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    tear_down(s);
}

/* ---- Runs in captured graphs ---- */

/* Captures a run of trees. */
static gpu_graph *capture_trees(const trees *t) {
    EXPECT_TRUE(gpu_capture_begin(t->stream));
    const dpr_status status = enqueue_trees(t);
    gpu_graph *graph = gpu_capture_end(t->stream);
    EXPECT_THAT(status == DPR_OK && graph, "%s: %s; %s", dpr_status_name(status), dpr_last_error(), gpu_error());
    return status == DPR_OK ? graph : NULL;
}

/* A launch of the graph with roots of its own; and between launches runs of others, with fewer threads in a block. */
static void expect_launch(const trees *t, gpu_graph *graph, uint64_t seed) {
    change_trees(t, seed, 0);
    EXPECT_TRUE(gpu_graph_launch(graph, t->stream));
    expect_trees_enqueued(t, seed);
}

/* For engines that can be captured. */
static void captured_graphs_are_launched_again(scene *s) {
    dpr_stream stream = gpu_stream_create();
    for (int teams = 0; teams < 2; teams++) {
        const trees t = make_trees(s, stream, DPR_MEMORY_DEVICE, teams);
        gpu_graph *graph = capture_trees(&t);
        for (uint64_t seed = 0; seed < 20 && graph; seed++) {
            expect_launch(&t, graph, seed);
            if (seed % 5 == 0)
                expect_trees_by(s, teams, &shape_to_enqueue, seed, 1 + seed);
        }
        gpu_graph_destroy(graph);
        free_trees(&t);
    }
    EXPECT_TRUE(gpu_stream_destroy(stream));
}
ENGINE_TEST(persistent, captured_graphs_are_launched_again)
ENGINE_TEST(host, captured_graphs_are_launched_again)

/* Launches follow each other without a wait; the outcome is the last one's. */
static void launches_of_a_graph_follow_each_other(scene *s) {
    enum { LAUNCHES = 30 };
    const trees t = make_trees(s, gpu_stream_create(), DPR_MEMORY_DEVICE, 0);
    gpu_graph *graph = capture_trees(&t);
    change_trees(&t, 3, 0);
    for (int i = 0; i < LAUNCHES && graph; i++)
        EXPECT_TRUE(gpu_graph_launch(graph, t.stream));
    expect_trees_enqueued(&t, 3);
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(t.stream));
    free_trees(&t);
}
ENGINE_TEST(persistent, launches_of_a_graph_follow_each_other)
ENGINE_TEST(host, launches_of_a_graph_follow_each_other)

/* Graphs of several streams, launched at the same time. */
static void captured_graphs_run_at_once(scene *s) {
    enum { GRAPHS = 4, LAUNCHES = 20 };
    trees t[GRAPHS];
    gpu_graph *graphs[GRAPHS];
    s->options.arena_tasks = 100000;
    for (int i = 0; i < GRAPHS; i++) {
        t[i] = make_trees(s, gpu_stream_create(), DPR_MEMORY_DEVICE, i % 2);
        graphs[i] = capture_trees(&t[i]);
    }
    for (uint64_t launch = 0; launch < LAUNCHES && !test_failed(); launch++) {
        for (int i = 0; i < GRAPHS; i++)
            change_trees(&t[i], 100 * launch + (uint64_t)i, 0);
        for (int i = 0; i < GRAPHS; i++)
            EXPECT_TRUE(gpu_graph_launch(graphs[i], t[i].stream));
        for (int i = 0; i < GRAPHS; i++)
            expect_trees_enqueued(&t[i], 100 * launch + (uint64_t)i);
    }
    for (int i = 0; i < GRAPHS; i++) {
        gpu_graph_destroy(graphs[i]);
        EXPECT_TRUE(gpu_stream_destroy(t[i].stream));
        free_trees(&t[i]);
    }
}
ENGINE_TEST(persistent, captured_graphs_run_at_once)
ENGINE_TEST(host, captured_graphs_run_at_once)

/* A root whose depth in the tree is that where divide() returns a wrong number. */
static void an_error_of_a_launch_is_not_the_next_ones(scene *s) {
    dpr_stream stream = gpu_stream_create();
    for (int teams = 0; teams < 2; teams++) {
        const trees t = make_trees(s, stream, DPR_MEMORY_DEVICE, teams);
        gpu_graph *graph = capture_trees(&t);
        for (uint64_t seed = 0; seed < 10 && graph; seed++) {
            change_trees(&t, seed, WRONG_DEPTH);
            EXPECT_TRUE(gpu_graph_launch(graph, t.stream));
            expect_error_enqueued(&t, DPR_ERR_DIVIDE, "returned -5, and must return 0 to 6");
            expect_launch(&t, graph, seed);
        }
        gpu_graph_destroy(graph);
        free_trees(&t);
    }
    EXPECT_TRUE(gpu_stream_destroy(stream));
}
ENGINE_TEST(persistent, an_error_of_a_launch_is_not_the_next_ones)
ENGINE_TEST(host, an_error_of_a_launch_is_not_the_next_ones)

typedef dpr_status (*enqueue_one)(dpr_ctx *, const uint64_t *, size_t, const void *, uint64_t *,
                                  const dpr_recursion_options *, dpr_recursion_outcome *, dpr_stream);

/* Launches a graph of a run of one root, first with a root that reaches a limit, then with another. */
static void expect_limit(scene *s, enqueue_one enqueue, dpr_status (*check)(const dpr_recursion_outcome *),
                         uint64_t beyond, uint64_t within, uint64_t expected, const char *part) {
    dpr_stream stream = gpu_stream_create();
    uint64_t *root = gpu_alloc(DPR_MEMORY_PINNED, sizeof *root), *result = gpu_alloc(DPR_MEMORY_PINNED, sizeof *result);
    dpr_recursion_outcome *outcome = gpu_alloc(DPR_MEMORY_PINNED, sizeof *outcome);
    EXPECT_TRUE(gpu_capture_begin(stream));
    EXPECT_STATUS(DPR_OK, enqueue(s->ctx, root, 1, NULL, result, &s->options, outcome, stream));
    gpu_graph *graph = gpu_capture_end(stream);
    for (int i = 0; i < 3 && EXPECT_TRUE(graph != NULL); i++) {
        *root = beyond;
        *result = 5;
        EXPECT_TRUE(gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
        EXPECT_STATUS(DPR_ERR_LIMIT, check(outcome));
        EXPECT_CONTAINS(dpr_last_error(), part);
        EXPECT_EQ_U64(5, *result);
        *root = within;
        EXPECT_TRUE(gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
        EXPECT_STATUS(DPR_OK, check(outcome));
        EXPECT_EQ_U64(expected, *result);
    }
    gpu_graph_destroy(graph);
    gpu_free(DPR_MEMORY_PINNED, root);
    gpu_free(DPR_MEMORY_PINNED, result);
    gpu_free(DPR_MEMORY_PINNED, outcome);
    EXPECT_TRUE(gpu_stream_destroy(stream));
}

/* Each launch has the whole time. */
static void limits_of_captured_runs(scene *s) {
    s->options.max_depth = 1000;
    expect_limit(s, chain_enqueue, chain_check, 1001, 1000, 1001, "deeper than options->max_depth");
    s->options.max_depth = 0;
    s->options.max_seconds = 0.2;
    expect_limit(s, binary_enqueue, binary_check, BINARY_MOST, 10, 2047, "\"binary\" takes longer than its limit");
    s->options.arena_tasks = 16;
    expect_limit(s, binary_enqueue, binary_check, BINARY_MOST, 10, 2047, "\"binary\" takes longer than its limit");
}
ENGINE_TEST(persistent, limits_of_captured_runs)
ENGINE_TEST(host, limits_of_captured_runs)

/* Folds of trees in a graph, by lanes and by teams. */
static void captured_folds(scene *s) {
    enum { TREES = 300 };
    static uint64_t sums[TREES];
    dpr_stream stream = gpu_stream_create();
    tree_task *roots = gpu_alloc(DPR_MEMORY_PINNED, TREES * sizeof *roots);
    uint64_t *out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof sums);
    dpr_recursion_outcome *outcome = gpu_alloc(DPR_MEMORY_PINNED, sizeof *outcome);
    for (int teams = 0; teams < 2; teams++) {
        EXPECT_TRUE(gpu_capture_begin(stream));
        EXPECT_STATUS(DPR_OK, (teams ? team_fold_enqueue : fold_DPR_SUM_enqueue)(
                                  s->ctx, roots, TREES, &shape_to_enqueue, out, &s->options, outcome, stream));
        gpu_graph *graph = gpu_capture_end(stream);
        for (uint64_t seed = 0; seed < 5 && EXPECT_TRUE(graph != NULL); seed++) {
            uint64_t wrong = 0;
            for (size_t i = 0; i < TREES; i++)
                roots[i] = root_to_enqueue(seed, i);
            EXPECT_TRUE(gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
            EXPECT_STATUS(DPR_OK, team_fold_check(outcome));
            EXPECT_TRUE(gpu_copy(sums, out, sizeof sums));
            for (size_t i = 0; i < TREES; i++)
                wrong += !is_folded(&shape_to_enqueue, roots[i], DPR_SUM, (int64_t)sums[i]);
            EXPECT_EQ_U64(0, wrong);
        }
        gpu_graph_destroy(graph);
    }
    gpu_free(DPR_MEMORY_PINNED, roots);
    gpu_free(DPR_MEMORY_DEVICE, out);
    gpu_free(DPR_MEMORY_PINNED, outcome);
    EXPECT_TRUE(gpu_stream_destroy(stream));
}
ENGINE_TEST(persistent, captured_folds)
ENGINE_TEST(host, captured_folds)

typedef struct loops {
    trees of;
    gpu_graph *graph;
} loops;

/* Launches a graph again and again. */
static void *launch_meanwhile(void *user) {
    const loops *l = user;
    const double end = test_now() + stress_seconds();
    for (uint64_t seed = 0; test_now() < end && !test_failed(); seed++)
        expect_launch(&l->of, l->graph, seed % 50);
    return NULL;
}

/* Launches of a graph of engine `host`, and runs of engines in other threads. The graph is captured first, because a
 * capture forbids calls that the other threads begin with. */
static void stress_beside_loops(const char *engines) {
    scene with_gpu, *s = &with_gpu;
    pthread_t thread;
    set_up(s, "host");
    s->options.arena_tasks = 100000;
    loops l = {make_trees(s, gpu_stream_create(), DPR_MEMORY_DEVICE, 0), NULL};
    l.graph = capture_trees(&l.of);
    ASSERT_TRUE(l.graph != NULL);
    ASSERT_EQ_I64(0, pthread_create(&thread, NULL, launch_meanwhile, &l));
    stress_recursions(0, engines, gpu_stream_create);
    EXPECT_EQ_I64(0, pthread_join(thread, NULL));
    gpu_graph_destroy(l.graph);
    EXPECT_TRUE(gpu_stream_destroy(l.of.stream));
    free_trees(&l.of);
    tear_down(s);
}

TEST(GpuRecursion, captured_loops_beside_persistent_runs) {
    NEED_GPU();
    stress_beside_loops("persistent");
}

/* A loop of a graph is no graph that launches itself (dp/apart.h): nested launches may be in flight with it. */
TEST(GpuRecursion, captured_loops_beside_nested_launches) {
    NEED_GPU();
    stress_beside_loops("naive level");
}

TEST(GpuRecursion, captured_loops_beside_graphs_that_launch_themselves) {
    NEED_GPU();
    stress_beside_loops("graph");
}

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
