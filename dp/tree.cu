/* dp.tree: a leaf for each part of the array, and one launch for each level of nodes above, until one is left. */
#include "leaf.cuh"
#include "run_launches.cuh"

namespace dpr {
namespace {

/* Reduces the calling thread's part of a node's `n` children, in a fixed order. */
template <class M>
__device__ typename partial<M>::type reduce_children(const typename partial<M>::type *children, unsigned n) {
    using X = partial<M>;
    typename M::acc a = M::identity();
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        a = M::merge(a, X::unpack(children[i]));
    return X::pack(a);
}

/* Makes `above` what differs in the arguments of the level above that of `args`, which has `width` nodes. */
__device__ inline void go_up(dpr_nested_args &above, const dpr_nested_args &args, unsigned width) {
    above.first = args.first + (args.level > 0 ? args.children : 0);
    above.children = width;
    above.level = args.level + 1;
}

/* Reduces the block's values `x` and writes the node. */
template <class M> __device__ void put_node(typename partial<M>::type x, typename partial<M>::type *node) {
    x = fold_block<M>(x);
    if (threadIdx.x == 0)
        *node = x;
}

template <class M> __device__ typename partial<M>::type *partials_of(const dpr_nested_args &args) {
    return static_cast<typename partial<M>::type *>(args.run.workspace) + args.first;
}

/* Reduces a node above the leaves. The whole block calls it. */
template <class M> __device__ void do_node(const dpr_nested_args &args, unsigned node) {
    auto *children = partials_of<M>(args);
    const unsigned from = node * args.tree.fan;
    put_node<M>(reduce_children<M>(children + from, min(args.tree.fan, args.children - from)),
                children + args.children + node);
}

/* Reduces all levels above. One block does all of them. */
template <class M> __device__ void do_levels_above(dpr_nested_args args, unsigned width) {
    while (width > 1) {
        go_up(args, args, width);
        width = dpr_tree_above(width, args.tree.fan);
        for (unsigned node = 0; node < width; ++node) {
            __syncthreads();
            do_node<M>(args, node);
        }
        __syncthreads();
    }
}

/* Launches the level above, which calls `go_on`. Returns true if it was launched. Thread 0 calls it. */
__device__ inline bool launch_level_above(const dpr_nested_args &args, continuation go_on) {
    if (take_launches(args, 1) == 0) {
        note_refusal(args);
        return false;
    }
    const unsigned width = gridDim.x;
    return launch_next(args, dpr_tree_above(width, args.tree.fan), blockDim.x, cudaStreamTailLaunch,
                       [&](dpr_nested_args &next) {
                           go_up(next, args, width);
                           next.go_on = reinterpret_cast<void *>(go_on);
                       });
}

template <class M> __device__ void do_level(const dpr_nested_args &args);

/* Ends a level: its last block to be done launches the level above, or, if it cannot, does all levels above itself. */
template <class M> __device__ void end_level(const dpr_nested_args &args) {
    __shared__ bool launched;
    run_account &account = account_of(args);
    if (gridDim.x == 1 || !last_to_arrive(&account.ticket))
        return;
    if (threadIdx.x == 0) {
        account.ticket = 0;
        launched = launch_level_above(args, do_level<M>);
        if (!launched)
            note_in_line(args);
    }
    __syncthreads();
    if (!launched)
        do_levels_above<M>(args, gridDim.x);
}

template <class M> __device__ void do_level(const dpr_nested_args &args) {
    do_node<M>(args, blockIdx.x);
    end_level<M>(args);
}

template <class M> __device__ void do_leaves(const dpr_nested_args &args) {
    put_node<M>(reduce_leaf<M>(args, elements(args.run)), partials_of<M>(args) + blockIdx.x);
    end_level<M>(args);
}

/* The second kernel that the host launches, of which one thread works; `first` is where the root is. It also makes a
 * captured run wait for what the first kernel has launched: on an H200 (driver 580), a graph of one kernel is done
 * before the launches that follow that kernel. */
template <class M> __device__ void end_run(const dpr_nested_args &args) {
    const uint64_t count = elements(args.run);
    close_account(args);
    write_result<M>(args.run, count, partial<M>::unpack(*partials_of<M>(args)));
}

/* Invalid pairs, and one of the NaN policies of types without NaN, have kernels that do nothing, which are never
 * launched. */
template <dpr_op O, dpr_dtype D, int N> __device__ void do_leaves_of(const dpr_nested_args &args) {
    if constexpr (has_code<O, D, N>)
        do_leaves<monoid<O, D, static_cast<dpr_nan>(N)>>(args);
}

template <dpr_op O, dpr_dtype D, int N> __device__ void end_run_of(const dpr_nested_args &args) {
    if constexpr (has_code<O, D, N>)
        end_run<monoid<O, D, static_cast<dpr_nan>(N)>>(args);
}

} // namespace

/* ---- The kernels, by the names that the host asks for ---- */

#define DPR_TREE_KERNEL(OP, DTYPE, NAN)                                                                                \
    extern "C" __global__ void __launch_bounds__(DPR_NESTED_THREADS, 2)                                                \
        dpr_tree_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                                \
        do_leaves_of<DPR_##OP, DPR_##DTYPE, NAN>(args);                                                                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(32)                                                                   \
        dpr_end_tree_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                            \
        if (threadIdx.x == 0)                                                                                          \
            end_run_of<DPR_##OP, DPR_##DTYPE, NAN>(args);                                                              \
    }
#define DPR_TREE_TYPE(OP, DTYPE, ...) DPR_TREE_KERNEL(OP, DTYPE, 0) DPR_TREE_KERNEL(OP, DTYPE, 1)
#define DPR_TREE_OP(A, OP, ...) DPR_DTYPE_LIST(DPR_TREE_TYPE, OP)

DPR_OP_LIST(DPR_TREE_OP, _)

} // namespace dpr
