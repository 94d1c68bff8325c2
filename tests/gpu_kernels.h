/* Kernels of the tests' own, in builds with CUDA. */
#ifndef DPR_TESTS_GPU_KERNELS_H
#define DPR_TESTS_GPU_KERNELS_H

#include "dpr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpu_fault {
    GPU_TRAPS, /* the error is cudaErrorLaunchFailure */
    GPU_WRITES /* to where no memory is: cudaErrorIllegalAddress */
} gpu_fault;

/* Enqueues a kernel that faults after `seconds`. Returns the cudaError_t of the launch. */
int gpu_fault_later(gpu_fault fault, double seconds, dpr_stream stream);

/* Enqueues a kernel that takes `seconds`. Returns the cudaError_t of the launch. */
int gpu_be_busy(double seconds, dpr_stream stream);

/* The same with a kernel that leaves no room for others on any SM. */
int gpu_be_full(double seconds, dpr_stream stream);

/* The host address of a kernel that takes what every kernel of the library takes and does nothing. */
const void *gpu_empty_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
