#include "recursion_stress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "recursion_policies.h"
#include "support.h"

enum { THREADS = 4, MOST_ROOTS = 200, MOST_ENGINES = 16 };

typedef struct worker {
    dpr_ctx *ctx;
    dpr_stream stream;
    uint64_t state; /* of the random numbers */
    const char *engines[MOST_ENGINES];
    size_t engine_count;
    tree_task roots[MOST_ROOTS];
} worker;

/* What is run. */
typedef struct job {
    tree_shape shape;
    size_t n; /* roots */
    dpr_recursion_options options;
} job;

double stress_seconds(void) {
    const char *text = getenv("DPR_TEST_SECONDS");
    return text ? strtod(text, NULL) : 3;
}

/* From 0 to n-1. */
static uint64_t random_below(worker *w, uint64_t n) {
    w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's generator */
    return (w->state >> 33) % n;
}

static const char *random_engine(worker *w) {
    return w->engines[random_below(w, w->engine_count)];
}

static job random_job(worker *w) {
    const dpr_recursion_options init = DPR_RECURSION_OPTIONS_INIT;
    static const int pending[] = {0, 0, DPR_NO_LAUNCHES, 1, 40};
    job j = {.shape = {.deepest = 1 + (uint32_t)random_below(w, 30),
                       .chance = 60 + (uint32_t)random_below(w, 35),
                       .most = 1 + (uint32_t)random_below(w, TREE_MOST)},
             .n = 1 + random_below(w, MOST_ROOTS),
             .options = init};
    j.options.engine = random_engine(w);
    j.options.threads = (int)random_below(w, 4);
    j.options.max_pending = pending[random_below(w, LENGTH(pending))];
    j.options.allow_nested = (int)random_below(w, 2);
    if (random_below(w, 2) == 0)
        j.options.arena_tasks = j.n + random_below(w, UINT64_C(1) << random_below(w, 18));
    for (size_t i = 0; i < j.n; i++)
        w->roots[i] = (tree_task){random_below(w, UINT32_MAX), 0, 0};
    return j;
}

/* ---- Kinds of recursions ---- */

static void run_trees(worker *w, const job *j, int teams) {
    tree_result results[MOST_ROOTS];
    uint64_t wrong = 0;
    EXPECT_STATUS(DPR_OK, (teams ? team_tree_run : tree_run)(w->ctx, w->roots, j->n, &j->shape, results, &j->options,
                                                             NULL, w->stream));
    for (size_t i = 0; i < j->n; i++) {
        const tree_result known = tree_reference(&j->shape, w->roots[i]);
        wrong += known.nodes != results[i].nodes || known.order != results[i].order;
    }
    EXPECT_EQ_U64(0, wrong);
}

static void run_lanes(worker *w, const job *j) {
    run_trees(w, j, 0);
}

static void run_teams(worker *w, const job *j) {
    run_trees(w, j, 1);
}

static void run_folds(worker *w, const job *j) {
    uint64_t results[MOST_ROOTS], wrong = 0;
    EXPECT_STATUS(DPR_OK, fold_DPR_SUM_run(w->ctx, w->roots, j->n, &j->shape, results, &j->options, NULL, w->stream));
    for (size_t i = 0; i < j->n; i++)
        wrong += !is_folded(&j->shape, w->roots[i], DPR_SUM, (int64_t)results[i]);
    EXPECT_EQ_U64(0, wrong);
}

/* Deep recursions, with tasks left at every level. */
static void run_ladders(worker *w, const job *j) {
    const uint64_t root = random_below(w, 3000);
    uint64_t result = 0;
    EXPECT_STATUS(DPR_OK, ladder_run(w->ctx, &root, 1, NULL, &result, &j->options, NULL, w->stream));
    EXPECT_EQ_U64(2 * root + 1, result);
}

/* A recursion that fails, between those that do not. */
static void run_wrong(worker *w, const job *j) {
    const uint64_t root = 1;
    uint64_t result = 7;
    dpr_recursion_options options = j->options;
    options.max_depth = 20;
    EXPECT_STATUS(DPR_ERR_LIMIT, endless_run(w->ctx, &root, 1, NULL, &result, &options, NULL, w->stream));
    EXPECT_EQ_U64(7, result);
}

static void *work(void *argument) {
    static void (*const kinds[])(worker *, const job *) = {run_lanes, run_lanes,   run_teams,
                                                           run_folds, run_ladders, run_wrong};
    worker *w = argument;
    const double end = test_now() + stress_seconds();
    do {
        const job j = random_job(w);
        kinds[random_below(w, LENGTH(kinds))](w, &j);
    } while (test_now() < end && !test_failed());
    return NULL;
}

/* ---- Threads ---- */

/* Lists the engines among `names` that can run in the context. If that is NULL, all that can, and NULL for the
 * library's choice. */
static void find_engines(worker *w, const char *names) {
    const uint64_t root = 1;
    if (!names)
        w->engines[w->engine_count++] = NULL;
    for (size_t i = 0; dpr_engine_name(i) && w->engine_count < MOST_ENGINES; i++) {
        dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
        uint64_t result;
        options.engine = dpr_engine_name(i);
        if ((!names || strstr(names, options.engine))
            && chain_run(w->ctx, &root, 1, NULL, &result, &options, NULL, NULL) == DPR_OK)
            w->engines[w->engine_count++] = options.engine;
    }
}

void stress_recursions(int device, const char *engines, dpr_stream (*make_stream)(void)) {
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    worker first = {.engine_count = 0};
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(device, &first.ctx));
    find_engines(&first, engines);
    ASSERT_TRUE(first.engine_count >= (engines ? 1 : 3));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = first;
        workers[i].state = (uint64_t)i;
        workers[i].stream = make_stream ? make_stream() : NULL;
        ASSERT_EQ_I64(0, pthread_create(&threads[i], NULL, work, &workers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT_EQ_I64(0, pthread_join(threads[i], NULL));
    dpr_ctx_destroy(first.ctx);
}
