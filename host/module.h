/* Modules: code that is loaded when a kernel of it is first asked for. Only in builds with CUDA. */
#ifndef DPR_HOST_MODULE_H
#define DPR_HOST_MODULE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "strategy.h"

/* The handle of a module's kernel on the current device; loads the module into the process if that is not done yet.
 * Loaded modules stay, as graphs may hold kernels of theirs. Any number of threads may call it at once, also while a
 * stream is being captured. */
cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out);

/* What a kernel is compiled to, on the current device. */
cudaError_t dpr_module_kernel_use(const dpr_module *module, const char *kernel, int *registers, int *shared_bytes);

/* A module on a device. */
typedef struct dpr_module_arrival {
    int there;             /* a kernel of it was asked for there, or is just now */
    size_t bytes, pending; /* device memory that went with the first one, and how many launches could be pending then; 0
                              where that is not known */
} dpr_module_arrival;
dpr_module_arrival dpr_module_arrived(const dpr_module *module, int device);

/* The address on the current device of a variable of the module's, by its name. */
cudaError_t dpr_module_variable(const dpr_module *module, const char *variable, void **out);

#endif
