/* What the host side of strategies with nested launches has in common. */
#ifndef DPR_DP_NESTED_HOST_H
#define DPR_DP_NESTED_HOST_H

#include "cost.h"
#include "launch.h"
#include "nested.h"

/* Their kernels. */
extern const dpr_module dpr_dp_module;

/* The first launch from a kernel that the host launches takes so much longer than one that follows, on an H200. */
#define DPR_FIRST_NESTED_SECONDS 6e-6

/* From the end of a grid to the start of one that is launched to follow it: 11.3 us on an H200 where 2048 launches may
 * be pending, and 27 where 65 536 may. */
static inline double dpr_tail_seconds(const dpr_gpu_caps *gpu) {
    return 10.8e-6 + 0.25e-9 * (double)gpu->pending_launches;
}

/* One of many launches that blocks make for themselves. */
#define DPR_FORGOTTEN_SECONDS 0.9e-6

/* Why nested launches do not work there, or NULL. */
static inline const char *dpr_nested_refusal(const dpr_gpu_caps *gpu) {
    if (gpu->mps)
        return "kernels cannot launch kernels under MPS";
    if (gpu->cc_major < 7)
        return "needs compute capability 7.0";
    return gpu->memory_pools ? NULL : "needs memory that is allocated in stream order";
}

/* Limits that do not depend on what the device holds: blocks need not be resident together. */
static inline dpr_shape dpr_nested_shape(const dpr_key *key, const dpr_caps *caps, int threads, int max_blocks) {
    return (dpr_shape){.threads = threads,
                       .max_blocks = max_blocks,
                       .scratch_bytes = DPR_SCRATCH_BYTES,
                       .cached_bytes = (size_t)caps->gpu.l2_bytes,
                       .max_depth = key->f.depth ? key->f.depth : (int)caps->gpu.nesting_depth,
                       .launch_seconds = dpr_tail_seconds(&caps->gpu)};
}

static inline dpr_nested_args dpr_nested_args_of(const dpr_launch *launch, const dpr_run *run) {
    return (dpr_nested_args){.run = dpr_args_of(launch, run),
                             .work = run->work,
                             .report = run->report,
                             .credits = run->credits,
                             .max_depth = (uint32_t)run->shape.max_depth};
}

/* Enqueues a run's last kernel, which gives its credits back. If that fails, once more for the credits alone: result
 * and report go to scratch memory, which is cleaned after a failure. If that fails too, they are lost to the process.
 */
static inline int dpr_nested_end(const dpr_run *run, const dpr_launch *launch, dpr_nested_args *args) {
    const int error = run->enqueue(run, launch, &args->run);
    if (error) {
        args->run.out = (char *)run->scratch + DPR_SCRATCH_BYTES / 2;
        args->report = args->run.out;
        args->run.tag = 0;
        (void)run->enqueue(run, launch, &args->run);
    }
    return error;
}

#endif
