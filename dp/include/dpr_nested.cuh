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
 *   kernel, whatever that has launched.
 * - Neither your kernels nor any others may launch kernels of their own while launches of dpr's are pending: with
 *   launches of several kernels pending, an H200 (driver 580) hangs sooner or later. All of dpr's launches are of one
 *   kernel, and one thread of a warp makes them at a time; under these conditions the device refuses a launch for which
 *   its pool has no place. */
#ifndef DPR_NESTED_CUH
#define DPR_NESTED_CUH

#include "dpr.h"
#include "dpr/device/domain.cuh"
#include "dpr/device/finish.cuh"
#include "dpr/device/nests.cuh"

/* Bytes of stack that a continuation may take, with what it calls, unless the program raises the device's limit. */
#ifndef DPR_NEST_THEN_STACK
#define DPR_NEST_THEN_STACK 512
#endif

namespace dpr {

/* What became of a call. */
enum class outcome {
    launched, /* a launched grid does it */
    in_line,  /* the calling thread has done it: *out is written, and `then` was called */
    left,     /* tail_reduce() alone: the block that comes last asks for it */
    waiting   /* in a continuation: the launch was refused, and the thread does it when the continuation has returned */
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
 * One thread calls it; any number of threads may, each for an array of its own. Where the device's pool of pending
 * launches has no place, or `nest.launches` of the nest are pending, the launch is refused, and the thread does the
 * work in line, one element after the other: that is right too, but slow, and a floating-point sum or product may then
 * be rounded differently. dpr_nest_report() says how many calls were launched and how many refused. A larger pool
 * (dpr_ctx_options.pending_launches) admits more.
 *
 * `in` is aligned as dpr_dtype_alignment() says, and `out` as its type; `in` may be NULL where count is 0. On an H200
 * the device makes a launch each 0.3 us, and the grid starts some 10 us later: short arrays are better done by the
 * caller.
 *
 * @param then  a trivially copyable object of up to 64 bytes. One thread calls then(result) once *out is written: a
 *              thread of the launched grid or, in line, the calling thread. Writes of the continuation become visible
 *              after *out.
 *
 *              A continuation that asks for reductions itself, by nested_reduce(), is called as then(result, nest), and
 *              asks on that nest and on no other. Where a launch is refused whose continuation may ask as well, the
 *              thread does it when the continuation that asked has returned, so that work in line takes no more stack
 *              the deeper it goes. A thread has room for 65 calls that wait; one past them is done at once, inside the
 *              call, on the thread's stack.
 *
 *              It launches nothing else and has no shared memory. In a launched grid it runs in a kernel of dpr's, with
 *              64 registers a thread: compiled without -maxrregcount=64 it may need more, which ends the kernel with an
 *              error.
 *
 *              There it also has the stack that the kernel leaves of the device's limit (cudaLimitStackSize): 512 bytes
 *              where that is 1024, as CUDA sets it, and more by as much as the program raises it. More stack than there
 *              is ends the kernel with an error. What a continuation takes, nvcc -Xptxas -v prints as the "stack frame"
 *              of dpr::nested::follow<..., Then>; functions that it calls take theirs on top. A continuation may say
 * how much that is by a member `static constexpr unsigned stack_bytes`: if it is more than DPR_NEST_THEN_STACK, it does
 * not compile. That is 512; a program that raises the device's limit may define it as more before it includes this
 * header. */
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

/* Whether the continuation takes the nest, to ask for reductions itself. */
template <class R, class Then>
constexpr bool asks_again = cuda::std::is_invocable_v<Then &, const R &, const dpr_nest &>;

/* The stack that the continuation says it takes; 0 if it says nothing. */
template <class Then, class = void> constexpr unsigned stack_bytes_of = 0;
template <class Then>
constexpr unsigned stack_bytes_of<Then, cuda::std::void_t<decltype(Then::stack_bytes)>> = Then::stack_bytes;

/* Tells `then` the result: with the nest, if it takes that. */
template <class R, class Then> __device__ void tell(const dpr_nest &nest, const R &result, Then &then) {
    if constexpr (asks_again<R, Then>)
        then(result, nest);
    else
        then(result);
}

/* A follower. */
template <class R, class Then> __device__ void follow(const dpr_nest &nest, const void *out, void *then) {
    tell(nest, *static_cast<const R *>(out), *static_cast<Then *>(then));
}

/* How an array is divided among the blocks of a grid. */
struct divided {
    uint64_t vectors, leaf; /* whole ones; and those of a block */
    uint32_t head;          /* elements before the first */
    unsigned blocks;
};

template <class M> __device__ divided divide(const void *in, uint64_t count) {
    using T = typename M::storage;
    constexpr uint64_t unit = threads * M::vectors;
    const uint64_t before = (0 - reinterpret_cast<uintptr_t>(in)) % vector_bytes / sizeof(T);
    divided d;
    d.head = static_cast<uint32_t>(before < count ? before : count);
    d.vectors = (count - d.head) / packet<T>::size;
    const uint64_t units = d.vectors / unit + (d.vectors % unit != 0);
    const uint64_t each = units / DPR_NEST_BLOCKS + (units % DPR_NEST_BLOCKS != 0);
    d.leaf = each * unit;
    d.blocks = each == 0 ? 1 : static_cast<unsigned>(units / each + (units % each != 0));
    return d;
}

/* Puts what the launched grid needs into the slot. */
template <class R, class Then>
__device__ void fill_slot(dpr_nest_slot &slot, const dpr_nest &nest, uint32_t number, const dpr_nest_call &call) {
    slot.nest = nest;
    slot.nest.within = number + 1;
    slot.nest.line = nullptr;
    slot.follow = nullptr;
    if constexpr (!cuda::std::is_same_v<Then, nothing>) {
        slot.follow = reinterpret_cast<void *>(follow<R, Then>);
        memcpy(slot.then, call.then, sizeof(Then));
    }
}

/* Launches the grid for a call that has a slot. */
template <class M>
__device__ bool launch_grid(const dpr_nest &nest, cudaStream_t order, const dpr_nest_call &call, dpr_nest_slot &slot,
                            nest_grid grid) {
    const divided d = divide<M>(call.in, call.count);
    const auto fill = [&](dpr_nested_args &args) {
        args = {};
        args.run.in = call.in;
        args.run.out = call.out;
        args.run.count = call.count;
        args.run.vectors = d.vectors;
        args.run.head = d.head;
        args.tree.leaf = d.leaf;
        args.slot = &slot;
        args.go_on = reinterpret_cast<void *>(grid);
    };
    return launch_noted(&state_of(nest).account, slot.depth,
                        [&] { return launch_filled(launcher_of(nest).kernel, d.blocks, threads, order, fill); });
}

/* Whether a launched grid does it. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ bool launch_one(const dpr_nest &nest, cudaStream_t order, const dpr_nest_call &call) {
    using M = monoid<O, D, N>;
    constexpr bool has_nan = (element<D>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX)) != 0;
    const uint32_t number = take_slot(nest);
    if (number == none) {
        note_refusal(&state_of(nest).account);
        return false;
    }
    dpr_nest_slot &slot = slot_of(nest, number);
    fill_slot<typename M::result, Then>(slot, nest, number, call);
    open_launch(nest, number);
    const bool launched = launch_grid<M>(nest, order, call, slot, launcher_of(nest).grids[O][D][has_nan ? N : 0]);
    if (!launched)
        drop_launch(nest, number);
    return launched;
}

/* The same, one thread of a warp at a time: an H200 hangs where several of them launch at once. If a thread does
 * not get its turn within a time that is longer than all turns of a warp, the launch is refused. __noinline__, so that
 * a continuation's stack has this function's frame only once. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ __noinline__ bool launch(const dpr_nest &nest, cudaStream_t order, const dpr_nest_call &call) {
    unsigned *turn = &state_of(nest).turns[warp_number() % DPR_NEST_TURNS];
    for (int tries = 0; tries < 1 << 20; ++tries) {
        if (atomicExch(turn, 1) == 0) {
            const bool launched = launch_one<O, D, N, Then>(nest, order, call);
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

/* Writes the result of a call that no launched grid does. */
template <class M> __device__ __noinline__ void write_in_line(const dpr_nest &nest, const dpr_nest_call &call) {
    dpr_kernel_args run = {};
    run.in = call.in;
    run.out = call.out;
    note_in_line(&state_of(nest).account);
    write_result<M>(run, call.count, reduce_in_line<M>(static_cast<const typename M::storage *>(call.in), call.count));
    __threadfence();
}

/* Does the call in line. A waiting_run. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ __noinline__ void do_in_line(const dpr_nest &nest, dpr_nest_call &call) {
    using M = monoid<O, D, N>;
    write_in_line<M>(nest, call);
    tell(nest, *static_cast<typename M::result *>(call.out), *reinterpret_cast<Then *>(call.then));
}

/* The same in a thread that is in no continuation yet, and what comes of it. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ __noinline__ void do_all_in_line(const dpr_nest &nest, dpr_nest_call &call) {
    with_line(nest, [&](const dpr_nest &here) { do_in_line<O, D, N, Then>(here, call); });
}

/* Whether there was room for the call to wait. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ bool put_in_line(const dpr_nest &nest, const dpr_nest_call &call) {
    dpr_nest_call *place = place_in_line(nest);
    if (!place)
        return false;
    *place = call;
    place->run = reinterpret_cast<void *>(do_in_line<O, D, N, Then>);
    return true;
}

/* What both forms do; they differ in when the launched grid starts. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome reduce(const dpr_nest &nest, cudaStream_t order, const storage_of<D> *in, result_of<O, D> *out,
                          uint64_t count, const Then &then) {
    static_assert(cuda::std::is_trivially_copyable_v<Then>, "`then` is copied to the launched kernel byte by byte");
    static_assert(sizeof(Then) <= DPR_NEST_THEN_BYTES && alignof(Then) <= 8, "`then` is larger than a launch can hold");
    static_assert(stack_bytes_of<Then> <= DPR_NEST_THEN_STACK, "`then` takes more stack than a launched grid has");
    dpr_nest_call call;
    call.in = in;
    call.out = out;
    call.count = count;
    memcpy(call.then, &then, sizeof then);
    if (launch<O, D, N, Then>(nest, order, call))
        return outcome::launched;
    if constexpr (asks_again<result_of<O, D>, Then>) {
        if (!nest.line) {
            do_all_in_line<O, D, N, Then>(nest, call);
            return outcome::in_line;
        }
        if (put_in_line<O, D, N, Then>(nest, call))
            return outcome::waiting;
    }
    do_in_line<O, D, N, Then>(nest, call);
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
