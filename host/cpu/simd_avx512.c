/* cpu.simd with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define DPR_VECTOR_BYTES 64
#define DPR_KERNELS dpr_cpu_kernels_avx512
#define DPR_KERNELS_NAME "avx512"
#define DPR_F32_FROM_F16(at) (vec_f4) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define DPR_F64_FROM_F32(at) (vec_f8) _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)(at)))

/* Lanes that the mask leaves out are not read. */
static inline __attribute__((always_inline)) __m512i some_of_512(size_t size, __m512i fill, const void *at, size_t n) {
    switch (size) {
    case 1:
        return _mm512_mask_loadu_epi8(fill, n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0, at);
    case 2:
        return _mm512_mask_loadu_epi16(fill, (__mmask32)(((uint64_t)1 << n) - 1), at);
    case 4:
        return _mm512_mask_loadu_epi32(fill, (__mmask16)((1U << n) - 1), at);
    case 8:
        return _mm512_mask_loadu_epi64(fill, (__mmask8)((1U << n) - 1), at);
    default:
        return _mm512_mask_loadu_epi64(fill, (__mmask8)((1U << 2 * n) - 1), at);
    }
}
#define DPR_LOAD_SOME(size, fill, at, n) (vec) some_of_512(size, (__m512i)(fill), at, n)
#define DPR_LOAD_SOME_SIZE 1
#include "simd_template.h"
#else
#include "ops.h"
#endif
