/* Arrays that repeat, so that their sums are known without adding up. The period is a prime, so that vectors and tiles
 * begin at every place of it. */
#ifndef DPR_TESTS_CYCLE_H
#define DPR_TESTS_CYCLE_H

#include <string.h>

#include "dpr.h"

enum { CYCLE = 31 };

/* Element i is first + i % CYCLE, and `for_zero` where that is 0. */
typedef struct cycle {
    int first, for_zero;
} cycle;

/* For floats, from -15 to 15: sums stay small, so that they are exact in F32 in any order. Without a zero a period adds
 * up to 1 and every element counts; with it to 0, for arrays whose sum would be too large. */
static const cycle cycle_without_zero = {-15, 1}, cycle_with_zero = {-15, 0};

static inline int64_t cycle_at(cycle c, uint64_t i) {
    const int64_t value = c.first + (int64_t)(i % CYCLE);
    return value == 0 ? c.for_zero : value;
}

/* The sum of the elements from number `from` on. */
static inline int64_t cycle_sum(cycle c, uint64_t from, uint64_t count) {
    int64_t period = 0, rest = 0;
    for (uint64_t i = 0; i < CYCLE; i++)
        period += cycle_at(c, i);
    for (uint64_t i = 0; i < count % CYCLE; i++)
        rest += cycle_at(c, from + i);
    return (int64_t)(count / CYCLE) * period + rest;
}

/* Writes one period of U8, I32, F32 or F64 and returns its bytes; 0 for other types. */
static inline size_t cycle_period(cycle c, dpr_dtype dtype, unsigned char out[CYCLE * sizeof(double)]) {
    for (size_t i = 0; i < CYCLE; i++) {
        const int32_t i32 = (int32_t)cycle_at(c, i);
        const uint8_t u8 = (uint8_t)i32;
        const float f32 = (float)i32;
        const double f64 = i32;
        if (dtype == DPR_U8)
            memcpy(out + i * sizeof u8, &u8, sizeof u8);
        else if (dtype == DPR_I32)
            memcpy(out + i * sizeof i32, &i32, sizeof i32);
        else if (dtype == DPR_F32)
            memcpy(out + i * sizeof f32, &f32, sizeof f32);
        else if (dtype == DPR_F64)
            memcpy(out + i * sizeof f64, &f64, sizeof f64);
        else
            return 0;
    }
    return CYCLE * dpr_dtype_size(dtype);
}

#endif
