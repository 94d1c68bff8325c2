/* What the host side of strategies with nested launches has in common. */
#ifndef DPR_DP_NESTED_HOST_H
#define DPR_DP_NESTED_HOST_H

#include "cost.h"
#include "launch.h"
#include "nested.h"

/* Their kernels. */
extern const dpr_module dpr_dp_module;
extern dpr_admit dpr_dp_admit;

/* Leaves of dp.tree have a multiple of so many vectors of 16 bytes: whole tiles for each thread, whatever the pair. */
enum { DPR_TREE_UNIT = 8 * DPR_NESTED_THREADS };

/* What is assumed before it is asked or measured: the limits that CUDA sets at first, and what an H200 takes where
 * `pending` launches may be pending. */
enum { DPR_FIRST_PENDING = 2048, DPR_FIRST_DEPTH = 24, DPR_PENDING_BYTES = 9385 };
static inline int64_t dpr_nested_bytes(int64_t pending) {
    return 92000000 + DPR_PENDING_BYTES * pending;
}
static inline void dpr_nested_assume(dpr_gpu_caps *gpu, int64_t pending) {
    gpu->pending_launches = pending;
    gpu->nesting_depth = DPR_FIRST_DEPTH;
    gpu->nested_level_ns = 11000;
    gpu->nested_tail_ns = 14500 + pending / 14;
    gpu->nested_first_ns = 3700;
    gpu->nested_fan_ns = 400;
    gpu->nested_bytes = dpr_nested_bytes(pending);
    gpu->nested_times_measured = gpu->nested_bytes_measured = 0;
}

/* A level, from the start of a launched kernel to that of the next; what the first launch from a kernel of the host's
 * takes longer; one of many that blocks make for themselves. */
static inline double dpr_level_seconds(const dpr_gpu_caps *gpu) {
    return 1e-9 * (double)gpu->nested_level_ns;
}
static inline double dpr_tail_seconds(const dpr_gpu_caps *gpu) {
    return 1e-9 * (double)gpu->nested_tail_ns;
}
static inline double dpr_first_nested_seconds(const dpr_gpu_caps *gpu) {
    return 1e-9 * (double)gpu->nested_first_ns;
}
static inline double dpr_fan_seconds(const dpr_gpu_caps *gpu) {
    return 1e-9 * (double)gpu->nested_fan_ns;
}

/* Why nested launches do not work there, or NULL. */
static inline const char *dpr_nested_refusal(const dpr_gpu_caps *gpu) {
    if (gpu->mps)
        return "kernels cannot launch kernels under MPS";
    if (gpu->cc_major < 7)
        return "needs compute capability 7.0";
    return gpu->memory_pools ? NULL : "needs memory that is allocated in stream order";
}

/* The same of a strategy. Unless it is asked for by name, no more memory is taken for nested launches than a 64th of
 * the device's: they save microseconds at best, and what they take stays taken. */
static inline const char *dpr_nested_probe(const dpr_key *key, const dpr_gpu_caps *gpu) {
    enum { SHARE = 64 };
    if (!key->f.strategy && gpu->nested_bytes > gpu->memory_bytes / SHARE)
        return "its code and pool of launches take more than a 64th of the device's memory: ask for it by name";
    return dpr_nested_refusal(gpu);
}

/* Limits that do not depend on what the device holds: blocks need not be resident together. */
static inline dpr_shape dpr_nested_shape(const dpr_key *key, const dpr_caps *caps, int threads, int max_blocks,
                                         double level_seconds) {
    return (dpr_shape){.threads = threads,
                       .max_blocks = max_blocks,
                       .scratch_bytes = DPR_SCRATCH_BYTES,
                       .cached_bytes = (size_t)caps->gpu.l2_bytes,
                       .max_depth = key->f.depth ? key->f.depth : (int)caps->gpu.nesting_depth,
                       .launch_seconds = level_seconds,
                       .measured = (int)caps->gpu.nested_times_measured};
}

static inline dpr_nested_args dpr_nested_args_of(const dpr_launch *launch, const dpr_run *run) {
    return (dpr_nested_args){.run = dpr_args_of(launch, run),
                             .work = run->work,
                             .report = run->report,
                             .launches = run->launches,
                             .max_depth = (uint32_t)run->shape.max_depth};
}

#endif
