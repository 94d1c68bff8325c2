/* The GPU strategies of the registry that reduce one array. */
#ifndef DPR_TESTS_GPU_STRATEGIES_H
#define DPR_TESTS_GPU_STRATEGIES_H

#include "plan/caps_read.h"
#include "plan/planner.h"
#include "plan/registry.h"

/* GPU strategy number i, from 0; NULL past the last one. */
static inline const dpr_strategy *gpu_strategy_entry(size_t i) {
    for (size_t s = 0; s < dpr_strategy_count(); s++)
        if (dpr_strategies[s]->side == DPR_ON_GPU && !dpr_strategies[s]->segmented && !dpr_strategies[s]->strided
            && i-- == 0)
            return dpr_strategies[s];
    return NULL;
}

/* Its name; NULL past the last one, which is to leave the choice to the planner. */
static inline const char *gpu_strategy(size_t i) {
    const dpr_strategy *strategy = gpu_strategy_entry(i);
    return strategy ? strategy->name : NULL;
}

static inline size_t gpu_strategy_count(void) {
    size_t count = 0;
    while (gpu_strategy_entry(count))
        count++;
    return count;
}

/* What device 0 can do, asked once, as asking takes longer than most reductions; NULL if it cannot be told. By one
 * thread at a time. */
static inline const dpr_caps *gpu_caps(void) {
    static dpr_caps caps;
    static int known;
    known = known || dpr_caps_read(0, &caps) == DPR_OK;
    return known ? &caps : NULL;
}

/* Whether device 0 can run the pair, which has a meaning, on an array in `memory` with GPU strategy number i in blocks
 * of `block` threads (0: its own choice); past the last one it can. */
static inline int gpu_strategy_takes(size_t i, dpr_op op, dpr_dtype dtype, dpr_memory memory, int block) {
    const dpr_strategy *strategy = gpu_strategy_entry(i);
    dpr_key key = {.words = {0}};
    if (!strategy)
        return 1;
    key.f.op = DPR_ROW(op);
    key.f.dtype = DPR_ROW(dtype);
    key.f.in_memory = (uint8_t)memory;
    while (block > 1 << key.f.block)
        key.f.block++;
    key.f.strategy = UINT8_MAX;                                     /* asked for by name */
    return !gpu_caps() || !dpr_refusal(strategy, &key, gpu_caps()); /* without capabilities the run will fail */
}

/* The same for device memory and blocks of its own choice. */
static inline int gpu_strategy_runs(size_t i, dpr_op op, dpr_dtype dtype) {
    return gpu_strategy_takes(i, op, dtype, DPR_MEMORY_DEVICE, 0);
}

#endif
