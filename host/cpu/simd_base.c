/* cpu.simd with the instructions that every processor of the architecture has: SSE2, NEON, ... */
#define DPR_VECTOR_BYTES 16
#define DPR_KERNELS dpr_cpu_kernels_baseline
#define DPR_MANY dpr_cpu_many_baseline
#define DPR_KERNELS_NAME "baseline"
#include "simd_template.h"
