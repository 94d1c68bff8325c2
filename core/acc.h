/* The algebra of the operations: for each operation its neutral accumulator, how an element becomes an accumulator, how
 * two accumulators become one, how an accumulator becomes the result, and how it is written as words, which are the
 * same on every machine.
 *
 * Loops on the CPU inline it with constant operation and type, like element.h. Partial results are merged and finished
 * with it on the CPU and on GPUs, and so are the accumulators of kernels that get operations as arguments. Kernels that
 * read arrays have accumulators of their own (monoid.cuh, measures.cuh), which become the same words. CONTRIBUTING.md
 * shows what a new operation needs here. */
#ifndef DPR_CORE_ACC_H
#define DPR_CORE_ACC_H

#include "element.h"
#include "strategy.h"

/* An accumulator. It is a plain value: it may be copied, and needs no release. */
typedef struct dpr_acc {
    double re, im, squares;                /* sums or products of floating-point numbers (DPR_ACC_RE and so on) */
    double re_lost, im_lost, squares_lost; /* what the sums have lost to rounding */
    uint64_t bits; /* sum, product or bitwise result of an integer type; a count; a truth value */
    int64_t rank;  /* rank of the best element (element.h) */
    int64_t index; /* lowest index of the best element; 0 for complex products; -1: no element so far. MINMAX: the rank
                      of the greatest element. MEAN of integers: the upper 64 bits of the sum */
    uint64_t present; /* MEAN and VAR: elements that count */
} dpr_acc;

/* The sums of floating-point numbers that an accumulator has. SUM, PROD and MEAN: `re`, and `im` of complex types.
 * SUMSQ and NORM1: `re`. VAR: the sums of the elements in `re` and `im`, and of the squared distances from the mean in
 * `squares`. NORM2: the sum of squares in `re`; for F64 and C128 `re` has only the squares of parts with magnitudes
 * from 2^-511 to 2^486. `im` has those of greater parts and `squares` those of lesser ones, both scaled, so that sums
 * of squares stay in F64's range (Blue: A Portable Fortran Program to Find the Euclidean Norm of a Vector, 1978). */
enum { DPR_ACC_RE = 1, DPR_ACC_IM = 2, DPR_ACC_SQUARES = 4 };

/* The fields of an accumulator that are used depend on whether the type is an integer or complex. */
DPR_FACT int dpr_acc_is_integer(dpr_dtype dtype) {
    return (dpr_element_kind(dtype) & DPR_DOMAIN_BITS) != 0;
}
DPR_FACT int dpr_acc_is_complex(dpr_dtype dtype) {
    return dpr_element_kind(dtype) == DPR_KIND_COMPLEX;
}

/* True if NORM2 of the type scales parts whose squares leave F64's range. Squares of other types stay in it. */
DPR_FACT int dpr_acc_is_scaled(dpr_dtype dtype) {
    return dtype == DPR_F64 || dtype == DPR_C128;
}

/* The sums that accumulators of the pair have, a set of DPR_ACC_*. */
DPR_FACT int dpr_acc_sums(dpr_op op, dpr_dtype dtype) {
    const int parts = dpr_acc_is_complex(dtype) ? DPR_ACC_RE | DPR_ACC_IM : DPR_ACC_RE;
    const int is_integer = dpr_acc_is_integer(dtype);
    if (op == DPR_VAR)
        return parts | DPR_ACC_SQUARES;
    if (op == DPR_NORM2)
        return dpr_acc_is_scaled(dtype) ? DPR_ACC_RE | DPR_ACC_IM | DPR_ACC_SQUARES : DPR_ACC_RE;
    if (op == DPR_SUM || op == DPR_PROD || op == DPR_MEAN)
        return is_integer ? 0 : parts;
    if (op == DPR_SUMSQ || op == DPR_NORM1)
        return is_integer ? 0 : DPR_ACC_RE;
    return 0;
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
    if (op == DPR_MINMAX)
        acc.index = acc.rank;
    if (op == DPR_MEAN)
        acc.index = 0;
    return acc;
}

/* ---- Lifting ---------------------------------------------------------------------------------------------------- */

/* Adds (b, b_lost) to (*a, *a_lost). The rounding error of a + b is computed exactly (Knuth's TwoSum: The Art of
 * Computer Programming, vol. 2, 4.2.2, theorem B), so that a long sum is as good as one in twice the precision (Ogita,
 * Rump, Oishi: Accurate Sum and Dot Product, 2005). */
