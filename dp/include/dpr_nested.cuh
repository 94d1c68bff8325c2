/* dpr: reductions inside your own kernels, done by grids that those kernels launch.
 *
 *     __global__ void rows(dpr_launcher launcher, const float *x, const uint64_t *begin, float *sums) {
 *         const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
 *         dpr::nested_reduce<DPR_SUM, DPR_F32>(launcher, x + begin[row], sums + row, begin[row + 1] - begin[row]);
 *     }
 *
 * dpr_launcher_create() (dpr.h) makes the launcher on the host. If the library's launchers are of another version than
 * those of this header, all launches are refused. You need nvcc with C++17, and devices of compute capability 7.0 or
 * more:
 *
 *     nvcc -std=c++17 -rdc=true -maxrregcount=64 -arch=sm_90 rows.cu $(pkg-config --cflags --libs dpr) -lcudadevrt
 *
 * Element types are the C types of dtypes.def (DPR_F16 and DPR_BF16: uint16_t), and result types those of
 * dpr_result_dtype(). dpr.h says what elements, NaN and results mean. The result of no elements is the identity; for
 * ARGMIN and ARGMAX it is -1. Pairs of operation and type without a meaning do not compile.
 *
 * Launches from kernels have rules, which hold here too:
 * - A launched kernel sees what the launching thread sees at the call. It sees what other threads of the block have
 *   written only if __syncthreads() comes between. For arrays that other blocks write there is tail_reduce().
 * - The calling thread does not see the result. The next kernel in the calling kernel's stream sees it, `then` does,
 *   and the host does after it has waited for the calling kernel, which ends only after everything that it launched.
 * - `in` and `out` must not be in shared or local memory, and `then` must not hold pointers to such memory.
 * - Kernels that are launched cooperatively or from a device graph must not call these functions. In a captured graph,
 *   another kernel must follow the calling one, even if it is empty: an H200 (driver 580) may regard a graph as done at
 *   the end of its last kernel, whatever that kernel has launched.
 * - No kernel, yours or another, may launch kernels of its own while launches of dpr's are pending: if launches of
 *   several kernels are pending, an H200 (driver 580) hangs sooner or later. All of dpr's launches are of one kernel,
 *   and one thread of a warp makes them at a time. Under these conditions the device refuses a launch that its launch
 *   pool has no place for, and nothing is lost. */
#ifndef DPR_NESTED_CUH
#define DPR_NESTED_CUH

#include "dpr.h"
#include "dpr/device/domain.cuh"
#include "dpr/device/finish.cuh"
#include "dpr/device/launcher.cuh"

/* Stack, in bytes, that a continuation and the functions that it calls may use. 512 is what CUDA's default limit of
 * 1024 leaves. A program that raises the device's limit may define more. */
#ifndef DPR_LAUNCHER_THEN_STACK
#define DPR_LAUNCHER_THEN_STACK 512
#endif

