/* The operations as device functors: monoid<OP, DTYPE, NAN> says how elements are lifted, combined and written.
 *
 *   storage            an element in memory
 *   lane               accumulates elements of one tile in one thread; lane_identity()
 *   acc                accumulates everything else; identity()
 *   result             what is written
 *   add(lane, x)       combines a lane with element x
 *   join(lane, lane)   combines two lanes
 *   fold(acc, lane)    combines an accumulator with a lane
 *   merge(acc, acc)    combines two accumulators
 *   finish(acc)        the result; lift(result) is its inverse, for initial values
 *   store(acc, w)      writes the accumulator to `words` words, as dpr_acc_store() does (acc.h)
 *   lanes              independent lanes that a thread keeps
 *   vectors            16-byte loads that a thread has in flight
 *   tile               the type that accumulates a tile, if it is not lane_set (tile.cuh): add(packet, v) adds vector v
 *                      of the tile, in falling order of v; fold_into(acc, index_of) folds the tile into acc, where
 *                      index_of(v) is the index in the array of the first element of vector v
 *
 *   takes_all          true if tiles take all vectors of a tile at once: add_all<K>(packets)
 *
 *   adds_words         true if a tile's lanes take four bytes of elements at a time: add_word(lane, word);
 *                      settle(lane) then makes a lane for join() and fold() from it
 *
 *   gives_mean         true if mean(acc, count) is the mean of `count` elements (means.h)
 *   is_mean            true for divided_sum<>: kernels write mean() wherever others write finish()
 *
 *   has_neutral        true if identity() changes nothing that it is combined with
 *   neutral_element()  an element that changes nothing: if adds_words, or tile is not lane_set, or holds_index
 *
 *   has_inverse        true if without(join(a, b), b) is a, exactly
 *
 *   exchanges_lanes    true if the threads of a block exchange lanes, which to_lane(acc) makes, and not accumulators
 *
 *   in_hardware        the instruction that combines the values that a warp exchanges, if there is one
 *
 *   holds_index        true if accumulators hold indices: there are no lanes, of_element(x, index) makes an
 *                      accumulator from an element, locate(acc, reader, count) must be called before finish() and
 *                      store(), and store(acc, w, first) adds `first` to the index
 *
 * The lane is the cheap type and the accumulator the wide one: narrow integers are added in 32 bits within a tile and
 * in 64 bits between tiles, F32 within a tile and F64 between tiles. */
#ifndef DPR_CORE_MONOID_CUH
#define DPR_CORE_MONOID_CUH

#include "means.h"
#include "pairs.cuh"
#include "words.h"