DPR_INLINE void dpr_two_sum(double *a, double *a_lost, double b, double b_lost) {
    double sum = *a + b, b_part = sum - *a;
    double lost = (*a - (sum - b_part)) + (b - b_part);
    *a = sum;
    *a_lost += b_lost + lost;
}

/* The number that an element of a type that is not complex stands for; that of a 64-bit integer is rounded. */
DPR_INLINE double dpr_acc_number(dpr_dtype dtype, dpr_element e) {
    if (!dpr_acc_is_integer(dtype))
        return e.re;
    return dpr_element_kind(dtype) == DPR_KIND_SINT ? (double)(int64_t)e.bits : (double)e.bits;
}

/* The magnitude of a complex number, which overflows only if it is out of range itself. hypot() would give infinity for
 * an infinity and a NaN. */
DPR_INLINE double dpr_acc_magnitude(double re, double im) {
    return re != re || im != im ? re + im : hypot(re, im);
}

/* Adds the square of a part to the sum for its range; the scales are powers of 2. */
DPR_INLINE void dpr_acc_add_scaled(dpr_acc *acc, double part) {
    const double magnitude = fabs(part);
    if (magnitude > 0x1p486)
        acc->im += (part * 0x1p-538) * (part * 0x1p-538);
    else if (magnitude < 0x1p-511)
        acc->squares += (part * 0x1p537) * (part * 0x1p537);
    else
        acc->re += part * part;
}

DPR_INLINE dpr_acc dpr_acc_lift_squares(dpr_op op, dpr_dtype dtype, dpr_element e) {
    dpr_acc acc = {.bits = e.bits * e.bits};
    const double re = dpr_acc_number(dtype, e), im = dpr_acc_is_complex(dtype) ? e.im : 0;
    if (op == DPR_NORM2 && dpr_acc_is_scaled(dtype)) {
        dpr_acc_add_scaled(&acc, re);
        dpr_acc_add_scaled(&acc, im);
    } else {
        acc.re = re * re + im * im;
    }
    return acc;
}

DPR_INLINE dpr_acc dpr_acc_lift_magnitude(dpr_dtype dtype, dpr_element e) {
    const int is_negative = dpr_element_kind(dtype) == DPR_KIND_SINT && (int64_t)e.bits < 0;
    const double magnitude = dpr_acc_is_complex(dtype) ? dpr_acc_magnitude(e.re, e.im) : fabs(e.re);
    return (dpr_acc){.re = magnitude, .bits = is_negative ? 0 - e.bits : e.bits};
}

/* Sets (*sum, *lost) to the sum of n numbers, n * mean + off: `off` is the sum of their distances from `mean`. */
DPR_INLINE void dpr_acc_set_sum(double n, double mean, double off, double *sum, double *lost) {
    *sum = n * mean;
    *lost = fma(n, mean, -*sum);
    dpr_two_sum(sum, lost, off, 0);
}

/* The accumulator of VAR of n numbers near re + im i: `re_off` and `im_off` are the sums of their distances from it,
 * and `squares` that of the squared distances. They need not be distances from the mean itself, because what that adds
 * to the squares is subtracted (Chan, Golub, LeVeque, eq. 1.7). */
DPR_INLINE dpr_acc dpr_acc_of_mean(uint64_t n, double re, double im, double re_off, double im_off, double squares) {
    dpr_acc acc = {.present = n};
    if (n == 0)
        return acc;
    dpr_acc_set_sum((double)n, re, re_off, &acc.re, &acc.re_lost);
    dpr_acc_set_sum((double)n, im, im_off, &acc.im, &acc.im_lost);
    squares -= re_off * (re_off / (double)n) + im_off * (im_off / (double)n);
    acc.squares = squares < 0 ? 0 : squares;
    return acc;
}

