/* A build without CUDA: there is no device, and all memory is the host's. */
#include "device.h"
#include "error.h"

static dpr_status absent(void) {
    return dpr_fail(DPR_ERR_NO_DEVICE, "%s", dpr_device_absent());
}

int dpr_device_count(void) {
    return 0;
}
const char *dpr_device_absent(void) {
    return "this build of dpr has no CUDA";
}
int dpr_device_current(void) {
    return 0;
}

int dpr_device_driver(void) {
    return 0;
}

dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    (void)ordinal, (void)gpu, (void)name;
    return absent();
}

dpr_status dpr_device_pci(int ordinal, char bus_id[16]) {
    (void)ordinal, (void)bus_id;
    return absent();
}

dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    (void)ordinal, (void)kernel, (void)use;
    return absent();
}

dpr_status dpr_device_home(int ordinal, void *owner, dpr_home *out) {
    (void)ordinal, (void)owner, (void)out;
    return absent();
}

dpr_status dpr_device_wait_for_stream(dpr_device *device, dpr_stream stream) {
    (void)device, (void)stream;
    return absent();
}

dpr_status dpr_device_put_in_stream(dpr_device *device, dpr_stream stream, void *to, const void *from, size_t bytes) {
    (void)device, (void)stream, (void)to, (void)from, (void)bytes;
    return absent();
}

dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out) {
    (void)pointer, (void)argument;
    *out = (dpr_place){DPR_MEMORY_HOST, -1, NULL};
    return DPR_OK;
}

dpr_status dpr_device_put(dpr_place place, void *to, const void *from, size_t bytes) {
    (void)place, (void)to, (void)from, (void)bytes;
    return absent();
}

dpr_status dpr_device_wait(dpr_place place) {
    (void)place;
    return absent();
}

dpr_status dpr_device_open(const dpr_home *home, const dpr_build *build, dpr_device **out) {
    (void)home, (void)build, (void)out;
    return absent();
}

void dpr_device_close(dpr_device *device) {
    (void)device;
}

const dpr_home *dpr_device_home_of(const dpr_device *device) {
    static const dpr_home none = {NULL, NULL, 0, -1};
    (void)device;
    return &none;
}

int dpr_device_is_gone(const dpr_device *device) {
    (void)device;
    return 1;
}

dpr_status dpr_device_upload(const dpr_device *device, const void *host, size_t bytes, size_t room, void **out) {
    (void)device, (void)host, (void)bytes, (void)room, (void)out;
    return absent();
}

void dpr_device_free(const dpr_device *device, void *memory) {
    (void)device, (void)memory;
}

dpr_status dpr_device_take(const dpr_device *device, dpr_memory memory, size_t bytes, void **out) {
    (void)device, (void)memory, (void)bytes, (void)out;
    return absent();
}

void dpr_device_give(const dpr_device *device, dpr_memory memory, void *at) {
    (void)device, (void)memory, (void)at;
}

dpr_status dpr_device_lend(dpr_device *device, size_t bytes, dpr_stream stream, dpr_loan *out) {
    (void)device, (void)bytes, (void)stream, (void)out;
    return absent();
}

void dpr_device_take_back(dpr_device *device, dpr_loan loan, dpr_stream stream) {
    (void)device, (void)loan, (void)stream;
}

dpr_status dpr_device_own_stream(dpr_device *device, dpr_stream *out) {
    (void)device, (void)out;
    return absent();
}

void dpr_device_drain(dpr_device *device, dpr_stream stream) {
    (void)device, (void)stream;
}

dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending) {
    (void)device, (void)pending;
    return absent();
}

void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu) {
    (void)device, (void)gpu;
}

dpr_residence dpr_device_residence(dpr_device *device) {
    return (dpr_residence){device, NULL, 0};
}

dpr_status dpr_device_resident(void *user, const dpr_kernel *kernel, dpr_residency *out) {
    (void)user, (void)kernel, (void)out;
    return absent();
}

dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu) {
    (void)user, (void)measure, (void)gpu;
    return absent();
}

dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit) {
    (void)device, (void)strategy, (void)run, (void)misfit;
    return absent();
}

dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes, dpr_misfit *misfit) {
    (void)device, (void)strategy, (void)run, (void)host_out, (void)result_bytes, (void)misfit;
    return absent();
}
