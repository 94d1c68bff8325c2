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

bool has_programmatic_launch() {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess
           && cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

template <class... Arguments> int launch(dpr_stream stream, void (*kernel)(Arguments...), Arguments... arguments) {
    static const bool programmatic = has_programmatic_launch();
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 1;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = programmatic;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

} // namespace

extern "C" int peers_launch_empty(dpr_stream stream) {
    return launch(stream, empty_kernel);
}

extern "C" int peers_launch_post(uint64_t *to, uint64_t value, dpr_stream stream) {
    return launch(stream, post_kernel, to, value);
}
