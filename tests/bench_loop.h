/* The sum as a loop that may add in any order: -O3 -march=native -ffast-math. */
#ifndef DPR_TESTS_BENCH_LOOP_H
#define DPR_TESTS_BENCH_LOOP_H

#include <stddef.h>

float bench_loop(const float *in, size_t count);

#endif
