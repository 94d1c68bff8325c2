/* What nested launches cost on a device, measured there. Only in builds with CUDA. */
#ifndef DPR_HOST_CALIBRATION_H
#define DPR_HOST_CALIBRATION_H

#include "device.h"
#include "nesting.h"

/* Of dpr_gpu_caps what it calls nested_*; 0 where it could not be measured. */
typedef struct dpr_nested_costs {
    int64_t bytes;
    int64_t level_ns, first_ns, fan_ns; /* all three or none */
} dpr_nested_costs;

/* Loads the code for nested launches, for the memory that takes, and times short runs with `gpu`'s pool in a stream of
 * their own, some milliseconds in all. The device is the current one, and may be in use: there are no times if launches
 * are few, or if others keep it so busy that the runs are not done in a twentieth of a second. Any number of threads
 * may call it at once, also while a stream is being captured. A status other than DPR_OK: the code cannot be loaded, or
 * CUDA failed. */
dpr_status dpr_calibrate(dpr_device *device, dpr_nesting *nesting, const dpr_gpu_caps *gpu, dpr_nested_costs *out);

#endif
