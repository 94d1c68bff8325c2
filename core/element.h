/* Elements of every type, one at a time, for the CPU strategies and the tools.
 *
 * Everything here is inlined with a constant dpr_dtype, so that the switches vanish: in C, a function that takes a
 * dtype serves as a template. The cases come from dtypes.def; a new FLOAT type needs its dpr_element_<NAME>() and its
 * line in dpr_infinity(). */
#ifndef DPR_CORE_ELEMENT_H
#define DPR_CORE_ELEMENT_H

#include "lists.h"
#include "words.h"

/* One element. Its kind says which fields are used. */
typedef struct dpr_element {
    double re, im; /* FLOAT and COMPLEX: the exact value */
    uint64_t bits; /* BOOL: 0 or 1. SINT, UINT: the value modulo 2^64. FLOAT: the bits as they are in memory */
} dpr_element;

/* ---- Facts of dtypes.def and ops.def ---------------------------------------------------------------------------- */

#define DPR_CASE_SIZE(A, NAME, number, name, storage, ...)                                                             \
    case DPR_##NAME:                                                                                                   \
        return sizeof(storage);
#define DPR_CASE_KIND(A, NAME, number, name, storage, align, kind, ...)                                                \
    case DPR_##NAME:                                                                                                   \
        return DPR_KIND_##kind;
#define DPR_CASE_WIDE(A, NAME, number, name, storage, align, kind, wide, ...)                                          \
    case DPR_##NAME:                                                                                                   \
        return DPR_##wide;
#define DPR_CASE_DOMAIN(A, NAME, number, name, domain, ...)                                                            \
    case DPR_##NAME:                                                                                                   \
        return DPR_DOMAIN_##domain;
#define DPR_CASE_RULE(A, NAME, number, name, domain, result, ...)                                                      \
    case DPR_##NAME:                                                                                                   \
        return DPR_RESULT_##result;
#define DPR_CASE_VALUES(A, NAME, number, name, domain, result, values, ...)                                            \
    case DPR_##NAME:                                                                                                   \
        return values;

/* Bytes of one element. */
DPR_FACT size_t dpr_element_size(dpr_dtype dtype) {
    switch (dtype) {
        DPR_DTYPE_LIST(DPR_CASE_SIZE, _)
    case DPR_DTYPE_NONE:
        break;
    }
    return 0;
}

DPR_FACT int dpr_element_kind(dpr_dtype dtype) {
    switch (dtype) {
        DPR_DTYPE_LIST(DPR_CASE_KIND, _)
    case DPR_DTYPE_NONE:
        break;
    }
    return 0;
}

DPR_FACT dpr_dtype dpr_element_wide(dpr_dtype dtype) {
    switch (dtype) {
        DPR_DTYPE_LIST(DPR_CASE_WIDE, _)
    case DPR_DTYPE_NONE:
        break;
    }
    return dtype;
}

/* The kinds for which the operation has a meaning. */
DPR_INLINE int dpr_op_domain(dpr_op op) {
    switch (op) {
        DPR_OP_LIST(DPR_CASE_DOMAIN, _)
    case DPR_OP_NONE:
        break;
    }
    return 0;
}

DPR_FACT dpr_result_rule dpr_op_rule(dpr_op op) {
    switch (op) {
        DPR_OP_LIST(DPR_CASE_RULE, _)
    case DPR_OP_NONE:
        break;
    }
    return DPR_RESULT_SAME;
}

/* How many values the result has. */
DPR_FACT int dpr_op_values(dpr_op op) {
    switch (op) {
        DPR_OP_LIST(DPR_CASE_VALUES, _)
    case DPR_OP_NONE:
        break;
    }
    return 0;
}

/* The type of a part of a complex type; any other type itself. */
DPR_FACT dpr_dtype dpr_real_of(dpr_dtype dtype) {
    return dtype == DPR_C64 ? DPR_F32 : dtype == DPR_C128 ? DPR_F64 : dtype;
}

