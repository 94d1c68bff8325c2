/* Leave to launch kernels from kernels, and the account of such launches. */
#ifndef DPR_DP_CREDITS_CUH
#define DPR_DP_CREDITS_CUH

#include "dpr.h"

namespace dpr {

/* Without launches parents do everything themselves, and tools that do not support kernels which launch kernels can
 * look at them. */
#ifdef DPR_WITHOUT_LAUNCHES
constexpr bool makes_launches = false;
#else
constexpr bool makes_launches = true;
#endif

/* Launches on a device that hold a credit. One that has been made holds its credit for longer than it runs: the device
 * empties its place in the pool of pending launches after it, and after all that it has launched. That overruns of the
 * pool are reported is not to be relied on, as they can hang the device. */
struct credit_pool {
    unsigned taken;
    unsigned returned[2]; /* of these, those whose launches are done: in this step of time or the last, by its parity */
    unsigned long long step; /* the last one of which anything was seen */
};

/* `wanted` more of at most `most`, of which *taken are, or as many as are left: how many. While others ask for the last
 * ones that may be fewer than are left. */
__device__ inline unsigned take_free(unsigned *taken, unsigned wanted, unsigned most) {
    const unsigned before = atomicAdd(taken, wanted), left = before < most ? most - before : 0;
    if (left >= wanted)
        return wanted;
    atomicSub(taken, wanted - left);
    return left;
}

/* Where the places are known to be empty, or never were taken. */
__device__ inline void give_back(credit_pool *pool, unsigned credits) {
    atomicSub(&pool->taken, credits);
}

/* Time, in steps of 2^20 ns. */
__device__ inline unsigned long long credit_step() {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds));
    return nanoseconds >> 20;
}

/* What was returned more than a step ago is free again. */
__device__ inline void free_returned(credit_pool *pool, unsigned long long now) {
    const unsigned long long last = atomicMax(&pool->step, now);
    if (now <= last)
        return;
    unsigned old = atomicExch(&pool->returned[now % 2], 0);
    if (now - last > 1)
        old += atomicExch(&pool->returned[(now + 1) % 2], 0);
    give_back(pool, old);
}

/* Of launches that end about now. From one to two steps later others may have them: on an H200 the device empties
 * places in less than a tenth of one. */
__device__ inline void give_back_later(credit_pool *pool, unsigned credits) {
    const unsigned long long now = credit_step();
    free_returned(pool, now);
    atomicAdd(&pool->returned[now % 2], credits);
}

__device__ inline unsigned take(credit_pool *pool, unsigned wanted, unsigned most) {
    if (!makes_launches)
        return 0;
    const unsigned found = take_free(&pool->taken, wanted, most);
    if (found > 0)
        return found;
    free_returned(pool, credit_step());
    return take_free(&pool->taken, wanted, most);
}

__device__ inline void note_refusal(dpr_nested *account) {
    atomicAdd(&account->refused, 1);
}

/* Sub-trees that were not launched: the kernel does them itself. */
__device__ inline void note_in_line(dpr_nested *account, unsigned sub_trees = 1) {
    atomicAdd(&account->in_line, sub_trees);
}

__device__ inline void note_failure(dpr_nested *account, uint32_t depth, cudaError_t error) {
    atomicAdd(&account->failed, 1);
    if (atomicCAS(&account->error, 0, static_cast<int>(error)) == 0) {
        account->error_depth = depth;
        account->error_block = blockIdx.x;
    }
}

/* Calls launch(), which launches one kernel and returns the error, from one at `depth`. Whether that is on its way. One
 * thread calls it, which has a credit for it, and for which all that the kernel is to see has been written. */
template <class Launch> __device__ bool launch_noted(dpr_nested *account, uint32_t depth, Launch launch) {
    cudaError_t error = cudaErrorNotSupported;
    if constexpr (makes_launches)
        error = launch();
    if (error != cudaSuccess) {
        note_failure(account, depth, error);
        return false;
    }
    atomicAdd(&account->launched, 1);
    atomicMax(&account->deepest, depth + 1);
    return true;
}

} // namespace dpr

#endif
