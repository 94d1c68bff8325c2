/* Modules: code that is loaded when a kernel of it is first asked for. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_MODULE_H
#define DPR_HOST_CUDA_MODULE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "strategy.h"

/* The handle of a module's kernel on the current device; loads the module into the process if that is not done yet.
 * Loaded modules stay, as graphs may hold kernels of theirs. Any number of threads may call it at once, also while a
 * stream is being captured. */
cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out);

/* What a kernel is compiled to, on the current device. */
cudaError_t dpr_module_kernel_use(const dpr_module *module, const char *kernel, int *registers, int *shared_bytes);

/* A module in a context of the driver's: that context's number, and with the first kernel of the module in it how much
 * device memory went, and how many launches could be pending. Those two are 0 where that is not known. */
typedef struct dpr_module_arrival {
    unsigned long long context;
    size_t bytes, pending;
} dpr_module_arrival;

/* In the current context; all 0 if no kernel was asked for in it. */
dpr_module_arrival dpr_module_arrived(const dpr_module *module);

/* The address on the current device of a variable of the module's, by its name. */
cudaError_t dpr_module_variable(const dpr_module *module, const char *variable, void **out);

#endif
