/* Many results at a time, with AVX2 and F16C. */
#if defined(__x86_64__)
#include "avx2.h"

#define DPR_MANY dpr_cpu_many_avx2
#define DPR_F64_FROM_F16(at)                                                                                           \
    (vec_f8) _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)(at))))
#define DPR_S4_FROM_S1(x) (vec) _mm256_cvtepi8_epi32(_mm256_castsi256_si128((__m256i)(x)))
#define DPR_S4_FROM_S2(x) (vec) _mm256_cvtepi16_epi32(_mm256_castsi256_si128((__m256i)(x)))
#include "many_template.h"
#else
#include "ops.h"
#endif
