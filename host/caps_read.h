/* The capabilities of the machine this runs on. */
#ifndef DPR_HOST_CAPS_READ_H
#define DPR_HOST_CAPS_READ_H

#include "caps.h"
#include "device.h"
#include "dpr.h"

/* Of the CPU and, unless `device` is DPR_DEVICE_CPU, of that CUDA device. DPR_ERR_NO_DEVICE if there is none. */
dpr_status dpr_caps_read(int device, dpr_caps *out);

#endif
