/* cpu.simd with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#include <immintrin.h>

#define DPR_VECTOR_BYTES 64
#define DPR_KERNELS dpr_cpu_kernels_avx512
#define DPR_MANY dpr_cpu_many_avx2 /* each set takes a minute to compile */
#define DPR_KERNELS_NAME "avx512"
#define DPR_F32_FROM_F16(at) (vec_f4) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define DPR_F64_FROM_F32(at) (vec_f8) _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)(at)))
/* GCC 12 converts integers of one and two bytes one by one, and those of four in two halves. */
#define DPR_WHOLE_S1(at) (vec_u8) _mm512_cvtepi8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(at)))
#define DPR_WHOLE_U1(at) (vec_u8) _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(at)))
#define DPR_WHOLE_S2(at) (vec_u8) _mm512_cvtepi16_epi64(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#define DPR_WHOLE_U2(at) (vec_u8) _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#define DPR_WHOLE_S4(at) (vec_u8) _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define DPR_WHOLE_U4(at) (vec_u8) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define DPR_LESSER_S1(a, b) (vec) _mm512_min_epi8((__m512i)(a), (__m512i)(b))
#define DPR_LESSER_S2(a, b) (vec) _mm512_min_epi16((__m512i)(a), (__m512i)(b))
#define DPR_LESSER_S4(a, b) (vec) _mm512_min_epi32((__m512i)(a), (__m512i)(b))
#define DPR_LESSER_S8(a, b) (vec) _mm512_min_epi64((__m512i)(a), (__m512i)(b))
#include "simd_template.h"
#else
#include "ops.h"
#endif
