/* Vectors of elements and of accumulators: what the loops over one array (simd_template.h) and over many results
 * (many_template.h) share.
 *
 * Vectors are GCC's vector types. A `vec` is untyped; functions take the lane size in bytes and are inlined with
 * constants, so that each pair of operation and type gets its own straight loop. Comparisons give lanes of all ones
 * or zeros. The includer has defined DPR_VECTOR_BYTES, and, if there are instructions for them, DPR_F64_FROM_F32 and
 * DPR_LESSER_S1(a, b), _S2, _S4 and _S8: the lesser of two vectors of signed lanes, lane by lane. */

#include "ops.h"
#include "pairs.h"

#if defined(__clang__)
#define DPR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DPR_UNROLL _Pragma("GCC unroll 16")
#endif

#define DPR_VECTOR __attribute__((vector_size(DPR_VECTOR_BYTES)))

typedef uint8_t vec DPR_VECTOR;
typedef int8_t vec_s1 DPR_VECTOR;
typedef int16_t vec_s2 DPR_VECTOR;
typedef int32_t vec_s4 DPR_VECTOR;
typedef int64_t vec_s8 DPR_VECTOR;
typedef uint8_t vec_u1 DPR_VECTOR;
typedef uint16_t vec_u2 DPR_VECTOR;
typedef uint32_t vec_u4 DPR_VECTOR;
typedef uint64_t vec_u8 DPR_VECTOR;
typedef float vec_f4 DPR_VECTOR;
typedef double vec_f8 DPR_VECTOR;
typedef float half_f4 __attribute__((vector_size(DPR_VECTOR_BYTES / 2)));

enum {
    VECTOR = DPR_VECTOR_BYTES,
    LANES = DPR_VECTOR_BYTES / 8, /* lanes of 64 bits */
    BLOCK = 16384 / VECTOR        /* vectors between two checks whether the answer is known: half of an L1 cache */
};

/* A vector of 64-bit lanes from an expression of the lane number. */
#if DPR_VECTOR_BYTES == 16
#define DPR_EACH_LANE(X, ...)                                                                                          \
    { X(0, __VA_ARGS__), X(1, __VA_ARGS__) }
#elif DPR_VECTOR_BYTES == 32
#define DPR_EACH_LANE(X, ...)                                                                                          \
    { X(0, __VA_ARGS__), X(1, __VA_ARGS__), X(2, __VA_ARGS__), X(3, __VA_ARGS__) }
#else
#define DPR_EACH_LANE(X, ...)                                                                                          \
    {                                                                                                                  \
        X(0, __VA_ARGS__), X(1, __VA_ARGS__), X(2, __VA_ARGS__), X(3, __VA_ARGS__), X(4, __VA_ARGS__),                 \
            X(5, __VA_ARGS__), X(6, __VA_ARGS__), X(7, __VA_ARGS__)                                                    \
    }
#endif
#define DPR_LANE_APART(I, from, apart) (from)[((I) ^ (apart)) % LANES]
#define DPR_LANE_IS_EVEN(I, ...) ((I)&1) ^ 1

/* ---- Lanes ------------------------------------------------------------------------------------------------------ */

DPR_INLINE vec load(const unsigned char *at) {
    vec x;
    memcpy(&x, at, sizeof x);
    return x;
}

/* A vector whose lanes all hold the low bits of `value`. */
DPR_INLINE vec splat(size_t size, uint64_t value) {
    uint8_t u1 = (uint8_t)value;
    uint16_t u2 = (uint16_t)value;
    uint32_t u4 = (uint32_t)value;
    switch (size) {
    case 1:
        return (vec)((vec_u1){0} + u1);
    case 2:
        return (vec)((vec_u2){0} + u2);
    case 4:
        return (vec)((vec_u4){0} + u4);
    default:
        return (vec)((vec_u8){0} + value);
    }
}

/* Signed a < b. */
DPR_INLINE vec less(size_t size, vec a, vec b) {
    switch (size) {
    case 1:
        return (vec)((vec_s1)a < (vec_s1)b);
    case 2:
        return (vec)((vec_s2)a < (vec_s2)b);
    case 4:
        return (vec)((vec_s4)a < (vec_s4)b);
    default:
        return (vec)((vec_s8)a < (vec_s8)b);
    }
}

DPR_INLINE vec equal(size_t size, vec a, vec b) {
    switch (size) {
    case 1:
        return (vec)((vec_s1)a == (vec_s1)b);
    case 2:
        return (vec)((vec_s2)a == (vec_s2)b);
    case 4:
        return (vec)((vec_s4)a == (vec_s4)b);
    default:
        return (vec)((vec_s8)a == (vec_s8)b);
    }
}

