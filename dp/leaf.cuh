/* A leaf: the part of the array that one block reads and folds. */
#ifndef DPR_DP_LEAF_CUH
#define DPR_DP_LEAF_CUH

#include "domain.cuh"
#include "nested_args.h"
#include "tile.cuh"

namespace dpr {

/* True for pairs that have device code: the valid ones, and one NaN policy only for types without NaN. */
template <dpr_op O, dpr_dtype D, int N>
constexpr bool has_code = domain_has(O, element<D>::kind) && has_own_kernels(O)
                          && (N == DPR_NAN_PROPAGATE || (element<D>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX)) != 0);

/* The part of the array that a block reads: neighbouring vectors. */
template <class M> struct leaf {
    using place = typename reader_of<M>::place;
    const reader_of<M> d;
    place first_of_tiles, rest, end;
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

    __device__ typename M::acc reduce(bool streaming) const {
        typename M::acc a = streaming ? reduce_tiles<M, true>(*this) : reduce_tiles<M, false>(*this);
        for (place p = rest; p < end; p += blockDim.x) {
            const auto one = d.template load<false>(p);
            tile_of<M> t;
            add_vectors<1, M>(t, &one, 0);
            a = t.fold_into(a, [&](unsigned) { return d.index(p); });
        }
        return a;
    }
};

template <class M> __device__ typename partial<M>::type reduce_leaf(const dpr_nested_args &args, uint64_t count) {
    using X = partial<M>;
    if constexpr (reader_of<M>::may_be_split) {
        const reader_of<M> d(args.run, count);
        if (d.is_split())
            return reduce_split_slice<M>(d, count);
    }
    const leaf<M> mine(args, count);
    const unaligned_ends<reader_of<M>> e(mine.d);
    return e.template with<M>(X::pack(mine.reduce(args.run.reading & DPR_READ_STREAMING)));
}

/* As reduce_block(), with dynamic shared memory: DPR_FOLD_BYTES of it, because the one kernel that is launched serves
 * all pairs. */
template <class M> __device__ typename partial<M>::type fold_block(typename partial<M>::type x) {
    extern __shared__ __align__(16) unsigned char shared[];
    static_assert(sizeof x <= DPR_PARTIAL_BYTES);
    return reduce_block<M>(x, reinterpret_cast<typename partial<M>::type *>(shared));
}

} // namespace dpr

#endif
