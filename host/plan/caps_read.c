#include "caps_read.h"

#include "caps_text.h"
#include "error.h"
#include "processors.h"
#include "registry.h"

dpr_status dpr_caps_check(int device) {
    const int devices = dpr_device_count();
    if (device < 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "device is %d, which is no CUDA ordinal", device);
    if (devices == 0)
        return dpr_fail(DPR_ERR_NO_DEVICE, "device is %d, but %s", device, dpr_device_absent());
    if (device >= devices)
        return dpr_fail(DPR_ERR_NO_DEVICE, "device is %d, but there are only %d, from 0", device, devices);
    return DPR_OK;
}

dpr_status dpr_caps_read(int device, dpr_caps *out) {
    dpr_caps caps = {0};
    if (device != DPR_DEVICE_CPU) {
        dpr_status status = dpr_caps_check(device);
        if (status == DPR_OK)
            status = dpr_device_caps(device, &caps.gpu, caps.gpu_name);
        if (status != DPR_OK)
            return status;
        dpr_this_build.hook->assume(&caps.gpu);
        caps.has_gpu = 1;
    }
    dpr_read_processors(&caps.cpu, caps.cpu_name);
    dpr_caps_confine(&caps);
    *out = caps;
    return DPR_OK;
}

#define DPR_TAKE_OVER(A, NAME, ...) out->gpu.NAME = measured.NAME;

dpr_status dpr_caps_measure(int device, dpr_caps *out) {
    dpr_device *opened = NULL;
    dpr_home home;
    const dpr_status status = dpr_caps_read(device, out);
    if (status != DPR_OK || !out->has_gpu || dpr_device_home(device, NULL, &home) != DPR_OK
        || dpr_device_open(&home, &dpr_this_build, &opened) != DPR_OK)
        return status;
    dpr_gpu_caps measured = out->gpu;
    dpr_residence at = dpr_device_residence(opened);
    dpr_device_limit(opened, &measured);
    (void)dpr_device_nested(&at, 1, &measured);
    DPR_NESTED_CAPS_LIST(DPR_TAKE_OVER, _)
    dpr_device_close(opened);
    return DPR_OK;
}
