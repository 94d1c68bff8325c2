/* What kernels that launch kernels take, beside what every reduction kernel does. */
#ifndef DPR_DP_NESTED_H
#define DPR_DP_NESTED_H

#include "args.h"
#include "forms.h"

/* One struct for all of them: kernels launch one kernel alone, whatever that is to go on with (nested.cuh). */
typedef struct dpr_nested_args {
    dpr_kernel_args run;
    void *work;         /* the run's work memory, as many bytes as the strategy's work_bytes() says */
    dpr_nested *report; /* where the run's last kernel says what launches came to */
    void *go_on;        /* of a launched kernel: the device function that it calls with its arguments, or NULL */
    void *slot;         /* of a nest's grid, the dpr_nest_slot; else NULL */
    uint32_t launches;  /* that the run's kernels may make, at most */
    uint32_t depth;     /* of this kernel: the host's has 0 */
    uint32_t max_depth; /* a kernel at this depth launches none */

    /* Of the forms of the book. */
    uint32_t tiles;      /* of the array, and blocks of the first kernel */
    uint32_t block;      /* words of a tile, at most */
    uint32_t tile;       /* of a kernel of one block: the tile it is for */
    uint32_t words;      /* and how many words of it are left */
    uint32_t last_words; /* of a level of dp.recursive2, `words` being for the tiles before: those of the last tile */
    uint32_t filled;     /* of such a level: the tiles that it is for */
    uint32_t chain;      /* launches that are left of those that were taken for the tile, or for the level */
    uint32_t pair;       /* of a launched level of dp.recursive2, which has no go_on: operation, type and NaN policy */

    /* Of the tree. */
    uint32_t level;    /* of this kernel: that of the leaves is 0 */
    uint32_t children; /* of its nodes, altogether */
    uint64_t first;    /* in work memory, partial results before those of its children */
    dpr_tree tree;
} dpr_nested_args;

/* Bytes of the largest partial result, and of that of a pair that demonstrations take; words of dp.recursive in which
 * the launches for a tile return their values: one for each depth, for halvings of the largest block. */
enum { DPR_PARTIAL_BYTES = 16, DPR_BOOK_BYTES = 8, DPR_BOOK_DEPTHS = 12 };

/* Of every launched kernel, and of those of the tree: threads a block, at most, and dynamic shared memory, a partial
 * result of each warp. */
enum { DPR_NESTED_THREADS = 512, DPR_FOLD_BYTES = DPR_NESTED_THREADS / 32 * DPR_PARTIAL_BYTES };

#endif
