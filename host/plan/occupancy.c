#include "occupancy.h"

#include <cuda_runtime_api.h>
/* The calculation needs the runtime's headers before it. */
#include <cuda_occupancy.h>

static cudaOccDeviceProp properties_of(const dpr_gpu_caps *gpu) {
    return (cudaOccDeviceProp){
        .computeMajor = (int)gpu->cc_major,
        .computeMinor = (int)gpu->cc_minor,
        .maxThreadsPerBlock = (int)gpu->max_threads_per_block,
        .maxThreadsPerMultiprocessor = (int)gpu->max_threads_per_sm,
        .regsPerBlock = (int)gpu->registers_per_block,
        .regsPerMultiprocessor = (int)gpu->registers_per_sm,
        .warpSize = (int)gpu->warp_size,
        .sharedMemPerBlock = (size_t)gpu->shared_per_block,
        .sharedMemPerMultiprocessor = (size_t)gpu->shared_per_sm,
        .numSms = (int)gpu->sm_count,
        .sharedMemPerBlockOptin = (size_t)gpu->shared_per_block_optin,
        .reservedSharedMemPerBlock = (size_t)gpu->shared_reserved_per_block,
    };
}

static const char *limit_of(unsigned factors) {
    if (factors & OCC_LIMIT_WARPS)
        return "threads";
    if (factors & OCC_LIMIT_REGISTERS)
        return "registers";
    if (factors & OCC_LIMIT_SHARED_MEMORY)
        return "shared memory";
    return "blocks";
}

dpr_occupancy dpr_occupancy_of(const dpr_gpu_caps *gpu, dpr_kernel_use use) {
    const dpr_occupancy none = {0, 0.0, "does not fit"};
    if (use.threads < 1 || use.threads > gpu->max_threads_per_block || use.registers < 0 || use.shared_bytes < 0
        || use.shared_bytes > gpu->shared_per_block_optin || gpu->max_threads_per_sm < 1)
        return none;
    const cudaOccDeviceProp properties = properties_of(gpu);
    const cudaOccFuncAttributes attributes = {
        .maxThreadsPerBlock = (int)gpu->max_threads_per_block,
        .numRegs = use.registers,
        .sharedSizeBytes = (size_t)use.shared_bytes,
        .partitionedGCConfig = PARTITIONED_GC_OFF,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = (size_t)gpu->shared_per_block_optin,
        .numBlockBarriers = 1,
    };
    const cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_NONE, .carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, use.threads, 0)
        != CUDA_OCC_SUCCESS)
        return none;
    int blocks = result.activeBlocksPerMultiprocessor;
    unsigned factors = result.limitingFactors;
    /* The calculation has a table of resident blocks by architecture; a captured machine may say otherwise. */
    if (gpu->max_blocks_per_sm > 0 && blocks > gpu->max_blocks_per_sm) {
        blocks = (int)gpu->max_blocks_per_sm;
        factors = OCC_LIMIT_BLOCKS;
    }
    if (blocks < 1)
        return none;
    const double resident = (double)blocks * (double)use.threads;
    return (dpr_occupancy){blocks, resident / (double)gpu->max_threads_per_sm, limit_of(factors)};
}
