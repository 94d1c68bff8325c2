/* Comparing results of floating point that were made in different orders. */
#ifndef DPR_TESTS_CLOSE_H
#define DPR_TESTS_CLOSE_H

#include <math.h>
#include <string.h>

#include "dpr.h"

/* Whether a number differs from the known one by at most `bound`. If that is infinite or NaN, because the sum of
 * magnitudes is, the GPU may overflow on the way where the CPU does not, because its threads exchange F32. A finite
 * number is wrong where the known one is not finite. */
static inline int number_is_close(double x, double known, double bound) {
    if (x == known || (x != x && known != known))
        return 1;
    return isfinite(bound) ? fabs(x - known) <= bound : isfinite(known) || !isfinite(x);
}

/* Whether result `a` is the known one, `b`, of `size` bytes and at most `count` elements. In floating point, sums may
 * differ by 64 roundings of the sum of magnitudes, and products by 64 of their own, and by two of F64 for each element.
 */
static inline int results_are_close(dpr_op op, dpr_dtype type, const void *a, const void *b, size_t size, size_t count,
                                    double magnitudes) {
    const int is_narrow = type == DPR_F32 || type == DPR_C64, is_wide = type == DPR_F64 || type == DPR_C128;
    if ((op != DPR_SUM && op != DPR_PROD) || (!is_narrow && !is_wide))
        return memcmp(a, b, size) == 0;
    for (size_t i = 0; i < size / (is_narrow ? 4 : 8); i++) {
        const double x = is_narrow ? (double)((const float *)a)[i] : ((const double *)a)[i];
        const double y = is_narrow ? (double)((const float *)b)[i] : ((const double *)b)[i];
        const double rounding = is_narrow ? 0x1p-24 : 0x1p-53;
        const double of_sum = 64 * rounding * (magnitudes + fabs(y));
        const double of_product = (64 * rounding + 2 * (double)count * 0x1p-53) * fabs(y);
        if (!number_is_close(x, y, op == DPR_SUM ? of_sum : of_product))
            return 0;
    }
    return 1;
}

/* Number `i` of an array of F32 or F64, as which magnitudes of elements of `dtype` are given; 0 for other types. */
static inline double magnitude_at(dpr_dtype dtype, const void *magnitudes, size_t i) {
    const dpr_dtype type = dpr_result_dtype(DPR_NORM1, dtype);
    return type == DPR_F32   ? (double)((const float *)magnitudes)[i]
           : type == DPR_F64 ? ((const double *)magnitudes)[i]
                             : 0;
}

/* Fills complex elements with 1, i, -1 and -i, whose products are exact in any order. */
static inline void fill_with_units(dpr_dtype dtype, void *elements, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const unsigned turn = (unsigned)(i * 2654435761U >> 7) % 4;
        const double re = turn % 2 ? 0 : 1 - (double)turn, im = turn % 2 ? 2 - (double)turn : 0;
        if (dtype == DPR_C64)
            memcpy((float *)elements + 2 * i, (float[]){(float)re, (float)im}, 2 * sizeof(float));
        else
            memcpy((double *)elements + 2 * i, (double[]){re, im}, 2 * sizeof(double));
    }
}

#endif
