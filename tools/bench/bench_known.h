/* Data whose results are known at any length, so that every timed result can be checked.
 *
 * An array is the endless repetition of one block, cut off where it ends. For operations that one element decides (MIN,
 * ARGMAX, ANY, ...) its last element is the one that does: a call that does not read to the end is found out. Sets of
 * operations that need different data have arrays whose last two elements are the least and the greatest; their ALL and
 * ANY of integers are true whatever is read. Results must
 * be exact, except sums of floating-point numbers, means, norms and variances in floating point: these may differ
 * by the roundings that pairwise summation or dpr.h allows from what is added up here in long double. */
#ifndef DPR_TOOLS_BENCH_KNOWN_H
#define DPR_TOOLS_BENCH_KNOWN_H

#include "bench_ops.h"
#include "element.h"
#include "value.h"

/* Bytes of a block; a whole number of elements of any type. */
enum { KNOWN_BLOCK = 64 * 1024 };

/* Bytes from the place of one operation's result to that of the next one's. */
enum { KNOWN_PLACE = sizeof(value) };

/* Elements at the end of an array that are not the block's, at most. */
enum { KNOWN_MARKS = 2 };

typedef struct known {
    bench_ops ops;
    dpr_dtype dtype;
    unsigned char *block; /* KNOWN_BLOCK bytes */
    int marks;            /* elements at `mark`, which end every array; a shorter array has the last of them */
    _Alignas(value) unsigned char mark[KNOWN_MARKS * sizeof(value)];
    dpr_ctx *cpu; /* private */
} known;

/* Makes the block for operations that have a meaning for the type. `cpu` is a context of the CPU, which must outlive
 * it. known_free() is due in any case. DPR_OK or DPR_ERR_OUT_OF_MEMORY. */
dpr_status known_make(known *k, dpr_ctx *cpu, const bench_ops *ops, dpr_dtype dtype);
void known_free(known *k);

/* The elements that end an array of `count`, which are *bytes long; *bytes is 0 if there are none. */
const unsigned char *known_mark(const known *k, size_t count, size_t *bytes);

/* One operation's result of `count` elements. */
typedef struct known_result {
    dpr_dtype dtype;
    int values;       /* dpr_result_values() */
    value exact;      /* where `parts` is 0 */
    int parts;        /* numbers in F32 or F64: one for each value, two if it is complex; 0 for other types */
    double part[2];   /* each within `tolerance`, or NaN as this is */
    double tolerance; /* 0: exact */
} known_result;

/* Those of all operations. */
typedef struct known_results {
    int n;
    known_result at[DPR_FUSED_MOST];
} known_results;

/* `count` is at least 1 for operations without a result of nothing. On an error dpr_last_error() has the sentence. */
dpr_status known_expect(const known *k, size_t count, known_results *out);

/* Whether all results from `at` on are right. They are KNOWN_PLACE bytes apart. */
int known_matches(const known_results *expected, const void *at);

/* Sets these places, those of DPR_FUSED_MOST results from `at` on. */
void known_places(void *at, void *places[DPR_FUSED_MOST]);

#endif
