#include "current.h"

#include "driver.h"
#include "error.h"

/* A thread that has not used CUDA has a current device, but no context until it is set. */
cudaError_t dpr_current_enter(int ordinal, int *previous) {
    *previous = ordinal;
    if (dpr_driver_is_current(ordinal))
        return cudaSuccess;
    cudaError_t error = cudaGetDevice(previous);
    if (error == cudaSuccess)
        error = cudaSetDevice(ordinal);
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error;
}

void dpr_current_leave(int ordinal, int previous) {
    if (previous != ordinal && cudaSetDevice(previous) != cudaSuccess)
        (void)cudaGetLastError();
}

dpr_status dpr_current_failed(cudaError_t error, const char *what) {
    /* The runtime's own record of it would surprise a caller who shares the runtime. */
    (void)cudaGetLastError();
    const dpr_status status = error == cudaErrorMemoryAllocation ? DPR_ERR_OUT_OF_MEMORY
                              : error == cudaErrorNoDevice || error == cudaErrorNoKernelImageForDevice
                                  ? DPR_ERR_NO_DEVICE
                                  : DPR_ERR_CUDA;
    return dpr_fail(status, "%s: %s (%s)%s", what, cudaGetErrorString(error), cudaGetErrorName(error),
                    dpr_driver_is_final(error) ? "; CUDA cannot use the device again in this process" : "");
}
