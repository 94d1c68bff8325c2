/* Modules: code that is loaded when a kernel of it is first asked for. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_MODULE_H
#define DPR_HOST_CUDA_MODULE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "strategy.h"

/* Finds the handle of a module's kernel on the current device. Loads the module into the process if it is not loaded.
 * Loaded modules stay, because graphs may hold their kernels. Any number of threads may call it at once, also while a
 * stream is being captured. */
cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out);

/* Registers a thread and bytes of static shared memory a block that a module's kernel uses on the current device. */
cudaError_t dpr_module_kernel_use(const dpr_module *module, const char *kernel, int *registers, int *shared_bytes);

/* The arrival of a module in a CUDA context, when its first kernel is loaded there: the context's number, the device
 * memory in bytes that this took, and the places of the launch pool and the bytes of a thread's stack
 * (cudaLimitStackSize) at that time. The last three are 0 if they are unknown. */
typedef struct dpr_module_arrival {
    unsigned long long context;
    size_t bytes, pending, stack;
} dpr_module_arrival;

/* The module's arrival in the current context; all 0 if none of its kernels has been asked for there. */
dpr_module_arrival dpr_module_arrived(const dpr_module *module);

/* Sets *out to whether kernels of the module, which has arrived, may launch kernels, or their own graph, in the current
 * context: 0 if cudaLimitStackSize is lower than at the arrival, 1 if not, or if that is unknown. With a lower limit,
 * the first such launch destroyed the CUDA context ("unspecified launch failure"; H100 and H200, driver 580). A limit
 * that is higher, or was lower in between, does no harm. */
cudaError_t dpr_module_has_stack(const dpr_module *module, int *out);

/* Finds the address on the current device of the module's variable with the name `variable`. */
cudaError_t dpr_module_variable(const dpr_module *module, const char *variable, void **out);

#endif
