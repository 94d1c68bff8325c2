/* The one kernel that kernels launch.
 *
 * On an H200 (driver 580) the device hangs, sooner or later, where launches of several kernels are pending: all of them
 * run to their ends, but the kernel that launched them is never done, even if the kernels differ by their names alone,
 * and if there are far fewer of them than the pool has places. With one kernel for all they do not. So reductions that
 * kernels of other modules ask for are launches of the same kernel, by its address. */
#ifndef DPR_DP_LAUNCHER_CUH
#define DPR_DP_LAUNCHER_CUH

#include "launches.cuh"
#include "nested.h"

namespace dpr {

using nested_kernel = void (*)(dpr_nested_args);

/* What a launched kernel does. */
using continuation = void (*)(const dpr_nested_args &);

/* What a launched kernel does for a nest. True in the one thread that has written the result. */
using nest_grid = bool (*)(const dpr_nested_args &);

/* In memory of the module that has the kernel, of which there is one copy on a device. */
struct launcher {
    nested_kernel kernel;
    nest_grid grids[DPR_OP_COUNT][DPR_DTYPE_COUNT][2]; /* of nests, by the NaN policy as well; NULL for pairs without
                                                             a meaning */
};

/* Launches the kernel with the arguments that fill(args) sets. cudaErrorLaunchPendingCountExceeded where the device's
 * pool of pending launches has no place: then there may be no buffer for the arguments either. */
template <class Fill>
__device__ cudaError_t launch_filled(nested_kernel kernel, unsigned blocks, unsigned threads, cudaStream_t stream,
                                     Fill fill) {
    void *parameters =
        cudaGetParameterBufferV2(reinterpret_cast<void *>(kernel), dim3(blocks), dim3(threads), DPR_FOLD_BYTES);
    cudaError_t error = cudaSuccess;
    if (parameters) {
        fill(*static_cast<dpr_nested_args *>(parameters));
        error = cudaLaunchDeviceV2(parameters, stream);
    }
    const cudaError_t last = cudaGetLastError(); /* which would be taken for that of a launch of the caller's own */
    if (!parameters)
        error = last != cudaSuccess ? last : cudaErrorLaunchPendingCountExceeded;
    return error;
}

} // namespace dpr

#endif