namespace dpr {

/* ---- Sums and products ---- */

template <class T> struct complex { T re, im; };

template <dpr_dtype D> __host__ __device__ constexpr auto wide_zero() {
    if constexpr (element<D>::wide == DPR_I64 || element<D>::wide == DPR_U64)
        return uint64_t{0}; /* also for signed sums: unsigned arithmetic wraps */
    else if constexpr (is_complex<D>)
        return complex<double>{0, 0};
    else
        return double{0};
}

template <dpr_dtype D> using wide_acc = decltype(wide_zero<D>());

/* Converts an element to its accumulator type. Integers are sign-extended if they are signed. */
template <dpr_dtype D> __device__ wide_acc<D> widen(storage_of<D> x) {
    if constexpr (is_complex<D>)
        return {static_cast<double>(x.re), static_cast<double>(x.im)};
    else if constexpr (element<D>::wide == DPR_I64)
        return static_cast<uint64_t>(static_cast<int64_t>(number<D>(x)));
    else
        return static_cast<wide_acc<D>>(number<D>(x));
}

template <dpr_dtype D> __device__ storage_of<element<D>::wide> narrow(wide_acc<D> a) {
    using result = storage_of<element<D>::wide>;
    if constexpr (is_complex<D>)
        return {static_cast<decltype(result::re)>(a.re), static_cast<decltype(result::im)>(a.im)};
    else
        return static_cast<result>(a);
}

/* Zero of the type in which a thread adds the elements of a tile. 32 bits do not overflow for elements of 8 and 16
 * bits, because a thread has far fewer than 2^15 elements of a tile. */
template <dpr_dtype D> __host__ __device__ constexpr auto tile_zero() {
    if constexpr (D == DPR_C64)
        return complex<float>{0, 0};
    else if constexpr (D == DPR_F16 || D == DPR_BF16 || D == DPR_F32)
        return float{0};
    else if constexpr (D == DPR_I8 || D == DPR_I16)
        return int32_t{0};
    else if constexpr (sizeof(storage_of<D>) <= 2)
        return uint32_t{0};
    else
        return wide_zero<D>();
}

template <class T> __device__ complex<T> operator+(complex<T> a, complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}

template <class T> __device__ complex<T> operator*(complex<T> a, complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Reductions of 32-bit words over a warp in one instruction (redux, compute capability 8.0). */
enum class warp_op { none, min, max, band, bor, bxor };

/* By Little's law, 4.8 TB/s (an H200) at a latency of 0.8 us need 30 KiB in flight from each of 132 SMs: eight loads
 * from each of 256 threads, or four from each of 512 threads for operations that take more registers or instructions a
 * vector. Four lanes hide the latency of an addition within one thread. */
struct common {
    static constexpr int lanes = 4;
    static constexpr int vectors = 8;
    static constexpr bool has_neutral = true;
    static constexpr bool exchanges_lanes = false;
    static constexpr bool adds_words = false;
    static constexpr bool holds_index = false;
    static constexpr bool takes_all = false;
    static constexpr bool has_inverse = false;
    static constexpr bool gives_mean = false, is_mean = false;
    static constexpr warp_op in_hardware = warp_op::none;
    using tile = void;
};

template <dpr_op O, dpr_dtype D, dpr_nan N> struct monoid;

/* A sum of F64 with the rounding error that it has lost (Knuth's TwoSum), because a thread adds thousands of tiles one
 * after another. */
struct compensated {
    double sum, lost;
};

__device__ inline compensated operator+(compensated a, compensated b) {
    const double sum = a.sum + b.sum;
    const double of_b = sum - a.sum;
    return {sum, a.lost + b.lost + (a.sum - (sum - of_b)) + (b.sum - of_b)};
}

/* If the sum is infinite or NaN, `lost` is NaN and does not count. */
__device__ inline double total(compensated a) {
    return isfinite(a.sum) ? a.sum + a.lost : a.sum;
}
__device__ inline double total(double a) {
    return a;
}

/* a / n, as the CPU rounds it wherever a is exact, so that means of integers have the same bits everywhere (dpr.h); an
 * error of one step if the quotient is subnormal; NaN if n is 0. The compiler's division has a branch for extreme
 * divisors, for which segments.group has no registers. */
__device__ inline double divided(double a, uint64_t n) {
    const double divisor = static_cast<double>(n);
    double inverse = __frcp_rn(static_cast<float>(n));
    for (int i = 0; i < 2; ++i) /* from 24 to 48 and to 53 bits */
        inverse = fma(fma(-divisor, inverse, 1.0), inverse, inverse);
    const double near = a * inverse;
    return isfinite(a) ? fma(fma(-near, divisor, a), inverse, near) : near;
}

/* Returns x, or if x is any NaN, the positive quiet NaN without payload. The CPU writes that one, too (acc.h). */
template <class T> __device__ T plain_nan(T x) {
    return x != x ? static_cast<T>(NAN) : x;
}

/* The words of a sum. */
__device__ inline void store_sum(compensated a, uint64_t *w) {
    w[0] = dpr_word_of(a.sum);
    w[1] = dpr_word_of_lost(a.sum, a.lost);
}
__device__ inline void store_sum(double a, uint64_t *w) {
    w[0] = dpr_word_of(a);
    w[1] = 0;
}

template <dpr_dtype D> __host__ __device__ constexpr auto sum_zero() {
    if constexpr (D == DPR_F64)
        return compensated{0, 0};
    else if constexpr (D == DPR_C128)
        return complex<compensated>{{0, 0}, {0, 0}};
    else
        return wide_zero<D>();
}

/* The tile of a sum of 32-bit integers, in two sums of 32 bits: `low` is the sum modulo 2^32, and `high` the sum of the
 * elements' upper 16 bits. The exact sum is 2^16 * high plus the sum of the lower 16 bits. That is less than 2^32,
 * because a thread has fewer than 2^16 elements of a tile, so `low` determines it. */
template <dpr_dtype D> struct sum_of_halves {
    static constexpr int lanes = 4;
    static constexpr bool is_signed = element<D>::wide == DPR_I64;
    uint32_t low[lanes] = {}, high[lanes] = {};

    __device__ void add(const packet<storage_of<D>> &p, unsigned) {
#pragma unroll
        for (int i = 0; i < lanes; ++i) {
            low[i] += p.w[i];
            if constexpr (is_signed)
                high[i] = __dp2a_lo(static_cast<int>(p.w[i]), 0x0100, static_cast<int>(high[i]));
            else
                high[i] = __dp2a_lo(p.w[i], 0x0100u, high[i]);
        }
    }

    template <class IndexOf> __device__ uint64_t fold_into(uint64_t a, IndexOf) {
        const uint32_t modulo = low[0] + low[1] + low[2] + low[3], upper = high[0] + high[1] + high[2] + high[3];
        const uint64_t least =
            (is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(upper))) : upper) << 16;
        return a + least + (modulo - static_cast<uint32_t>(least));
    }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_SUM, D, N> : common {
    using storage = storage_of<D>;
    using lane = decltype(tile_zero<D>());
    using acc = decltype(sum_zero<D>());
    using result = storage_of<element<D>::wide>;
    static constexpr bool is_integer = element<D>::kind & (DPR_KIND_SINT | DPR_KIND_UINT);
    static constexpr bool adds_words = sizeof(storage) == 1 || (is_integer && sizeof(storage) == 2);
    static constexpr bool in_halves = is_integer && sizeof(storage) == 4;
    using tile = cuda::std::conditional_t<in_halves, sum_of_halves<D>, void>;
    /* Pairs that take more registers or instructions a vector. */
    static constexpr bool heavy = is_complex<D> || D == DPR_F16 || D == DPR_BF16 || D == DPR_I64 || D == DPR_U64;
    static constexpr int vectors = heavy ? 4 : common::vectors;
    static constexpr bool exchanges_lanes = is_float<D> || is_complex<D>; /* by trees: pairwise */
    static constexpr bool has_inverse = !exchanges_lanes;
    static constexpr bool gives_mean = dpr_sum_gives_mean(element<D>::kind, sizeof(storage), N);
    static constexpr __device__ lane lane_identity() { return tile_zero<D>(); }
    static constexpr __device__ acc identity() { return sum_zero<D>(); }

    static __device__ lane lane_of(storage x) {
        if constexpr (is_complex<D>)
            return {x.re, x.im};
        else if constexpr (sizeof(lane) == sizeof(uint64_t))
            return widen<D>(x);
        else
            return static_cast<lane>(number<D>(x));
    }

    static __device__ lane lane_from(storage x) { return is_absent<D, N>(x) ? lane_identity() : lane_of(x); }
    static __device__ lane add(lane l, storage x) { return is_absent<D, N>(x) ? l : l + lane_of(x); }

    static __device__ lane add_word(lane l, uint32_t word) {
        if constexpr (D == DPR_BOOL)
            return l + __popc(nonzero_bytes(word));
        else if constexpr (D == DPR_I8)
            return __dp4a(static_cast<int>(word), 0x01010101, l);
        else if constexpr (D == DPR_U8)
            return __dp4a(word, 0x01010101u, l);
        else if constexpr (D == DPR_I16)
            return __dp2a_lo(static_cast<int>(word), 0x0101, l);
        else
            return __dp2a_lo(word, 0x0101u, l);
    }

    static __device__ lane settle(lane l) { return l; }
    static constexpr __device__ storage neutral_element() { return {}; }
    static __device__ lane join(lane a, lane b) { return a + b; }
    static __device__ lane without(lane a, lane b) { return a - b; }

    static __device__ acc from_lane(lane l) {
        if constexpr (D == DPR_C128)
            return {{l.re, 0}, {l.im, 0}};
        else if constexpr (D == DPR_C64)
            return {l.re, l.im};
        else if constexpr (D == DPR_F64)
            return {l, 0};
        else if constexpr (cuda::std::is_same_v<lane, int32_t>)
            return static_cast<uint64_t>(static_cast<int64_t>(l));
        else
            return static_cast<acc>(l);
    }

    static __device__ acc fold(acc a, lane l) { return a + from_lane(l); }
    static __device__ acc merge(acc a, acc b) { return a + b; }

    static __device__ lane to_lane(acc a) {
        if constexpr (is_complex<D>)
            return {static_cast<decltype(lane::re)>(total(a.re)), static_cast<decltype(lane::re)>(total(a.im))};
        else
            return static_cast<lane>(total(a));
    }

    static __device__ result finish(acc a) {
        if constexpr (is_complex<D>)
            return narrow<D>({total(a.re), total(a.im)});
        else if constexpr (is_float<D>)
            return narrow<D>(total(a));
        else
            return narrow<D>(a);
    }

    using mean_result = cuda::std::conditional_t<is_complex<D> || is_float<D>, result, double>;
    /* The mean of `count` elements, of which `a` is the sum. */
    static __device__ mean_result mean(acc a, uint64_t count) {
        if constexpr (is_complex<D>) {
            const result r = narrow<D>({divided(total(a.re), count), divided(total(a.im), count)});
            return {plain_nan(r.re), plain_nan(r.im)};
        } else if constexpr (is_float<D>) {
            return plain_nan(narrow<D>(divided(total(a), count)));
        } else {
            return plain_nan(divided(static_cast<double>(static_cast<int64_t>(a)), count));
        }
    }

    static constexpr int words = is_complex<D> ? 4 : is_float<D> ? 2 : 1;
    static __device__ void store(acc a, uint64_t *w) {
        if constexpr (is_complex<D>) {
            store_sum(a.re, w);
            store_sum(a.im, w + 2);
        } else if constexpr (is_float<D>) {
            store_sum(a, w);
        } else {
            w[0] = a;
        }
    }

    static __device__ acc lift(result r) {
        if constexpr (is_complex<D>)
            return is_absent<D, N>(r) ? identity() : from_lane({r.re, r.im});
        else if constexpr (is_float<D>)
            return is_absent<element<D>::wide, N>(r) ? identity() : from_lane(r);
        else
            return static_cast<acc>(r);
    }
};

/* A sum whose mean is written: for kernels that would be slower if they asked what to write. */
template <class Sum> struct divided_sum : Sum {
    static_assert(Sum::gives_mean);
    static_assert(sizeof(typename Sum::mean_result) == sizeof(typename Sum::result),
                  "writers of many results place means as they place sums");
    static constexpr bool is_mean = true;
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_PROD, D, N> : common {
    using storage = storage_of<D>;
    using acc = wide_acc<D>;
    /* Vectors of sixteen or eight elements, each 64 bits wide from the start, leave registers for two of them. So do
     * vectors of floats, because the compiler converts all their elements at once. */
    static constexpr int vectors = sizeof(storage) <= 2 || D == DPR_F32 || D == DPR_C64 ? 2 : 4;
    using lane = acc; /* an intermediate product of F32 must not overflow where the whole does not */
    using result = storage_of<element<D>::wide>;
    static constexpr bool has_neutral = !is_complex<D>; /* (1 + 0i) times an infinity: one part is NaN */

    static constexpr __device__ acc identity() {
        if constexpr (is_complex<D>)
            return {1, 0};
        else
            return 1;
    }

    static constexpr __device__ lane lane_identity() { return identity(); }
    static __device__ lane add(lane l, storage x) { return is_absent<D, N>(x) ? l : l * widen<D>(x); }
    static __device__ lane join(lane a, lane b) { return a * b; }
    static __device__ acc fold(acc a, lane l) { return a * l; }
    static __device__ acc merge(acc a, acc b) { return a * b; }
    static __device__ result finish(acc a) { return narrow<D>(a); }

    static constexpr int words = is_complex<D> ? 2 : 1;
    static __device__ void store(acc a, uint64_t *w) {
        if constexpr (is_complex<D>) {
            w[0] = dpr_word_of(a.re);
            w[1] = dpr_word_of(a.im);
        } else if constexpr (is_float<D>) {
            w[0] = dpr_word_of(a);
        } else {
            w[0] = a;
        }
    }

    static __device__ acc lift(result r) {
        return is_absent<element<D>::wide, N>(r) ? identity() : widen<element<D>::wide>(r);
    }
};

/* ---- Order ---- */

template <bool Least, dpr_dtype D, dpr_nan N> struct pair_tile;
template <bool Least, dpr_nan N> struct float_tile;

template <bool Least, dpr_dtype D, dpr_nan N> struct extremum : common {
    using by = order<Least, D>;
    using storage = storage_of<D>;
    using lane = key_of<D>;
    using acc = lane;
    using result = storage;
    using tile = cuda::std::conditional_t<in_pairs<D>, pair_tile<Least, D, N>,
                                          cuda::std::conditional_t<D == DPR_F32, float_tile<Least, N>, void>>;
    static constexpr int vectors = sizeof(storage) == 8 ? 4 : common::vectors;
    static constexpr warp_op in_hardware = sizeof(lane) != sizeof(uint32_t) ? warp_op::none
                                           : Least                          ? warp_op::min
                                                                            : warp_op::max;
    static constexpr __device__ lane lane_identity() { return by::worst; }
    static constexpr __device__ acc identity() { return by::worst; }
    static __device__ acc lift(result x) { return by::template of<N>(x); }
    static __device__ storage neutral_element() { return finish(identity()); }
    static __device__ lane add(lane l, storage x) { return merge(l, lift(x)); }
    static __device__ lane join(lane a, lane b) { return merge(a, b); }
    static __device__ acc fold(acc a, lane l) { return merge(a, l); }
    static __device__ acc merge(acc a, acc b) { return by::best_of(a, b); }

    static __device__ result finish(acc a) {
        if constexpr (is_float<D>) {
            using bits = typename float_bits<D>::type;
            if (a == by::best)
                return bits_as<storage>(float_bits<D>::nan);
            if (a == by::worst)
                return bits_as<storage>(static_cast<bits>(
                    Least ? float_bits<D>::inf : float_bits<D>::inf | cuda::std::numeric_limits<bits>::min()));
        }
        return key_to<D>(a);
    }

    static constexpr int words = 1;
    static __device__ void store(acc a, uint64_t *w) { w[0] = word_of_element<D>(finish(a)); }
};

/* The tile of MIN and MAX of 8- or 16-bit elements. */
template <bool Least, dpr_dtype D, dpr_nan N> struct pair_tile {
    using pairs = pair_order<Least, D, N>;
    static constexpr int lanes = 4;
    uint32_t l[lanes];

    __device__ pair_tile() {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            l[i] = pairs::identity;
    }

    __device__ void add(const packet<storage_of<D>> &p, unsigned) {
#pragma unroll
        for (int i = 0; i < p.words; ++i)
            l[i % lanes] = pairs::with_word(l[i % lanes], p.w[i]);
    }

    template <class IndexOf> __device__ key_of<D> fold_into(key_of<D> a, IndexOf) {
        const uint32_t all = pairs::best_of(pairs::best_of(l[0], l[2]), pairs::best_of(l[1], l[3]));
        return order<Least, D>::best_of(a, pairs::key(all));
    }
};

/* The lesser or greater of two floats, where -0 is less than +0. A NaN wins or loses as the policy `N` says. */
template <bool Least, dpr_nan N> __device__ float extreme(float a, float b) {
    if constexpr (N == DPR_NAN_IGNORE)
        return Least ? fminf(a, b) : fmaxf(a, b);
#if __CUDA_ARCH__ >= 800
    float r;
    if constexpr (Least)
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    else
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return a != a || b != b ? a + b : Least ? fminf(a, b) : fmaxf(a, b);
#endif
}

/* The tile of MIN and MAX of F32. It compares the elements themselves, not keys: one instruction each. */
template <bool Least, dpr_nan N> struct float_tile {
    static constexpr int lanes = 4;
    float l[lanes];

    __device__ float_tile() {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            l[i] = bits_as<float>(Least ? 0x7f800000 : 0xff800000);
    }

    __device__ void add(const packet<float> &p, unsigned) {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            l[i] = extreme<Least, N>(l[i], p[i]);
    }

    template <class IndexOf> __device__ key_of<DPR_F32> fold_into(key_of<DPR_F32> a, IndexOf) {
        const float all = extreme<Least, N>(extreme<Least, N>(l[0], l[2]), extreme<Least, N>(l[1], l[3]));
        return order<Least, DPR_F32>::best_of(a, order<Least, DPR_F32>::template of<N>(all));
    }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_MIN, D, N> : extremum<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_MAX, D, N> : extremum<false, D, N> {};

template <class Key, class Index> struct indexed {
    Key key;
    Index index; /* all bits set: no element, which is -1 as a result */
};

template <bool Least, dpr_dtype D, dpr_nan N> struct arg_tile;

/* The accumulator's index is that of the first element of the vector that has the best element, or that of an element
 * that was read by itself. At the end, locate() finds the best element among those of the vector. */
template <bool Least, dpr_dtype D, dpr_nan N> struct arg_extremum : common {
    using by = order<Least, D>;
    using storage = storage_of<D>;
    using acc = indexed<cuda::std::conditional_t<sizeof(key_of<D>) == 8, key_of<D>, int64_t>, uint64_t>;
    using lane = void; /* there are no lanes, only arg_tile */
    using result = int64_t;
    using tile = arg_tile<Least, D, N>;
    static constexpr int vectors = 4;
    static constexpr bool holds_index = true;
    static constexpr uint64_t none = ~uint64_t{0};
    static constexpr __device__ acc identity() { return {by::worst, none}; }

    /* Of equal keys the lower index wins, so that an element beats "none" even with the worst key. */
    static __device__ acc merge(acc a, acc b) {
        const bool second = (Least ? b.key < a.key : b.key > a.key) || (b.key == a.key && b.index < a.index);
        return second ? b : a;
    }

    static __device__ storage neutral_element() {
        constexpr bool ignores = is_float<D> && N == DPR_NAN_IGNORE;
        return extremum<Least, D, N>::finish(ignores ? by::best : by::worst);
    }

    static __device__ acc of_element(storage x, uint64_t index) {
        return is_absent<D, N>(x) ? identity() : acc{by::template of<N>(x), index};
    }

    /* Takes element number `i` of some if it is better than the best one before it, number `at` with key `best`. At
     * first these are `none_of_some` and the worst key. */
    static constexpr unsigned none_of_some = ~0u;
    static __device__ void take_better(typename by::key &best, unsigned &at, storage x, unsigned i) {
        const typename by::key key = by::template of<N>(x);
        /* Only the key of an integer may be the worst one. */
        if (by::better(key, best) || (!is_float<D> && at == none_of_some)) {
            best = key;
            at = i;
        }
    }

    static __device__ bool has_key(storage x, decltype(acc::key) key) {
        return !is_absent<D, N>(x) && by::template of<N>(x) == key;
    }

    template <class Reader> static __device__ acc locate(acc a, const Reader &from, uint64_t count) {
        constexpr int size = packet<storage>::size;
        if (a.index == none)
            return a;
        uint64_t found = a.index;
#pragma unroll
        for (int e = size - 1; e >= 0; --e) {
            const uint64_t i = a.index + e;
            if (i < count && has_key(from.element(i), a.key))
                found = i;
        }
        return {a.key, found};
    }

    static __device__ result finish(acc a) {
        return static_cast<int64_t>(a.index);
    }

    static constexpr int words = 2;
    static __device__ void store(acc a, uint64_t *w, uint64_t first) {
        const key_of<D> key = static_cast<key_of<D>>(a.key);
        const bool some = a.index != none;
        w[0] = some ? word_of_element<D>(extremum<Least, D, N>::finish(key)) : 0;
        w[1] = some ? first + a.index : none;
    }

    static __device__ acc lift(result) {
        return identity();
    } /* no initial value (host/api/request.c) */
};

/* The best vector of a tile. Vectors come in falling order, so of equal keys the one that comes later wins. */
template <bool Least, dpr_dtype D, dpr_nan N> struct arg_tile {
    using by = order<Least, D>;
    using arg = arg_extremum<Least, D, N>;
    using storage = storage_of<D>;
    static constexpr unsigned none = ~0u;
    typename by::key best = by::worst;
    unsigned vector = none;

    static __device__ typename by::key key_of_vector(const packet<storage> &p) {
        if constexpr (in_pairs<D>) {
            using pairs = pair_order<Least, D, N>;
            /* Starts from the first elements, not from an identity, which would be better than a NaN that is
             * ignored. */
            uint32_t pair = pairs::of_word(p.w[0]);
#pragma unroll
            for (int i = 1; i < p.words; ++i)
                pair = pairs::with_word(pair, p.w[i]);
            return pairs::key(pair);
        } else if constexpr (D == DPR_F32) {
            return by::template of<N>(extreme<Least, N>(extreme<Least, N>(p[0], p[1]), extreme<Least, N>(p[2], p[3])));
        } else {
            typename by::key key = by::template of<N>(p[0]);
#pragma unroll
            for (int e = 1; e < p.size; ++e)
                key = by::best_of(key, by::template of<N>(p[e]));
            return key;
        }
    }

    __device__ void add(const packet<storage> &p, unsigned v) {
        const typename by::key key = key_of_vector(p);
        if (!by::better(best, key)) {
            best = key;
            vector = v;
        }
    }

    /* Earlier tiles have lower indices, so this tile wins only with a better key. If there is no element yet any key
     * wins, except for floats, where the worst key means that all elements are absent. */
    template <class IndexOf> __device__ typename arg::acc fold_into(typename arg::acc a, IndexOf index_of) {
        const bool first = !is_float<D> && a.index == arg::none;
        const bool take = vector != none && (first || (Least ? best < a.key : best > a.key));
        return take ? typename arg::acc{best, index_of(vector)} : a;
    }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ARGMIN, D, N> : arg_extremum<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ARGMAX, D, N> : arg_extremum<false, D, N> {};

/* ---- Truth ---- */

/* ALL accumulates "some element is zero", so that ALL and ANY both start from 0 and combine by or. */
template <bool All, dpr_dtype D, dpr_nan N> struct truth : common {
    using storage = storage_of<D>;
    using lane = uint32_t;
    using acc = uint32_t;
    using result = uint8_t;
    static constexpr bool adds_words = sizeof(storage) == 1;
    static constexpr int vectors = adds_words ? common::vectors : 4;
    static constexpr warp_op in_hardware = warp_op::bor;
    static constexpr __device__ lane lane_identity() { return 0; }
    static constexpr __device__ acc identity() { return 0; }

    static __device__ lane add(lane l, storage x) {
        return l | static_cast<uint32_t>(!is_absent<D, N>(x) && is_nonzero<D>(x) != All);
    }

    static __device__ lane add_word(lane l, uint32_t word) {
        return l | (All ? ~nonzero_bytes(word) & 0x80808080 : word);
    }
    /* The result is one bit, so that flat.packed can count it. */
    static __device__ lane settle(lane l) { return l != 0; }
    static constexpr __device__ storage neutral_element() { return All ? storage{1} : storage{}; }
    static __device__ lane join(lane a, lane b) { return a | b; }
    static __device__ acc fold(acc a, lane l) { return a | l; }
    static __device__ acc merge(acc a, acc b) { return a | b; }
    static __device__ result finish(acc a) { return (a != 0) != All; }
    static constexpr int words = 1;
    static __device__ void store(acc a, uint64_t *w) { w[0] = finish(a); }
    static __device__ acc lift(result r) { return (r != 0) != All; }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ALL, D, N> : truth<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ANY, D, N> : truth<false, D, N> {};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_COUNT, D, N> : common {
    using storage = storage_of<D>;
    using lane = uint32_t;
    using acc = uint64_t;
    using result = int64_t;
    static constexpr bool adds_words = sizeof(storage) == 1;
    static constexpr bool has_inverse = adds_words;
    static constexpr int vectors = adds_words ? common::vectors : 4;
    static constexpr __device__ lane lane_identity() { return 0; }
    static constexpr __device__ acc identity() { return 0; }

    static __device__ lane add(lane l, storage x) {
        return l + static_cast<uint32_t>(!is_absent<D, N>(x) && is_nonzero<D>(x));
    }

    static __device__ lane add_word(lane l, uint32_t word) { return l + __popc(nonzero_bytes(word)); }
    static __device__ lane settle(lane l) { return l; }
    static constexpr __device__ storage neutral_element() { return {}; }
    static __device__ lane join(lane a, lane b) { return a + b; }
    static __device__ lane without(lane a, lane b) { return a - b; }
    static __device__ acc fold(acc a, lane l) { return a + l; }
    static __device__ acc merge(acc a, acc b) { return a + b; }
    static __device__ result finish(acc a) { return static_cast<int64_t>(a); }
    static constexpr int words = 1;
    static __device__ void store(acc a, uint64_t *w) { w[0] = a; }
    static __device__ acc lift(result r) { return static_cast<uint64_t>(r); }
};

/* ---- Bits ---- */

template <dpr_op O, dpr_dtype D> struct bitwise : common {
    using storage = storage_of<D>;
    using lane = cuda::std::conditional_t<sizeof(storage) == 8, uint64_t, uint32_t>;
    using acc = lane;
    using result = storage;
    static constexpr bool adds_words = sizeof(storage) <= 4;
    static constexpr warp_op in_hardware = sizeof(lane) != sizeof(uint32_t) ? warp_op::none
                                           : O == DPR_BAND                  ? warp_op::band
                                           : O == DPR_BOR                   ? warp_op::bor
                                                                            : warp_op::bxor;
    static constexpr __device__ acc identity() { return O == DPR_BAND ? ~acc{0} : acc{0}; }
    static constexpr __device__ lane lane_identity() { return identity(); }
    static constexpr __device__ storage neutral_element() { return static_cast<storage>(identity()); }

    static __device__ acc merge(acc a, acc b) {
        if constexpr (O == DPR_BAND)
            return a & b;
        else if constexpr (O == DPR_BOR)
            return a | b;
        else
            return a ^ b;
    }

    static __device__ lane add_word(lane l, uint32_t word) {
        return merge(l, D == DPR_BOOL ? nonzero_bytes(word) >> 7 : word);
    }

    /* Folds all elements of the word into the lowest one. The bits above it do not matter. */
    static __device__ lane settle(lane l) {
#pragma unroll
        for (unsigned bits = 16; bits >= 8 * sizeof(storage); bits /= 2)
            l = merge(l, l >> bits);
        return l;
    }

    static __device__ acc lift(result x) {
        return static_cast<acc>(number<D>(x));
    }
    static __device__ lane add(lane l, storage x) {
        return merge(l, lift(x));
    }
    static __device__ lane join(lane a, lane b) {
        return merge(a, b);
    }
    static __device__ acc fold(acc a, lane l) {
        return merge(a, l);
    }
    static __device__ result finish(acc a) {
        return static_cast<result>(D == DPR_BOOL ? a & 1 : a);
    }
    static constexpr int words = 1;
    static __device__ void store(acc a, uint64_t *w) {
        w[0] = word_of_element<D>(finish(a));
    }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_BAND, D, N> : bitwise<DPR_BAND, D> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_BOR, D, N> : bitwise<DPR_BOR, D> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_BXOR, D, N> : bitwise<DPR_BXOR, D> {};

} // namespace dpr

#endif
