/* dp.tree: a leaf for each part of the array, and one launch for each level of nodes above, until one is left. */
#include "family.cuh"
#include "nested.cuh"

namespace dpr {
namespace {

/* What a block reads of the array: neighbouring vectors. */
template <class M> struct leaf {
    using T = typename M::storage;
    using P = packet<T>;
    const division<T> d;
    const P *first_of_tiles, *rest, *end;
    uint64_t tiles, tile_step;

    __device__ leaf(const dpr_nested_args &args, uint64_t count) : d(args.run, count) {
        const uint64_t from = min(blockIdx.x * args.tree.leaf, d.vectors);
        const uint64_t size = min(args.tree.leaf, d.vectors - from);
        tile_step = M::vectors * blockDim.x;
        tiles = size / tile_step;
        first_of_tiles = d.body() + from + threadIdx.x;
        rest = first_of_tiles + tiles * tile_step;
        end = d.body() + from + size;
    }

    __device__ uint64_t index(const P *p) const { return d.head + (p - d.body()) * P::size; }

    __device__ typename M::acc reduce(bool streaming) const {
        typename M::acc a = streaming ? reduce_tiles<M, true>(*this) : reduce_tiles<M, false>(*this);
        for (const P *p = rest; p < end; p += blockDim.x) {
            const P one = load_packet<false>(p);
            tile_of<M> t;
            add_vectors<1, M>(t, &one, 0);
            a = t.fold_into(a, [&](unsigned) { return index(p); });
        }
        return a;
    }
};

template <class M> __device__ typename exchange<M>::type reduce_leaf(const dpr_nested_args &args, uint64_t count) {
    using X = exchange<M>;
    using T = typename M::storage;
    if constexpr (alignof(T) < sizeof(T)) {
        if (is_split<T>(args.run.in))
            return reduce_split_share<M>(static_cast<const T *>(args.run.in), count);
    }
    const leaf<M> mine(args, count);
    const ends<M> e(mine.d);
    return e.with(X::pack(mine.reduce(args.run.reading & DPR_READ_STREAMING)));
}

/* As reduce_block(), in memory that is the same for all pairs: there is one kernel for the nodes of all. */
template <class M> __device__ typename exchange<M>::type fold_block(typename exchange<M>::type x) {
    using X = exchange<M>;
    extern __shared__ __align__(16) unsigned char shared[];
    auto *of_warp = reinterpret_cast<typename X::type *>(shared);
    static_assert(sizeof x <= DPR_PARTIAL_BYTES);
    const unsigned warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
    x = reduce_warp<M>(x);
    if (in_warp == 0)
        of_warp[warp] = x;
    __syncthreads();
    return warp == 0 ? reduce_warp<M>(in_warp < blockDim.x / 32 ? of_warp[in_warp] : X::identity()) : x;
}

/* A node's children, in their order. */
template <class M>
__device__ typename exchange<M>::type reduce_children(const typename exchange<M>::type *children, unsigned n) {
    using X = exchange<M>;
    typename M::acc a = M::identity();
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        a = M::merge(a, X::unpack(children[i]));
    return X::pack(a);
}

/* The level above the one that `args` is for. */
__device__ inline dpr_nested_args level_above(dpr_nested_args args, unsigned width) {
    args.first += args.level > 0 ? args.children : 0;
    args.children = width;
    args.level++;
    return args;
}

/* Node number `node` of a level of `width`, by the whole block: its value goes to memory, or is the run's result. */
template <class M> __device__ void do_node(const dpr_nested_args &args, uint64_t count, unsigned node, unsigned width) {
    using X = exchange<M>;
    auto *partials = static_cast<typename X::type *>(args.work) + args.first;
    typename X::type x;
    if (args.level == 0) {
        x = reduce_leaf<M>(args, count);
    } else {
        const unsigned from = node * args.tree.fan;
        x = reduce_children<M>(partials + from, min(args.tree.fan, args.children - from));
        partials += args.children;
    }
    x = fold_block<M>(x);
    if (threadIdx.x != 0)
        return;
    if (width > 1) {
        partials[node] = x;
    } else {
        close_account(args);
        write_result<M>(args.run, count, X::unpack(x));
    }
}

/* All levels above, by one block. */
template <class M> __device__ void do_levels_above(dpr_nested_args args, uint64_t count, unsigned width) {
    while (width > 1) {
        args = level_above(args, width);
        width = dpr_tree_above(width, args.tree.fan);
        for (unsigned node = 0; node < width; ++node) {
            __syncthreads();
            do_node<M>(args, count, node, width);
        }
        __syncthreads();
    }
}

template <class M> __device__ void do_level(const dpr_nested_args &args) {
    nested_account &account = account_of(args);
    const unsigned width = gridDim.x;
    const uint64_t count = elements(args.run);
    const bool launches = width > 1 && args.depth < args.max_depth;
    /* Starts when all blocks are done, so it may be launched before. */
    if (launches && blockIdx.x == 0 && threadIdx.x == 0) {
        const unsigned wide = dpr_tree_above(width, args.tree.fan);
        account.left =
            !launch_nested<do_level<M>>(args, level_above(args, width), wide, blockDim.x, cudaStreamTailLaunch, false);
    }
    do_node<M>(args, count, blockIdx.x, width);
    if (width > 1) {
        if (!last_to_arrive(&account.ticket))
            return;
        const bool left = account.left || !launches;
        if (threadIdx.x == 0) {
            account.ticket = 0;
            if (left)
                note_in_line(args);
        }
        __syncthreads();
        if (left)
            do_levels_above<M>(args, count, width);
    }
    if (args.depth > 0 && threadIdx.x == 0)
        give_credits_back(1);
}

/* Pairs that have no meaning, and NaN policies of types without NaN, have a kernel that does nothing: nobody asks for
 * it. */
template <dpr_op O, dpr_dtype D, int N>
constexpr bool has_kernel = domain_has(O, element<D>::kind)
                            && (N == DPR_NAN_PROPAGATE
                                || (element<D>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX)) != 0);

template <dpr_op O, dpr_dtype D, int N> __device__ void do_level_of(const dpr_nested_args &args) {
    if constexpr (has_kernel<O, D, N>)
        do_level<monoid<O, D, static_cast<dpr_nan>(N)>>(args);
}

} // namespace

/* ---- The kernels, by the names that the host asks for ---- */

#define DPR_TREE_KERNEL(OP, DTYPE, NAN)                                                                                \
    extern "C" __global__ void __launch_bounds__(512, 2)                                                               \
        dpr_tree_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                                \
        do_level_of<DPR_##OP, DPR_##DTYPE, NAN>(args);                                                                 \
    }
#define DPR_TREE_TYPE(OP, DTYPE, ...) DPR_TREE_KERNEL(OP, DTYPE, 0) DPR_TREE_KERNEL(OP, DTYPE, 1)
#define DPR_TREE_OP(A, OP, ...) DPR_DTYPE_LIST(DPR_TREE_TYPE, OP)

DPR_OP_LIST(DPR_TREE_OP, _)

} // namespace dpr
