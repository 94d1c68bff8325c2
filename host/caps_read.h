/* The capabilities of the machine this runs on. */
#ifndef DPR_HOST_CAPS_READ_H
#define DPR_HOST_CAPS_READ_H

#include "caps.h"
#include "device.h"
#include "dpr.h"

/* Of the CPU and, unless `device` is DPR_DEVICE_CPU, of that CUDA device. DPR_ERR_NO_DEVICE if there is none. */
dpr_status dpr_caps_read(int device, dpr_caps *out);

/* With what is known of a device only where it is initialised, and with what nested launches cost there as measured
 * now. As far as that fails it stays as dpr_caps_read() has it. */
dpr_status dpr_caps_measure(int device, dpr_caps *out);

#endif
