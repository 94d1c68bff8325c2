/* What a reduction must give, found independently of the library: elements are taken one after the other in long double
 * or 64-bit integers. Of dpr.h only the enums are used. */
#ifndef DPR_TESTS_REFERENCE_H
#define DPR_TESTS_REFERENCE_H

#include "dpr.h"

/* One part of a floating-point sum, as exactly as it can be had. */
typedef struct ref_sum {
    long double value, correction, magnitude; /* magnitude: sum of absolute values */
    size_t nans, plus_infs, minus_infs;
} ref_sum;

typedef struct ref_state {
    dpr_op op;
    dpr_dtype dtype, result;
    dpr_nan nan;
    size_t count;   /* elements, the initial value included */
    size_t present; /* those that count: not the NaNs that are ignored */
    uint64_t word;  /* integer, bitwise and logical results */
    ref_sum sum[2];
    struct {
        long double re, im, magnitude;
        long double log2_above, log2_below; /* sums of the log2 of magnitudes above and below 1, but for those near 1 */
        size_t nans, infs, zeros;
        int negative;
        long double first[2]; /* the parts of the first element, if it is not ignored */
    } prod;
    struct {
        long double value;
        unsigned char bytes[16];
        int64_t index;
        int nan;
    } best;
} ref_state;

/* Whether the pair has a meaning, and the type of its result. */
int ref_supported(dpr_op op, dpr_dtype dtype);
dpr_dtype ref_result_dtype(dpr_op op, dpr_dtype dtype);
size_t ref_size(dpr_dtype dtype);
int ref_is_float(dpr_dtype dtype);   /* F16, BF16, F32, F64 */
int ref_is_complex(dpr_dtype dtype); /* C64, C128 */

/* Part 0 (real) or 1 (imaginary) of an element. */
long double ref_value(dpr_dtype dtype, const void *element, int part);

/* The reduction of `count` elements that need no alignment. */
void ref_reduce(ref_state *state, dpr_op op, dpr_dtype dtype, dpr_nan nan, const void *in, size_t count);

/* Combines with an initial value of the result type. */
void ref_add_init(ref_state *state, const void *init);

/* Whether `got`, of the result type, is right: the same bits, or within the error bound for floating-point sums and
 * products. If not, `why` receives a sentence with both values. */
int ref_check(const ref_state *state, const void *got, char *why, size_t size);

#endif
