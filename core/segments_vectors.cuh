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
 *   join(a, b)         of two threads
 *   value(a)           what threads exchange; not of ARGMIN and ARGMAX, which have
 *   find(p, key, i)    the number of the first element of a vector that has a key, from number i on */
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
        if constexpr (M::adds_words || M::exchanges_lanes || !cuda::std::is_void_v<Tile>) {
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

    static __device__ typename partial<M>::type value(type a) {
        if constexpr (M::exchanges_lanes)
            return a;
        else
            return M::fold(M::identity(), a);
    }
};

/* MIN and MAX of 8- or 16-bit elements compare pairs of them; only the last pair is made a key. */
template <class M, bool Least, dpr_dtype D, dpr_nan N> struct vector_run<M, pair_tile<Least, D, N>> {
    using P = packet<storage_of<D>>;
    using pairs = pair_order<Least, D, N>;
    using type = uint32_t;
    using one = type;

    static __device__ type identity() { return pairs::identity; }
    static __device__ one of(const P &p) {
        return join(join(pairs::of_word(p.w[0]), pairs::of_word(p.w[1])),
                    join(pairs::of_word(p.w[2]), pairs::of_word(p.w[3])));
    }
    static __device__ one of_part(const P &p, unsigned low, unsigned high) {
        return of(with_others(p, low, high, M::neutral_element()));
    }
    static __device__ type join(type a, type b) { return pairs::best_of(a, b); }
    static __device__ type with(type a, one x, unsigned) { return join(a, x); }
    /* The identity of pairs of BOOL is no BOOL. */
    static __device__ typename M::acc value(type a) { return M::merge(M::identity(), pairs::key(a)); }
};

/* Elements of 8 or 16 bits in a word. */
template <dpr_dtype D, dpr_nan N> struct word_of_elements {
    using T = storage_of<D>;
    static constexpr bool bytes = sizeof(T) == 1;
    static constexpr uint32_t ones = bytes ? 0x01010101 : 0x00010001, highest = ones << (bytes ? 7 : 15);

    /* The highest bit of each element that has the key that `element` has, and no other bit. All NaNs have the same key
     * unless they are ignored. */
    static __device__ uint32_t with_key(uint32_t word, T element) {
        if constexpr (D == DPR_BOOL)
            word = __vminu4(word, ones);
        uint32_t one = 0;
        memcpy(&one, &element, sizeof element);
        if constexpr (is_float<D> && N != DPR_NAN_IGNORE) {
            if ((one & 0x7fff) > float_bits<D>::inf)
                return ((word & ~highest) + (0x7fff - float_bits<D>::inf) * ones) & highest;
        }
        const uint32_t other = word ^ one * ones;
        return ~(((other & ~highest) + ~highest) | other) & highest;
    }
};

/* The number of the first element of a vector that has a key, from number `from` on, which may be negative; 0 if there
 * is none. */
template <class M, bool Least, dpr_dtype D, dpr_nan N>
__device__ unsigned find_key(const packet<storage_of<D>> &p, typename order<Least, D>::key key, int from) {
    unsigned found = 0;
    if constexpr (in_pairs<D>) {
        const storage_of<D> element = extremum<Least, D, N>::finish(key);
        constexpr unsigned size = sizeof element;
        uint32_t has = 0;
#pragma unroll
        for (int i = p.words - 1; i >= 0; --i) {
            const uint32_t of_word =
                word_of_elements<D, N>::with_key(p.w[i], element) & bytes_from(size * static_cast<unsigned>(from), i);
            found = of_word != 0 ? i : found;
            has = of_word != 0 ? of_word : has;
        }
        return (4 * found + (31 - __clz(has & (0 - has))) / 8) / size;
    } else {
#pragma unroll
        for (int e = p.size - 1; e >= 0; --e)
            if (e >= from && M::has_key(p[e], key))
                found = e;
        return found;
    }
}

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
    static __device__ unsigned find(const P &p, one key, int from) { return find_key<M, Least, D, N>(p, key, from); }
};

/* The values of a tile's vectors; if there is an inverse, of all vectors before each, and of each warp's. */
template <class M, bool = goes_by_vector<M>> struct vector_values {
    typename vector_run<M>::one of[tile_vectors];
    typename vector_run<M>::one of_warp[merge_warps];
};
template <class M> struct vector_values<M, false> {};

} // namespace dpr

#endif
