/* What nested launches cost on one device, measured there once. Only in builds with CUDA. */
#ifndef DPR_DP_CALIBRATION_H
#define DPR_DP_CALIBRATION_H

#include "cuda/device.h"
#include "cuda/workspaces.h"

/* The costs of one device. Any number of threads may use it at once. */
typedef struct dpr_calibration dpr_calibration;

dpr_calibration *dpr_calibration_create(void); /* NULL: no host memory */

/* Called after the device's work. Frees pinned memory only if the CUDA context is still `there`; otherwise it has gone
 * with the context. `calibration` may be NULL. */
void dpr_calibration_destroy(dpr_calibration *calibration, int there);

/* Loads the code for nested launches, which shows the memory that it takes, and times short runs with `gpu`'s pool in a
 * stream of their own: once, in the current CUDA context. `work` is the device's. It measures no times if the pool or
 * memory is too small, or if others keep the device so busy that the enqueued runs are not done in a twentieth of a
 * second; in the last case nested launches may be pending at any time (apart.h). If graphs launch themselves for as
 * long, it does nothing, and the next call tries again; but a context keeps the choices that it makes meanwhile. The
 * next call also tries again after a status other than DPR_OK: the code cannot be loaded, or CUDA fails. It may be
 * called while a stream is being captured. */
dpr_status dpr_calibrate(dpr_calibration *calibration, dpr_device *device, dpr_workspaces *work,
                         const dpr_gpu_caps *gpu);

/* Writes what was measured so far to the capabilities (DPR_NESTED_CAPS_LIST). */
void dpr_calibration_read(const dpr_calibration *calibration, dpr_gpu_caps *gpu);

#endif
