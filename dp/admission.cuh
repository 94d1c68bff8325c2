/* Launching a kernel from a kernel: the device admits the launch or refuses it, and the account counts which. */
#ifndef DPR_DP_ADMISSION_CUH
#define DPR_DP_ADMISSION_CUH

#include "dpr.h"

namespace dpr {

/* Without launches, parents do everything themselves. Tools that do not support kernels which launch kernels can then
 * examine them. */
#ifdef DPR_WITHOUT_LAUNCHES
constexpr bool makes_launches = false;
#else
constexpr bool makes_launches = true;
#endif

/* Adds up to `wanted` to *taken, which may grow to `most`, and returns how much it has added. That may be less than is
 * left while other threads take the last ones. */
__device__ inline unsigned take_free(unsigned *taken, unsigned wanted, unsigned most) {
    const unsigned before = atomicAdd(taken, wanted), left = before < most ? most - before : 0;
    if (left >= wanted)
        return wanted;
    atomicSub(taken, wanted - left);
    return left;
}

__device__ inline void note_refusal(dpr_launch_report *account) {
    atomicAdd(&account->refused, 1);
}

/* Counts sub-trees that were not launched, so that the kernel does them itself. */
__device__ inline void note_in_line(dpr_launch_report *account, unsigned sub_trees = 1) {
    atomicAdd(&account->in_line, sub_trees);
}

__device__ inline void note_failure(dpr_launch_report *account, uint32_t depth, cudaError_t error) {
    atomicAdd(&account->failed, 1);
    if (atomicCAS(&account->error, 0, static_cast<int>(error)) == 0) {
        account->error_depth = depth;
        account->error_block = blockIdx.x;
    }
}

/* Calls launch(), which launches one kernel and returns the error, in a kernel at `depth`, and counts what happened.
 * Returns true if the kernel was launched. One thread calls it, after everything that the kernel is to see has been
 * written.
 *
 * The device admits launches: if its launch pool has no place it refuses the launch, and nothing is lost. dp/README.md
 * says under which conditions that is reliable. */
template <class Launch> __device__ bool launch_noted(dpr_launch_report *account, uint32_t depth, Launch launch) {
    cudaError_t error = cudaErrorLaunchPendingCountExceeded;
    if constexpr (makes_launches)
        error = launch();
    if (error == cudaSuccess) {
        atomicAdd(&account->launched, 1);
        atomicMax(&account->deepest, depth + 1);
    } else if (error == cudaErrorLaunchPendingCountExceeded) {
        note_refusal(account);
    } else {
        note_failure(account, depth, error);
    }
    return error == cudaSuccess;
}

} // namespace dpr

#endif
