/* dpr: reductions that a kernel of your own asks for, done by kernels launched from it.
 *
 *     __global__ void rows(dpr_nest nest, const float *x, const uint64_t *begin, float *sums) {
 *         const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
 *         dpr::nested_reduce<DPR_SUM, DPR_F32>(nest, x + begin[row], sums + row, begin[row + 1] - begin[row]);
 *     }
 *
 * The nest is made on the host by dpr_nest_create() (dpr.h), of a library of the same version as this header. C++17 for
 * nvcc, devices of compute capability 7.0 or more:
 *
 *     nvcc -std=c++17 -rdc=true -maxrregcount=64 -arch=sm_90 rows.cu $(pkg-config --cflags --libs dpr) -lcudadevrt
 *
 * Element types are the C types of dtypes.def (DPR_F16 and DPR_BF16: uint16_t), results those of dpr_result_dtype().
 * What elements, NaN and results mean is said in dpr.h; of no elements there is the identity, and -1 for ARGMIN and
 * ARGMAX. Pairs without a meaning do not compile.
 *
 * Rules of launches from kernels, which hold here too:
 * - A launched kernel sees what its launching thread sees at the call. What other threads of the block have written, it
 *   sees if __syncthreads() lies between; for what other blocks write there is tail_reduce().
 * - The thread that called does not see the result: the kernel's successor in its stream does, the host does after
 *   waiting for the calling kernel, which is not done before all it has launched, and so does `then`.
 * - `in` and `out` must not be shared or local memory, nor `then` hold pointers to such.
 * - Not in kernels that are launched cooperatively or from a device graph. In a captured graph another kernel follows
 *   the calling one, if only an empty one: an H200 (driver 580) may take a graph for done at the end of its last
 * kernel, whatever that has launched.
 * - Your kernels launch none of their own beside dpr's, nor do other kernels at that time: where launches of several
 *   kernels are pending, an H200 (driver 580) hangs sooner or later. All of dpr's are of one kernel, and are kept to
 *   half of the device's pool of pending launches. */
#ifndef DPR_NESTED_CUH
#define DPR_NESTED_CUH

#include "dpr.h"
#include "dpr/device/domain.cuh"
#include "dpr/device/finish.cuh"
#include "dpr/device/nests.cuh"

