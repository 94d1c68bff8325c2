/* cpu.simd with AVX2 and F16C. */
#if defined(__x86_64__)
#include "avx2.h"

#define DPR_KERNELS dpr_cpu_kernels_avx2
#define DPR_MANY dpr_cpu_many_avx2
#define DPR_KERNELS_NAME "avx2"
#define DPR_F32_FROM_F16(at) (vec_f4) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#include "simd_template.h"
#else
#include "ops.h"
#endif
