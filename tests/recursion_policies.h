/* Recursions for tests. recursion_policies.cu has their policies. */
#ifndef DPR_TESTS_RECURSION_POLICIES_H
#define DPR_TESTS_RECURSION_POLICIES_H

#include <dpr.h>

#ifdef __cplusplus
extern "C" {
#else
#include <stdalign.h>
#endif

/* A tree that a hash describes: `seed` of a node makes those of its children. Its types are aligned as strictly as a
 * policy's may be. */
typedef struct tree_task {
    alignas(16) uint64_t seed;
    uint32_t depth, reserved;
} tree_task;

typedef struct tree_shape {
    alignas(16) uint32_t deepest; /* nodes at this depth have no children */
    uint32_t chance;              /* of 256, that another node has any */
    uint32_t most;                /* children: 1 to TREE_MOST */
    uint32_t wrong;               /* not 0: divide() returns `returned` for nodes at this depth */
    int32_t returned, reserved;
} tree_shape;

/* What is computed of a tree: the number of nodes, and a number whose bits depend on the order of the children. */
typedef struct tree_result {
    alignas(16) uint64_t nodes;
    double order;
} tree_result;

enum { TREE_MOST = 6 };
DPR_RECURSION_DECLARE(tree, tree_task, tree_shape, tree_result);

/* The same, by teams. */
DPR_RECURSION_DECLARE(team_tree, tree_task, tree_shape, tree_result);

/* The same, by a plain recursive function. */
tree_result tree_reference(const tree_shape *shape, tree_task task);

/* Task n > 0 has the only child n - 1; the result is the number of tasks. */
DPR_RECURSION_DECLARE(chain, uint64_t, void, uint64_t);
DPR_RECURSION_DECLARE(other_chain, uint64_t, void, uint64_t); /* the same, of which no other runs are known */

/* The same, with kernels for devices of compute capability 7.5 alone (other_architecture.cu). */
DPR_RECURSION_DECLARE(elsewhere, uint64_t, void, uint64_t);

/* Task n > 0 has the children n - 1 and 0; the result is the number of tasks. */
DPR_RECURSION_DECLARE(ladder, uint64_t, void, uint64_t);

/* The same, whose tasks serial() can solve: it costs n. By itself it does for those of at most 5. */
DPR_RECURSION_DECLARE(cut_ladder, uint64_t, void, uint64_t);

/* What folding the nodes of a tree gives, by one operation each, of a value that fold_value() gives. */
#define FOLDS(X)                                                                                                       \
    X(DPR_SUM, uint64_t)                                                                                               \
    X(DPR_PROD, uint32_t)                                                                                              \
    X(DPR_MIN, int64_t)                                                                                                \
    X(DPR_MAX, int32_t)                                                                                                \
    X(DPR_BAND, uint32_t)                                                                                              \
    X(DPR_BOR, int64_t)                                                                                                \
    X(DPR_BXOR, int32_t)
#define FOLD_DECLARE(OP, RESULT) DPR_RECURSION_DECLARE(fold_##OP, tree_task, tree_shape, RESULT);
FOLDS(FOLD_DECLARE)
#undef FOLD_DECLARE
DPR_RECURSION_DECLARE(team_fold, tree_task, tree_shape, uint64_t);

/* Whether the folded result of a tree, cast to int64_t, is right. `op` is an entry of FOLDS. */
int is_folded(const tree_shape *shape, tree_task root, dpr_op op, int64_t result);

/* Task n > 0 has the children n - 1 and n / 2. Word i of a result is i in a base case; else it is three times the first
 * child's word plus the second's. A result is larger than the shared memory of a block. */
enum { BULK = 100000 };
typedef struct bulk_result {
    uint32_t at[BULK];
} bulk_result;
DPR_RECURSION_DECLARE(bulk, uint64_t, void, bulk_result);

/* A task of several units is divided into 2 to PARTS_MOST parts of uneven sizes, which a hash describes, and costs as
 * many units as it has. `order` depends on the order of the children. parts_sum folds a value of each unit. */
typedef struct parts_task {
    uint64_t seed, size;
} parts_task;

enum { PARTS_MOST = 4 };
DPR_RECURSION_DECLARE(parts, parts_task, void, tree_result);
DPR_RECURSION_DECLARE(parts_sum, parts_task, void, uint64_t);

/* The same, by plain recursive functions. */
tree_result parts_reference(parts_task task);
uint64_t parts_sum_reference(parts_task task);

/* Task n > 0 has n children 0, at most STAR_MOST; the result is the number of tasks. */
enum { STAR_MOST = 1000000 };
DPR_RECURSION_DECLARE(star, uint64_t, void, uint64_t);

/* Task n > 0 is divided into two tasks n - 1; the result is the number of tasks. With BINARY_MOST they are too many for
 * any machine. */
enum { BINARY_MOST = 62 };
DPR_RECURSION_DECLARE(binary, uint64_t, void, uint64_t);

/* A task is a base case that does not return on the GPU until *flag, in pinned memory, is not 0, but after ten seconds
 * at the latest. The result is the task. */
typedef struct stuck_data {
    const int *flag;
} stuck_data;
DPR_RECURSION_DECLARE(stuck, uint64_t, stuck_data, uint64_t);

/* Each task is divided into two, for ever. */
DPR_RECURSION_DECLARE(endless, uint64_t, void, uint64_t);

/* A chain of `links` tasks, and below it a tree of `levels` levels in which each task is divided into two. On the CPU
 * base cases and joining results take time. The result is the number of base cases. */
typedef struct slow_task {
    uint32_t links, levels;
} slow_task;
typedef struct slow_times {
    uint32_t base_us, combine_us; /* microseconds */
} slow_times;
DPR_RECURSION_DECLARE(slow, slow_task, slow_times, uint64_t);

#ifdef __cplusplus
}
#endif

#endif
