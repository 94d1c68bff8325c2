/* Launching a reduction kernel from a strategy. */
#ifndef DPR_CORE_LAUNCH_H
#define DPR_CORE_LAUNCH_H

#include <cuda_runtime_api.h>

#include "args.h"

/* Launches `kernel` with `blocks` blocks of the run's shape. Returns the cudaError_t. */
static inline int dpr_launch(const dpr_kernel *kernel, unsigned blocks, const dpr_run *run) {
    dpr_kernel_args args = {run->in, run->out, run->count, run->scratch, run->init};
    void *params[] = {&args};
    cudaLaunchConfig_t config = {};
    config.gridDim.x = blocks;
    config.gridDim.y = config.gridDim.z = 1;
    config.blockDim.x = (unsigned)kernel->threads;
    config.blockDim.y = config.blockDim.z = 1;
    config.dynamicSmemBytes = (size_t)kernel->shared_bytes;
    config.stream = run->stream;
    return (int)cudaLaunchKernelExC(&config, kernel->entry, params);
}

#endif
