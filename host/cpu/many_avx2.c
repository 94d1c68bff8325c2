/* Many results at a time, with AVX2 and F16C. */
#if defined(__x86_64__)
#include <immintrin.h>

#define DPR_VECTOR_BYTES 32
#define DPR_MANY dpr_cpu_many_avx2
#define DPR_F64_FROM_F32(at) (vec_f8) _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at)))
#define DPR_F64_FROM_F16(at)                                                                                           \
    (vec_f8) _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)(at))))
#define DPR_SELECT(mask, yes, no) (vec) _mm256_blendv_epi8((__m256i)(no), (__m256i)(yes), (__m256i)(mask))
#define DPR_LESSER_S1(a, b) (vec) _mm256_min_epi8((__m256i)(a), (__m256i)(b))
#define DPR_LESSER_S2(a, b) (vec) _mm256_min_epi16((__m256i)(a), (__m256i)(b))
#define DPR_LESSER_S4(a, b) (vec) _mm256_min_epi32((__m256i)(a), (__m256i)(b))
#include "many_template.h"
#else
#include "ops.h"
#endif
