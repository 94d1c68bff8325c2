/* Checks of recursions that tests of the CPU and of the GPU share. */
#ifndef DPR_TESTS_RECURSION_CHECKS_H
#define DPR_TESTS_RECURSION_CHECKS_H

#include "random_policies.h"
#include "recursion_policies.h"

/* With 90 of 256 and at most 6 children a tree grows until the limit of its depth. */
static const tree_shape large = {.deepest = 45, .chance = 90, .most = TREE_MOST};

static inline int same(tree_result a, tree_result b) {
    return a.nodes == b.nodes && a.order == b.order;
}

/* Folds the nodes of `n` trees by each operation, and by teams, and compares the results and the number of tasks with
 * plain recursive functions. */
void expect_folds(dpr_ctx *ctx, const dpr_recursion_options *options, dpr_recursion_report *report,
                  const tree_shape *shape, uint64_t seed, size_t n);

/* Solves `n` roots of a random policy in one run, and compares the results, the number of tasks and the greatest depth
 * with those of a plain recursive function. Nothing behind the results may change. */
void expect_random_trees(const random_policy *p, dpr_ctx *ctx, const dpr_recursion_options *options,
                         dpr_recursion_report *report, uint64_t seed, size_t n);

/* Solves one task whose result has hundreds of thousands of bytes. */
void expect_large_result(dpr_ctx *ctx, const dpr_recursion_options *options, dpr_recursion_report *report);

/* Counts events, and checks them. */
typedef struct events {
    uint64_t count, wrong;
} events;

/* dpr_recursion_options.trace; `user` is an events. */
void note_event(void *user, const dpr_recursion_event *e);

#endif
