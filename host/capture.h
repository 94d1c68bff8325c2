/* Calls that must work while a stream is being captured. Only in builds with CUDA. */
#ifndef DPR_HOST_CAPTURE_H
#define DPR_HOST_CAPTURE_H

#include <cuda_runtime_api.h>

/* From here on allocations are allowed in this thread although a stream somewhere is being captured: they do not touch
 * that stream. Returns what dpr_capture_restore() needs. */
static inline enum cudaStreamCaptureMode dpr_capture_relax(void) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        (void)cudaGetLastError();
    return mode;
}

static inline void dpr_capture_restore(enum cudaStreamCaptureMode mode) {
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        (void)cudaGetLastError();
}

#endif
