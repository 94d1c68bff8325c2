/* What strategies with nested launches share on the host. */
#ifndef DPR_DP_NESTED_HOST_H
#define DPR_DP_NESTED_HOST_H

#include "apart.h"
#include "cost.h"
#include "launch.h"
#include "nested_args.h"

/* The module that has their kernels, and its admission. */
extern const dpr_module dpr_dp_module;
extern dpr_admit dpr_dp_admit;

/* Leaves of dp.tree have a multiple of this many vectors of 16 bytes: whole tiles for each thread, for every pair. */
enum { DPR_TREE_UNIT = 8 * DPR_NESTED_THREADS };

/* Limits and costs that are assumed until they are asked for or measured: CUDA's default limits, and the times and
 * bytes of an H200 whose launch pool has `pending` places. */
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

/* Seconds for one level of launches, from the start of a launched kernel to the start of the next (fire-and-forget, and
 * tail launches); how much longer the first launch from a kernel of the host's takes; and one of many launches that
 * blocks make each for itself. */
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

/* Returns why nested launches do not work on the GPU, or NULL. */
static inline const char *dpr_nested_refusal(const dpr_gpu_caps *gpu) {
    if (gpu->mps)
        return "needs kernels that launch kernels, which MPS does not permit";
    if (gpu->cc_major < 7)
        return "needs compute capability 7.0";
    return NULL;
}

/* Returns why a strategy with nested launches cannot run, or NULL. A strategy that was not asked for by name may take
 * no more than a 64th of the device's memory for nested launches: they save microseconds at best, and the memory stays
 * taken. */
static inline const char *dpr_nested_probe(const dpr_key *key, const dpr_gpu_caps *gpu) {
    enum { SHARE = 64 };
    if (!key->f.strategy && gpu->nested_bytes > gpu->memory_bytes / SHARE)
        return "its code and pool of launches take more than a 64th of the device's memory: ask for it by name";
    return dpr_nested_refusal(gpu);
}

/* Launch limits. They do not depend on how many blocks the device holds, because the blocks need not be resident
 * together. */
static inline dpr_launch_limits dpr_nested_limits(const dpr_key *key, const dpr_caps *caps, int threads, int max_blocks,
                                                  double level_seconds) {
    return (dpr_launch_limits){.threads = threads,
                               .max_blocks = max_blocks,
                               .cached_bytes = (size_t)caps->gpu.l2_bytes,
                               .max_depth = key->f.depth ? key->f.depth : (int)caps->gpu.nesting_depth,
                               .launch_seconds = level_seconds,
                               .measured = (int)caps->gpu.nested_times_measured};
}

static inline dpr_nested_args dpr_nested_args_of(const dpr_launch *launch, const dpr_run *run) {
    dpr_nested_args args = {.run = dpr_args_of(launch, run),
                            .report = run->report,
                            .report_bytes = (uint32_t)dpr_report_bytes(run),
                            .launches = run->is_apart ? run->launches : dpr_apart_launches(run->launches),
                            .max_depth = (uint32_t)run->limits.max_depth};
    args.run.workspace = (char *)run->workspace + DPR_REPORT_BYTES;
    return args;
}

#endif