#if !defined(DPR_SELECT)
#define DPR_SELECT(mask, yes, no) (((mask) & (yes)) | (~(mask) & (no)))
#endif

DPR_INLINE vec select(vec mask, vec yes, vec no) {
    return DPR_SELECT(mask, yes, no);
}

/* The lesser of signed lanes. */
DPR_INLINE vec lesser(size_t size, vec a, vec b) {
    switch (size) {
#if defined(DPR_LESSER_S1)
    case 1:
        return DPR_LESSER_S1(a, b);
    case 2:
        return DPR_LESSER_S2(a, b);
    case 4:
        return DPR_LESSER_S4(a, b);
#endif
#if defined(DPR_LESSER_S8)
    case 8:
        return DPR_LESSER_S8(a, b);
#endif
    default:
        return select(less(size, b, a), b, a);
    }
}

/* Swaps lanes whose numbers differ by `apart`, a power of two. */
DPR_INLINE vec_f8 swap_lanes(vec_f8 x, int apart) {
    return (vec_f8)DPR_EACH_LANE(DPR_LANE_APART, x, apart);
}

DPR_INLINE vec swap_twins(vec x) {
    return (vec)swap_lanes((vec_f8)x, 1);
}

DPR_INLINE int any_bit(vec x) {
    vec_u8 lanes = (vec_u8)x;
    uint64_t bits = 0;
    for (int i = 0; i < LANES; i++)
        bits |= lanes[i];
    return bits != 0;
}

/* The sum or product of each pair of neighbouring lanes of `size` bytes, in lanes of twice the size. */
DPR_INLINE vec join_signed(size_t size, int multiply, vec x) {
    vec_s2 a2 = (vec_s2)((vec_u2)x << 8) >> 8, b2 = (vec_s2)x >> 8;
    vec_s4 a4 = (vec_s4)((vec_u4)x << 16) >> 16, b4 = (vec_s4)x >> 16;
    vec_s8 a8 = (vec_s8)((vec_u8)x << 32) >> 32, b8 = (vec_s8)x >> 32;
    switch (size) {
    case 1:
        return (vec)(multiply ? a2 * b2 : a2 + b2);
    case 2:
        return (vec)(multiply ? a4 * b4 : a4 + b4);
    default:
        return (vec)(multiply ? a8 * b8 : a8 + b8);
    }
}

DPR_INLINE vec join_unsigned(size_t size, int multiply, vec x) {
    vec_u2 a2 = (vec_u2)x & 0xff, b2 = (vec_u2)x >> 8;
    vec_u4 a4 = (vec_u4)x & 0xffff, b4 = (vec_u4)x >> 16;
    vec_u8 a8 = (vec_u8)x & 0xffffffff, b8 = (vec_u8)x >> 32;
    switch (size) {
    case 1:
        return (vec)(multiply ? a2 * b2 : a2 + b2);
    case 2:
        return (vec)(multiply ? a4 * b4 : a4 + b4);
    default:
        return (vec)(multiply ? a8 * b8 : a8 + b8);
    }
}

/* Sums or products of neighbouring lanes, in lanes of 64 bits. The results of each step fit its lanes. */
DPR_INLINE vec widen(size_t size, int is_signed, int multiply, vec x) {
    if (size == 1)
        x = is_signed ? join_signed(1, multiply, x) : join_unsigned(1, multiply, x);
    if (size <= 2)
        x = is_signed ? join_signed(2, multiply, x) : join_unsigned(2, multiply, x);
    if (size <= 4)
        x = is_signed ? join_signed(4, multiply, x) : join_unsigned(4, multiply, x);
    return x;
}

/* ---- Elements as lanes ------------------------------------------------------------------------------------------ */

/* Lane size of flags(): C128 has a pair of lanes for each element. */
DPR_INLINE size_t flag_size(dpr_dtype dtype) {
    return dtype == DPR_C128 ? 8 : dpr_element_size(dtype);
}

/* Sets both parts of each complex element for which `part` has either part set. */
DPR_INLINE vec either_part(dpr_dtype dtype, vec part) {
    if (dtype == DPR_C64)
        return part | (vec)((vec_u8)part << 32 | (vec_u8)part >> 32);
    return part | swap_twins(part);
}

DPR_INLINE vec magnitudes(dpr_dtype dtype, vec x) {
    return x & ~splat(dpr_part_size(dtype), dpr_sign_bit(dtype));
}

DPR_INLINE vec are_nan(dpr_dtype dtype, vec x) {
    size_t size = dpr_part_size(dtype);
    if (dpr_acc_is_integer(dtype))
        return (vec){0};
    vec nan = less(size, splat(size, dpr_infinity(dtype)), magnitudes(dtype, x));
    return dpr_acc_is_complex(dtype) ? either_part(dtype, nan) : nan;
}

