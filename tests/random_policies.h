/* Recursions for tests whose trees a hash describes, by policies that differ in most_children, in the sizes and
 * alignments of tasks and results, and in what functions they have. random_policies.cu has the policies. */
#ifndef DPR_TESTS_RANDOM_POLICIES_H
#define DPR_TESTS_RANDOM_POLICIES_H

#include <dpr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What dpr_recursion_report says of a run. */
typedef struct random_counts {
    uint64_t tasks, deepest;
} random_counts;

typedef struct random_policy {
    const char *name;
    const dpr_recursion *recursion;
    size_t most_children, task_bytes, result_bytes, slot_bytes; /* a slot has a task or a result */
    int teams, serial;                                          /* 1: the policy has teams, or serial() */
    /* Makes a root. */
    void (*make_root)(uint64_t seed, void *task);
    /* The result of a root, by a plain recursive function. Adds to the counts, as those of a run without a cutoff if
     * `whole` is 1. Every byte of a task and of a result counts for the bits of the result. */
    void (*solve)(const void *root, int whole, void *result, random_counts *counts);
} random_policy;

/* Policy i; NULL after the last. */
const random_policy *random_policy_at(size_t i);

#ifdef __cplusplus
}
#endif

#endif
