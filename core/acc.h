/* The algebra of the operations: for each operation its neutral accumulator, how an element becomes an accumulator, how
 * two accumulators become one, how an accumulator becomes the result, and how it is written as words, which are the
 * same on every machine.
 *
 * Loops on the CPU inline it with constant operation and type, like element.h. Partial results are merged and finished
 * with it on the CPU and on GPUs. Kernels that read arrays have accumulators of their own (monoid.cuh), which become
 * the same words. A new operation is a case in dpr_acc_lift() and dpr_acc_combine(), and in dpr_acc_neutral() unless it
 * starts from zero. */
#ifndef DPR_CORE_ACC_H
#define DPR_CORE_ACC_H

#include "element.h"
#include "strategy.h"

/* An accumulator. It is a plain value: it may be copied, and needs no release. */
typedef struct dpr_acc {
    double re, im;         /* sum or product of a floating-point or complex type */
    double re_low, im_low; /* what the sums have lost to rounding */
    uint64_t bits;         /* sum, product or bitwise result of an integer type; a count; a truth value */
    int64_t rank;          /* rank of the best element (element.h) */
    int64_t index;         /* lowest index of the best element; 0 for complex products; -1: no element so far */
} dpr_acc;

/* The fields of an accumulator that are used depend on whether the type is an integer or complex. */
DPR_INLINE int dpr_acc_is_integer(dpr_dtype dtype) {
    return (dpr_element_kind(dtype) & DPR_DOMAIN_BITS) != 0;
}
DPR_INLINE int dpr_acc_is_complex(dpr_dtype dtype) {
    return dpr_element_kind(dtype) == DPR_KIND_COMPLEX;
}

/* The accumulator of no elements. */
DPR_INLINE dpr_acc dpr_acc_neutral(dpr_op op, dpr_dtype dtype) {
    dpr_acc acc = {.rank = dpr_rank_greatest(dtype), .index = -1};
    if (op == DPR_PROD) {
        acc.re = 1;
        acc.bits = 1;
    }
    if (op == DPR_ALL)
        acc.bits = 1;
    if (op == DPR_BAND)
        acc.bits = UINT64_MAX;
    return acc;
}

/* The accumulator of one element, which has this index. */
DPR_INLINE dpr_acc dpr_acc_lift(dpr_op op, dpr_dtype dtype, dpr_element e, size_t index) {
    switch (op) {
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        return (dpr_acc){.rank = dpr_rank_of(op, dtype, e), .index = (int64_t)index};
    case DPR_ALL:
    case DPR_ANY:
    case DPR_COUNT:
        return (dpr_acc){.bits = (uint64_t)dpr_element_is_nonzero(dtype, e)};
    case DPR_SUM:
    case DPR_PROD:
    case DPR_BAND:
    case DPR_BOR:
    case DPR_BXOR:
    case DPR_OP_NONE:
        break;
    }
    return (dpr_acc){.re = e.re, .im = e.im, .bits = e.bits};
}

/* Adds (b, b_low) to (*a, *a_low). The rounding error of a + b is computed exactly (Knuth's TwoSum: The Art of
 * Computer Programming, vol. 2, 4.2.2, theorem B), so that a long sum is as good as one in twice the precision (Ogita,
 * Rump, Oishi: Accurate Sum and Dot Product, 2005). */
DPR_INLINE void dpr_two_sum(double *a, double *a_low, double b, double b_low) {
    double sum = *a + b, b_part = sum - *a;
    double lost = (*a - (sum - b_part)) + (b - b_part);
    *a = sum;
    *a_low += b_low + lost;
}

/* Leaves out an accumulator without elements, because (1 + 0i) times an infinity has a part that is NaN. */
DPR_INLINE void dpr_acc_multiply(dpr_dtype dtype, dpr_acc *a, const dpr_acc *b) {
    if (!dpr_acc_is_complex(dtype)) {
        a->re *= b->re;
        a->bits *= b->bits;
    } else if (a->index >= 0 && b->index >= 0) {
        double re = a->re * b->re - a->im * b->im;
        a->im = a->re * b->im + a->im * b->re;
        a->re = re;
    } else if (b->index >= 0) {
        *a = *b;
    }
}

