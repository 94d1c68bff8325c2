/* A build without CUDA has no GPU context and so no launcher: these functions are never reached. */
#include "launcher.h"

#include "cuda/device.h"
#include "error.h"

static dpr_status absent(void) {
    return dpr_fail(DPR_ERR_NO_DEVICE, "%s", dpr_device_absent());
}

dpr_status dpr_find_launch_table(dpr_ctx *ctx, void **table, size_t *pending) {
    (void)ctx, (void)table, (void)pending;
    return absent();
}

dpr_status dpr_launcher_collect(dpr_launch_report *account, dpr_launch_report *out) {
    (void)account, (void)out;
    return absent();
}

void dpr_launcher_free(void *memory) {
    (void)memory;
}
