/* A launcher's memory on the device: the slots that launches share with the threads that request them, and the calls
 * that wait. */
#ifndef DPR_DP_LAUNCHER_CUH
#define DPR_DP_LAUNCHER_CUH

#include <cuda/atomic>

#include "launch_table.cuh"
#include "launcher_memory.h"

namespace dpr {
namespace nested {

/* ---- Slots: every pending launch has one ---- */

constexpr uint32_t none = ~0u;

using slot_word = cuda::atomic_ref<uint32_t, cuda::thread_scope_device>;

/* Whether this code knows the layout of what the launcher points to. */
__device__ inline bool is_known(const dpr_launcher &launcher) {
    return launcher.version == DPR_LAUNCHER_VERSION;
}

/* The account, which is there in every version; NULL for a launcher of zeros. */
__device__ inline dpr_launch_report *account_of(const dpr_launcher &launcher) {
    return static_cast<dpr_launch_report *>(launcher.memory);
}

__device__ inline dpr_launcher_state &state_of(const dpr_launcher &launcher) {
    return *static_cast<dpr_launcher_state *>(launcher.memory);
}

__device__ inline launch_table &table_of(const dpr_launcher &launcher) {
    return *static_cast<launch_table *>(launcher.table);
}

__device__ inline dpr_launch_slot &slot_of(const dpr_launcher &launcher, uint32_t slot) {
    return reinterpret_cast<dpr_launch_slot *>(static_cast<dpr_launcher_state *>(launcher.memory) + 1)[slot];
}

/* Clears a set bit in one of `words` words and returns the bit's number. It looks at `looks` words at most, from word
 * `first` on, and returns `none` if it gets no bit. */
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

/* Sets a bit. The thread that takes it next sees what the caller sees. */
__device__ inline void give_bit(uint32_t *bits, uint32_t number) {
    slot_word(bits[number / 32]).fetch_or(1u << number % 32, cuda::memory_order_release);
}

/* Takes a slot, or returns `none` if launches have `launcher.launches` of them. Once `held` has admitted a thread there
 * is a free slot for it, but others may take the ones that it sees, so it may look several times. */
__device__ inline uint32_t take_slot(const dpr_launcher &launcher) {
    dpr_launcher_state &state = state_of(launcher);
    if (take_free(&state.held, 1, launcher.launches) == 0)
        return none;
    const uint32_t words = (launcher.launches + 31) / 32;
    const uint32_t slot = take_bit(state.free_slots, words, atomicAdd(&state.next, 1), 32 * words);
    if (slot == none)
        atomicSub(&state.held, 1);
    return slot;
}

/* A number that no other warp has that is on the device at this time. */
__device__ inline unsigned warp_number() {
    constexpr unsigned most_warps = 64; /* warps of an SM */
    unsigned sm, warp;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %warpid;" : "=r"(warp));
    return sm * most_warps + warp;
}

__device__ inline void free_slot(const dpr_launcher &launcher, uint32_t slot) {
    dpr_launcher_state &state = state_of(launcher);
    give_bit(state.free_slots, slot);
    atomicSub(&state.held, 1);
}

/* ---- Launches below each other ---- */

__device__ inline uint32_t depth_of(const dpr_launcher &launcher) {
    return launcher.within == 0 ? 0 : slot_of(launcher, launcher.within - 1).depth + 1;
}

/* Fills the slot's counters. Called before the launch is made, so that the launch that it is below, whose continuation
 * is running, does not count as done before it. */
__device__ inline void open_launch(const dpr_launcher &launcher, uint32_t slot) {
    dpr_launch_slot &s = slot_of(launcher, slot);
    s.pending = 1;
    s.within = launcher.within;
    s.depth = depth_of(launcher);
    if (launcher.within != 0)
        atomicAdd(&slot_of(launcher, launcher.within - 1).pending, 1);
}

/* Undoes open_launch() for a launch that was not made. */
__device__ inline void drop_launch(const dpr_launcher &launcher, uint32_t slot) {
    if (launcher.within != 0)
        atomicSub(&slot_of(launcher, launcher.within - 1).pending, 1);
    free_slot(launcher, slot);
}

/* Called when the grid that has the slot is about to end. If nothing below is pending, the launch is done and its slot
 * becomes free; the same may then be true of the launch above. */
__device__ inline void close_launch(const dpr_launcher &launcher, uint32_t slot) {
    for (uint32_t one = slot + 1; one != 0;) {
        dpr_launch_slot &s = slot_of(launcher, one - 1);
        const uint32_t within = s.within;
        if (slot_word(s.pending).fetch_sub(1, cuda::memory_order_acq_rel) != 1)
            return;
        s.ticket = 0;
        free_slot(launcher, one - 1);
        one = within;
    }
}

/* ---- Calls that wait for the thread that made them ---- */

/* Calls that continuations made and whose launches were refused. The thread does them in line after the continuation
 * has returned, one after another, so that its stack does not grow with the depth. The first call lies in the thread's
 * own memory, and a chain of continuations needs no more. Further calls lie in one of the launcher's queues, a ring
 * buffer that the thread holds while calls wait there. */
struct waiting_line {
    dpr_waiting_call first;
    bool has_first;
    uint32_t queue; /* number of the queue, or `none` */
    uint32_t head, size;
};

__device__ inline dpr_waiting_call &call_in(const dpr_launcher &launcher, const waiting_line &line, uint32_t i) {
    auto *queues = reinterpret_cast<dpr_waiting_call *>(&slot_of(launcher, launcher.launches));
    return queues[line.queue * DPR_LAUNCHER_QUEUE_CALLS + (line.head + i) % DPR_LAUNCHER_QUEUE_CALLS];
}

/* Takes a queue, or returns `none` if none has become free in more than a quarter of an hour. A thread that holds a
 * queue never waits for another one, so every queue becomes free again. */
__device__ inline uint32_t take_queue(dpr_launcher_state &state) {
    for (uint32_t tries = 0; tries < 1u << 30; ++tries) {
        const uint32_t queue =
            take_bit(state.free_queues, DPR_LAUNCHER_QUEUE_WORDS, warp_number(), DPR_LAUNCHER_QUEUE_WORDS);
        if (queue != none)
            return queue;
        __nanosleep(1000);
    }
    return none;
}

/* Returns where to put the next call that is to wait; NULL if there is no room. */
__device__ inline dpr_waiting_call *place_in_line(const dpr_launcher &launcher) {
    waiting_line &line = *static_cast<waiting_line *>(launcher.line);
    if (!line.has_first && line.size == 0) {
        line.has_first = true;
        return &line.first;
    }
    if (!is_known(launcher))
        return nullptr;
    if (line.queue == none)
        line.queue = take_queue(state_of(launcher));
    if (line.queue == none || line.size == DPR_LAUNCHER_QUEUE_CALLS)
        return nullptr;
    return &call_in(launcher, line, line.size++);
}

/* Takes out the call to do next, or returns false if none waits. It takes the latest call, because that leaves the
 * fewest in a tree of calls. But if many wait it takes the earliest, because trees that are deep on one side end
 * there. */
__device__ inline bool take_from_line(const dpr_launcher &launcher, waiting_line &line, dpr_waiting_call &call) {
    if (line.size == 0) {
        call = line.first;
        const bool found = line.has_first;
        line.has_first = false;
        return found;
    }
    const bool earliest = line.size > DPR_LAUNCHER_QUEUE_CALLS / 2;
    call = call_in(launcher, line, earliest ? 0 : line.size - 1);
    line.head += earliest;
    if (--line.size == 0) {
        give_bit(state_of(launcher).free_queues, line.queue);
        line.queue = none;
    }
    return true;
}

/* Functions of the caller's module. A follower calls the continuation at `then` with the result at `out`. A waiting_run
 * does a call in line. Both may add calls to the launcher's line. */
using follower = void (*)(const dpr_launcher &launcher, const void *out, void *then);
using waiting_run = void (*)(const dpr_launcher &launcher, dpr_waiting_call &call);

/* Calls begin(launcher) with a copy of the launcher that has a line, and then does all calls that wait in this line. */
template <class Begin> __device__ void with_line(const dpr_launcher &of, Begin begin) {
    waiting_line line;
    dpr_launcher launcher = of;
    line.has_first = false;
    line.queue = none;
    line.head = line.size = 0;
    launcher.line = &line;
    begin(launcher);
    for (dpr_waiting_call call; take_from_line(launcher, line, call);)
        reinterpret_cast<waiting_run>(call.run)(launcher, call);
}

/* ---- The end of a launched grid ---- */

/* Ends a launch whose grid has written its result: calls the continuation and closes the launch. One thread calls it,
 * last of all. __noinline__, so that what it keeps on the stack is not part of the many functions that call it. */
__device__ __noinline__ inline void end_launch(dpr_launch_slot &slot, const void *out) {
    __threadfence();
    if (slot.follow)
        with_line(slot.launcher, [&](const dpr_launcher &launcher) {
            reinterpret_cast<follower>(slot.follow)(launcher, out, slot.then);
        });
    close_launch(slot.launcher, slot.launcher.within - 1);
}

} // namespace nested
} // namespace dpr

#endif
