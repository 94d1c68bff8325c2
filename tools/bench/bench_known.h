/* Data whose result is known at any length, so that every timed result can be checked.
 *
 * An array is the endless repetition of one block, cut off where it ends. For operations that one element decides (MIN,
 * ARGMAX, ANY, ...) its last element is the one that does: a call that does not read to the end is found out. Results
 * must be exact, except sums of floating-point numbers, means, norms and variances in floating point: these may differ
 * by the roundings that pairwise summation or dpr.h allows from what is added up here in long double. */
#ifndef DPR_TOOLS_BENCH_KNOWN_H
#define DPR_TOOLS_BENCH_KNOWN_H

#include "element.h"
#include "value.h"

/* Bytes of a block; a whole number of elements of any type. */
enum { KNOWN_BLOCK = 64 * 1024 };

typedef struct known {
    dpr_op op;
    dpr_dtype dtype;
    unsigned char *block; /* KNOWN_BLOCK bytes */
    int marked;           /* 1: the last element of every array is `last` */
    value last;
    dpr_ctx *cpu; /* private */
} known;

/* Makes the block for a pair that has a meaning. `cpu` is a context of the CPU, which must outlive it. known_free() is
 * due in any case. DPR_OK or DPR_ERR_OUT_OF_MEMORY. */
dpr_status known_make(known *k, dpr_ctx *cpu, dpr_op op, dpr_dtype dtype);
void known_free(known *k);

/* The result of `count` elements. */
typedef struct known_result {
    dpr_dtype dtype;
    int values;       /* dpr_result_values() */
    value exact;      /* where `parts` is 0 */
    int parts;        /* numbers in F32 or F64: one for each value, two if it is complex; 0 for other types */
    double part[2];   /* each within `tolerance`, or NaN as this is */
    double tolerance; /* 0: exact */
} known_result;

/* `count` is at least 1 for operations without a result of nothing. On an error dpr_last_error() has the sentence. */
dpr_status known_expect(const known *k, size_t count, known_result *out);

/* Whether the result at `at`, of the type dpr_result_dtype(), is right. */
int known_matches(const known_result *expected, const void *at);

#endif
