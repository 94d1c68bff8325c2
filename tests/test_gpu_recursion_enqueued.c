/* Recursions that are enqueued in streams of the GPU, and captured in graphs. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "gpu_memory.h"
#include "gpu_recursion_scene.h"
#include "recursion_stress.h"

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