DPR_INLINE vec are_zero(dpr_dtype dtype, vec x) {
    if (!dpr_acc_is_integer(dtype))
        x = magnitudes(dtype, x);
    vec zero = equal(flag_size(dtype), x, (vec){0});
    return dtype == DPR_C128 ? ~either_part(dtype, ~zero) : zero;
}

/* Marks for ALL the elements that make it false, for ANY those that make it true, for COUNT those that it counts. */
DPR_INLINE vec flags(dpr_op op, dpr_dtype dtype, dpr_nan nan, vec x) {
    vec zero = are_zero(dtype, x);
    if (op == DPR_ALL)
        return zero;
    return nan == DPR_NAN_IGNORE ? ~(zero | are_nan(dtype, x)) : ~zero;
}

DPR_INLINE vec truths(vec x) {
    return ~equal(1, x, (vec){0}) & splat(1, 1);
}

/* dpr_rank_of() of every lane. NaNs that are ignored have the rank that stands for "none". */
DPR_INLINE vec ranks(dpr_op op, dpr_dtype dtype, dpr_nan nan, vec x) {
    size_t size = dpr_element_size(dtype);
    int64_t rank_of_nan = nan == DPR_NAN_IGNORE ? dpr_rank_greatest(dtype) : dpr_rank_least(dtype);
    vec nans = are_nan(dtype, x);
    switch (dpr_element_kind(dtype)) {
    case DPR_KIND_BOOL:
        x = truths(x);
        break;
    case DPR_KIND_UINT:
        x ^= splat(size, dpr_sign_bit(dtype));
        break;
    case DPR_KIND_FLOAT:
        x ^= less(size, x, (vec){0}) & ~splat(size, dpr_sign_bit(dtype));
        break;
    default:
        break;
    }
    if (dpr_rank_reversed(op))
        x = ~x;
    return dpr_element_kind(dtype) == DPR_KIND_FLOAT ? select(nans, splat(size, (uint64_t)rank_of_nan), x) : x;
}

/* ---- Operations on integers, ranks and flags -------------------------------------------------------------------- */

/* Bytes of the lanes that lift() makes and combine() takes. */
DPR_INLINE size_t lane_size(dpr_op op, dpr_dtype dtype) {
    return op == DPR_SUM || op == DPR_PROD || op == DPR_COUNT ? 8 : flag_size(dtype);
}

/* Converts a vector of elements to accumulators. Sums of signed elements add up element + 2^(width-1), which is not
 * negative, because extending with zeros takes fewer instructions than with signs. fold_lanes() subtracts it. */
DPR_INLINE vec lift(dpr_op op, dpr_dtype dtype, dpr_nan nan, vec x) {
    size_t size = dpr_element_size(dtype);
    int is_signed = dpr_element_kind(dtype) == DPR_KIND_SINT;
    switch (op) {
    case DPR_SUM:
        x = dtype == DPR_BOOL ? truths(x) : x;
        return widen(size, 0, 0, is_signed ? x ^ splat(size, dpr_sign_bit(dtype)) : x);
    case DPR_PROD:
        return widen(size, is_signed, 1, dtype == DPR_BOOL ? truths(x) : x);
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        return ranks(op, dtype, nan, x);
    case DPR_ALL:
    case DPR_ANY:
        return flags(op, dtype, nan, x);
    case DPR_COUNT:
        x = flags(op, dtype, nan, x);
        if (dtype == DPR_C128)
            return x & (vec)(vec_u8)DPR_EACH_LANE(DPR_LANE_IS_EVEN, _);
        return widen(flag_size(dtype), 0, 0, x & splat(flag_size(dtype), 1));
    default:
        return dtype == DPR_BOOL ? truths(x) : x;
    }
}

/* Combines two vectors of accumulators to one. */
DPR_INLINE vec combine(dpr_op op, dpr_dtype dtype, vec a, vec b) {
    switch (op) {
    case DPR_SUM:
    case DPR_COUNT:
        return (vec)((vec_u8)a + (vec_u8)b);
    case DPR_PROD:
        return (vec)((vec_u8)a * (vec_u8)b);
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        return lesser(dpr_element_size(dtype), a, b);
    case DPR_ALL:
    case DPR_ANY:
    case DPR_BOR:
        return a | b;
    case DPR_BAND:
        return a & b;
    default:
        return a ^ b;
    }
}

/* A vector of accumulators of no elements. */
DPR_INLINE vec neutral(dpr_op op, dpr_dtype dtype) {
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    int is_rank = op == DPR_MIN || op == DPR_MAX || op == DPR_ARGMIN || op == DPR_ARGMAX;
    int is_flag = op == DPR_ALL || op == DPR_ANY;
    return splat(lane_size(op, dtype), is_rank ? (uint64_t)acc.rank : is_flag ? 0 : acc.bits);
}

