/* The operations as device functors: monoid<OP, DTYPE, NAN> says how elements are lifted, combined and written.
 *
 *   storage            an element in memory
 *   lane               accumulates the elements of one tile in one thread; lane_identity()
 *   acc                accumulates everything else; identity()
 *   result             what is written
 *   add(lane, x, slot) the lane with element x, which is in that slot of the thread's tile; slots come in falling order
 *   join(lane, lane)   two lanes
 *   fold(acc, lane, index_of)  the accumulator with a lane; index_of(slot) is the element's index in the array
 *   merge(acc, acc)    two accumulators; the first is of lower indices where that matters
 *   finish(acc)        the result; lift(result) is its inverse, for initial values
 *   lanes              independent lanes a thread keeps
 *   vectors            16-byte loads a thread has in flight
 *   by_word            whether add_word(lane, word) takes four bytes of elements at a time
 *   narrow_exchange    whether the threads of a block exchange lanes, by lower(acc), rather than accumulators
 *
 * The lane is the cheap type and the accumulator the wide one: narrow integers add in 32 bits within a tile and in 64
 * between tiles, F32 within a tile and F64 between tiles. */
#ifndef DPR_CORE_MONOID_CUH
#define DPR_CORE_MONOID_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cuda/std/limits>
#include <cuda/std/type_traits>

#include "lists.h"

namespace dpr {

/* ---- Element types ---- */

template <dpr_dtype D> struct element;

#define DPR_ELEMENT(A, NAME, name, STORAGE, ALIGN, KIND, WIDE, npy, text)                                              \
    template <> struct element<DPR_##NAME> {                                                                           \
        using storage = STORAGE;                                                                                       \
        static constexpr int kind = DPR_KIND_##KIND;                                                                   \
        static constexpr dpr_dtype wide = DPR_##WIDE;                                                                  \
    };
DPR_DTYPE_LIST(DPR_ELEMENT, _)
#undef DPR_ELEMENT

template <dpr_dtype D> using storage_of = typename element<D>::storage;

template <dpr_dtype D> constexpr bool is_float = element<D>::kind == DPR_KIND_FLOAT;
template <dpr_dtype D> constexpr bool is_complex = element<D>::kind == DPR_KIND_COMPLEX;

/* A floating-point or integer element as a number: half types as float, truth values as 0 or 1. */
template <dpr_dtype D> __device__ auto number(storage_of<D> x) {
    if constexpr (D == DPR_BOOL)
        return static_cast<uint8_t>(x != 0);
    else if constexpr (D == DPR_F16)
        return __half2float(__ushort_as_half(x));
    else if constexpr (D == DPR_BF16)
        return __uint_as_float(static_cast<uint32_t>(x) << 16);
    else
        return x;
}

template <dpr_dtype D> __device__ bool is_nan(storage_of<D> x) {
    if constexpr (D == DPR_F16)
        return (x & 0x7fff) > 0x7c00;
    else if constexpr (D == DPR_BF16)
        return (x & 0x7fff) > 0x7f80;
    else if constexpr (is_complex<D>)
        return x.re != x.re || x.im != x.im;
    else if constexpr (is_float<D>)
        return x != x;
    else
        return false;
}

template <dpr_dtype D> __device__ bool is_nonzero(storage_of<D> x) {
    if constexpr (D == DPR_F16 || D == DPR_BF16)
        return (x & 0x7fff) != 0;
    else if constexpr (is_complex<D>)
        return x.re != 0 || x.im != 0;
    else
        return x != 0;
}

/* An element the NaN policy leaves out. */
template <dpr_dtype D, dpr_nan N> __device__ bool is_absent(storage_of<D> x) {
    if constexpr (N == DPR_NAN_IGNORE)
        return is_nan<D>(x);
    else
        return false;
}

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

/* Element to accumulator: sign-extended for integers. */
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

/* The type in which the elements of one tile are added. A tile has far fewer than 2^15 elements a thread. */
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

/* Four loads from 1024 threads an SM are 64 KiB an SM in flight; by Little's law 4.9 TB/s at 0.8 us need 30 KiB from
 * each of 132. Four lanes hide the latency of an addition within one thread. */
struct common {
    static constexpr int lanes = 4;
    static constexpr int vectors = 4;
    static constexpr bool narrow_exchange = false;
    static constexpr bool by_word = false;
};

