/* Launches kernels through the driver. The runtime looks up the driver's handle of a kernel at every launch, which
 * takes 300 ns; here it is looked up once for each kernel. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_KERNELS_H
#define DPR_HOST_CUDA_KERNELS_H

#include "args.h"

/* The kernels' handles on one device. Any number of threads may use them at once. */
typedef struct dpr_kernels dpr_kernels;

dpr_kernels *dpr_kernels_create(void); /* NULL: no host memory */
void dpr_kernels_destroy(dpr_kernels *kernels);

/* A dpr_enqueue for the current device, whose dpr_kernels is run->enqueuer. Returns the cudaError_t. */
int dpr_kernels_enqueue(const dpr_run *run, const dpr_launch *launch, dpr_kernel_args *args);

#endif
