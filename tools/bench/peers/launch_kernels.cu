#include <cuda/atomic>

#include "peer_kernels.h"

namespace {

__global__ void post_kernel(uint64_t *to) {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    if (to)
        cuda::atomic_ref<uint64_t, cuda::thread_scope_system>(*to).store(1, cuda::memory_order_relaxed);
}

} // namespace

const void *peers_post_kernel() {
    return reinterpret_cast<const void *>(post_kernel);
}
