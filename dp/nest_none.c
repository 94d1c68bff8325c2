/* A build without CUDA has no GPU context and so no nest: these functions are never reached. */
#include "nest.h"

#include "cuda/device.h"
#include "error.h"

static dpr_status absent(void) {
    return dpr_fail(DPR_ERR_NO_DEVICE, "%s", dpr_device_absent());
}

dpr_status dpr_nest_launcher(dpr_ctx *ctx, void **launcher, size_t *pending) {
    (void)ctx, (void)launcher, (void)pending;
    return absent();
}

dpr_status dpr_nest_collect(dpr_nested *account, dpr_nested *out) {
    (void)account, (void)out;
    return absent();
}

void dpr_nest_free(void *memory) {
    (void)memory;
}
