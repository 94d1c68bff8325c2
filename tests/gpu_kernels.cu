#include "gpu_kernels.h"

#include <cuda_runtime.h>

#include "args.h"

namespace {

__device__ uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ void spend(uint64_t time) {
    const uint64_t start = nanoseconds();
    while (nanoseconds() - start < time) {}
}

__global__ void be_busy(uint64_t time) {
    spend(time);
}

__global__ void fault_after(gpu_fault fault, uint64_t wait, int *nowhere) {
    spend(wait);
    if (fault == GPU_TRAPS)
        __trap();
    *static_cast<volatile int *>(nowhere) = 1;
}

__global__ void nothing(const __grid_constant__ dpr_kernel_args) {}

} // namespace

int gpu_fault_later(gpu_fault fault, double seconds, dpr_stream stream) {
    int *const nowhere = reinterpret_cast<int *>(uintptr_t{16});
    fault_after<<<1, 1, 0, stream>>>(fault, static_cast<uint64_t>(seconds * 1e9), nowhere);
    return static_cast<int>(cudaGetLastError());
}

int gpu_be_busy(double seconds, dpr_stream stream) {
    be_busy<<<1, 1, 0, stream>>>(static_cast<uint64_t>(seconds * 1e9));
    return static_cast<int>(cudaGetLastError());
}

int gpu_be_full(double seconds, dpr_stream stream) {
    constexpr int threads = 1024;
    int device = 0, sms = 0, resident = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&resident, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    const int blocks = sms * (resident / threads);
    be_busy<<<blocks, threads, 0, stream>>>(static_cast<uint64_t>(seconds * 1e9));
    return static_cast<int>(cudaGetLastError());
}

const void *gpu_empty_kernel(void) {
    return reinterpret_cast<const void *>(nothing);
}
