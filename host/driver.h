/* The CUDA driver's part that the runtime has no call for: where a pointer points to, asked without initialising a
 * device. Only in builds with CUDA. */
#ifndef DPR_HOST_DRIVER_H
#define DPR_HOST_DRIVER_H

#include <cuda_runtime_api.h>

#include "device.h"

/* Devices that the driver shows; 0 with *why, a clause, where it cannot be used. */
int dpr_driver_devices(const char **why);

/* Whether the error is one after which a device cannot be used again in this process. */
int dpr_driver_is_final(cudaError_t error);

/* As dpr_device_place(). */
dpr_status dpr_driver_place(const void *pointer, const char *argument, dpr_place *out);

#endif
