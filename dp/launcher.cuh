/* The one kernel that kernels launch, and what counts its launches.
 *
 * On an H200 (driver 580) the device hangs, sooner or later, where launches of several kernels are pending: all of them
 * run to their ends, but the kernel that launched them is never done, even if the kernels differ by their names alone,
 * and if there are far fewer of them than the pool has places. With one kernel for all they do not. So reductions that
 * kernels of other modules ask for are launches of the same kernel, by its address. */
#ifndef DPR_DP_LAUNCHER_CUH
#define DPR_DP_LAUNCHER_CUH

#include "credits.cuh"
#include "nested.h"

namespace dpr {

using nested_kernel = void (*)(dpr_nested_args);

/* What a launched kernel does. */
using continuation = void (*)(const dpr_nested_args &);

/* In memory of the module that has the kernel, of which there is one copy on a device. */
struct launcher {
    credit_pool pool;
    nested_kernel kernel;
    continuation grids[DPR_OP_COUNT][DPR_DTYPE_COUNT][2]; /* of nests, by the NaN policy as well; NULL for pairs without
                                                             a meaning */
};

__device__ inline cudaError_t launch_kernel(nested_kernel kernel, const dpr_nested_args &args, unsigned blocks,
                                            unsigned threads, cudaStream_t stream) {
    void *parameters =
        cudaGetParameterBufferV2(reinterpret_cast<void *>(kernel), dim3(blocks), dim3(threads), DPR_FOLD_BYTES);
    cudaError_t error = cudaErrorLaunchOutOfResources;
    if (parameters) {
        *static_cast<dpr_nested_args *>(parameters) = args;
        error = cudaLaunchDeviceV2(parameters, stream);
    }
    const cudaError_t last = cudaGetLastError(); /* which would be taken for that of a launch of the caller's own */
    return error == cudaSuccess || last == cudaSuccess ? error : last;
}

} // namespace dpr

#endif
