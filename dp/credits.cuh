/* Leave to launch kernels from kernels, and the account of such launches. */
#ifndef DPR_DP_CREDITS_CUH
#define DPR_DP_CREDITS_CUH

#include "dpr.h"

namespace dpr {

/* One more of at most `most`, of which there are *taken. While others ask for the last ones it may be refused although
 * one is left. */
__device__ inline bool take_one(unsigned *taken, unsigned most) {
    if (atomicAdd(taken, 1) < most)
        return true;
    atomicSub(taken, 1);
    return false;
}

__device__ inline void give_back(unsigned *taken, unsigned credits) {
    atomicSub(taken, credits);
}

/* What launches from one kernel are admitted by, and where they are noted. */
struct admission {
    unsigned *taken;     /* launches on the device that hold a credit, of whatever run */
    uint32_t credits;    /* that there are */
    dpr_nested *account; /* in device memory */
    uint32_t depth;      /* of the kernel that launches */
};

__device__ inline void note_refusal(dpr_nested *account) {
    atomicAdd(&account->refused, 1);
}

/* What was not launched is done by the kernel itself. */
__device__ inline void note_in_line(dpr_nested *account) {
    atomicAdd(&account->in_line, 1);
}

__device__ inline void note_failure(const admission &by, cudaError_t error) {
    atomicAdd(&by.account->failed, 1);
    if (atomicCAS(&by.account->error, 0, static_cast<int>(error)) == 0) {
        by.account->error_depth = by.depth;
        by.account->error_block = blockIdx.x;
    }
}

/* Without launches parents do everything themselves, and tools that do not support kernels which launch kernels can
 * look at them. */
#ifdef DPR_WITHOUT_LAUNCHES
constexpr bool makes_launches = false;
#else
constexpr bool makes_launches = true;
#endif

/* Calls launch(), which launches one kernel. Whether that is on its way. One thread calls it, for which all that the
 * kernel is to see has been written. */
template <class Launch> __device__ bool launch_noted(const admission &by, Launch launch) {
    cudaError_t error = cudaErrorNotSupported;
    if constexpr (makes_launches) {
        launch();
        error = cudaGetLastError();
    }
    if (error != cudaSuccess) {
        note_failure(by, error);
        return false;
    }
    atomicAdd(&by.account->launched, 1);
    atomicMax(&by.account->deepest, by.depth + 1);
    return true;
}

/* The same if there is a credit for it. It is to be given back when all that is launched below that kernel is done as
 * well, as the kernel keeps its place in the device's pool of pending launches until then. Overrunning the pool is no
 * error that could be relied on: from many threads at once it can hang the device. */
template <class Launch> __device__ bool launch_admitted(const admission &by, Launch launch) {
    if (!makes_launches || !take_one(by.taken, by.credits)) {
        note_refusal(by.account);
        return false;
    }
    const bool launched = launch_noted(by, launch);
    if (!launched)
        give_back(by.taken, 1);
    return launched;
}

} // namespace dpr

#endif
