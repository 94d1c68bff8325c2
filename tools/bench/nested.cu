/* Kernels that launch kernels, and do nothing else. The one that is launched is always the same, as devices may hang
 * where launches of several are pending. */
#include "nested_kernels.h"

namespace {

__device__ cudaStream_t stream_of(bench_nested_stream stream) {
    return stream == BENCH_FORGET ? cudaStreamFireAndForget : stream == BENCH_TAIL ? cudaStreamTailLaunch : nullptr;
}

/* Whether the launch just made succeeded. */
__device__ bool is_launched(bench_account *account) {
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        atomicCAS(&account->error, 0, static_cast<int>(error));
    return error == cudaSuccess;
}

} // namespace

extern "C" __global__ void bench_nested_chain(bench_chain_args args) {
    if (args.left == 0) {
        atomicAdd(&args.account->ran, args.adds);
        return;
    }
    args.left--;
    bench_nested_chain<<<1, 1, 0, stream_of(args.stream)>>>(args);
    (void)is_launched(args.account);
}

extern "C" __global__ void bench_nested_fan(bench_fan_args args) {
    bool good = true;
    for (unsigned i = 0; i < args.each && good; ++i) {
        bench_nested_chain<<<1, 1, 0, stream_of(args.stream)>>>({args.account, 1, 0, args.stream});
        good = is_launched(args.account);
    }
}