/* The accumulator of one element, which has this index. */
DPR_INLINE dpr_acc dpr_acc_lift(dpr_op op, dpr_dtype dtype, dpr_element e, size_t index) {
    const int64_t below = dpr_element_kind(dtype) == DPR_KIND_SINT && (int64_t)e.bits < 0 ? -1 : 0;
    switch (op) {
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        return (dpr_acc){.rank = dpr_rank_of(op, dtype, e), .index = (int64_t)index};
    case DPR_MINMAX:
        return (dpr_acc){.rank = dpr_rank_of(DPR_MIN, dtype, e), .index = dpr_rank_of(DPR_MAX, dtype, e)};
    case DPR_ALL:
    case DPR_ANY:
    case DPR_COUNT:
        return (dpr_acc){.bits = (uint64_t)dpr_element_is_nonzero(dtype, e)};
    case DPR_SUMSQ:
    case DPR_NORM2:
        return dpr_acc_lift_squares(op, dtype, e);
    case DPR_NORM1:
        return dpr_acc_lift_magnitude(dtype, e);
    case DPR_MEAN:
        return (dpr_acc){.re = e.re, .im = e.im, .bits = e.bits, .index = below, .present = 1};
    case DPR_VAR:
        return dpr_acc_of_mean(1, dpr_acc_number(dtype, e), e.im, 0, 0, (e.re - e.re) + (e.im - e.im));
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

/* ---- Combining -------------------------------------------------------------------------------------------------- */

/* Adds those sums of b that are in the set `sums` to a's. */
DPR_INLINE void dpr_acc_add_sums(int sums, dpr_acc *a, const dpr_acc *b) {
    if (sums & DPR_ACC_RE)
        dpr_two_sum(&a->re, &a->re_lost, b->re, b->re_lost);
    if (sums & DPR_ACC_IM)
        dpr_two_sum(&a->im, &a->im_lost, b->im, b->im_lost);
    if (sums & DPR_ACC_SQUARES)
        dpr_two_sum(&a->squares, &a->squares_lost, b->squares, b->squares_lost);
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

/* Adds the sums of integers, which have 128 bits. */
DPR_INLINE void dpr_acc_add_long(dpr_acc *a, const dpr_acc *b) {
    a->bits += b->bits;
    a->index = (int64_t)((uint64_t)a->index + (uint64_t)b->index + (a->bits < b->bits));
}

/* The difference of two means, (b + b_lost) / b_n - (a + a_lost) / a_n, to the precision of F64, even if the means are
 * nearly the same: fma() gives the rounding errors of the products in (b a_n - a b_n) / (a_n b_n). The counts are
 * scaled, so that the products do not overflow. */
DPR_INLINE double dpr_mean_difference(double a, double a_lost, double a_n, double b, double b_lost, double b_n) {
    const double a_part = a_n * 0x1p-64, b_part = b_n * 0x1p-64;
    const double from = a * b_part, from_rest = fma(a, b_part, -from) + a_lost * b_part;
    double to = b * a_part, to_rest = fma(b, a_part, -to) + b_lost * a_part;
    dpr_two_sum(&to, &to_rest, -from, -from_rest);
    return (to + to_rest) / (a_part * b_n);
}

/* Joins sums of squared distances: those of a's and b's elements from their own means, and the distances of these means
 * from that of all (Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance, 1983, eq. 2.1). */
DPR_INLINE void dpr_acc_join_squares(dpr_dtype dtype, dpr_acc *a, const dpr_acc *b) {
    const double a_n = (double)a->present, b_n = (double)b->present;
    const double re = dpr_mean_difference(a->re, a->re_lost, a_n, b->re, b->re_lost, b_n);
    double squares = re * re;
    if (dpr_acc_is_complex(dtype)) {
        const double im = dpr_mean_difference(a->im, a->im_lost, a_n, b->im, b->im_lost, b_n);
        squares += im * im;
    }
    dpr_two_sum(&a->squares, &a->squares_lost, squares * (a_n / (a_n + b_n) * b_n), 0);
}

DPR_INLINE void dpr_acc_join_variances(dpr_dtype dtype, dpr_acc *a, const dpr_acc *b) {
    if (a->present > 0 && b->present > 0)
        dpr_acc_join_squares(dtype, a, b);
    dpr_acc_add_sums(dpr_acc_sums(DPR_VAR, dtype), a, b);
    a->present += b->present;
}

DPR_INLINE void dpr_rank_take_least(int64_t *a, int64_t b) {
    if (b < *a)
        *a = b;
}

/* *a becomes the accumulator of a's elements followed by b's. */
DPR_INLINE void dpr_acc_combine(dpr_op op, dpr_dtype dtype, dpr_acc *a, const dpr_acc *b) {
    switch (op) {
    case DPR_SUM:
    case DPR_SUMSQ:
    case DPR_NORM1:
    case DPR_NORM2:
        a->bits += b->bits;
        dpr_acc_add_sums(dpr_acc_sums(op, dtype), a, b);
        break;
    case DPR_MEAN:
        dpr_acc_add_long(a, b);
        dpr_acc_add_sums(dpr_acc_sums(op, dtype), a, b);
        a->present += b->present;
        break;
    case DPR_VAR:
        dpr_acc_join_variances(dtype, a, b);
        break;
    case DPR_PROD:
        dpr_acc_multiply(dtype, a, b);
        break;
    case DPR_MIN:
    case DPR_MAX:
        dpr_rank_take_least(&a->rank, b->rank);
        break;
    case DPR_MINMAX:
        dpr_rank_take_least(&a->rank, b->rank);
        dpr_rank_take_least(&a->index, b->index);
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

/* ---- Finishing -------------------------------------------------------------------------------------------------- */

/* Combines *acc with the initial value, which has the result type. */
DPR_INLINE void dpr_acc_add_init(dpr_op op, dpr_dtype dtype, dpr_nan nan, dpr_acc *acc, const dpr_init *init) {
    dpr_dtype result = dpr_pair_result(op, dtype);
    if (!init->present)
        return;
    dpr_element e = dpr_element_load(result, init->bytes);
    if (op == DPR_COUNT) {
        acc->bits += e.bits;
    } else if (op == DPR_MINMAX) {
        dpr_acc greatest = {.rank = acc->index};
        dpr_acc_add(DPR_MIN, result, nan, acc, e, 0);
        e = dpr_element_load(result, init->bytes + dpr_element_size(result));
        dpr_acc_add(DPR_MAX, result, nan, &greatest, e, 0);
        acc->index = greatest.rank;
    } else {
        /* The value of SUMSQ or NORM1 is a sum already. */
        dpr_acc_add(op == DPR_SUMSQ || op == DPR_NORM1 ? DPR_SUM : op, result, nan, acc, e, 0);
    }
}

/* The sum of `value` and what it has lost. After an overflow `lost` is infinite or NaN, and IEEE arithmetic gives
 * `value`. */
DPR_INLINE double dpr_acc_total(double value, double lost) {
    return isfinite(lost) ? value + lost : value;
}

/* NORM2 from the sums of squares in three ranges. If there are great parts, the little ones do not count. */
DPR_INLINE double dpr_acc_norm(const dpr_acc *acc) {
    const double middle = dpr_acc_total(acc->re, acc->re_lost);
    const double great = dpr_acc_total(acc->im, acc->im_lost), little = dpr_acc_total(acc->squares, acc->squares_lost);
    if (great > 0)
        return sqrt(great + (middle * 0x1p-538) * 0x1p-538) * 0x1p538;
    if (!(little > 0))
        return sqrt(middle);
    const double a = sqrt(middle), b = sqrt(little) * 0x1p-537, least = a < b ? a : b, most = a < b ? b : a;
    return most != most || least != least ? middle + little : most * sqrt(1 + (least / most) * (least / most));
}

/* What VAR divides by; NaN if there is no element. */
DPR_INLINE double dpr_acc_divisor(const dpr_acc *acc, const dpr_init *init) {
    return acc->present > 0 ? (double)acc->present - init->sample : (double)NAN;
}

/* A sum of integers, which has 128 bits. Its magnitude is converted: the halves of a small negative sum are large, and
 * their rounded difference would lose the sum. */
DPR_INLINE double dpr_acc_long(const dpr_acc *acc) {
    const int is_negative = acc->index < 0;
    const uint64_t lower = is_negative ? 0 - acc->bits : acc->bits;
    const uint64_t upper = is_negative ? ~(uint64_t)acc->index + (lower == 0) : (uint64_t)acc->index;
    const double magnitude = (double)upper * 0x1p64 + (double)lower;
    return is_negative ? -magnitude : magnitude;
}

/* Sets re and im of a result of floating-point numbers. */
DPR_INLINE void dpr_acc_numbers(dpr_op op, dpr_dtype dtype, const dpr_acc *acc, const dpr_init *init, double *re,
                                double *im) {
    *re = op == DPR_PROD ? acc->re : dpr_acc_total(acc->re, acc->re_lost);
    *im = op == DPR_PROD ? acc->im : dpr_acc_total(acc->im, acc->im_lost);
    if (op == DPR_NORM2)
        *re = dpr_acc_is_scaled(dtype) ? dpr_acc_norm(acc) : sqrt(*re);
    if (op == DPR_VAR)
        *re = dpr_acc_total(acc->squares, acc->squares_lost) / dpr_acc_divisor(acc, init);
    if (op == DPR_MEAN) {
        if (dpr_acc_is_integer(dtype))
            *re = dpr_acc_long(acc);
        *re /= (double)acc->present;
        *im /= (double)acc->present;
    }
}

/* Writes a floating-point or complex number of the type `wide`, which sums have. All NaNs have the same bits. */
DPR_INLINE void dpr_acc_write_float(dpr_dtype wide, double re, double im, void *out) {
    float pair32[2] = {re != re ? NAN : (float)re, im != im ? NAN : (float)im};
    double pair64[2] = {re != re ? (double)NAN : re, im != im ? (double)NAN : im};
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

/* Writes the element that has this rank; of BOOL, whose ranks are those of bytes, the truth value. */
DPR_INLINE void dpr_acc_write_rank(dpr_op op, dpr_dtype dtype, int64_t rank, void *out) {
    const uint64_t bits = dpr_rank_bits(op, dtype, rank);
    dpr_acc_write_bits(dpr_element_size(dtype), dtype == DPR_BOOL ? bits & 1 : bits, out);
}

/* Writes the result to *out. Only the divisor of *init is used: dpr_acc_add_init() adds the initial value. */
DPR_INLINE void dpr_acc_write(dpr_op op, dpr_dtype dtype, const dpr_acc *acc, const dpr_init *init, void *out) {
    dpr_dtype result = dpr_pair_result(op, dtype);
    if (dpr_acc_sums(op, dtype) || op == DPR_MEAN) {
        double re, im;
        dpr_acc_numbers(op, dtype, acc, init, &re, &im);
        dpr_acc_write_float(result, re, im, out);
    } else if (op == DPR_MINMAX) {
        dpr_acc_write_rank(DPR_MIN, dtype, acc->rank, out);
        dpr_acc_write_rank(DPR_MAX, dtype, acc->index, (unsigned char *)out + dpr_element_size(dtype));
    } else if (op == DPR_MIN || op == DPR_MAX) {
        dpr_acc_write_rank(op, dtype, acc->rank, out);
    } else {
        const uint64_t bits = op == DPR_ARGMIN || op == DPR_ARGMAX ? (uint64_t)acc->index : acc->bits;
        /* Neutral accumulators have all bits of a byte set. */
        dpr_acc_write_bits(dpr_element_size(result), result == DPR_BOOL ? bits & 1 : bits, out);
    }
}

/* ---- Words ------------------------------------------------------------------------------------------------------ */

/* Most words of an accumulator: those of VAR of a complex type. */
enum { DPR_ACC_WORDS = 7 };

/* Words of an accumulator of the pair: for PROD of a floating-point type the product, of each part; for other sums of
 * floating-point numbers each sum and what it has lost to rounding; for ARGMIN and ARGMAX the element and its index;
 * for MINMAX both elements; for MEAN of integers the lower and upper 64 bits of the sum; for MEAN and VAR, at last, the
 * number of elements that count; for the rest one word. */
DPR_FACT int dpr_acc_words(dpr_op op, dpr_dtype dtype) {
    const int sums = dpr_acc_sums(op, dtype), n = (sums & 1) + (sums >> 1 & 1) + (sums >> 2 & 1);
    if (op == DPR_ARGMIN || op == DPR_ARGMAX || op == DPR_MINMAX)
        return 2;
    if (op == DPR_MEAN || op == DPR_VAR)
        return 1 + (n > 0 ? 2 * n : 2);
    return n == 0 ? 1 : op == DPR_PROD ? n : 2 * n;
}

/* The element that has this rank, as a word. */
DPR_INLINE uint64_t dpr_word_of_rank(dpr_op op, dpr_dtype dtype, int64_t rank) {
    uint64_t word = 0;
    dpr_acc_write_rank(op, dtype, rank, &word); /* words are little-endian */
    return word;
}

/* Writes a sum and what it has lost; returns the place after them. */
DPR_INLINE uint64_t *dpr_acc_store_sum(double sum, double lost, uint64_t *words) {
    words[0] = dpr_word_of(sum);
    words[1] = dpr_word_of_lost(sum, lost);
    return words + 2;
}

DPR_INLINE uint64_t *dpr_acc_store_sums(int sums, const dpr_acc *acc, uint64_t *words) {
    if (sums & DPR_ACC_RE)
        words = dpr_acc_store_sum(acc->re, acc->re_lost, words);
    if (sums & DPR_ACC_IM)
        words = dpr_acc_store_sum(acc->im, acc->im_lost, words);
    if (sums & DPR_ACC_SQUARES)
        words = dpr_acc_store_sum(acc->squares, acc->squares_lost, words);
    return words;
}

/* Writes the accumulator to dpr_acc_words() words. */
DPR_INLINE void dpr_acc_store(dpr_op op, dpr_dtype dtype, const dpr_acc *acc, uint64_t *words) {
    const size_t size = dpr_element_size(dpr_pair_result(op, dtype));
    const int sums = dpr_acc_sums(op, dtype), has_count = op == DPR_MEAN || op == DPR_VAR;
    if (op == DPR_ARGMIN || op == DPR_ARGMAX) {
        words[0] = acc->index < 0 ? 0 : dpr_word_of_rank(op, dtype, acc->rank);
        words[1] = acc->index < 0 ? UINT64_MAX : (uint64_t)acc->index;
    } else if (op == DPR_PROD && sums) {
        words[0] = dpr_word_of(acc->re);
        if (sums & DPR_ACC_IM)
            words[1] = dpr_word_of(acc->im);
    } else if (sums) {
        words = dpr_acc_store_sums(sums, acc, words);
    } else if (op == DPR_MEAN) {
        *words++ = acc->bits;
        *words++ = (uint64_t)acc->index;
    } else if (op == DPR_MINMAX) {
        words[0] = dpr_word_of_rank(DPR_MIN, dtype, acc->rank);
        words[1] = dpr_word_of_rank(DPR_MAX, dtype, acc->index);
    } else if (op == DPR_MIN || op == DPR_MAX) {
        words[0] = dpr_word_of_rank(op, dtype, acc->rank);
    } else {
        words[0] = dpr_pair_result(op, dtype) == DPR_BOOL ? acc->bits & 1 : dpr_word_cut(size, acc->bits);
    }
    if (has_count)
        *words = acc->present;
}

DPR_INLINE const uint64_t *dpr_acc_load_sums(int sums, dpr_acc *acc, const uint64_t *words) {
    if (sums & DPR_ACC_RE) {
        acc->re = dpr_word_number(words[0]);
        acc->re_lost = dpr_word_number(words[1]);
        words += 2;
    }
    if (sums & DPR_ACC_IM) {
        acc->im = dpr_word_number(words[0]);
        acc->im_lost = dpr_word_number(words[1]);
        words += 2;
    }
    if (sums & DPR_ACC_SQUARES) {
        acc->squares = dpr_word_number(words[0]);
        acc->squares_lost = dpr_word_number(words[1]);
        words += 2;
    }
    return words;
}

DPR_INLINE int64_t dpr_rank_of_word(dpr_op op, dpr_dtype dtype, const uint64_t *word) {
    return dpr_rank_of(op, dtype, dpr_element_load(dtype, word)); /* words are little-endian */
}

/* The accumulator of `count` elements that has these words. */
DPR_INLINE dpr_acc dpr_acc_load(dpr_op op, dpr_dtype dtype, uint64_t count, const uint64_t *words) {
    const int sums = dpr_acc_sums(op, dtype), has_count = op == DPR_MEAN || op == DPR_VAR;
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    if (op == DPR_ARGMIN || op == DPR_ARGMAX) {
        acc.index = (int64_t)words[1];
        if (acc.index < 0) /* every accumulator of no elements has the index -1 */
            acc.index = -1;
        else
            acc.rank = dpr_rank_of_word(op, dtype, words);
    } else if (op == DPR_PROD && sums) {
        acc.re = dpr_word_number(words[0]);
        if (sums & DPR_ACC_IM)
            acc.im = dpr_word_number(words[1]);
        acc.index = count > 0 ? 0 : -1;
    } else if (sums) {
        words = dpr_acc_load_sums(sums, &acc, words);
    } else if (op == DPR_MEAN) {
        acc.bits = *words++;
        acc.index = (int64_t)*words++;
    } else if (op == DPR_MINMAX) {
        acc.rank = dpr_rank_of_word(DPR_MIN, dtype, words);
        acc.index = dpr_rank_of_word(DPR_MAX, dtype, words + 1);
    } else if (op == DPR_MIN || op == DPR_MAX) {
        acc.rank = dpr_rank_of_word(op, dtype, words);
    } else {
        acc.bits = words[0];
    }
    if (has_count)
        acc.present = *words;
    return acc;
}

#endif
