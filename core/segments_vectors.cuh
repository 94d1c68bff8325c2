/* How segments.merge reduces vectors of elements and parts of them (segments_by_vector.cuh). */
#ifndef DPR_CORE_SEGMENTS_VECTORS_CUH
#define DPR_CORE_SEGMENTS_VECTORS_CUH

#include "segments_values.cuh"

namespace dpr {

/* Whether tiles are reduced by vectors (segments_by_vector.cuh), and not by chunks of elements (segments_tile.cuh),
 * because this is quicker. Elements of four bytes go by chunks if values lie in place, which saves their numbering. */
template <class M> constexpr bool goes_by_vector = sizeof(typename M::storage) <= (values_in_place<M> ? 2 : 4);

/* All bits of byte `first` and of those above it, in word `i` of a vector. */
__device__ inline uint32_t bytes_from(unsigned first, unsigned i) {
    return __funnelshift_lc(0, ~0u, max(static_cast<int>(8 * first - 32 * i), 0));
}

/* Returns the vector with `other` in place of all elements but low .. high-1. */
template <class T> __device__ packet<T> with_others(packet<T> p, unsigned low, unsigned high, T other) {
    uint32_t others = 0;
    memcpy(&others, &other, sizeof other);
    others *= sizeof(T) == 1 ? 0x01010101u : sizeof(T) == 2 ? 0x00010001u : 1;
#pragma unroll
    for (unsigned i = 0; i < p.words; ++i) {
        const uint32_t mask = bytes_from(sizeof(T) * low, i) & ~bytes_from(sizeof(T) * high, i);
        p.w[i] = (p.w[i] & mask) | (others & ~mask);
    }
    return p;
}

/* What a thread accumulates over vectors of a segment and parts of them, which come in rising order.
 *
 *   type               what it accumulates; identity()
 *   one                what is kept of a vector
 *   of(p)              of all elements of a vector
 *   of_part(p, l, h)   of elements l .. h-1, l < h; if there is an inverse, l <= h
 *   with(a, x, v)      a, to which vector number v is added, of which x is kept
 *   join(a, b)         of two threads */
template <class M, class Tile = typename M::tile> struct vector_run {
    using T = typename M::storage;
    using P = packet<T>;
    using type = typename M::lane;
    using one = type;

    static __device__ type identity() { return M::lane_identity(); }

    static __device__ one of(const P &p) {
        if constexpr (M::exchanges_lanes) {
            return lane_set<M>(p).total();
        } else {
            tile_of<M> t;
            t.add(p, 0);
            if constexpr (cuda::std::is_void_v<Tile>)
                return t.total();
            else
                return t.fold_into(M::identity(), [](unsigned) { return uint64_t{0}; });
        }
    }

    static __device__ one of_part(const P &p, unsigned low, unsigned high) {
        if constexpr (M::adds_words || !cuda::std::is_void_v<Tile>) {
            return of(with_others(p, low, high, M::neutral_element()));
        } else {
            type a = identity();
#pragma unroll
            for (unsigned e = 0; e < p.size; ++e)
                if (e >= low && e < high)
                    a = M::add(a, p[e]);
            return a;
        }
    }

    static __device__ type join(type a, type b) {
        return M::join(a, b);
    }
    static __device__ type with(type a, one x, unsigned) {
        return join(a, x);
    }
};

/* Of ARGMIN and ARGMAX, the best key and the vector that has it. */
template <class M, bool Least, dpr_dtype D, dpr_nan N> struct vector_run<M, arg_tile<Least, D, N>> {
    using P = packet<storage_of<D>>;
    using by = order<Least, D>;
    using one = typename by::key;
    static constexpr unsigned none = ~0u;
    static constexpr warp_op in_warp = Least ? warp_op::min : warp_op::max;
    struct type {
        one best;
        unsigned vector;
    };

    static __device__ type identity() { return {by::worst, none}; }
    static __device__ one of(const P &p) { return arg_tile<Least, D, N>::key_of_vector(p); }
    static __device__ one of_part(const P &p, unsigned low, unsigned high) {
        return of(with_others(p, low, high, M::neutral_element()));
    }
    static __device__ type with(type a, one x, unsigned v) {
        /* Only the key of an integer may be the worst one. */
        return by::better(x, a.best) || (!is_float<D> && a.vector == none) ? type{x, v} : a;
    }
    static __device__ type join(type a, type b) {
        return by::better(b.best, a.best) || (b.best == a.best && b.vector < a.vector) ? b : a;
    }
};

/* The values of a tile's vectors; if there is an inverse, of all vectors before each, and of each warp's. */
template <class M, bool = goes_by_vector<M>> struct vector_values {
    typename vector_run<M>::one of[tile_vectors];
    typename vector_run<M>::one of_warp[merge_warps];
};
template <class M> struct vector_values<M, false> {};

} // namespace dpr

#endif
