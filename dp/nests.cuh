/* What launches of a nest share with those that ask for them: slots in the nest's memory. */
#ifndef DPR_DP_NESTS_CUH
#define DPR_DP_NESTS_CUH

#include <cuda/atomic>

#include "launcher.cuh"
#include "slots.h"

namespace dpr {
namespace nested {

/* ---- Slots: who has a credit for a launch has one of these as well ---- */

constexpr uint32_t no_slot = ~0u;

using slot_word = cuda::atomic_ref<uint32_t, cuda::thread_scope_device>;

__device__ inline dpr_nest_state &state_of(const dpr_nest &nest) {
    return *static_cast<dpr_nest_state *>(nest.memory);
}

__device__ inline launcher &launcher_of(const dpr_nest &nest) {
    return *static_cast<launcher *>(nest.launcher);
}

__device__ inline dpr_nest_slot &slot_of(const dpr_nest &nest, uint32_t slot) {
    return reinterpret_cast<dpr_nest_slot *>(static_cast<dpr_nest_state *>(nest.memory) + 1)[slot];
}

/* There is a free one for everybody who looks, but others may take it just then; so this ends without one after a time.
 */
__device__ inline uint32_t find_slot(dpr_nest_state &state, uint32_t words) {
    const uint32_t first = atomicAdd(&state.next, 1);
    for (uint32_t i = 0; i < 32 * words; ++i) {
        const uint32_t w = (first + i) % words;
        const slot_word word(state.free_slots[w]);
        const uint32_t free = word.load(cuda::memory_order_relaxed), lowest = free & (0 - free);
        if (free != 0 && (word.fetch_and(~lowest, cuda::memory_order_acquire) & lowest) != 0)
            return 32 * w + __ffs(static_cast<int>(lowest)) - 1;
    }
    return no_slot;
}

__device__ inline uint32_t take_slot(const dpr_nest &nest) {
    dpr_nest_state &state = state_of(nest);
    if (take_free(&state.held, 1, nest.launches) == 0)
        return no_slot;
    const uint32_t slot = find_slot(state, (nest.launches + 31) / 32);
    if (slot == no_slot)
        atomicSub(&state.held, 1);
    return slot;
}

/* Of this thread's warp, among those that are on the device now. */
__device__ inline unsigned warp_number() {
    constexpr unsigned most_warps = 64; /* of an SM */
    unsigned sm, warp;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %warpid;" : "=r"(warp));
    return sm * most_warps + warp;
}

/* Whoever takes it next sees what the caller sees. */
__device__ inline void free_slot(const dpr_nest &nest, uint32_t slot) {
    dpr_nest_state &state = state_of(nest);
    slot_word(state.free_slots[slot / 32]).fetch_or(1u << slot % 32, cuda::memory_order_release);
    atomicSub(&state.held, 1);
}

/* ---- Launches below each other ---- */

__device__ inline uint32_t depth_of(const dpr_nest &nest) {
    return nest.within == 0 ? 0 : slot_of(nest, nest.within - 1).depth + 1;
}

/* Before the launch, so that the one it is below of, whose continuation runs, is not done before. */
__device__ inline void open_launch(const dpr_nest &nest, uint32_t slot) {
    dpr_nest_slot &s = slot_of(nest, slot);
    s.pending = 1;
    s.within = nest.within;
    s.depth = depth_of(nest);
    if (nest.within != 0)
        atomicAdd(&slot_of(nest, nest.within - 1).pending, 1);
}

/* Of a launch that was not made. */
__device__ inline void drop_launch(const dpr_nest &nest, uint32_t slot) {
    if (nest.within != 0)
        atomicSub(&slot_of(nest, nest.within - 1).pending, 1);
    free_slot(nest, slot);
}

/* The grid that has the slot is about to end: so is the launch if nothing is below it, and then perhaps the one above.
 */
__device__ inline void close_launch(const dpr_nest &nest, uint32_t slot) {
    for (uint32_t one = slot + 1; one != 0;) {
        dpr_nest_slot &s = slot_of(nest, one - 1);
        const uint32_t within = s.within;
        if (slot_word(s.pending).fetch_sub(1, cuda::memory_order_acq_rel) != 1)
            return;
        s.ticket = 0;
        free_slot(nest, one - 1);
        give_back_later(&launcher_of(nest).pool, 1);
        one = within;
    }
}

/* ---- Continuations ---- */

/* Calls the continuation object at `then` with the result at `out`. */
using follower = void (*)(const dpr_nest &nest, const void *out, void *then);

/* The grid that has the slot has written its result. One thread calls it, last of all. */
__device__ inline void end_launch(dpr_nest_slot &slot, const void *out) {
    const dpr_nest nest = slot.nest;
    __threadfence();
    if (slot.follow)
        reinterpret_cast<follower>(slot.follow)(nest, out, slot.then);
    close_launch(nest, nest.within - 1);
}

} // namespace nested
} // namespace dpr

#endif
