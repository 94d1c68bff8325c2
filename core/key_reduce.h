/* Reducing runs of equal consecutive keys in one pass (key_reduce.cu), where there is room for a result of each key.
 * The kernel is launched through a dpr_strategy that is not in the registry. */
#ifndef DPR_CORE_KEY_REDUCE_H
#define DPR_CORE_KEY_REDUCE_H

#include "args.h"

/* The run, and its further arrays in device memory. */
typedef struct dpr_keyed_run {
    dpr_run run;      /* the first member. `in` has `count` elements, at least 1 and fewer than 2^32, in device memory;
                         `out` receives the number of runs, a uint64_t */
    const void *keys; /* `count` keys */
    void *unique;     /* NULL, or receives the key of each run */
    void *results;    /* receives the result of each run */
    uint32_t key_bytes;
} dpr_keyed_run;

/* The kernel's arguments. */
typedef struct dpr_keyed_args {
    dpr_kernel_args run;
    const void *keys;
    void *unique, *results;
    uint32_t key_bytes;
    uint32_t tiles;      /* the array is divided into so many tiles, each of which a block reduces */
    uint32_t clears;     /* 1: the launch only zeroes the tiles' records */
    uint32_t in_scratch; /* 1: `places` is in scratch memory, which the launch leaves zero; 0: in workspace */
    uint64_t *places;    /* the records of tiles (key_lookback.cuh) */
} dpr_keyed_args;

#endif