template <dpr_op O, dpr_dtype D, dpr_nan N> struct monoid;

/* A sum of F64 with what rounding took from it (Knuth's TwoSum): a thread adds thousands of tiles one after another. */
struct compensated {
    double sum, lost;
};

__device__ inline compensated operator+(compensated a, compensated b) {
    const double sum = a.sum + b.sum;
    const double of_b = sum - a.sum;
    return {sum, a.lost + b.lost + (a.sum - (sum - of_b)) + (b.sum - of_b)};
}

/* Once the sum is infinite or NaN, what was lost is NaN. */
__device__ inline double total(compensated a) {
    return isfinite(a.sum) ? a.sum + a.lost : a.sum;
}
__device__ inline double total(double a) {
    return a;
}

template <dpr_dtype D> __host__ __device__ constexpr auto sum_zero() {
    if constexpr (D == DPR_F64)
        return compensated{0, 0};
    else if constexpr (D == DPR_C128)
        return complex<compensated>{{0, 0}, {0, 0}};
    else
        return wide_zero<D>();
}

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_SUM, D, N> : common {
    using storage = storage_of<D>;
    using lane = decltype(tile_zero<D>());
    using acc = decltype(sum_zero<D>());
    using result = storage_of<element<D>::wide>;
    static constexpr bool by_word = D == DPR_I8 || D == DPR_U8;
    static constexpr bool narrow_exchange = is_float<D> || is_complex<D>; /* a tree of at most 1024 terms: pairwise */
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

    static __device__ lane add(lane l, storage x, int) { return is_absent<D, N>(x) ? l : l + lane_of(x); }

    static __device__ lane add_word(lane l, uint32_t word) {
        if constexpr (D == DPR_I8)
            return __dp4a(static_cast<int>(word), 0x01010101, l);
        else
            return __dp4a(word, 0x01010101u, l);
    }

    static __device__ lane join(lane a, lane b) { return a + b; }

    static __device__ acc raise(lane l) {
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

    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf) { return a + raise(l); }
    static __device__ acc merge(acc a, acc b) { return a + b; }

    static __device__ lane lower(acc a) {
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

    static __device__ acc lift(result r) {
        if constexpr (is_complex<D>)
            return is_absent<D, N>(r) ? identity() : raise({r.re, r.im});
        else if constexpr (is_float<D>)
            return is_absent<element<D>::wide, N>(r) ? identity() : raise(r);
        else
            return static_cast<acc>(r);
    }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_PROD, D, N> : common {
    using storage = storage_of<D>;
    using acc = wide_acc<D>;
    /* Sixteen elements a vector, each 64 bits wide from the start, leave registers for two. */
    static constexpr int vectors = sizeof(storage) <= 2 ? 2 : common::vectors;
    using lane = acc; /* an intermediate product of F32 must not overflow where the whole does not */
    using result = storage_of<element<D>::wide>;

    static constexpr __device__ acc identity() {
        if constexpr (is_complex<D>)
            return {1, 0};
        else
            return 1;
    }

    static constexpr __device__ lane lane_identity() { return identity(); }
    static __device__ lane add(lane l, storage x, int) { return is_absent<D, N>(x) ? l : l * widen<D>(x); }
    static __device__ lane join(lane a, lane b) { return a * b; }
    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf) { return a * l; }
    static __device__ acc merge(acc a, acc b) { return a * b; }
    static __device__ result finish(acc a) { return narrow<D>(a); }
    static __device__ acc lift(result r) {
        return is_absent<element<D>::wide, N>(r) ? identity() : widen<element<D>::wide>(r);
    }
};

/* ---- Order ---- */

/* Keys: integers that order like the elements. A float's bits, taken as a signed integer, have the right order once the
 * magnitude bits of negative ones are flipped; then -0 < +0, and keys beyond those of the infinities belong to NaNs and
 * are free to mean "NaN" and "nothing". */
template <dpr_dtype D> __host__ __device__ constexpr auto key_zero() {
    if constexpr (D == DPR_U64)
        return uint64_t{0};
    else if constexpr (sizeof(storage_of<D>) == 8)
        return int64_t{0};
    else if constexpr (D == DPR_U32)
        return uint32_t{0};
    else
        return int32_t{0};
}

template <dpr_dtype D> using key_of = decltype(key_zero<D>());

/* The same mapping is its own inverse. */
template <class Bits> __host__ __device__ constexpr Bits flip_negative(Bits b) {
    using unsigned_bits = cuda::std::make_unsigned_t<Bits>;
    constexpr int top = 8 * sizeof(Bits) - 1;
    return static_cast<Bits>(b ^ static_cast<Bits>(static_cast<unsigned_bits>(b >> top) >> 1));
}

template <dpr_dtype D> struct float_bits; /* as a signed integer, and the patterns of infinity and the canonical NaN */
template <> struct float_bits<DPR_F16> {
    using type = int16_t;
    static constexpr type inf = 0x7c00, nan = 0x7e00;
};
template <> struct float_bits<DPR_BF16> {
    using type = int16_t;
    static constexpr type inf = 0x7f80, nan = 0x7fc0;
};
template <> struct float_bits<DPR_F32> {
    using type = int32_t;
    static constexpr type inf = 0x7f800000, nan = 0x7fc00000;
};
template <> struct float_bits<DPR_F64> {
    using type = int64_t;
    static constexpr type inf = 0x7ff0000000000000, nan = 0x7ff8000000000000;
};

template <class To, class From> __device__ To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

template <dpr_dtype D> __device__ key_of<D> key_from(storage_of<D> x) {
    if constexpr (is_float<D>)
        return flip_negative(bits_as<typename float_bits<D>::type>(x));
    else
        return number<D>(x);
}

template <dpr_dtype D> __device__ storage_of<D> key_to(key_of<D> k) {
    if constexpr (is_float<D>)
        return bits_as<storage_of<D>>(flip_negative(static_cast<typename float_bits<D>::type>(k)));
    else
        return static_cast<storage_of<D>>(k);
}

/* The ends of a type's keys: the type's own for integers, and for floats two beyond the infinities. */
template <dpr_dtype D>
struct key_limits : cuda::std::numeric_limits<cuda::std::conditional_t<is_float<D>, key_of<D>, storage_of<D>>> {};
template <> struct key_limits<DPR_BOOL> : cuda::std::numeric_limits<bool> {};

/* MIN and MAX differ in which key is better; `worst` is the identity and `best` stands for a NaN that propagates. */
template <bool Least, dpr_dtype D> struct order {
    using key = key_of<D>;
    static constexpr key lowest = key_limits<D>::min(), highest = key_limits<D>::max();
    static constexpr key worst = Least ? highest : lowest, best = Least ? lowest : highest;
    static __device__ bool better(key a, key b) { return Least ? a < b : a > b; }
};

template <bool Least, dpr_dtype D, dpr_nan N> struct extremum : common {
    using by = order<Least, D>;
    using storage = storage_of<D>;
    using lane = key_of<D>;
    using acc = lane;
    using result = storage;
    static constexpr __device__ lane lane_identity() { return by::worst; }
    static constexpr __device__ acc identity() { return by::worst; }

    static __device__ acc lift(result x) {
        return is_nan<D>(x) ? (N == DPR_NAN_IGNORE ? by::worst : by::best) : key_from<D>(x);
    }

    static __device__ lane add(lane l, storage x, int) { return merge(l, lift(x)); }
    static __device__ lane join(lane a, lane b) { return merge(a, b); }
    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf) { return merge(a, l); }
    static __device__ acc merge(acc a, acc b) { return Least ? min(a, b) : max(a, b); }

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
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_MIN, D, N> : extremum<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_MAX, D, N> : extremum<false, D, N> {};

template <class Key, class Index> struct indexed {
    Key key;
    Index index; /* all ones: none, which is -1 as a result */
};

template <bool Least, dpr_dtype D, dpr_nan N> struct arg_extremum : common {
    using by = order<Least, D>;
    using storage = storage_of<D>;
    using acc = indexed<cuda::std::conditional_t<sizeof(key_of<D>) == 8, key_of<D>, int64_t>, uint64_t>;
    using lane = indexed<key_of<D>, uint32_t>; /* the slot within the tile */
    using result = int64_t;
    static constexpr __device__ lane lane_identity() { return {by::worst, ~uint32_t{0}}; }
    static constexpr __device__ acc identity() { return {by::worst, ~uint64_t{0}}; }

    /* Of equals the lower index, so that an element beats "none" even with the worst key. */
    template <class T> static __device__ T better_of(T a, T b) {
        const bool second = (Least ? b.key < a.key : b.key > a.key) || (b.key == a.key && b.index < a.index);
        return second ? b : a;
    }

    /* Slots fall, so of equals the later is taken. */
    static __device__ lane add(lane l, storage x, int slot) {
        if (is_absent<D, N>(x))
            return l;
        const key_of<D> key = is_nan<D>(x) ? by::best : key_from<D>(x);
        return by::better(l.key, key) ? l : lane{key, static_cast<uint32_t>(slot)};
    }

    static __device__ lane join(lane a, lane b) { return better_of(a, b); }

    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf index_of) {
        return l.index == lane_identity().index ? a : merge(a, acc{l.key, index_of(l.index)});
    }

    static __device__ acc merge(acc a, acc b) { return better_of(a, b); }
    static __device__ result finish(acc a) { return static_cast<int64_t>(a.index); }
    static __device__ acc lift(result) { return identity(); } /* no initial value (api.c) */
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ARGMIN, D, N> : arg_extremum<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ARGMAX, D, N> : arg_extremum<false, D, N> {};

/* ---- Truth ---- */

/* ALL is kept as "some element is zero", so that both start from 0 and combine by or. */
template <bool All, dpr_dtype D, dpr_nan N> struct truth : common {
    using storage = storage_of<D>;
    using lane = uint32_t;
    using acc = uint32_t;
    using result = uint8_t;
    static constexpr __device__ lane lane_identity() { return 0; }
    static constexpr __device__ acc identity() { return 0; }

    static __device__ lane add(lane l, storage x, int) {
        return l | static_cast<uint32_t>(!is_absent<D, N>(x) && is_nonzero<D>(x) != All);
    }

    static __device__ lane join(lane a, lane b) { return a | b; }
    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf) { return a | l; }
    static __device__ acc merge(acc a, acc b) { return a | b; }
    static __device__ result finish(acc a) { return (a != 0) != All; }
    static __device__ acc lift(result r) { return (r != 0) != All; }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ALL, D, N> : truth<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_ANY, D, N> : truth<false, D, N> {};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_COUNT, D, N> : common {
    using storage = storage_of<D>;
    using lane = uint32_t;
    using acc = uint64_t;
    using result = int64_t;
    static constexpr __device__ lane lane_identity() { return 0; }
    static constexpr __device__ acc identity() { return 0; }

    static __device__ lane add(lane l, storage x, int) {
        return l + static_cast<uint32_t>(!is_absent<D, N>(x) && is_nonzero<D>(x));
    }

    static __device__ lane join(lane a, lane b) { return a + b; }
    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf) { return a + l; }
    static __device__ acc merge(acc a, acc b) { return a + b; }
    static __device__ result finish(acc a) { return static_cast<int64_t>(a); }
    static __device__ acc lift(result r) { return static_cast<uint64_t>(r); }
};

