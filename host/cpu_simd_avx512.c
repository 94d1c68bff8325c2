/* cpu.simd with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#include <immintrin.h>

#define DPR_VECTOR_BYTES 64
#define DPR_KERNELS dpr_cpu_kernels_avx512
#define DPR_KERNELS_NAME "avx512"
#define DPR_F16_AT(at) _mm_loadu_si128((const __m128i *)(const void *)(at))
#define DPR_F64_FROM_F16(at) (vec_f8) _mm512_cvtps_pd(_mm256_cvtph_ps(DPR_F16_AT(at)))
#define DPR_F64_FROM_BF16(at)                                                                                          \
    (vec_f8) _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(DPR_F16_AT(at)), 16)))
#define DPR_F64_FROM_F32(at) (vec_f8) _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)(at)))
#include "cpu_simd_template.h"
#else
#include "cpu_ops.h"
#endif