/* dpr_result_dtype() of a valid pair, inlined. */
DPR_FACT dpr_dtype dpr_pair_result(dpr_op op, dpr_dtype dtype) {
    const dpr_dtype wide = dpr_element_wide(dtype);
    const int is_whole = (dpr_element_kind(dtype) & DPR_DOMAIN_BITS) != 0;
    switch (dpr_op_rule(op)) {
    case DPR_RESULT_WIDE:
        return wide;
    case DPR_RESULT_REAL:
        return dpr_real_of(wide);
    case DPR_RESULT_MEAN:
        return is_whole ? DPR_F64 : wide;
    case DPR_RESULT_MEASURE:
        return is_whole ? DPR_F64 : dpr_real_of(wide);
    case DPR_RESULT_INDEX:
    case DPR_RESULT_NUMBER:
        return DPR_I64;
    case DPR_RESULT_TRUTH:
        return DPR_BOOL;
    case DPR_RESULT_SAME:
        break;
    }
    return dtype;
}

/* Bytes of the result of a valid pair. */
DPR_INLINE size_t dpr_pair_size(dpr_op op, dpr_dtype dtype) {
    return (size_t)dpr_op_values(op) * dpr_element_size(dpr_pair_result(op, dtype));
}

/* Bytes of one part of a COMPLEX type, of the whole element otherwise. */
DPR_INLINE size_t dpr_part_size(dpr_dtype dtype) {
    return dpr_element_kind(dtype) == DPR_KIND_COMPLEX ? dpr_element_size(dtype) / 2 : dpr_element_size(dtype);
}

/* The highest bit of a part: the sign of SINT, FLOAT and COMPLEX types. */
DPR_INLINE uint64_t dpr_sign_bit(dpr_dtype dtype) {
    return UINT64_C(1) << ((8 * dpr_part_size(dtype) - 1) % 64); /* % 64: analyzers do not see that it is less */
}

/* The bits of +infinity of a FLOAT type, or of one part of a COMPLEX one. Greater magnitudes are NaNs. */
DPR_INLINE uint64_t dpr_infinity(dpr_dtype dtype) {
    switch (dtype) {
    case DPR_F16:
        return 0x7c00;
    case DPR_BF16:
        return 0x7f80;
    case DPR_F32:
    case DPR_C64:
        return 0x7f800000;
    default:
        return UINT64_C(0x7ff0000000000000);
    }
}

/* ---- Loading ---------------------------------------------------------------------------------------------------- */

DPR_INLINE dpr_element dpr_element_F64(double value) {
    dpr_element e = {.re = value};
    memcpy(&e.bits, &value, sizeof value);
    return e;
}

DPR_INLINE dpr_element dpr_element_F32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof value);
    return (dpr_element){.re = (double)value, .bits = bits};
}

DPR_INLINE dpr_element dpr_element_BF16(uint16_t bits) {
    uint32_t upper = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &upper, sizeof value);
    return (dpr_element){.re = (double)value, .bits = bits};
}

/* A binary16 number is ±m/1024 * 2^(e-15). m has a leading 1 unless e is 0; then the exponent is that of e = 1. */
DPR_INLINE dpr_element dpr_element_F16(uint16_t bits) {
    uint64_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint64_t f64 = (exponent == 31 ? UINT64_C(2047) : exponent + (1023 - 15)) << 52 | fraction << 42;
    double value;
    memcpy(&value, &f64, sizeof value);
    if (exponent == 0)
        value = (double)fraction * 0x1p-24;
    return (dpr_element){.re = bits >> 15 ? -value : value, .bits = bits};
}

#define DPR_ELEMENT_BOOL(NAME, value)                                                                                  \
    (dpr_element) {                                                                                                    \
        .bits = (value) != 0                                                                                           \
    }
#define DPR_ELEMENT_SINT(NAME, value)                                                                                  \
    (dpr_element) {                                                                                                    \
        .bits = (uint64_t)(int64_t)(value)                                                                             \
    }
#define DPR_ELEMENT_UINT(NAME, value)                                                                                  \
    (dpr_element) {                                                                                                    \
        .bits = (uint64_t)(value)                                                                                      \
    }
#define DPR_ELEMENT_FLOAT(NAME, value) dpr_element_##NAME(value)
#define DPR_ELEMENT_COMPLEX(NAME, value)                                                                               \
    (dpr_element) {                                                                                                    \
        .re = (double)(value).re, .im = (double)(value).im                                                             \
    }

