/* Comparing results of floating point that were made in different orders. */
#ifndef DPR_TESTS_CLOSE_H
#define DPR_TESTS_CLOSE_H

#include <math.h>
#include <string.h>

#include "dpr.h"

/* Whether two numbers differ by at most `bound`; anything that is not finite is like anything else that is not. */
static inline int numbers_are_close(double x, double y, double bound) {
    return (!isfinite(x) && !isfinite(y)) || fabs(x - y) <= bound;
}

/* Whether results `a` and `b` of `size` bytes are the same. Results in floating point may differ by 64 roundings of
 * `scale`: of the sum of the elements' magnitudes for sums, of the result itself for products. */
static inline int results_are_close(dpr_dtype type, const void *a, const void *b, size_t size, double scale) {
    const int is_narrow = type == DPR_F32 || type == DPR_C64;
    if (type != DPR_F64 && type != DPR_C128 && !is_narrow)
        return memcmp(a, b, size) == 0;
    for (size_t i = 0; i < size / (is_narrow ? 4 : 8); i++) {
        const double x = is_narrow ? (double)((const float *)a)[i] : ((const double *)a)[i];
        const double y = is_narrow ? (double)((const float *)b)[i] : ((const double *)b)[i];
        if (!numbers_are_close(x, y, (is_narrow ? 0x1p-18 : 0x1p-46) * (scale + fabs(y))))
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

#endif
