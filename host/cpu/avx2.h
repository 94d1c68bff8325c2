/* What simd_avx2.c and many_avx2.c say of AVX2 and F16C to simd_lanes.h. */
#ifndef DPR_HOST_CPU_AVX2_H
#define DPR_HOST_CPU_AVX2_H

#include <immintrin.h>

#define DPR_VECTOR_BYTES 32
#define DPR_F64_FROM_F32(at) (vec_f8) _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at)))
#define DPR_SELECT(mask, yes, no) (vec) _mm256_blendv_epi8((__m256i)(no), (__m256i)(yes), (__m256i)(mask))
#define DPR_LESSER_S1(a, b) (vec) _mm256_min_epi8((__m256i)(a), (__m256i)(b))
#define DPR_LESSER_S2(a, b) (vec) _mm256_min_epi16((__m256i)(a), (__m256i)(b))
#define DPR_LESSER_S4(a, b) (vec) _mm256_min_epi32((__m256i)(a), (__m256i)(b))

#endif