/* ---- Elements as numbers ---------------------------------------------------------------------------------------- */

#if !defined(DPR_F64_FROM_F32)
DPR_INLINE vec_f8 f64_from_f32(const void *at) {
    half_f4 x;
    memcpy(&x, at, sizeof x);
    return __builtin_convertvector(x, vec_f8);
}
#define DPR_F64_FROM_F32 f64_from_f32
#endif

/* LANES integers of a type from memory. */
#define DPR_LANES_OF(NAME, T)                                                                                          \
    typedef T some_##NAME __attribute__((vector_size(LANES * sizeof(T))));                                             \
    DPR_INLINE some_##NAME load_##NAME(const unsigned char *at) {                                                      \
        some_##NAME x;                                                                                                 \
        memcpy(&x, at, sizeof x);                                                                                      \
        return x;                                                                                                      \
    }
DPR_LANES_OF(I8, int8_t)
DPR_LANES_OF(U8, uint8_t)
DPR_LANES_OF(I16, int16_t)
DPR_LANES_OF(U16, uint16_t)
DPR_LANES_OF(I32, int32_t)
DPR_LANES_OF(U32, uint32_t)
DPR_LANES_OF(I64, int64_t)
DPR_LANES_OF(U64, uint64_t)

#if !defined(DPR_WHOLE_S1)
#define DPR_WHOLE_S1(at) (vec_u8) __builtin_convertvector(load_I8(at), vec_s8)
#define DPR_WHOLE_U1(at) __builtin_convertvector(load_U8(at), vec_u8)
#define DPR_WHOLE_S2(at) (vec_u8) __builtin_convertvector(load_I16(at), vec_s8)
#define DPR_WHOLE_U2(at) __builtin_convertvector(load_U16(at), vec_u8)
#define DPR_WHOLE_S4(at) (vec_u8) __builtin_convertvector(load_I32(at), vec_s8)
#define DPR_WHOLE_U4(at) __builtin_convertvector(load_U32(at), vec_u8)
#endif

/* As integers of 64 bits. */
DPR_INLINE vec_u8 whole_lanes(dpr_dtype dtype, const unsigned char *at) {
    switch (dtype) {
    case DPR_BOOL:
        return (vec_u8)(DPR_WHOLE_U1(at) != 0) & 1;
    case DPR_I8:
        return DPR_WHOLE_S1(at);
    case DPR_U8:
        return DPR_WHOLE_U1(at);
    case DPR_I16:
        return DPR_WHOLE_S2(at);
    case DPR_U16:
        return DPR_WHOLE_U2(at);
    case DPR_I32:
        return DPR_WHOLE_S4(at);
    case DPR_U32:
        return DPR_WHOLE_U4(at);
    default:
        return (vec_u8)load(at);
    }
}

/* What SUMSQ and NORM1 add up of integers of 64 bits; for other operations the integers. */
DPR_INLINE vec_u8 whole_terms(dpr_op op, dpr_dtype dtype, vec_u8 x) {
    const int is_signed = dpr_element_kind(dtype) == DPR_KIND_SINT;
    const vec_u8 sign = is_signed ? (vec_u8)((vec_s8)x < 0) : (vec_u8){0};
    if (op == DPR_SUMSQ)
        return x * x;
    return op == DPR_NORM1 ? (x ^ sign) - sign : x;
}

/* Makes lanes that are NaN neutral if NaNs are ignored; for complex types also the lane of the other part. */
DPR_INLINE vec_f8 without_nan(dpr_op op, dpr_dtype dtype, dpr_nan nan, vec_f8 x) {
    if (nan != DPR_NAN_IGNORE)
        return x;
    vec absent = (vec)(x != x);
    if (dpr_acc_is_complex(dtype))
        absent |= swap_twins(absent);
    vec neutral = op == DPR_PROD ? (vec)((vec_f8){0} + 1.0) : (vec){0};
    return (vec_f8)select(absent, neutral, (vec)x);
}

DPR_INLINE vec_f8 meet(dpr_op op, vec_f8 a, vec_f8 b) {
    return op == DPR_PROD ? a * b : a + b;
}

/* Combines *value with x in every lane: by dpr_two_sum() if `low` is not NULL, otherwise by a sum or product. */
DPR_INLINE void take_in(dpr_op op, vec_f8 *value, vec_f8 *low, vec_f8 x) {
    vec_f8 sum = meet(op, *value, x), x_part = sum - *value;
    if (low)
        *low += (*value - (sum - x_part)) + (x - x_part);
    *value = sum;
}