/* ---- Bits ---- */

template <dpr_op O, dpr_dtype D> struct bitwise : common {
    using storage = storage_of<D>;
    using lane = cuda::std::conditional_t<sizeof(storage) == 8, uint64_t, uint32_t>;
    using acc = lane;
    using result = storage;
    static constexpr __device__ acc identity() { return O == DPR_BAND ? ~acc{0} : acc{0}; }
    static constexpr __device__ lane lane_identity() { return identity(); }

    static __device__ acc merge(acc a, acc b) {
        if constexpr (O == DPR_BAND)
            return a & b;
        else if constexpr (O == DPR_BOR)
            return a | b;
        else
            return a ^ b;
    }

    static __device__ acc lift(result x) { return static_cast<acc>(number<D>(x)); }
    static __device__ lane add(lane l, storage x, int) { return merge(l, lift(x)); }
    static __device__ lane join(lane a, lane b) { return merge(a, b); }
    template <class IndexOf> static __device__ acc fold(acc a, lane l, IndexOf) { return merge(a, l); }
    static __device__ result finish(acc a) { return static_cast<result>(D == DPR_BOOL ? a & 1 : a); }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_BAND, D, N> : bitwise<DPR_BAND, D> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_BOR, D, N> : bitwise<DPR_BOR, D> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_BXOR, D, N> : bitwise<DPR_BXOR, D> {};

} // namespace dpr

#endif