#define DPR_CASE_LOAD(A, NAME, number, name, storage, align, kind, ...)                                                \
    case DPR_##NAME: {                                                                                                 \
        storage value;                                                                                                 \
        memcpy(&value, at, sizeof value);                                                                              \
        return DPR_ELEMENT_##kind(NAME, value);                                                                        \
    }

/* The element at `at`, which needs no alignment. */
DPR_INLINE dpr_element dpr_element_load(dpr_dtype dtype, const void *at) {
    switch (dtype) {
        DPR_DTYPE_LIST(DPR_CASE_LOAD, _)
    case DPR_DTYPE_NONE:
        break;
    }
    return (dpr_element){.bits = 0};
}

/* ---- Questions -------------------------------------------------------------------------------------------------- */

DPR_INLINE int dpr_element_is_nan(dpr_dtype dtype, dpr_element e) {
    if (dpr_element_kind(dtype) & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX))
        return e.re != e.re || e.im != e.im;
    return 0;
}

DPR_INLINE int dpr_element_is_nonzero(dpr_dtype dtype, dpr_element e) {
    if (dpr_element_kind(dtype) & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX))
        return e.re != 0 || e.im != 0;
    return e.bits != 0;
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------ */

/* MIN, MAX, ARGMIN and ARGMAX compare ranks: signed integers as wide as the element, of which the least wins. For MIN
 * ranks have the order of the elements; MAX has their complements, which have the opposite order.
 *
 * A float's magnitude bits are ordered like its magnitude, so complementing those of negative numbers orders all from
 * -inf over -0 and +0 to +inf. Only NaNs have ranks beyond the infinities: all NaNs that must win have the least rank
 * of the width, and the greatest rank stands for "none". */

DPR_INLINE int dpr_rank_reversed(dpr_op op) {
    return op == DPR_MAX || op == DPR_ARGMAX;
}

DPR_INLINE int64_t dpr_rank_greatest(dpr_dtype dtype) {
    return (int64_t)(dpr_sign_bit(dtype) - 1);
}

DPR_INLINE int64_t dpr_rank_least(dpr_dtype dtype) {
    return ~dpr_rank_greatest(dtype);
}

/* The low bits, as many as the element has, as a signed number. */
DPR_INLINE int64_t dpr_sign_extend(dpr_dtype dtype, uint64_t bits) {
    uint64_t sign = dpr_sign_bit(dtype);
    return (int64_t)(((bits & (sign | (sign - 1))) ^ sign) - sign);
}

DPR_INLINE int64_t dpr_rank_of(dpr_op op, dpr_dtype dtype, dpr_element e) {
    int64_t rank = (int64_t)e.bits;
    if (dpr_element_kind(dtype) == DPR_KIND_UINT)
        rank = (int64_t)(e.bits - dpr_sign_bit(dtype));
    if (dpr_element_kind(dtype) == DPR_KIND_FLOAT) {
        if (dpr_element_is_nan(dtype, e))
            return dpr_rank_least(dtype);
        rank = dpr_sign_extend(dtype, e.bits);
        rank = rank < 0 ? rank ^ dpr_rank_greatest(dtype) : rank;
    }
    return dpr_rank_reversed(op) ? ~rank : rank;
}

/* The bits of the element that has this rank. */
DPR_INLINE uint64_t dpr_rank_bits(dpr_op op, dpr_dtype dtype, int64_t rank) {
    uint64_t infinity = dpr_infinity(dtype);
    int64_t value = dpr_rank_reversed(op) ? ~rank : rank;
    if (dpr_element_kind(dtype) == DPR_KIND_UINT)
        return (uint64_t)value + dpr_sign_bit(dtype);
    if (dpr_element_kind(dtype) == DPR_KIND_FLOAT) {
        if (rank == dpr_rank_least(dtype)) /* NaN: the quiet bit is the highest one below the exponent */
            return infinity | (infinity & (~infinity + 1)) >> 1;
        if (rank == dpr_rank_greatest(dtype))
            return dpr_rank_reversed(op) ? infinity | dpr_sign_bit(dtype) : infinity;
        return (uint64_t)(value < 0 ? value ^ dpr_rank_greatest(dtype) : value);
    }
    return (uint64_t)value;
}

#endif
