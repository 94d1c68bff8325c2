/* Calls that must work while a stream is being captured, by whatever thread. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_CAPTURE_H
#define DPR_HOST_CUDA_CAPTURE_H

#include "driver.h"

/* From here on allocations are allowed in this thread although a stream somewhere is being captured: they do not touch
 * that stream. Returns what dpr_capture_restore() needs: the thread's mode, or -1 if that did not change. Asks the
 * driver, because the runtime's call makes a context in a thread that has none. */
static inline int dpr_capture_relax(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return dpr_driver()->exchange_capture_mode(&mode) == CUDA_SUCCESS ? (int)mode : -1;
}

static inline void dpr_capture_restore(int before) {
    CUstreamCaptureMode mode = (CUstreamCaptureMode)before;
    if (before >= 0)
        (void)dpr_driver()->exchange_capture_mode(&mode);
}

#endif
