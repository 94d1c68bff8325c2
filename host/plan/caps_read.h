/* Reads the capabilities of this machine. */
#ifndef DPR_HOST_PLAN_CAPS_READ_H
#define DPR_HOST_PLAN_CAPS_READ_H

#include "caps.h"
#include "cuda/device.h"
#include "dpr.h"

/* DPR_OK if the CUDA device exists, otherwise DPR_ERR_NO_DEVICE; DPR_ERR_INVALID_OPTION for a negative number.
 * Initialises no device. */
dpr_status dpr_caps_check(int device);

/* Reads the capabilities of the CPU and, unless `device` is DPR_DEVICE_CPU, of that CUDA device, without initialising
 * it. Limits and costs of nested launches are assumptions. Errors: those of dpr_caps_check(), and DPR_ERR_CUDA. */
dpr_status dpr_caps_read(int device, dpr_caps *out);

/* Like dpr_caps_read(), but initialises the device and measures its limits and costs of nested launches
 * (DPR_NESTED_CAPS_LIST). Figures that cannot be measured stay assumptions. */
dpr_status dpr_caps_measure(int device, dpr_caps *out);

#endif
