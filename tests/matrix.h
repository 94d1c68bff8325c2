/* The matrix: one test for each strategy, operation and element type, over sizes, alignments, patterns of data, NaN
 * policies, initial values and divisors, on a GPU by blocking calls and by calls in a row in a stream. */
#ifndef DPR_TESTS_MATRIX_H
#define DPR_TESTS_MATRIX_H

#include <stddef.h>

#include "dpr.h"

/* Whether a strategy is there for a pair that has a meaning. */
typedef int (*matrix_takes)(const char *strategy, dpr_op op, dpr_dtype dtype);

/* Adds the tests of strategies, as SUITE.<family>_<name>_<op>_<dtype>, those of an operation and type next to each
 * other, as they share data and references. The names live as long as the program. With `gpu` the data is in memory
 * that the GPU reaches, `out` in memory of every kind, and the tests skip where there is no GPU. Of the pairs that
 * `takes` (NULL: all are taken) leaves out, one test of each strategy, SUITE.<family>_<name>_refuses_others, sees to it
 * that they are refused. */
void matrix_add(const char *suite, const char *const *strategies, size_t count, int gpu, matrix_takes takes);

#endif