namespace dpr {

/* What a call came to. */
enum class outcome {
    launched, /* a launched grid does it */
    in_line,  /* the calling thread has done it: *out is written, and `then` was called */
    left      /* to the block that comes last, of tail_reduce() */
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
 * but slow, and a floating-point sum or product may then be rounded differently. nest.launches is how many of
 * the nest may be pending, and nest.credits how many on the device, where one still counts for one to two milliseconds
 * after its end, as the device empties its place in the pool after that; dpr_nest_report() says how many there were.
 * For more of them make the pool larger (dpr_ctx_options.pending_launches).
 *
 * `in` is aligned as dpr_dtype_alignment() says, and `out` as its type; `in` may be NULL where count is 0. On an H200
 * the device makes a launch each 0.3 us, and the grid starts some 10 us later: short arrays are better done by the
 * caller.
 *
 * @param then  called as then(result) by one thread, of the launched grid or in line the calling one, once *out is
 *              written; what it writes is seen after *out. A trivially copyable object of up to 64 bytes. One that asks
 *              for reductions itself, by nested_reduce(), is called as then(result, nest), and asks on that nest and on
 *              no other: a launch keeps its place in the device's pool until all below it are done, and that nest says
 *              below which it is. It launches nothing else, has no shared memory, and runs in a kernel of dpr's with 64
 *              registers a thread: compiled without -maxrregcount=64 it may need more, which ends the kernel with an
 *              error. */
template <dpr_op O, dpr_dtype D, dpr_nan N = DPR_NAN_PROPAGATE, class Then = nothing>
__device__ outcome nested_reduce(const dpr_nest &nest, const storage_of<D> *in, result_of<O, D> *out, uint64_t count,
                                 Then then = {});

/* The same for an array that the calling kernel's grid writes. One thread of each block calls it, with the same
 * arguments, when its block has written what it is to write (__syncthreads() before it); the last of them asks, for a
 * grid that starts when the calling one is done, and what the others asked for is left to it. Those that one grid asks
 * for run one after another, each some ten microseconds after the one before.
 *
 * The last block asks, and not the first, although the launch waits for the whole grid: an H200 (driver 580) has been
 * seen to start one before all blocks had ended. So nothing is done unless all blocks call it, and it is not for
 * continuations, which one thread runs; these ask by nested_reduce().
 *
 * @param ticket  a word in device memory for each array that the grid asks for, 0 before the first block calls it; it
 *                is 0 again when the last one has. */
template <dpr_op O, dpr_dtype D, dpr_nan N = DPR_NAN_PROPAGATE, class Then = nothing>
__device__ outcome tail_reduce(const dpr_nest &nest, unsigned *ticket, const storage_of<D> *in, result_of<O, D> *out,
                               uint64_t count, Then then = {});

/* ---- How it is done --------------------------------------------------------------------------------------------- */

namespace nested {

/* ---- The calling thread ---- */

constexpr unsigned threads = 256;

/* Tells `then` the result: with the nest, if it takes that. */
template <class R, class Then> __device__ void tell(const dpr_nest &nest, const R &result, Then &then) {
    if constexpr (cuda::std::is_invocable_v<Then &, const R &, const dpr_nest &>)
        then(result, nest);
    else
        then(result);
}

/* A follower. */
template <class R, class Then> __device__ void follow(const dpr_nest &nest, const void *out, void *then) {
    tell(nest, *static_cast<const R *>(out), *static_cast<Then *>(then));
}

/* Divides the array among blocks, and returns how many of them. */
template <class M> __device__ unsigned divide(dpr_nested_args &args) {
    using T = typename M::storage;
    constexpr uint64_t unit = threads * M::vectors;
    const uint64_t count = args.run.count;
    const uint64_t before = (0 - reinterpret_cast<uintptr_t>(args.run.in)) % vector_bytes / sizeof(T);
    args.run.head = static_cast<uint32_t>(before < count ? before : count);
    args.run.vectors = (count - args.run.head) / packet<T>::size;
    const uint64_t units = args.run.vectors / unit + (args.run.vectors % unit != 0);
    const uint64_t each = units / DPR_NEST_BLOCKS + (units % DPR_NEST_BLOCKS != 0);
    args.tree.leaf = each * unit;
    return each == 0 ? 1 : static_cast<unsigned>(units / each + (units % each != 0));
}

/* Puts what the launched grid needs into the slot. */
template <class R, class Then>
__device__ void fill_slot(dpr_nest_slot &slot, const dpr_nest &nest, uint32_t number, const Then &then) {
    slot.nest = nest;
    slot.nest.within = number + 1;
    slot.follow = nullptr;
    if constexpr (!cuda::std::is_same_v<Then, nothing>) {
        slot.follow = reinterpret_cast<void *>(follow<R, Then>);
        memcpy(slot.then, &then, sizeof then);
    }
}

/* Launches the grid for a call that has a slot and a credit. */
template <class M>
__device__ bool launch_grid(const dpr_nest &nest, cudaStream_t order, const dpr_kernel_args &run, dpr_nest_slot &slot,
                            continuation grid) {
    dpr_nested_args args = {};
    args.run = run;
    args.slot = &slot;
    args.go_on = reinterpret_cast<void *>(grid);
    const unsigned blocks = divide<M>(args);
    return launch_noted(&state_of(nest).account, slot.depth,
                        [&] { return launch_kernel(launcher_of(nest).kernel, args, blocks, threads, order); });
}

/* Whether a launched grid does it. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ bool launch_one(const dpr_nest &nest, cudaStream_t order, const dpr_kernel_args &run, const Then &then) {
    using M = monoid<O, D, N>;
    constexpr bool has_nan = (element<D>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX)) != 0;
    launcher &by = launcher_of(nest);
    const uint32_t number = take_slot(nest);
    const bool admitted = number != no_slot && take(&by.pool, 1, nest.credits) > 0;
    if (!admitted) {
        note_refusal(&state_of(nest).account);
        if (number != no_slot)
            free_slot(nest, number);
        return false;
    }
    dpr_nest_slot &slot = slot_of(nest, number);
    fill_slot<typename M::result>(slot, nest, number, then);
    open_launch(nest, number);
    if (launch_grid<M>(nest, order, run, slot, by.grids[O][D][has_nan ? N : 0]))
        return true;
    drop_launch(nest, number);
    give_back(&by.pool, 1);
    return false;
}

/* The same, one thread of a warp at a time: an H200 hangs where several of them are about to launch. A thread that
 * cannot have its turn, after a time that is longer than all turns of a warp, is refused. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ bool launch(const dpr_nest &nest, cudaStream_t order, const dpr_kernel_args &run, const Then &then) {
    unsigned *turn = &state_of(nest).turns[warp_number() % DPR_NEST_TURNS];
    for (int tries = 0; tries < 1 << 20; ++tries) {
        if (atomicExch(turn, 1) == 0) {
            const bool launched = launch_one<O, D, N>(nest, order, run, then);
            __threadfence();
            atomicExch(turn, 0);
            return launched;
        }
        __nanosleep(200);
    }
    note_refusal(&state_of(nest).account);
    return false;
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

/* What both forms are, but for when the launched grid starts. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome reduce(const dpr_nest &nest, cudaStream_t order, const storage_of<D> *in, result_of<O, D> *out,
                          uint64_t count, Then &then) {
    static_assert(cuda::std::is_trivially_copyable_v<Then>, "`then` is copied to the launched kernel byte by byte");
    static_assert(sizeof(Then) <= DPR_NEST_THEN_BYTES && alignof(Then) <= 8, "`then` is larger than a launch can hold");
    using M = monoid<O, D, N>;
    dpr_kernel_args args = {};
    args.in = in;
    args.out = out;
    args.count = count;
    if (launch<O, D, N>(nest, order, args, then))
        return outcome::launched;
    note_in_line(&state_of(nest).account);
    write_result<M>(args, count, reduce_in_line<M>(in, count));
    __threadfence();
    tell(nest, *out, then);
    return outcome::in_line;
}

} // namespace nested

template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome nested_reduce(const dpr_nest &nest, const storage_of<D> *in, result_of<O, D> *out, uint64_t count,
                                 Then then) {
    return nested::reduce<O, D, N>(nest, cudaStreamFireAndForget, in, out, count, then);
}

template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome tail_reduce(const dpr_nest &nest, unsigned *ticket, const storage_of<D> *in, result_of<O, D> *out,
                               uint64_t count, Then then) {
    if (!take_ticket(ticket, gridDim.x * gridDim.y * gridDim.z))
        return outcome::left;
    *ticket = 0;
    return nested::reduce<O, D, N>(nest, cudaStreamTailLaunch, in, out, count, then);
}

} // namespace dpr

#endif
