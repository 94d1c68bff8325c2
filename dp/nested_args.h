/* Arguments of kernels that launch kernels, in addition to those of every reduction kernel. */
#ifndef DPR_DP_NESTED_ARGS_H
#define DPR_DP_NESTED_ARGS_H

#include "args.h"
#include "levels.h"

/* The workspace of a run begins with room for a report, which is used if kernels do not write the report to where the
 * caller wants it: 256 bytes, so that what follows is aligned as the workspace is. */
enum { DPR_REPORT_BYTES = 256 };

/* One struct serves all of these kernels, because kernels launch only one kernel, whatever it is to do
 * (launch_table.cuh). */
typedef struct dpr_nested_args {
    dpr_kernel_args run;
    dpr_launch_report *report; /* where the run's last kernel writes the counters of nested launches */
    void *go_on;               /* device function that a launched kernel calls with its arguments, or NULL */
    void *slot;                /* for a launcher's grid its dpr_launch_slot; otherwise NULL */
    uint32_t report_bytes;     /* of the counters, which that kernel writes */
    uint32_t launches;         /* most launches that the run's kernels may make */
    uint32_t depth;            /* depth of this kernel; a kernel that the host launches has 0 */
    uint32_t max_depth;        /* a kernel at this depth launches none */

    /* For dp.recursive, dp.nosync and dp.recursive2. */
    uint32_t tiles; /* tiles of the array, which is the number of blocks of the first kernel */
    uint32_t block; /* most words of a tile */
    uint32_t tile;  /* for a kernel of one block: its tile */
    uint32_t words; /* words that are left of a tile; for fold_tiles(): 1 if it reads returned values, otherwise 0 */
    uint32_t last_words; /* dp.recursive2: words that are left of the last tile (all other tiles have `words`) */
    uint32_t filled;     /* dp.recursive2: tiles of the level */
    uint32_t chain;      /* launches that were taken for the tile, or for the level, and that are not made yet */
    uint32_t pair;       /* dp.recursive2, whose levels have no go_on: number of operation, type and NaN policy */

    /* For dp.tree. */
    uint32_t level;    /* level of this kernel; leaves have 0 */
    uint32_t children; /* number of children of all nodes of the level together */
    uint64_t first;    /* number of partial results in the workspace before those of the level's children */
    dpr_tree tree;
} dpr_nested_args;

/* Bytes of the largest partial result, and of the largest among pairs that demonstrations take. Words of dp.recursive
 * for each tile in which launches return their values: one for each depth to which the largest block is halved. */
enum { DPR_PARTIAL_BYTES = 16, DPR_RECURSIVE_BYTES = 8, DPR_RECURSIVE_DEPTHS = 12 };

/* Most threads a block, and bytes of dynamic shared memory (a partial result of each warp), of every launched kernel
 * and of dp.tree's kernels. */
enum { DPR_NESTED_THREADS = 512, DPR_FOLD_BYTES = DPR_NESTED_THREADS / 32 * DPR_PARTIAL_BYTES };

#endif