/* *a becomes the accumulator of a's elements followed by b's. */
DPR_INLINE void dpr_acc_combine(dpr_op op, dpr_dtype dtype, dpr_acc *a, const dpr_acc *b) {
    switch (op) {
    case DPR_SUM:
        if (dpr_acc_is_integer(dtype))
            a->bits += b->bits;
        else
            dpr_two_sum(&a->re, &a->re_low, b->re, b->re_low);
        if (dpr_acc_is_complex(dtype))
            dpr_two_sum(&a->im, &a->im_low, b->im, b->im_low);
        break;
    case DPR_PROD:
        dpr_acc_multiply(dtype, a, b);
        break;
    case DPR_MIN:
    case DPR_MAX:
        if (b->rank < a->rank)
            a->rank = b->rank;
        break;
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        if (b->index >= 0 && (a->index < 0 || b->rank < a->rank || (b->rank == a->rank && b->index < a->index))) {
            a->rank = b->rank;
            a->index = b->index;
        }
        break;
    case DPR_ALL:
    case DPR_BAND:
        a->bits &= b->bits;
        break;
    case DPR_ANY:
    case DPR_BOR:
        a->bits |= b->bits;
        break;
    case DPR_BXOR:
        a->bits ^= b->bits;
        break;
    case DPR_COUNT:
        a->bits += b->bits;
        break;
    case DPR_OP_NONE:
        break;
    }
}

/* Combines *acc with the element that has this index; with DPR_NAN_IGNORE, leaves NaN elements out. */
DPR_INLINE void dpr_acc_add(dpr_op op, dpr_dtype dtype, dpr_nan nan, dpr_acc *acc, dpr_element e, size_t index) {
    if (nan == DPR_NAN_IGNORE && dpr_element_is_nan(dtype, e))
        return;
    dpr_acc one = dpr_acc_lift(op, dtype, e, index);
    dpr_acc_combine(op, dtype, acc, &one);
}

/* Combines *acc with the initial value, which has the result type. */
DPR_INLINE void dpr_acc_add_init(dpr_op op, dpr_dtype dtype, dpr_nan nan, dpr_acc *acc, const dpr_init *init) {
    dpr_dtype result = dpr_pair_result(op, dtype);
    if (!init->present || op == DPR_ARGMIN || op == DPR_ARGMAX)
        return;
    dpr_element e = dpr_element_load(result, init->bytes);
    if (op == DPR_COUNT)
        acc->bits += e.bits;
    else
        dpr_acc_add(op, result, nan, acc, e, 0);
}

/* The sum of `value` and `low`. After an overflow `low` is infinite or NaN, and IEEE arithmetic gives `value`. */
DPR_INLINE double dpr_acc_total(double value, double low) {
    return isfinite(low) ? value + low : value;
}

/* Writes a sum or product of floats in the type `wide`, which sums have. */
DPR_INLINE void dpr_acc_write_float(dpr_dtype wide, double re, double im, void *out) {
    float pair32[2] = {(float)re, (float)im};
    double pair64[2] = {re, im};
    if (wide == DPR_F32)
        memcpy(out, pair32, sizeof pair32[0]);
    else if (wide == DPR_C64)
        memcpy(out, pair32, sizeof pair32);
    else if (wide == DPR_F64)
        memcpy(out, pair64, sizeof pair64[0]);
    else
        memcpy(out, pair64, sizeof pair64);
}

