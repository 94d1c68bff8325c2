/* What nested launches cost on one device, measured there once. Only in builds with CUDA. */
#ifndef DPR_DP_CALIBRATION_H
#define DPR_DP_CALIBRATION_H

#include "cuda/device.h"
#include "work_memory.h"

/* Any number of threads may use one at once. */
typedef struct dpr_calibration dpr_calibration;

dpr_calibration *dpr_calibration_create(void); /* NULL: no host memory */

/* After the device's work. Pinned memory goes with the CUDA context, unless that is still `there`. NULL is allowed. */
void dpr_calibration_destroy(dpr_calibration *calibration, int there);

/* Loads the code for nested launches, for the memory that takes, and times short runs with `gpu`'s pool in a stream of
 * their own: once, and in the current context. There are no times if launches or memory are few, or if others keep the
 * device so busy that the runs, once they are enqueued, are not done in a twentieth of a second. Allowed while a stream
 * is being captured. A status other than DPR_OK, after which the next call tries again: the code cannot be loaded, or
 * CUDA failed. */
dpr_status dpr_calibrate(dpr_calibration *calibration, dpr_device *device, dpr_work_memory *work,
                         const dpr_gpu_caps *gpu);

/* Puts what was measured so far into the capabilities (DPR_NESTED_CAPS_LIST). */
void dpr_calibration_read(const dpr_calibration *calibration, dpr_gpu_caps *gpu);

#endif
