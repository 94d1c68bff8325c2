/* Theoretical occupancy, by the CUDA toolkit's own calculation (cuda_occupancy.h). */
#ifndef DPR_HOST_PLAN_OCCUPANCY_H
#define DPR_HOST_PLAN_OCCUPANCY_H

#include "strategy.h"

typedef struct dpr_occupancy {
    int blocks_per_sm;
    double fraction;   /* resident threads of an SM / max_threads_per_sm */
    const char *limit; /* the resource that runs out first: "threads", "registers", "shared memory", "blocks" */
} dpr_occupancy;

/* How many blocks an SM holds. If the device cannot run the block, the numbers are 0 and `limit` is "does not fit"; so
 * they are in a build without CUDA, which has no kernels. */
dpr_occupancy dpr_occupancy_of(const dpr_gpu_caps *gpu, dpr_kernel_use use);

#endif
