/* Theoretical occupancy, by the CUDA toolkit's own calculation (cuda_occupancy.h). The types are there in every build,
 * dpr_occupancy_of() in those with CUDA. */
#ifndef DPR_HOST_PLAN_OCCUPANCY_H
#define DPR_HOST_PLAN_OCCUPANCY_H

#include "strategy.h"

typedef struct dpr_occupancy {
    int blocks_per_sm;
    double fraction;   /* resident threads over max_threads_per_sm */
    const char *limit; /* what allows no further block: "threads", "registers", "shared memory", "blocks" */
} dpr_occupancy;

/* All fields 0 and `limit` "does not fit" for a block that the device cannot run. */
dpr_occupancy dpr_occupancy_of(const dpr_gpu_caps *gpu, dpr_kernel_use use);

#endif
