/* The calling thread's current device, and errors of the CUDA runtime as statuses. Only in builds with CUDA. */
#ifndef DPR_HOST_CURRENT_H
#define DPR_HOST_CURRENT_H

#include <cuda_runtime_api.h>

#include "dpr.h"

/* Makes `ordinal` current, and tells which device was. */
cudaError_t dpr_current_enter(int ordinal, int *previous);

/* Makes the one before current again. */
void dpr_current_leave(int ordinal, int previous);

/* DPR_ERR_OUT_OF_MEMORY, DPR_ERR_NO_DEVICE or DPR_ERR_CUDA, with a sentence that begins with `what` failed. */
dpr_status dpr_current_failed(cudaError_t error, const char *what);

#endif
