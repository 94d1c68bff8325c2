/* cpu.simd with AVX2 and F16C. */
#if defined(__x86_64__)
#include <immintrin.h>

#define DPR_VECTOR_BYTES 32
#define DPR_KERNELS dpr_cpu_kernels_avx2
#define DPR_KERNELS_NAME "avx2"
#define DPR_F16_AT(at) _mm_loadl_epi64((const __m128i *)(const void *)(at))
#define DPR_F64_FROM_F16(at) (vec_f8) _mm256_cvtps_pd(_mm_cvtph_ps(DPR_F16_AT(at)))
#define DPR_F64_FROM_BF16(at)                                                                                          \
    (vec_f8) _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(DPR_F16_AT(at)), 16)))
#define DPR_F64_FROM_F32(at) (vec_f8) _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at)))
#include "cpu_simd_template.h"
#else
#include "cpu_ops.h"
#endif
