/* Element types on the device: their values as numbers, their NaN, keys that order like them, and vectors of them. */
#ifndef DPR_CORE_ELEMENT_CUH
#define DPR_CORE_ELEMENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cuda/std/limits>
#include <cuda/std/type_traits>

#include "lists.h"

namespace dpr {

template <dpr_dtype D> struct element;

#define DPR_ELEMENT(A, NAME, number, name, STORAGE, ALIGN, KIND, WIDE, npy, text)                                      \
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

/* Sets the top bit of each byte that is not zero, and clears all other bits. */
__device__ inline uint32_t nonzero_bytes(uint32_t word) {
    return (((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) & 0x80808080;
}

/* True if the NaN policy leaves the element out. */
template <dpr_dtype D, dpr_nan N> __device__ bool is_absent(storage_of<D> x) {
    if constexpr (N == DPR_NAN_IGNORE)
        return is_nan<D>(x);
    else
        return false;
}

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

/* Flips the magnitude bits of negative numbers. The mapping is its own inverse. */
template <class Bits> __host__ __device__ constexpr Bits flip_negative(Bits b) {
    using unsigned_bits = cuda::std::make_unsigned_t<Bits>;
    constexpr int top = 8 * sizeof(Bits) - 1;
    return static_cast<Bits>(b ^ static_cast<Bits>(static_cast<unsigned_bits>(b >> top) >> 1));
}

/* A float's bits as a signed integer, and the patterns of infinity and the canonical NaN. */
template <dpr_dtype D> struct float_bits;
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

/* The element's bits, with zeros above them. */
template <dpr_dtype D> __device__ uint64_t word_of_element(storage_of<D> x) {
    uint64_t word = 0;
    memcpy(&word, &x, sizeof x);
    return word;
}

/* The least and the greatest key of a type. For integers they are those of the type; for floats they lie beyond the
 * keys of the infinities. */
template <dpr_dtype D>
struct key_limits : cuda::std::numeric_limits<cuda::std::conditional_t<is_float<D>, key_of<D>, storage_of<D>>> {};
template <> struct key_limits<DPR_BOOL> : cuda::std::numeric_limits<bool> {};

/* MIN and MAX differ in which key is better; `worst` is the identity and `best` stands for a NaN that propagates. */
template <bool Least, dpr_dtype D> struct order {
    using key = key_of<D>;
    static constexpr key lowest = key_limits<D>::min(), highest = key_limits<D>::max();
    static constexpr key worst = Least ? highest : lowest, best = Least ? lowest : highest;
    static __device__ bool better(key a, key b) { return Least ? a < b : a > b; }
    static __device__ key best_of(key a, key b) { return Least ? min(a, b) : max(a, b); }

    /* Returns the key of an element under a NaN policy. */
    template <dpr_nan N> static __device__ key of(storage_of<D> x) {
        return is_nan<D>(x) ? (N == DPR_NAN_IGNORE ? worst : best) : key_from<D>(x);
    }
};

/* ---- Vectors ---- */

/* Bytes a thread loads at a time. */
constexpr int vector_bytes = 16;

/* The elements of one load, as 32-bit words: an array of bytes would take a register for each byte. */
template <class T, int Bytes = vector_bytes> struct alignas(Bytes) packet {
    static constexpr int size = Bytes / sizeof(T);
    static constexpr int words = Bytes / sizeof(uint32_t);
    uint32_t w[words];

    __device__ T operator[](int e) const {
        T x;
        if constexpr (sizeof(T) < sizeof(uint32_t)) {
            constexpr int in_word = sizeof(uint32_t) / sizeof(T);
            x = static_cast<T>(w[e / in_word] >> e % in_word * 8 * sizeof(T));
        } else {
            memcpy(&x, &w[e * (sizeof(T) / sizeof(uint32_t))], sizeof x);
        }
        return x;
    }
};

} // namespace dpr

#endif
