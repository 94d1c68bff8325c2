/* A build without CUDA has no GPU context, and so no nest: nobody comes here. */
#include "nest.h"

#include "device.h"
#include "error.h"

static dpr_status absent(void) {
    return dpr_fail(DPR_ERR_NO_DEVICE, "%s", dpr_device_absent());
}

dpr_status dpr_nest_launcher(dpr_ctx *ctx, void **launcher, uint32_t *credits) {
    (void)ctx, (void)launcher, (void)credits;
    return absent();
}

dpr_status dpr_nest_collect(int ordinal, dpr_nested *account, dpr_nested *out) {
    (void)ordinal, (void)account, (void)out;
    return absent();
}

void dpr_nest_free(int ordinal, void *memory) {
    (void)ordinal, (void)memory;
}
