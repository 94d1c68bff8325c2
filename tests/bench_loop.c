/* What a compiler makes of the simplest loop, with flags of its own (CMakeLists.txt). */
#include "bench_loop.h"

float bench_loop(const float *in, size_t count) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++)
        sum += in[i];
    return sum;
}
