/* dpr: reductions that a kernel of your own asks for, done by kernels launched from it.
 *
 *     __global__ void rows(dpr_nest nest, const float *x, const uint64_t *begin, float *sums) {
 *         const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
 *         dpr::nested_reduce<DPR_SUM, DPR_F32>(nest, x + begin[row], sums + row, begin[row + 1] - begin[row]);
 *     }
 *
 * The nest is made on the host by dpr_nest_create() (dpr.h). C++17 for nvcc, devices of compute capability 7.0 or more:
 *
 *     nvcc -std=c++17 -rdc=true -arch=sm_90 rows.cu $(pkg-config --cflags --libs dpr) -lcudadevrt
 *
 * Element types are the C types of dtypes.def (DPR_F16 and DPR_BF16: uint16_t), results those of dpr_result_dtype().
 * What elements, NaN and results mean is said in dpr.h; of no elements there is the identity, and -1 for ARGMIN and
 * ARGMAX. Pairs without a meaning do not compile.
 *
 * Rules of launches from kernels, which hold here too:
 * - A launched kernel sees what its launching thread sees at the call. What other threads of the block have written, it
 *   sees if __syncthreads() lies between; what other blocks write, tail_reduce() is for.
 * - The thread that called does not see the result: the kernel's successor in its stream does, the host does after
 *   waiting for the calling kernel, which is not done before all it has launched, and so does `then`.
 * - `in` and `out` must not be shared or local memory, nor `then` hold pointers to such.
 * - Not in kernels that are launched cooperatively or from a device graph.
 * - What else your kernels launch has what dpr leaves alone of the device's pool of pending launches, three quarters. A
 * launch keeps its place there until all below it are done, and too many can hang the device. */
#ifndef DPR_NESTED_CUH
#define DPR_NESTED_CUH

#include "dpr.h"
#include "dpr/device/credits.cuh"
#include "dpr/device/domain.cuh"
#include "dpr/device/finish.cuh"
#include "dpr/device/slots.h"

