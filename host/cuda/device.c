/* Devices through the CUDA runtime: their capabilities, and opening and closing them. */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"
#include "error.h"
#include "home.h"
#include "log.h"
#include "opened.h"
#include "uncancelled.h"

int dpr_device_count(void) {
    const char *why;
    return dpr_driver_devices(&why);
}

const char *dpr_device_absent(void) {
    const char *why;
    return dpr_driver_devices(&why) == 0 ? why : NULL;
}

int dpr_device_current(void) {
    int ordinal = 0;
    if (cudaGetDevice(&ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return ordinal;
}

int dpr_device_driver(void) {
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess)
        return version;
    (void)cudaGetLastError();
    return 0;
}

typedef struct attribute {
    size_t offset;
    enum cudaDeviceAttr attribute;
} attribute;

#define DPR_ATTRIBUTE_ROW(A, NAME, ATTRIBUTE, ...) {offsetof(dpr_gpu_caps, NAME), cudaDevAttr##ATTRIBUTE},

static dpr_status read_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    static const attribute attributes[] = {DPR_GPU_CAPS_LIST(DPR_ATTRIBUTE_ROW, _)};
    dpr_gpu_caps caps = {0};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        int value = 0;
        const cudaError_t error = cudaDeviceGetAttribute(&value, attributes[i].attribute, ordinal);
        if (error != cudaSuccess)
            return dpr_cuda_failed(error, "cudaDeviceGetAttribute");
        *(int64_t *)(void *)((char *)&caps + attributes[i].offset) = value;
    }
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "cudaGetDeviceProperties");
    snprintf(name, 64, "%.63s", properties.name);
    caps.memory_bytes = (int64_t)properties.totalGlobalMem;
    *gpu = caps;
    return DPR_OK;
}

dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    const int cancel = dpr_cancel_hold();
    const dpr_status status = read_caps(ordinal, gpu, name);
    dpr_cancel_release(cancel);
    return status;
}

dpr_status dpr_device_pci(int ordinal, char bus_id[16]) {
    const cudaError_t error = cudaDeviceGetPCIBusId(bus_id, 16, ordinal);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "cudaDeviceGetPCIBusId");
}

/* ---- An initialised device ---- */

/* Checks that the build has machine code or PTX that the device runs. Sets *code to the compute capability that this
 * was compiled for, times 10. */
static cudaError_t check_code(const dpr_build *build, int *code) {
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_F32), .ops = 1u << DPR_ROW(DPR_SUM)}};
    struct cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, build->any->kernel(&key).entry);
    *code = error == cudaSuccess ? attributes.ptxVersion : 0;
    return error;
}

/* Called in the device's home. */
static cudaError_t open_here(dpr_device *device, const dpr_build *build) {
    cudaError_t error = check_code(build, &device->code);
    if (error == cudaSuccess)
        error = dpr_home_examine(&device->home, &device->sms);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&device->concurrent_managed, cudaDevAttrConcurrentManagedAccess,
                                       device->home.ordinal);
    if (error == cudaSuccess)
        error = dpr_mail_create(&device->mail);
    if (error == cudaSuccess)
        error = dpr_scratch_create(&device->home, &device->scratch);
    if (error == cudaSuccess)
        error = (cudaError_t)device->hook->open(&device->home, &device->hooked);
    if (error != cudaSuccess)
        return error;
    device->work = dpr_workspaces_create(&device->home);
    device->kernels = dpr_kernels_create();
    return device->work && device->kernels ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Frees everything that the device holds; only host memory if the home is no longer `there`. Freeing device memory
 * waits for all work. cudaDeviceSynchronize() would wait, too, but must not be called here, because another thread may
 * be capturing a stream. */
static void give_back(dpr_device *device, int there) {
    const cudaStream_t own = atomic_load(&device->own);
    dpr_scratch_destroy(device->scratch, there);
    dpr_workspaces_destroy(device->work, there);
    device->hook->close(device->hooked, there);
    dpr_mail_destroy(device->mail, there);
    dpr_kernels_destroy(device->kernels);
    if (there && own && cudaStreamDestroy(own) != cudaSuccess)
        (void)cudaGetLastError();
    free(device);
}

dpr_status dpr_device_open(const dpr_home *home, const dpr_build *build, dpr_device **out) {
    dpr_visit visit;
    dpr_device *device = calloc(1, sizeof *device);
    if (!device)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for device %d", home->ordinal);
    device->home = *home;
    device->hook = build->hook;
    const dpr_status status = dpr_home_enter_relaxed(home, &visit);
    if (status != DPR_OK) {
        free(device);
        return status;
    }
    const cudaError_t error = open_here(device, build);
    if (error != cudaSuccess)
        give_back(device, 1);
    dpr_home_leave(&visit);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "opening a device");
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "device %d is open, for streams with %d SMs", home->ordinal, device->sms);
    *out = device;
    return DPR_OK;
}

void dpr_device_close(dpr_device *device) {
    dpr_visit visit;
    if (!device)
        return;
    const int there = dpr_home_enter_relaxed(&device->home, &visit) == DPR_OK;
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "device %d is closed%s", device->home.ordinal,
                there ? "" : ", whose CUDA context is gone");
    give_back(device, there);
    if (there)
        dpr_home_leave(&visit);
}

const dpr_home *dpr_device_home_of(const dpr_device *device) {
    return &device->home;
}

void *dpr_device_hooked(const dpr_device *device) {
    return device->hooked;
}

int dpr_device_is_gone(const dpr_device *device) {
    return dpr_home_is_gone(&device->home);
}

dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = device->hook->allow(device->hooked, pending);
    dpr_home_leave(&visit);
    return status;
}

void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu) {
    device->hook->limit(device->hooked, gpu);
    gpu->sm_count = device->sms;
    if (gpu->cc_major * 10 + gpu->cc_minor <= device->code)
        return;
    gpu->cc_major = device->code / 10;
    gpu->cc_minor = device->code % 10;
    if (device->code < 90)
        gpu->cluster_launch = 0;
}

static dpr_status measure_in_home(dpr_device *device, const dpr_gpu_caps *gpu) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = device->hook->measure(device->hooked, device, device->work, gpu);
    dpr_home_leave(&visit);
    return status;
}

dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu) {
    dpr_device *device = ((const dpr_residence *)user)->device;
    const dpr_status status = measure ? measure_in_home(device, gpu) : DPR_OK;
    device->hook->read(device->hooked, gpu);
    return status;
}
