#include "kernels.h"

namespace {

constexpr int read_threads = 256;
constexpr unsigned read_blocks = 1024;

/* Four loads in flight a thread, which is enough to fill L2 at the memory's rate. */
__global__ void __launch_bounds__(read_threads) read_kernel(const uint4 *data, size_t count, uint32_t *sink) {
    const size_t step = static_cast<size_t>(gridDim.x) * read_threads;
    uint32_t mixed = 0;
#pragma unroll 4
    for (size_t i = static_cast<size_t>(blockIdx.x) * read_threads + threadIdx.x; i < count; i += step) {
        const uint4 x = data[i];
        mixed |= x.x ^ x.y ^ x.z ^ x.w;
    }
    /* Always false for the zeros that are read, which the compiler does not know. */
    if (mixed == 0x9E3779B9)
        *sink = mixed;
}

/* Words, and the bytes that are left. */
__global__ void __launch_bounds__(read_threads)
    compare_kernel(const unsigned char *a, const unsigned char *b, size_t bytes, uint32_t *differs) {
    const size_t first = static_cast<size_t>(blockIdx.x) * read_threads + threadIdx.x, words = bytes / sizeof(uint32_t);
    const size_t step = static_cast<size_t>(gridDim.x) * read_threads;
    const auto *const words_of_a = reinterpret_cast<const uint32_t *>(a);
    const auto *const words_of_b = reinterpret_cast<const uint32_t *>(b);
    uint32_t odd = 0;
    for (size_t i = first; i < words; i += step)
        odd |= words_of_a[i] ^ words_of_b[i];
    for (size_t i = words * sizeof(uint32_t) + first; i < bytes; i += step)
        odd |= a[i] ^ b[i];
    if (odd)
        *differs = 1;
}

__device__ uint64_t device_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void clock_kernel(uint64_t cycles, uint64_t *out) {
    const uint64_t begin_ns = device_ns();
    const long long begin = clock64();
    uint64_t passed;
    do
        passed = static_cast<uint64_t>(clock64() - begin);
    while (passed < cycles);
    out[0] = passed;
    out[1] = device_ns() - begin_ns;
}

/* As large as the arguments of many kernels. */
struct arguments {
    uint64_t words[16];
};

__global__ void empty_kernel(const __grid_constant__ arguments) {}

} // namespace

int bench_launch_read(const void *data, size_t bytes, uint32_t *sink, dpr_stream stream) {
    read_kernel<<<read_blocks, read_threads, 0, stream>>>(static_cast<const uint4 *>(data), bytes / sizeof(uint4),
                                                          sink);
    return static_cast<int>(cudaGetLastError());
}

int bench_launch_compare(const void *a, const void *b, size_t bytes, uint32_t *differs, dpr_stream stream) {
    const size_t words = bytes / sizeof(uint32_t) + 1, wanted = (words + read_threads - 1) / read_threads;
    const auto blocks = static_cast<unsigned>(wanted < read_blocks ? wanted : read_blocks);
    compare_kernel<<<blocks, read_threads, 0, stream>>>(static_cast<const unsigned char *>(a),
                                                        static_cast<const unsigned char *>(b), bytes, differs);
    return static_cast<int>(cudaGetLastError());
}

int bench_launch_nothing(int programmatic, dpr_stream stream) {
    arguments none = {};
    void *parameters[] = {&none};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = programmatic ? 1 : 0;
    return static_cast<int>(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(empty_kernel), parameters));
}

int bench_launch_clock(uint64_t cycles, uint64_t *cycles_and_ns, dpr_stream stream) {
    clock_kernel<<<1, 1, 0, stream>>>(cycles, cycles_and_ns);
    return static_cast<int>(cudaGetLastError());
}
