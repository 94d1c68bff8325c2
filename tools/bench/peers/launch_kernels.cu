#include <cuda/atomic>

#include "launch.h"

namespace {

__device__ void wait_for_work_before() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

__global__ void empty_kernel() {
    wait_for_work_before();
}

__global__ void post_kernel(uint64_t *to, uint64_t value) {
    wait_for_work_before();
    cuda::atomic_ref<uint64_t, cuda::thread_scope_system>(*to).store(value, cuda::memory_order_relaxed);
}

} // namespace

extern "C" const void *peers_empty_kernel() {
    return reinterpret_cast<const void *>(empty_kernel);
}

extern "C" const void *peers_post_kernel() {
    return reinterpret_cast<const void *>(post_kernel);
}
