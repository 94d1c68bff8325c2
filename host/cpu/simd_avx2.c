/* cpu.simd with AVX2 and F16C. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stddef.h>

#define DPR_VECTOR_BYTES 32
#define DPR_KERNELS dpr_cpu_kernels_avx2
#define DPR_KERNELS_NAME "avx2"
#define DPR_F32_FROM_F16(at) (vec_f4) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#define DPR_F64_FROM_F32(at) (vec_f8) _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at)))

/* Lanes that the mask leaves out are not read. */
static inline __attribute__((always_inline)) __m256i some_of_256(size_t size, __m256i fill, const void *at, size_t n) {
    const __m256i numbers4 = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), numbers8 = _mm256_setr_epi64x(0, 1, 2, 3);
    if (size == 4) {
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), numbers4);
        return _mm256_blendv_epi8(fill, _mm256_maskload_epi32(at, mask), mask);
    }
    const __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)(n * size / 8)), numbers8);
    return _mm256_blendv_epi8(fill, _mm256_maskload_epi64(at, mask), mask);
}
#define DPR_LOAD_SOME(size, fill, at, n) (vec) some_of_256(size, (__m256i)(fill), at, n)
#define DPR_LOAD_SOME_SIZE 4
#include "simd_template.h"
#else
#include "ops.h"
#endif
