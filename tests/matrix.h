/* The matrix: one test for each strategy, operation and element type, over sizes, alignments, patterns of data, NaN
 * policies and initial values. */
#ifndef DPR_TESTS_MATRIX_H
#define DPR_TESTS_MATRIX_H

/* Adds the tests of a strategy, as SUITE.<family>_<name>_<op>_<dtype>. With `gpu` the data is in memory that the GPU
 * reaches, `out` in memory of every kind, and the tests skip where there is no GPU. */
void matrix_add(const char *suite, const char *strategy, int gpu);

#endif
