/* Results of recursions on the GPU, by each of its engines, against plain recursive functions. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "gpu_recursion_scene.h"

GPU_TEST(random_trees) {
    static const size_t counts[] = {1, 2, 31, 33, 700, 5000};
    for (uint64_t seed = 0; seed < 60; seed++) {
        const tree_shape shape = {.deepest = 1 + (uint32_t)seed * 7 % 30,
                                  .chance = 60 + (uint32_t)seed % 40,
                                  .most = 1 + (uint32_t)seed % TREE_MOST};
        expect_trees(s, &shape, seed, counts[seed % LENGTH(counts)]);
    }
}

GPU_TEST(large_trees) {
    for (uint64_t seed = 0; seed < 5; seed++)
        expect_trees(s, &large, seed, 100);
}

/* Few of their tasks are known at a time, so that lanes of a warp take tasks from each other. */
GPU_TEST(deep_trees) {
    static const tree_shape deep = {.deepest = 4000, .chance = 72, .most = TREE_MOST};
    static const uint64_t arenas[] = {0, 20000, 1000, 300, 40};
    for (size_t i = 0; i < LENGTH(arenas); i++) {
        const size_t few = 40, many = arenas[i] == few ? few : 300;
        s->options.arena_tasks = arenas[i];
        expect_trees(s, &deep, i, i % 2 ? many : few);
        expect_folds(s->ctx, &s->options, &s->report, &deep, i, i % 2 ? few : many);
    }
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

/* Whether launched kernels lack stack for the frames of a large task or result, with the limit that CUDA sets by
 * default: 1024 bytes, or more once the host has launched a kernel that needs more. Kernels that the host launches have
 * as much as they need, so a refusal of their engines is a failure. */
static int lacks_stack(const scene *s, const random_policy *p) {
    enum { SMALL = 40 }; /* the kernels of such policies need less than 1024 bytes */
    _Alignas(16) char root[256], result[256];
    if (p->task_bytes + p->result_bytes <= SMALL || is_engine(s, "persistent") || is_engine(s, "host"))
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

/* CUDA would lose the context if kernels launched others with less stack than when their code was loaded, here in a
 * CUDA context of its own. So nothing is launched, until there is enough again. */
GPU_TEST(less_stack_than_at_loading) {
    static const size_t stacks[] = {4096, 1024, 8192};
    gpu_context *fresh = gpu_context_create(0);
    dpr_ctx *const usual = s->ctx, *there = NULL;
    ASSERT_TRUE(fresh && gpu_context_push(fresh));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &there));
    s->ctx = there;
    for (size_t i = 0; i < LENGTH(stacks); i++) {
        EXPECT_TRUE(cudaDeviceSetLimit(cudaLimitStackSize, stacks[i]) == cudaSuccess);
        expect_trees(s, &large, i, 50);
        EXPECT_TRUE(!is_engine(s, "naive") || (s->report.launches > 3) == (stacks[i] > 1024));
    }
    s->ctx = usual;
    dpr_ctx_destroy(there);
    EXPECT_TRUE(gpu_context_pop() && gpu_context_destroy(fresh));
}

/* What an arena of a hundred tasks has no room for is counted. */
GPU_TEST(any_arena_gives_the_same_bits) {
    static const tree_shape small = {.deepest = 15, .chance = 90, .most = TREE_MOST};
    for (uint64_t arena = 1; arena <= 64; arena++) {
        const size_t n = arena < 3 ? arena : 3;
        s->options.arena_tasks = arena;
        expect_trees(s, &small, arena, n);
        expect_folds(s->ctx, &s->options, &s->report, &small, arena, n);
    }
    for (uint64_t arena = 100; arena < 400000; arena *= 8)
        for (int teams = 0; teams < 2; teams++) {
            s->options.arena_tasks = arena;
            expect_trees_by(s, teams, &large, arena, teams ? 2 : 90);
            EXPECT_TRUE(arena > 100 || s->report.serialised > 0);
        }
}

/* Runs of every kind, short enough for compute-sanitizer. */
static const tree_shape little = {.deepest = 6, .chance = 100, .most = TREE_MOST};

GPU_TEST(short_runs) {
    static const uint64_t arenas[] = {0, 40, 3};
    for (size_t i = 0; i < 2 * LENGTH(arenas); i++) {
        s->options.arena_tasks = arenas[i / 2];
        expect_trees_by(s, (int)i % 2, &little, i, 3);
    }
}
GPU_TEST(short_folds) {
    for (s->options.arena_tasks = 3; s->options.arena_tasks <= 40; s->options.arena_tasks += 37)
        expect_folds(s->ctx, &s->options, &s->report, &little, 7, 3);
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

/* Level k of a binary tree has 2^k tasks. */
GPU_TEST(levels_are_counted) {
    const uint64_t root = 20;
    uint64_t result = 0;
    EXPECT_STATUS(DPR_OK, binary_run(s->ctx, &root, 1, NULL, &result, &s->options, &s->report, NULL));
    EXPECT_EQ_U64((UINT64_C(2) << root) - 1, result);
    if (is_engine(s, "naive")) {
        EXPECT_EQ_U64(0, s->report.levels);
        EXPECT_EQ_U64(0, s->report.widest);
    } else if (is_engine(s, "persistent")) { /* which divides levels again when few lanes have tasks */
        EXPECT_TRUE(s->report.levels >= 10 && s->report.widest >= 1024);
    } else {
        EXPECT_TRUE(s->report.levels >= 10);
        EXPECT_EQ_U64(UINT64_C(1) << s->report.levels, s->report.widest);
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

/* Roots in host memory are asked what they cost, and then tasks that cost little are left undivided for lanes. */
GPU_TEST(tasks_that_cost_little) {
    enum { MOST = 200 };
    static const size_t counts[] = {1, 40, MOST};
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
