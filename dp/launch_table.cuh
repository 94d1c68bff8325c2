/* The one kernel that kernels launch.
 *
 * If launches of several kernels are pending, an H200 (driver 580) hangs sooner or later: all launched kernels run to
 * their ends, but the kernel that launched them is never done. It does so even if the kernels differ by their names
 * alone, and if far fewer launches are pending than the pool has places. With one kernel for all launches it does not
 * hang. So reductions that kernels of other modules request are launches of the same kernel, by its address. */
#ifndef DPR_DP_LAUNCH_TABLE_CUH
#define DPR_DP_LAUNCH_TABLE_CUH

#include "admission.cuh"
#include "nested_args.h"

namespace dpr {

using nested_kernel = void (*)(dpr_nested_args);

/* The function that a launched kernel calls. */
using continuation = void (*)(const dpr_nested_args &);

/* The function that a launched kernel calls for a launcher. It returns true in the one thread that has written the
 * result. */
using reduce_grid = bool (*)(const dpr_nested_args &);

/* The table lies in memory of the module that has the kernel; a device has one copy. */
struct launch_table {
    nested_kernel kernel;
    /* For launchers, by operation, type and NaN policy; NULL for pairs without a meaning. */
    reduce_grid grids[DPR_OP_COUNT][DPR_DTYPE_COUNT][2];
};

/* Launches the kernel with the arguments that fill(args) sets. Returns cudaErrorLaunchPendingCountExceeded if the
 * device's launch pool has no place; then there may be no buffer for the arguments either. */
template <class Fill>
__device__ cudaError_t launch_filled(nested_kernel kernel, unsigned blocks, unsigned threads, cudaStream_t stream,
                                     Fill fill, unsigned shared_bytes = DPR_FOLD_BYTES) {
    void *parameters =
        cudaGetParameterBufferV2(reinterpret_cast<void *>(kernel), dim3(blocks), dim3(threads), shared_bytes);
    cudaError_t error = cudaSuccess;
    if (parameters) {
        fill(*static_cast<dpr_nested_args *>(parameters));
        error = cudaLaunchDeviceV2(parameters, stream);
    }
    const cudaError_t last = cudaGetLastError(); /* resets it: it is not an error of the caller's own launches */
    if (!parameters)
        error = last != cudaSuccess ? last : cudaErrorLaunchPendingCountExceeded;
    return error;
}

} // namespace dpr

#endif
