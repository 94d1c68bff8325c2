#include "recursion_checks.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

void expect_folds(dpr_ctx *ctx, const dpr_recursion_options *options, dpr_recursion_report *report,
                  const tree_shape *shape, uint64_t seed, size_t n) {
    tree_task *roots = calloc(n, sizeof *roots);
    uint64_t wrong = 0, tasks = 0;
    for (size_t i = 0; i < n; i++) {
        roots[i] = (tree_task){seed + 1000 * (uint64_t)i, 0, 0};
        tasks += tree_reference(shape, roots[i]).nodes;
    }
#define EXPECT_FOLD(OP, RESULT, NAME)                                                                                  \
    {                                                                                                                  \
        RESULT *results = calloc(n, sizeof *results);                                                                  \
        EXPECT_STATUS(DPR_OK, NAME##_run(ctx, roots, n, shape, results, options, report, NULL));                       \
        EXPECT_EQ_U64(tasks, report->tasks);                                                                           \
        for (size_t i = 0; i < n; i++)                                                                                 \
            wrong += !is_folded(shape, roots[i], OP, (int64_t)results[i]);                                             \
        free(results);                                                                                                 \
    }
#define EXPECT_EACH(OP, RESULT) EXPECT_FOLD(OP, RESULT, fold_##OP)
    FOLDS(EXPECT_EACH)
    EXPECT_FOLD(DPR_SUM, uint64_t, team_fold)
    EXPECT_EQ_U64(0, wrong);
    free(roots);
}

void expect_random_trees(const random_policy *p, dpr_ctx *ctx, const dpr_recursion_options *options,
                         dpr_recursion_report *report, uint64_t seed, size_t n) {
    enum { UNTOUCHED = 0xa5, BEHIND = 64 };
    const size_t bytes = n * p->result_bytes + BEHIND;
    char *roots = malloc(n * p->task_bytes), *results = malloc(bytes), *expected = malloc(bytes);
    random_counts counts = {0, 0};
    memset(results, UNTOUCHED, bytes);
    memset(expected, UNTOUCHED, bytes);
    for (size_t i = 0; i < n; i++) {
        char *root = roots + i * p->task_bytes;
        p->make_root(seed + 1000 * (uint64_t)i, root);
        p->solve(root, options->cutoff == DPR_NO_CUTOFF, expected + i * p->result_bytes, &counts);
    }
    EXPECT_STATUS(DPR_OK, dpr_recursion_run(ctx, p->recursion, roots, n, NULL, results, options, report, NULL));
    EXPECT_THAT(memcmp(expected, results, bytes) == 0, "%s: wrong results of %zu roots, seed %llu, arena of %llu tasks",
                p->name, n, (unsigned long long)seed, (unsigned long long)options->arena_tasks);
    EXPECT_EQ_U64(counts.tasks, report->tasks);
    EXPECT_EQ_U64(counts.deepest, report->deepest);
    free(roots);
    free(results);
    free(expected);
}

/* Word i is i times this. */
static uint32_t bulk_factor(uint64_t task) {
    return task == 0 ? 1 : 3 * bulk_factor(task - 1) + bulk_factor(task / 2);
}

void expect_large_result(dpr_ctx *ctx, const dpr_recursion_options *options, dpr_recursion_report *report) {
    const uint64_t root = 9;
    const uint32_t factor = bulk_factor(root);
    bulk_result *result = calloc(1, sizeof *result);
    uint64_t wrong = 0;
    EXPECT_STATUS(DPR_OK, bulk_run(ctx, &root, 1, NULL, result, options, report, NULL));
    for (uint32_t i = 0; i < BULK; i++)
        wrong += result->at[i] != i * factor;
    EXPECT_EQ_U64(0, wrong);
    EXPECT_EQ_U64(root, report->deepest);
    free(result);
}

void note_event(void *user, const dpr_recursion_event *e) {
    events *seen = user;
    const int is_named = strcmp(e->what, "divide") == 0 || strcmp(e->what, "solve") == 0;
    seen->count++;
    seen->wrong += !is_named || e->worker < 0 || e->begin < 0 || e->end < e->begin || e->end > 100;
}