namespace dpr {

/* What a call came to. */
enum class outcome {
    launched, /* a launched grid does it */
    in_line,  /* the calling thread has done it: *out is written, and `then` was called */
    not_done  /* nothing has happened */
};

/* A continuation that does nothing. */
struct nothing {
    template <class R> __device__ void operator()(const R &) const {}
};

template <dpr_op O, dpr_dtype D> struct valid_pair {
    static constexpr bool has_meaning = domain_has(O, element<D>::kind);
    static_assert(has_meaning, "the operation has no meaning for this element type");
    using result = typename monoid<O, D, DPR_NAN_PROPAGATE>::result;
};

template <dpr_op O, dpr_dtype D> using result_of = typename valid_pair<O, D>::result;

/* Reduces in[0 .. count-1] to *out, by a grid that starts at once and which nobody waits for ("fire and forget").
 *
 * One thread calls it; any number of threads may, each for an array of its own. Without a place among the launches that
 * may be pending, or if the launch fails, the thread does it in line, one element after the other: that is right too,
 * but slow, and a floating-point sum or product may then be rounded differently. nest.launches is how many may be
 * pending, and dpr_nest_report() says how many were.
 *
 * `in` is aligned as dpr_dtype_alignment() says, and `out` as its type; `in` may be NULL where count is 0. On an H200
 * the device makes a launch each 0.3 us, and the grid starts some 10 us later: short arrays are better done by the
 * caller. An error that the thread has not asked cudaGetLastError() for before is lost.
 *
 * @param then  called as then(result) by one thread, of the launched grid or in line the calling one, once *out is
 *              written; what it writes is seen after *out. A trivially copyable object of a type that is not local to a
 *              function. One that asks for reductions itself is called as then(result, nest), and asks on that nest and
 *              on no other: a launch keeps its place in the device's pool until all below it are done, and that nest
 *              says below which it is. It launches nothing else. */
template <dpr_op O, dpr_dtype D, dpr_nan N = DPR_NAN_PROPAGATE, class Then = nothing>
__device__ outcome nested_reduce(const dpr_nest &nest, const storage_of<D> *in, result_of<O, D> *out, uint64_t count,
                                 Then then = {});

/* The same by a grid that starts when the calling kernel's whole grid, and all that this has launched otherwise, is
 * done: for arrays that the grid writes. Those of one grid run one after another, each some ten microseconds after the
 * one before, so a grid should call it a few times at most.
 *
 * Other threads may not have written their elements yet, so nothing can be done in line: without a place among the
 * launches that may be pending, or if the launch fails, the outcome is not_done, neither *out nor `then` is touched,
 * and whoever has launched the calling kernel must see to it. */
template <dpr_op O, dpr_dtype D, dpr_nan N = DPR_NAN_PROPAGATE, class Then = nothing>
[[nodiscard]] __device__ outcome tail_reduce(const dpr_nest &nest, const storage_of<D> *in, result_of<O, D> *out,
                                             uint64_t count, Then then = {});

/* ---- How it is done --------------------------------------------------------------------------------------------- */

namespace nested {

constexpr unsigned threads = 256;

/* What a launched grid takes. */
template <class M, class Then> struct job {
    dpr_kernel_args args;
    dpr_nest nest;
    uint32_t slot;
    Then then;
};

/* ---- Slots: who has a credit for a launch has one of these as well ---- */

constexpr uint32_t no_slot = ~0u;

using slot_word = cuda::atomic_ref<uint32_t, cuda::thread_scope_device>;

__device__ inline dpr_nest_state &state_of(const dpr_nest &nest) {
    return *static_cast<dpr_nest_state *>(nest.memory);
}

__device__ inline dpr_nest_slot &slot_of(const dpr_nest &nest, uint32_t slot) {
    return reinterpret_cast<dpr_nest_slot *>(static_cast<dpr_nest_state *>(nest.memory) + 1)[slot];
}

/* There is a free one for everybody who looks, but others may take it just then; so this ends without one after a time.
 */
__device__ inline uint32_t find_slot(dpr_nest_state &state, uint32_t words) {
    const uint32_t first = atomicAdd(&state.turn, 1);
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
    if (!take_one(&state.held, nest.launches))
        return no_slot;
    const uint32_t slot = find_slot(state, (nest.launches + 31) / 32);
    if (slot == no_slot)
        give_back(&state.held, 1);
    return slot;
}

/* Whoever takes it next sees what the caller sees. */
__device__ inline void free_slot(const dpr_nest &nest, uint32_t slot) {
    dpr_nest_state &state = state_of(nest);
    slot_word(state.free_slots[slot / 32]).fetch_or(1u << slot % 32, cuda::memory_order_release);
    give_back(&state.held, 1);
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

/* The grid that has the slot is done: so is the launch if nothing is below it, and then perhaps the one above. */
__device__ inline void close_launch(const dpr_nest &nest, uint32_t slot) {
    for (uint32_t one = slot + 1; one != 0;) {
        dpr_nest_slot &s = slot_of(nest, one - 1);
        const uint32_t within = s.within;
        if (slot_word(s.pending).fetch_sub(1, cuda::memory_order_acq_rel) != 1)
            return;
        s.ticket = 0;
        free_slot(nest, one - 1);
        give_back(nest.taken, 1);
        one = within;
    }
}

/* ---- The launched grid ---- */

/* *out, and then whoever waits for it. One thread calls it. */
template <class M, class Then>
__device__ void deliver(const dpr_nest &nest, const dpr_kernel_args &args, typename M::acc a, Then &then) {
    using R = typename M::result;
    if constexpr (M::located)
        a = M::locate(a, static_cast<const typename M::storage *>(args.in), args.count);
    const R result = M::finish(a);
    *static_cast<R *>(args.out) = result;
    __threadfence();
    if constexpr (cuda::std::is_invocable_v<Then &, const R &, const dpr_nest &>)
        then(result, nest);
    else
        then(result);
}

/* Folds what the blocks have in the first warp of the block that arrives last. All threads call it; true in the one
 * that has the result. */
template <class M> __device__ bool meet_in_slot(dpr_nest_slot &slot, typename exchange<M>::type &x) {
    using X = exchange<M>;
    static_assert(sizeof(typename X::type) <= DPR_NEST_PARTIAL_BYTES);
    auto *partials = reinterpret_cast<typename X::type *>(slot.partials);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = x;
    if (!last_to_arrive(&slot.ticket) || threadIdx.x >= 32)
        return false;
    typename M::acc a = M::identity();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += 32)
        a = M::merge(a, X::unpack(partials[i]));
    x = reduce_warp<M>(X::pack(a));
    return threadIdx.x == 0;
}

template <class M, class Then> __global__ void __launch_bounds__(threads) reduce_kernel(job<M, Then> j) {
    using X = exchange<M>;
    typename X::type x = reduce_block<M>(reduce_share<M>(j.args, share<M>(j.args)));
    if (gridDim.x > 1 ? !meet_in_slot<M>(slot_of(j.nest, j.slot), x) : threadIdx.x != 0)
        return;
    j.nest.within = j.slot + 1;
    deliver<M>(j.nest, j.args, X::unpack(x), j.then);
    close_launch(j.nest, j.slot);
}

/* ---- The calling thread ---- */

/* How a grid of `blocks` blocks is to read the array. */
template <class M> __device__ void divide(dpr_kernel_args &args, uint64_t grid_threads) {
    using T = typename M::storage;
    const uint64_t before = (0 - reinterpret_cast<uintptr_t>(args.in)) % vector_bytes / sizeof(T);
    const uint64_t head = before < args.count ? before : args.count;
    args.head = static_cast<uint32_t>(head);
    args.vectors = (args.count - head) / packet<T>::size;
    args.rounds = args.vectors / grid_threads;
    if (head > 0 || (args.count - head) % packet<T>::size != 0)
        args.reading = DPR_READ_ENDS;
}

/* As many blocks as have a whole tile. */
template <class M> __device__ unsigned blocks_for(uint64_t count) {
    constexpr uint64_t tile = threads * M::vectors * packet<typename M::storage>::size;
    const uint64_t tiles = count / tile;
    return tiles < 1 ? 1 : tiles < DPR_NEST_BLOCKS ? static_cast<unsigned>(tiles) : DPR_NEST_BLOCKS;
}

/* Whether a launched grid does it. */
template <class M, class Then>
__device__ bool launch_one(const dpr_nest &nest, cudaStream_t order, const dpr_kernel_args &args, const Then &then) {
    dpr_nest_state &state = state_of(nest);
    const uint32_t slot = take_slot(nest);
    if (slot == no_slot) {
        note_refusal(&state.account);
        return false;
    }
    const unsigned blocks = blocks_for<M>(args.count);
    job<M, Then> j = {args, nest, slot, then};
    divide<M>(j.args, blocks * threads);
    open_launch(nest, slot);
    const bool launched = launch_admitted({nest.taken, nest.credits, &state.account, depth_of(nest)}, [&] {
        (void)cudaGetLastError(); /* of an earlier call: it would be taken for this launch's */
        reduce_kernel<M, Then><<<blocks, threads, 0, order>>>(j);
    });
    if (!launched)
        drop_launch(nest, slot);
    return launched;
}

/* The same, threads of a warp one after another: an H200 hangs where several of them launch at once. */
template <class M, class Then>
__device__ bool launch(const dpr_nest &nest, cudaStream_t order, const dpr_kernel_args &args, const Then &then) {
    const unsigned here = __activemask(), self = 1u << threadIdx.x % 32;
    bool launched = false;
    for (unsigned left = here; left != 0; left &= left - 1) {
        if ((left & (0 - left)) == self)
            launched = launch_one<M>(nest, order, args, then);
        __syncwarp(here);
    }
    return launched;
}

template <class M> __device__ typename M::acc reduce_in_line(const typename M::storage *in, uint64_t count) {
    typename M::acc a = M::identity();
#pragma unroll 4
    for (uint64_t i = 0; i < count; ++i) {
        if constexpr (M::located)
            a = M::merge(a, M::of_element(in[i], i));
        else
            a = M::fold(a, M::add(M::lane_identity(), in[i]));
    }
    return a;
}

/* What both forms begin with. */
template <dpr_op O, dpr_dtype D, class Then>
__device__ dpr_kernel_args args_of(const storage_of<D> *in, result_of<O, D> *out, uint64_t count) {
    static_assert(cuda::std::is_trivially_copyable_v<Then>, "`then` is copied to the launched kernel byte by byte");
    dpr_kernel_args args = {};
    args.in = in;
    args.out = out;
    args.count = count;
    return args;
}

} // namespace nested

template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome nested_reduce(const dpr_nest &nest, const storage_of<D> *in, result_of<O, D> *out, uint64_t count,
                                 Then then) {
    using M = monoid<O, D, N>;
    const dpr_kernel_args args = nested::args_of<O, D, Then>(in, out, count);
    if (nested::launch<M>(nest, cudaStreamFireAndForget, args, then))
        return outcome::launched;
    note_in_line(&nested::state_of(nest).account);
    nested::deliver<M>(nest, args, nested::reduce_in_line<M>(in, count), then);
    return outcome::in_line;
}

template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome tail_reduce(const dpr_nest &nest, const storage_of<D> *in, result_of<O, D> *out, uint64_t count,
                               Then then) {
    const dpr_kernel_args args = nested::args_of<O, D, Then>(in, out, count);
    const bool launched = nested::launch<monoid<O, D, N>>(nest, cudaStreamTailLaunch, args, then);
    return launched ? outcome::launched : outcome::not_done;
}

} // namespace dpr

#endif