/* Writes the `size` low bytes of an integer. */
DPR_INLINE void dpr_acc_write_bits(size_t size, uint64_t bits, void *out) {
    uint8_t u8 = (uint8_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;
    if (size == sizeof u8)
        memcpy(out, &u8, sizeof u8);
    else if (size == sizeof u16)
        memcpy(out, &u16, sizeof u16);
    else if (size == sizeof u32)
        memcpy(out, &u32, sizeof u32);
    else
        memcpy(out, &bits, sizeof bits);
}

/* Writes the result to *out. */
DPR_INLINE void dpr_acc_write(dpr_op op, dpr_dtype dtype, const dpr_acc *acc, void *out) {
    dpr_dtype result = dpr_pair_result(op, dtype);
    uint64_t bits = acc->bits;
    if (op == DPR_SUM && !dpr_acc_is_integer(dtype)) {
        dpr_acc_write_float(result, dpr_acc_total(acc->re, acc->re_low), dpr_acc_total(acc->im, acc->im_low), out);
        return;
    }
    if (op == DPR_PROD && !dpr_acc_is_integer(dtype)) {
        dpr_acc_write_float(result, acc->re, acc->im, out);
        return;
    }
    if (op == DPR_MIN || op == DPR_MAX)
        bits = dpr_rank_bits(op, dtype, acc->rank);
    if (op == DPR_ARGMIN || op == DPR_ARGMAX)
        bits = (uint64_t)acc->index;
    if (result == DPR_BOOL) /* neutral accumulators have all bits of a byte set */
        bits &= 1;
    dpr_acc_write_bits(dpr_element_size(result), bits, out);
}

/* ---- Words ------------------------------------------------------------------------------------------------------ */

/* Most words of an accumulator. */
enum { DPR_ACC_WORDS = 4 };

/* Words of an accumulator of the pair: for SUM of a floating-point type the sum and what it has lost to rounding, of
 * each part; for PROD of one the product, of each part; for ARGMIN and ARGMAX the element and its index; for the rest
 * one word. */
DPR_INLINE int dpr_acc_words(dpr_op op, dpr_dtype dtype) {
    const int parts = dpr_acc_is_complex(dtype) ? 2 : 1;
    if (op == DPR_ARGMIN || op == DPR_ARGMAX)
        return 2;
    if (dpr_acc_is_integer(dtype))
        return 1;
    return op == DPR_SUM ? 2 * parts : op == DPR_PROD ? parts : 1;
}

/* The element that has this rank, as a word; of BOOL, whose ranks are those of bytes, the truth value. */
DPR_INLINE uint64_t dpr_word_of_rank(dpr_op op, dpr_dtype dtype, int64_t rank) {
    const uint64_t bits = dpr_rank_bits(op, dtype, rank);
    return dtype == DPR_BOOL ? bits & 1 : dpr_word_cut(dpr_element_size(dtype), bits);
}

/* Writes the accumulator to dpr_acc_words() words. */
DPR_INLINE void dpr_acc_store(dpr_op op, dpr_dtype dtype, const dpr_acc *acc, uint64_t *words) {
    const size_t size = dpr_element_size(dpr_pair_result(op, dtype));
    const int is_index = op == DPR_ARGMIN || op == DPR_ARGMAX, is_complex = dpr_acc_is_complex(dtype);
    const int is_real = (op == DPR_SUM || op == DPR_PROD) && !dpr_acc_is_integer(dtype);
    if (is_index) {
        words[0] = acc->index < 0 ? 0 : dpr_word_of_rank(op, dtype, acc->rank);
        words[1] = acc->index < 0 ? UINT64_MAX : (uint64_t)acc->index;
    } else if (is_real && op == DPR_SUM) {
        words[0] = dpr_word_of(acc->re);
        words[1] = dpr_word_of_lost(acc->re, acc->re_low);
        if (is_complex) {
            words[2] = dpr_word_of(acc->im);
            words[3] = dpr_word_of_lost(acc->im, acc->im_low);
        }
    } else if (is_real) {
        words[0] = dpr_word_of(acc->re);
        if (is_complex)
            words[1] = dpr_word_of(acc->im);
    } else if (op == DPR_MIN || op == DPR_MAX) {
        words[0] = dpr_word_of_rank(op, dtype, acc->rank);
    } else {
        words[0] = dpr_pair_result(op, dtype) == DPR_BOOL ? acc->bits & 1 : dpr_word_cut(size, acc->bits);
    }
}

/* The accumulator of `count` elements that has these words. */
DPR_INLINE dpr_acc dpr_acc_load(dpr_op op, dpr_dtype dtype, uint64_t count, const uint64_t *words) {
    const int is_index = op == DPR_ARGMIN || op == DPR_ARGMAX, is_complex = dpr_acc_is_complex(dtype);
    const int is_real = (op == DPR_SUM || op == DPR_PROD) && !dpr_acc_is_integer(dtype);
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    if (is_index || op == DPR_MIN || op == DPR_MAX) {
        acc.index = is_index ? (int64_t)words[1] : 0;
        if (acc.index < 0) /* one of no elements has one form */
            acc.index = -1;
        else
            acc.rank = dpr_rank_of(op, dtype, dpr_element_load(dtype, words)); /* words are little-endian */
    } else if (is_real && op == DPR_SUM) {
        acc.re = dpr_word_number(words[0]);
        acc.re_low = dpr_word_number(words[1]);
        if (is_complex) {
            acc.im = dpr_word_number(words[2]);
            acc.im_low = dpr_word_number(words[3]);
        }
    } else if (is_real) {
        acc.re = dpr_word_number(words[0]);
        if (is_complex)
            acc.im = dpr_word_number(words[1]);
        acc.index = count > 0 ? 0 : -1;
    } else {
        acc.bits = words[0];
    }
    return acc;
}

#endif
