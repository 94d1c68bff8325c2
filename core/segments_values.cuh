/* What a thread of segments.merge accumulates, and where the values of a tile's segments lie. */
#ifndef DPR_CORE_SEGMENTS_VALUES_CUH
#define DPR_CORE_SEGMENTS_VALUES_CUH

#include "tile.cuh"

namespace dpr {

constexpr unsigned merge_workers = 256; /* threads that reduce */
constexpr unsigned merge_warps = merge_workers / 32;
constexpr unsigned merge_threads = merge_workers + 32; /* one more warp fetches */
constexpr unsigned vectors_of_worker = 5;              /* of a tile; odd, so that threads read different banks */
constexpr unsigned vectors_of_warp = 32 * vectors_of_worker;
constexpr unsigned chunk_bytes = vectors_of_worker * vector_bytes;
constexpr unsigned line_bytes = 128;
constexpr unsigned tile_vectors = merge_workers * vectors_of_worker;
constexpr unsigned tile_elements_bytes = tile_vectors * vector_bytes;
/* Bytes of the path in a tile. Its elements may begin anywhere in a line, and a place on the path is exact but for 31
 * bytes. If ends count work, too, a tile may begin farther before its place, but then it begins with an end, which has
 * fewer bytes than it counts. */
constexpr unsigned tile_bytes = tile_elements_bytes - line_bytes - 32;
constexpr unsigned merge_stages = 2;
constexpr unsigned few_ends = 8; /* the most in a tile that is reduced in pieces */
static_assert(few_ends < 32, "a lane for each, and one for what is behind them");

/* A lane's vectors among those of its warp's share of a tile, of which number `from` is the first. */
template <class T> class vectors_of_lane {
    const unsigned first;
    packet<T> p[vectors_of_worker];

    __device__ unsigned number(unsigned i) const { return first + 32 * i; }

  public:
    /* Loads all of them at once. A number beyond the last vector of a stage's elements loads that last vector. */
    __device__ vectors_of_lane(const unsigned char *stage, unsigned from) : first(from + threadIdx.x % 32) {
#pragma unroll
        for (unsigned i = 0; i < vectors_of_worker; ++i)
            p[i] = reinterpret_cast<const packet<T> *>(stage)[min(number(i), tile_vectors - 1)];
    }

    /* Calls f(vector, number) for those before number `to`. */
    template <class F> __device__ void each_before(unsigned to, F f) const {
#pragma unroll
        for (unsigned i = 0; i < vectors_of_worker; ++i)
            if (number(i) < to)
                f(p[i], number(i));
    }
};

/* What a thread accumulates over neighbouring elements, which have positions in a tile. value(a, first) is what threads
 * exchange; the element at position 0 would have index `first`. */
template <class M, class Tile = typename M::tile> struct running {
    using type = typename M::lane;
    static __device__ type identity() { return M::lane_identity(); }
    static __device__ type add(type a, typename M::storage x, unsigned) { return M::add(a, x); }
    static __device__ typename partial<M>::type value(type a, uint64_t) {
        if constexpr (M::exchanges_lanes)
            return a;
        else
            return M::fold(M::identity(), a);
    }
    /* Where values lie in place, they are lanes. */
    static __device__ type of_value(typename partial<M>::type x) { return static_cast<type>(x); }
};

/* MIN and MAX of F32 compare the elements themselves, not keys. */
template <class M, bool Least, dpr_nan N> struct running<M, float_tile<Least, N>> {
    using type = float;
    static __device__ type identity() { return bits_as<float>(Least ? 0x7f800000 : 0xff800000); }
    static __device__ type add(type a, float x, unsigned) { return extreme<Least, N>(a, x); }
    static __device__ typename partial<M>::type value(type a, uint64_t) {
        return order<Least, DPR_F32>::template of<N>(a);
    }
    static __device__ type of_value(typename partial<M>::type x) { return M::finish(x); }
};

/* ARGMIN and ARGMAX keep a position, not an index. */
template <class M, bool Least, dpr_dtype D, dpr_nan N> struct running<M, arg_tile<Least, D, N>> {
    using by = order<Least, D>;
    struct type {
        typename by::key best;
        unsigned position;
    };
    static __device__ type identity() { return {by::worst, M::none_of_some}; }

    static __device__ type add(type a, storage_of<D> x, unsigned position) {
        M::take_better(a.best, a.position, x, position);
        return a;
    }
    static __device__ typename M::acc value(type a, uint64_t first) {
        return a.position == M::none_of_some ? M::identity() : typename M::acc{a.best, first + a.position};
    }
};

/* What a thread accumulates over the elements of its chunk, in their order, since the last end of a segment. `i` is the
 * number of an element in the chunk, which the compiler knows. */
template <class M, bool = M::exchanges_lanes> class chunk_value {
    using R = running<M>;
    typename R::type a = R::identity();

  public:
    __device__ void add(typename M::storage x, unsigned, unsigned position) { a = R::add(a, x, position); }
    __device__ typename R::type after(unsigned) const { return a; } /* of all elements up to the last added one, `i` */
    __device__ void reset() { a = R::identity(); }
};

/* Sums of floats round in each addition. The chunk is added in parts, so that an element takes part in at most 7
 * additions that round if a chunk has 10 elements, in 8 if it has 20, and in 9 if it has 24. The scan over k threads
 * adds log2 k, rounded up, and packing what is carried to a value, adding it, and an initial value one each. So the sum
 * of a segment of n elements has no more than the log2(n) + 8 roundings that dpr.h promises: k full chunks of 20 have
 * at most log2(k) + 12, and log2(20 k) + 8 is more. */
template <class M> class chunk_value<M, true> {
    typename M::lane before = M::lane_identity(), a = M::lane_identity(); /* of the parts before, and of this one */

    static constexpr __device__ bool begins_part(unsigned i) { return i == 7 || i == 14 || i == 22; }

  public:
    __device__ void add(typename M::storage x, unsigned i, unsigned) {
        if (begins_part(i)) {
            before = after(i - 1);
            a = M::lane_identity();
        }
        a = M::add(a, x);
    }
    __device__ typename M::lane after(unsigned i) const { return i < 7 ? a : M::join(before, a); }
    __device__ void reset() { before = a = M::lane_identity(); }
};

/* Where a tile's values lie that belong to ends of segments: at the place of the segment's last element, if they take
 * no more memory than an element; otherwise one behind the other in memory of their own. */
template <class M>
constexpr bool values_in_place = sizeof(typename partial<M>::type) <= sizeof(typename M::storage)
                                 && sizeof(typename partial<M>::type) == sizeof(typename running<M>::type);

/* A bit for each element of a chunk: whether it is the last one of its segment. */
template <unsigned Elements> struct chunk_mask {
    static_assert(Elements < 32);
    uint32_t bits = 0;

    __device__ bool operator[](unsigned e) const { return bits >> e & 1; }

    /* Sets bit `e`, if there is one. Returns what it was. */
    __device__ bool set(unsigned e) {
        const uint32_t bit = e < Elements ? 1u << e : 0;
        const bool was = bits & bit;
        bits |= bit;
        return was;
    }

    /* The number of the lowest bit that is set. */
    __device__ unsigned lowest() const { return __ffs(static_cast<int>(bits)) - 1; }

    __device__ unsigned count() const { return __popc(bits); }

    /* How many bits are set before number `e`. */
    __device__ unsigned before(unsigned e) const { return __popc(bits & ((1u << e) - 1)); }
};

/* What ends of segments need whose values do not lie in place. */
template <class M, bool = values_in_place<M>> struct end_values {
    static constexpr unsigned end_bytes = sizeof(uint32_t) + sizeof(typename M::result);
    static constexpr unsigned most = tile_bytes / (sizeof(typename M::storage) + end_bytes) + 32;
    alignas(16) typename partial<M>::type value[most];
    chunk_mask<chunk_bytes / sizeof(typename M::storage)> mask[merge_workers]; /* of each thread's chunk */
    uint16_t first[merge_workers]; /* the number of the first value of each thread */
    uint16_t count[merge_warps];   /* values of a warp */
};
template <class M> struct end_values<M, true> {};

/* The ends of a tile's segments, and their values. */
template <class M> struct chunk_values : end_values<M> {
    static constexpr unsigned elements = tile_elements_bytes / sizeof(typename M::storage);
    alignas(16) unsigned char flag[elements]; /* 1: the last element of a segment */
    /* If few segments end in a tile: the value of the part of segment k that warp w reduces, at w + k. There are two
     * sets, for such tiles in turn, because each of them has only one barrier. */
    typename partial<M>::type piece[2][merge_warps + few_ends];
};

} // namespace dpr

#endif
