/* The capabilities of the machine this runs on. */
#ifndef DPR_HOST_PLAN_CAPS_READ_H
#define DPR_HOST_PLAN_CAPS_READ_H

#include "caps.h"
#include "cuda/device.h"
#include "dpr.h"

/* DPR_OK if there is this CUDA device. Initialises nothing. */
dpr_status dpr_caps_check(int device);

/* Of the CPU and, unless `device` is DPR_DEVICE_CPU, of that CUDA device. DPR_ERR_NO_DEVICE if there is none. */
dpr_status dpr_caps_read(int device, dpr_caps *out);

/* With the limits and costs of nested launches (DPR_NESTED_CAPS_LIST) as they are on the device, which is initialised
 * for it. What cannot be measured stays an assumption. */
dpr_status dpr_caps_measure(int device, dpr_caps *out);

#endif
