/* What a reduction must give, found independently of the library: elements are taken one after the other in long double
 * or integers of 64 or 128 bits. Of dpr.h only the enums are used. */
#ifndef DPR_TESTS_REFERENCE_H
#define DPR_TESTS_REFERENCE_H

#include "dpr.h"

/* One part of a floating-point sum, as exactly as it can be had. */
typedef struct ref_sum {
    long double value, correction, magnitude; /* magnitude: sum of absolute values */
    size_t nans, plus_infs, minus_infs;
} ref_sum;

/* The least or the greatest element so far. */
typedef struct ref_best {
    long double value;
    unsigned char bytes[16];
    int64_t index; /* -1: no element so far */
    int nan;
} ref_best;

__extension__ typedef __int128 ref_whole; /* a sum of 2^63 integers of 64 bits does not wrap */

typedef struct ref_state {
    dpr_op op;
    dpr_dtype dtype, result;
    dpr_nan nan;
    int sample;      /* VAR divides by the number of elements less 1. 0 after ref_reduce(); ref_check() reads it */
    size_t count;    /* elements, the initial value included */
    size_t present;  /* those that count: not the NaNs that are ignored */
    uint64_t word;   /* integer, bitwise and logical results */
    ref_whole whole; /* MEAN of integers: their sum */
    ref_sum sum[2];  /* by part; SUMSQ, NORM1 and NORM2, which are real, have the first one only */
    struct {
        ref_sum squares;         /* of the distances from the mean */
        long double greatest[2]; /* magnitude of an element's part */
    } spread;                    /* VAR */
    struct {
        long double re, im, magnitude;
        long double log2_above, log2_below; /* sums of the log2 of magnitudes above and below 1, but for those near 1 */
        size_t nans, infs, zeros;
        int negative;
        long double first[2]; /* the parts of the first element, if it is not ignored */
    } prod;
    ref_best best[2]; /* the least element, the greatest */
} ref_state;

/* Whether the pair has a meaning, the type of its result, and the number of values and bytes that the result has. */
int ref_supported(dpr_op op, dpr_dtype dtype);
dpr_dtype ref_result_dtype(dpr_op op, dpr_dtype dtype);
size_t ref_result_values(dpr_op op);
size_t ref_result_size(dpr_op op, dpr_dtype dtype);

/* Whether the operation may start from an initial value, which has as many values as the result. */
int ref_takes_init(dpr_op op);

size_t ref_size(dpr_dtype dtype);
int ref_is_float(dpr_dtype dtype);   /* F16, BF16, F32, F64 */
int ref_is_complex(dpr_dtype dtype); /* C64, C128 */

/* Part 0 (real) or 1 (imaginary) of an element. */
long double ref_value(dpr_dtype dtype, const void *element, int part);

/* The reduction of `count` elements that need no alignment. */
void ref_reduce(ref_state *state, dpr_op op, dpr_dtype dtype, dpr_nan nan, const void *in, size_t count);

/* Combines with an initial value of the result type. The operation takes one. */
void ref_add_init(ref_state *state, const void *init);

/* Whether `got`, of the result type, is right: the same bits, or within the error bound of operations that round. If it
 * is not, `why` receives a sentence with both values. */
int ref_check(const ref_state *state, const void *got, char *why, size_t size);

#endif
