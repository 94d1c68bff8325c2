/* What launches of a nest share with those that ask for them: slots in the nest's memory. */
#ifndef DPR_DP_NESTS_CUH
#define DPR_DP_NESTS_CUH

#include <cuda/atomic>

#include "launcher.cuh"
#include "slots.h"

namespace dpr {
namespace nested {

/* ---- Slots: every launch that is pending has one ---- */

constexpr uint32_t none = ~0u;

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

/* Clears a set bit in one of `words` words and returns its number. Looks from word `first` on, at `looks` words at
 * most; `none` if it gets no bit. */
__device__ inline uint32_t take_bit(uint32_t *bits, uint32_t words, uint32_t first, uint32_t looks) {
    for (uint32_t i = 0; i < looks; ++i) {
        const uint32_t w = (first + i) % words;
        const slot_word word(bits[w]);
        const uint32_t free = word.load(cuda::memory_order_relaxed), lowest = free & (0 - free);
        if (free != 0 && (word.fetch_and(~lowest, cuda::memory_order_acquire) & lowest) != 0)
            return 32 * w + __ffs(static_cast<int>(lowest)) - 1;
    }
    return none;
}

/* Whoever takes the bit next sees what the caller sees. */
__device__ inline void give_bit(uint32_t *bits, uint32_t number) {
    slot_word(bits[number / 32]).fetch_or(1u << number % 32, cuda::memory_order_release);
}

/* There is a free slot for everybody who has got past `held`, but others may take the ones that this thread sees. */
__device__ inline uint32_t take_slot(const dpr_nest &nest) {
    dpr_nest_state &state = state_of(nest);
    if (take_free(&state.held, 1, nest.launches) == 0)
        return none;
    const uint32_t words = (nest.launches + 31) / 32;
    const uint32_t slot = take_bit(state.free_slots, words, atomicAdd(&state.next, 1), 32 * words);
    if (slot == none)
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

__device__ inline void free_slot(const dpr_nest &nest, uint32_t slot) {
    dpr_nest_state &state = state_of(nest);
    give_bit(state.free_slots, slot);
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
        one = within;
    }
}

/* ---- Calls that wait for the thread which made them ---- */

/* Calls of continuations whose launches were refused. The thread does them in line when the continuation has returned,
 * one after another, so that its stack does not grow with the depth. The first lies in the thread's own memory, which
 * is all that a chain of continuations takes; more lie in one of the nest's queues, a ring, which the thread holds
 * while there are such. */
struct waiting_line {
    dpr_nest_call first;
    bool has_first;
    uint32_t queue; /* its number, or none */
    uint32_t head, size;
};

__device__ inline dpr_nest_call &call_in(const dpr_nest &nest, const waiting_line &line, uint32_t i) {
    auto *queues = reinterpret_cast<dpr_nest_call *>(&slot_of(nest, nest.launches));
    return queues[line.queue * DPR_NEST_QUEUE_CALLS + (line.head + i) % DPR_NEST_QUEUE_CALLS];
}

/* A queue, or none if no queue has become free in more than a quarter of an hour. A thread that holds a queue never
 * waits for another, so each queue comes back. */
__device__ inline uint32_t take_queue(dpr_nest_state &state) {
    for (uint32_t tries = 0; tries < 1u << 30; ++tries) {
        const uint32_t queue = take_bit(state.free_queues, DPR_NEST_QUEUE_WORDS, warp_number(), DPR_NEST_QUEUE_WORDS);
        if (queue != none)
            return queue;
        __nanosleep(1000);
    }
    return none;
}

/* Where the next call to wait is to be put; NULL if there is no room for it. */
__device__ inline dpr_nest_call *place_in_line(const dpr_nest &nest) {
    waiting_line &line = *static_cast<waiting_line *>(nest.line);
    if (!line.has_first && line.size == 0) {
        line.has_first = true;
        return &line.first;
    }
    if (line.queue == none)
        line.queue = take_queue(state_of(nest));
    if (line.queue == none || line.size == DPR_NEST_QUEUE_CALLS)
        return nullptr;
    return &call_in(nest, line, line.size++);
}

/* Takes out the call to do next. The latest one, as that leaves the fewest in a tree of calls; but where they are many
 * the earliest, in which trees end that are deep on one side. */
__device__ inline bool take_from_line(const dpr_nest &nest, waiting_line &line, dpr_nest_call &call) {
    if (line.size == 0) {
        call = line.first;
        const bool found = line.has_first;
        line.has_first = false;
        return found;
    }
    const bool earliest = line.size > DPR_NEST_QUEUE_CALLS / 2;
    call = call_in(nest, line, earliest ? 0 : line.size - 1);
    line.head += earliest;
    if (--line.size == 0) {
        give_bit(state_of(nest).free_queues, line.queue);
        line.queue = none;
    }
    return true;
}

/* Functions of the caller's module. A follower calls the continuation object at `then` with the result at `out`; a
 * waiting_run does a call in line. Both may put calls into the nest's line. */
using follower = void (*)(const dpr_nest &nest, const void *out, void *then);
using waiting_run = void (*)(const dpr_nest &nest, dpr_nest_call &call);

/* Calls begin(nest), with a nest that has a line, and then does all calls that wait in it. */
template <class Begin> __device__ void with_line(const dpr_nest &of, Begin begin) {
    waiting_line line;
    dpr_nest nest = of;
    line.has_first = false;
    line.queue = none;
    line.head = line.size = 0;
    nest.line = &line;
    begin(nest);
    for (dpr_nest_call call; take_from_line(nest, line, call);)
        reinterpret_cast<waiting_run>(call.run)(nest, call);
}

/* ---- The end of a launched grid ---- */

/* The grid that has the slot has written its result. One thread calls it, last of all. __noinline__, so that what
 * it keeps on the stack is not part of the many functions that call it. */
__device__ __noinline__ inline void end_launch(dpr_nest_slot &slot, const void *out) {
    __threadfence();
    if (slot.follow)
        with_line(slot.nest,
                  [&](const dpr_nest &nest) { reinterpret_cast<follower>(slot.follow)(nest, out, slot.then); });
    close_launch(slot.nest, slot.nest.within - 1);
}

} // namespace nested
} // namespace dpr

#endif
