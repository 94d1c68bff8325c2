/* The calling thread's capture mode, for calls that must work while any thread captures a stream. Only in builds with
 * CUDA. */
#ifndef DPR_HOST_CUDA_CAPTURE_H
#define DPR_HOST_CUDA_CAPTURE_H

#include "driver.h"

/* Sets the thread's capture mode to relaxed, so that it may allocate while any stream is being captured: its
 * allocations do not touch that stream. Returns the previous mode for dpr_capture_restore(), or -1 if the mode could
 * not be changed. Calls the driver, because the runtime's call makes a context in a thread that has none. */
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