namespace dpr {

/* What a call has done. */
enum class outcome {
    launched, /* a grid was launched, which reduces the array */
    in_line,  /* the calling thread has reduced it: *out is written, and `then` was called */
    left,     /* only by tail_reduce(): the last block to call it makes the request */
    waiting   /* in a continuation: the launch was refused, and the thread does the work after the continuation has
                 returned */
};

/* A continuation that does nothing. */
struct nothing {
    template <class R> __device__ void operator()(const R &) const {}
};

template <dpr_op O, dpr_dtype D> struct valid_pair {
    static constexpr bool has_meaning = domain_has(O, element<D>::kind);
    static_assert(has_meaning, "the operation has no meaning for this element type");
    static_assert(has_own_kernels(O), "launchers do not run this operation");
    using result = typename monoid<O, D, DPR_NAN_PROPAGATE>::result;
};

template <dpr_op O, dpr_dtype D> using result_of = typename valid_pair<O, D>::result;

/* Reduces in[0 .. count-1] to *out by a grid that starts at once and that nobody waits for ("fire and forget").
 *
 * One thread calls it; any number of threads may, each for its own array. The device refuses the launch if its launch
 * pool is full, and the library does if `launcher.launches` launches of the launcher are pending. The thread then
 * reduces the array in line, one element after another: the result is right, but this is slow, and a floating-point sum
 * or product may be rounded differently. dpr_launcher_report() counts launched and refused calls. A larger pool
 * (dpr_ctx_options.pending_launches) admits more launches.
 *
 * `in` must be aligned to dpr_dtype_alignment() bytes, and `out` as its type is; `in` may be NULL if count is 0. An
 * H200 makes one launch each 0.3 us, and the grid starts some 10 us later: the caller reduces short arrays faster
 * itself.
 *
 * @param then  a trivially copyable object of at most 64 bytes. One thread calls then(result) after *out is written: a
 *              thread of the launched grid or, in line, the calling thread. The continuation's writes become visible
 *              after *out.
 *
 *              A continuation that requests reductions itself, by nested_reduce(), is called as then(result, launcher),
 *              and must pass that launcher and no other. If such a request's launch is refused and its own continuation
 *              takes a launcher too, the thread does the work after the requesting continuation has returned, so that
 *              work in line takes no more stack the deeper it goes. A thread has room for 65 waiting calls, and for one
 *              if the launcher is of another version; it does any further one at once, inside the call, on its own
 *              stack.
 *
 *              A continuation must launch nothing else, and has no shared memory. In a launched grid it runs in one of
 *              dpr's kernels, which has 64 registers a thread: code that is compiled without -maxrregcount=64 may need
 *              more, which ends the kernel with an error.
 *
 *              In a launched grid, its stack is what the kernel leaves of the device's limit (cudaLimitStackSize): 512
 *              bytes at 1024, CUDA's default, and more by as much as the program raises the limit. A continuation that
 *              uses more ends the kernel with an error. nvcc -Xptxas -v prints what a continuation uses as the "stack
 *              frame" of dpr::nested::follow<..., Then>; functions that it calls use more on top. A continuation may
 *              declare its stack by a member `static constexpr unsigned stack_bytes`: it does not compile if that is
 *              more than DPR_LAUNCHER_THEN_STACK, which is 512. A program that raises the device's limit may define
 *              DPR_LAUNCHER_THEN_STACK as more before it includes this header. */
template <dpr_op O, dpr_dtype D, dpr_nan N = DPR_NAN_PROPAGATE, class Then = nothing>
__device__ outcome nested_reduce(const dpr_launcher &launcher, const storage_of<D> *in, result_of<O, D> *out,
                                 uint64_t count, Then then = {});

/* Reduces an array that the calling kernel's grid writes. One thread of each block calls it, with the same arguments,
 * after its block has written its part and called __syncthreads(). The last block to call makes the request, as
 * nested_reduce() does, but for a grid that starts when the calling grid is done. The other blocks get outcome::left.
 * Requests of one grid run one after another, some 10 us apart.
 *
 * The last block makes the request, not the first, although the launch waits for the whole grid: an H200 (driver 580)
 * has been seen to start such a launch before all blocks had ended. So nothing is done unless all blocks call it.
 * Continuations cannot use it, because one thread runs them; they use nested_reduce().
 *
 * @param ticket  a word in device memory for each array that the grid requests. It must be 0 before the first block
 *                calls; it is 0 again after the last block has. */
template <dpr_op O, dpr_dtype D, dpr_nan N = DPR_NAN_PROPAGATE, class Then = nothing>
__device__ outcome tail_reduce(const dpr_launcher &launcher, unsigned *ticket, const storage_of<D> *in,
                               result_of<O, D> *out, uint64_t count, Then then = {});

/* ---- How it is done --------------------------------------------------------------------------------------------- */

namespace nested {

/* ---- The calling thread ---- */

constexpr unsigned threads = 256;

/* True if the continuation takes the launcher, so that it may request reductions itself. */
template <class R, class Then>
constexpr bool asks_again = cuda::std::is_invocable_v<Then &, const R &, const dpr_launcher &>;

/* Stack, in bytes, that the continuation declares; 0 if it declares none. */
template <class Then, class = void> constexpr unsigned stack_bytes_of = 0;
template <class Then>
constexpr unsigned stack_bytes_of<Then, cuda::std::void_t<decltype(Then::stack_bytes)>> = Then::stack_bytes;

/* Calls `then` with the result, and with the launcher if it takes that. */
template <class R, class Then> __device__ void tell(const dpr_launcher &launcher, const R &result, Then &then) {
    if constexpr (asks_again<R, Then>)
        then(result, launcher);
    else
        then(result);
}

/* A follower (launcher.cuh): calls the continuation at `then` with the result at `out`. */
template <class R, class Then> __device__ void follow(const dpr_launcher &launcher, const void *out, void *then) {
    tell(launcher, *static_cast<const R *>(out), *static_cast<Then *>(then));
}

/* How an array is divided among the blocks of a grid. */
struct divided {
    uint64_t vectors, leaf; /* whole vectors of the array; vectors of one block */
    uint32_t head;          /* elements before the first whole vector */
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
    const uint64_t each = units / DPR_LAUNCHER_BLOCKS + (units % DPR_LAUNCHER_BLOCKS != 0);
    d.leaf = each * unit;
    d.blocks = each == 0 ? 1 : static_cast<unsigned>(units / each + (units % each != 0));
    return d;
}

/* Writes what the launched grid needs to the slot. */
template <class R, class Then>
__device__ void fill_slot(dpr_launch_slot &slot, const dpr_launcher &launcher, uint32_t number,
                          const dpr_waiting_call &call) {
    slot.launcher = launcher;
    slot.launcher.within = number + 1;
    slot.launcher.line = nullptr;
    slot.follow = nullptr;
    if constexpr (!cuda::std::is_same_v<Then, nothing>) {
        slot.follow = reinterpret_cast<void *>(follow<R, Then>);
        memcpy(slot.then, call.then, sizeof(Then));
    }
}

/* Launches the grid for a call that has a slot. */
template <class M>
__device__ bool launch_grid(const dpr_launcher &launcher, cudaStream_t order, const dpr_waiting_call &call,
                            dpr_launch_slot &slot, reduce_grid grid) {
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
    return launch_noted(&state_of(launcher).account, slot.depth,
                        [&] { return launch_filled(table_of(launcher).kernel, d.blocks, threads, order, fill); });
}

/* Takes a slot and launches a grid for the call. Returns false if there is no slot, or if the launch was not made. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ bool launch_one(const dpr_launcher &launcher, cudaStream_t order, const dpr_waiting_call &call) {
    using M = monoid<O, D, N>;
    constexpr bool has_nan = (element<D>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX)) != 0;
    const uint32_t number = take_slot(launcher);
    if (number == none) {
        note_refusal(&state_of(launcher).account);
        return false;
    }
    dpr_launch_slot &slot = slot_of(launcher, number);
    fill_slot<typename M::result, Then>(slot, launcher, number, call);
    open_launch(launcher, number);
    const bool launched =
        launch_grid<M>(launcher, order, call, slot, table_of(launcher).grids[DPR_ROW(O)][DPR_ROW(D)][has_nan ? N : 0]);
    if (!launched)
        drop_launch(launcher, number);
    return launched;
}

/* As launch_one(), but one thread of a warp at a time: an H200 hangs if several threads of a warp launch at once. If a
 * thread does not get its turn within a time that is longer than all turns of a warp, its launch is refused.
 * __noinline__, so that a continuation's stack has this function's frame only once. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ __noinline__ bool launch(const dpr_launcher &launcher, cudaStream_t order, const dpr_waiting_call &call) {
    if (!is_known(launcher)) {
        if (account_of(launcher))
            note_refusal(account_of(launcher));
        return false;
    }
    unsigned *turn = &state_of(launcher).turns[warp_number() % DPR_LAUNCHER_TURNS];
    for (int tries = 0; tries < 1 << 20; ++tries) {
        if (atomicExch(turn, 1) == 0) {
            const bool launched = launch_one<O, D, N, Then>(launcher, order, call);
            __threadfence();
            atomicExch(turn, 0);
            return launched;
        }
        __nanosleep(200);
    }
    note_refusal(&state_of(launcher).account);
    return false;
}

template <class M> __device__ typename M::acc reduce_in_line(const typename M::storage *in, uint64_t count) {
    typename M::acc a = M::identity();
#pragma unroll 4
    for (uint64_t i = 0; i < count; ++i) {
        if constexpr (M::holds_index)
            a = M::merge(a, M::of_element(in[i], i));
        else
            a = M::fold(a, M::add(M::lane_identity(), in[i]));
    }
    return a;
}

/* Reduces the call's array in this thread and writes the result. */
template <class M>
__device__ __noinline__ void write_in_line(const dpr_launcher &launcher, const dpr_waiting_call &call) {
    dpr_kernel_args run = {};
    run.in = call.in;
    run.out = call.out;
    if (account_of(launcher))
        note_in_line(account_of(launcher));
    write_result<M>(run, call.count, reduce_in_line<M>(static_cast<const typename M::storage *>(call.in), call.count));
    __threadfence();
}

/* A waiting_run (launcher.cuh): does the call in line. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ __noinline__ void do_in_line(const dpr_launcher &launcher, dpr_waiting_call &call) {
    using M = monoid<O, D, N>;
    write_in_line<M>(launcher, call);
    tell(launcher, *static_cast<typename M::result *>(call.out), *reinterpret_cast<Then *>(call.then));
}

/* As do_in_line(), for a thread that runs no continuation: also does the calls that come to wait meanwhile. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ __noinline__ void do_all_in_line(const dpr_launcher &launcher, dpr_waiting_call &call) {
    with_line(launcher, [&](const dpr_launcher &here) { do_in_line<O, D, N, Then>(here, call); });
}

/* Puts the call into the thread's line, to be done later. Returns false if there is no room. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ bool put_in_line(const dpr_launcher &launcher, const dpr_waiting_call &call) {
    dpr_waiting_call *place = place_in_line(launcher);
    if (!place)
        return false;
    *place = call;
    place->run = reinterpret_cast<void *>(do_in_line<O, D, N, Then>);
    return true;
}

/* nested_reduce(), and tail_reduce() in the last block: `order` is the stream that says when the launched grid
 * starts. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome reduce(const dpr_launcher &launcher, cudaStream_t order, const storage_of<D> *in,
                          result_of<O, D> *out, uint64_t count, const Then &then) {
    static_assert(cuda::std::is_trivially_copyable_v<Then>, "'then' is copied to the launched kernel byte by byte");
    static_assert(sizeof(Then) <= DPR_LAUNCHER_THEN_BYTES && alignof(Then) <= 8,
                  "'then' is larger than a launch can hold");
    static_assert(stack_bytes_of<Then> <= DPR_LAUNCHER_THEN_STACK, "'then' takes more stack than a launched grid has");
    dpr_waiting_call call;
    call.in = in;
    call.out = out;
    call.count = count;
    memcpy(call.then, &then, sizeof then);
    if (launch<O, D, N, Then>(launcher, order, call))
        return outcome::launched;
    if constexpr (asks_again<result_of<O, D>, Then>) {
        if (!launcher.line) {
            do_all_in_line<O, D, N, Then>(launcher, call);
            return outcome::in_line;
        }
        if (put_in_line<O, D, N, Then>(launcher, call))
            return outcome::waiting;
    }
    do_in_line<O, D, N, Then>(launcher, call);
    return outcome::in_line;
}

} // namespace nested

template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome nested_reduce(const dpr_launcher &launcher, const storage_of<D> *in, result_of<O, D> *out,
                                 uint64_t count, Then then) {
    return nested::reduce<O, D, N>(launcher, cudaStreamFireAndForget, in, out, count, then);
}

template <dpr_op O, dpr_dtype D, dpr_nan N, class Then>
__device__ outcome tail_reduce(const dpr_launcher &launcher, unsigned *ticket, const storage_of<D> *in,
                               result_of<O, D> *out, uint64_t count, Then then) {
    if (!take_ticket(ticket, gridDim.x * gridDim.y * gridDim.z))
        return outcome::left;
    *ticket = 0;
    return nested::reduce<O, D, N>(launcher, cudaStreamTailLaunch, in, out, count, then);
}

} // namespace dpr

#endif
