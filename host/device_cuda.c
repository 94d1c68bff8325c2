/* Devices through the CUDA runtime. */
#include "device.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibration.h"
#include "capture.h"
#include "current.h"
#include "driver.h"
#include "error.h"
#include "kernels.h"
#include "mailbox.h"
#include "module.h"
#include "nested_host.h"
#include "nesting.h"
#include "registry.h"
#include "scratch.h"

struct dpr_device {
    int ordinal;
    int code;        /* compute capability that the kernels were compiled for, times 10: 75, 90 */
    int64_t pending; /* launches from kernels that may be pending */
    dpr_scratch *scratch;
    dpr_mail *mail;
    dpr_kernels *kernels;
    dpr_nesting *nesting;
    dpr_calibration *calibration;
};

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

dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out) {
    return dpr_driver_place(pointer, argument, out);
}

typedef struct attribute {
    size_t offset;
    enum cudaDeviceAttr attribute;
} attribute;

#define DPR_ATTRIBUTE_ROW(A, NAME, ATTRIBUTE, ...) {offsetof(dpr_gpu_caps, NAME), cudaDevAttr##ATTRIBUTE},

dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    static const attribute attributes[] = {DPR_GPU_CAPS_LIST(DPR_ATTRIBUTE_ROW, _)};
    dpr_gpu_caps caps = {0};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        int value = 0;
        const cudaError_t error = cudaDeviceGetAttribute(&value, attributes[i].attribute, ordinal);
        if (error != cudaSuccess)
            return dpr_current_failed(error, "cudaDeviceGetAttribute");
        *(int64_t *)(void *)((char *)&caps + attributes[i].offset) = value;
    }
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaGetDeviceProperties");
    snprintf(name, 64, "%.63s", properties.name);
    caps.memory_bytes = (int64_t)properties.totalGlobalMem;
    dpr_nested_assume(&caps, DPR_FIRST_PENDING);
    *gpu = caps;
    return DPR_OK;
}

dpr_status dpr_device_pci(int ordinal, char bus_id[16]) {
    const cudaError_t error = cudaDeviceGetPCIBusId(bus_id, 16, ordinal);
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, "cudaDeviceGetPCIBusId");
}

/* Of the current device, before the code is loaded: an H200 (driver 580) that has too little memory for a large pool
 * can launch no kernels at all from then on. With a margin, as how much it takes is known of that device alone. */
static dpr_status check_room(int ordinal, const dpr_module *module) {
    size_t pending = 0, available = 0, total = 0;
    if (dpr_module_arrived(module).context)
        return DPR_OK;
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    cudaError_t error = dpr_nesting_pending(&pending);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&available, &total);
    dpr_capture_restore(mode);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "asking for a device's memory");
    const size_t needed = (size_t)dpr_nested_bytes((int64_t)pending);
    if (available >= needed + needed / 4)
        return DPR_OK;
    return dpr_fail(DPR_ERR_OUT_OF_MEMORY,
                    "the code for %s and a pool of %zu pending launches take some %zu MiB, and device %d has %zu free",
                    module->name, pending, needed >> 20, ordinal, available >> 20);
}

/* Registers and static shared memory. */
static dpr_status find_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    struct cudaFuncAttributes attributes = {0};
    cudaError_t error = cudaSuccess;
    if (kernel->module) {
        const dpr_status status = check_room(ordinal, kernel->module);
        if (status != DPR_OK)
            return status;
        error = dpr_module_kernel_use(kernel->module, kernel->entry, &use->registers, &use->shared_bytes);
    } else {
        error = cudaFuncGetAttributes(&attributes, kernel->entry);
        use->registers = attributes.numRegs;
        use->shared_bytes = (int)attributes.sharedSizeBytes;
    }
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, "asking what a kernel uses");
}

dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    int previous;
    dpr_kernel_use found = {.threads = kernel->threads};
    const cudaError_t error = dpr_current_enter(ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    const dpr_status status = find_use(ordinal, kernel, &found);
    dpr_current_leave(ordinal, previous);
    if (status != DPR_OK)
        return status;
    found.shared_bytes += kernel->shared_bytes;
    *use = found;
    return DPR_OK;
}

dpr_status dpr_device_put(int ordinal, void *to, const void *host, size_t bytes) {
    int previous;
    cudaError_t error = dpr_current_enter(ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    error = cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice);
    dpr_current_leave(ordinal, previous);
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, "copying the result to the device");
}

dpr_status dpr_device_upload(int ordinal, const void *host, size_t bytes, void **out) {
    int previous;
    cudaError_t error = dpr_current_enter(ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    void *memory = NULL;
    error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) {
        error = cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    dpr_current_leave(ordinal, previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "copying to the device");
    *out = memory;
    return DPR_OK;
}

void dpr_device_free(int ordinal, void *memory) {
    int previous;
    if (dpr_current_enter(ordinal, &previous) == cudaSuccess) {
        (void)cudaFree(memory);
        dpr_current_leave(ordinal, previous);
    }
}

/* ---- An initialised device ---- */

/* Whether this build has machine code or PTX that the device runs, and what for: asked of the first kernel there is. */
static cudaError_t check_code(int *code) {
    const dpr_key key = {.f = {.op = DPR_SUM, .dtype = DPR_F32}};
    struct cudaFuncAttributes attributes;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (dpr_strategies[i]->side == DPR_ON_GPU) {
            const cudaError_t error = cudaFuncGetAttributes(&attributes, dpr_strategies[i]->kernel(&key).entry);
            *code = error == cudaSuccess ? attributes.ptxVersion : 0;
            return error;
        }
    }
    return cudaErrorNoKernelImageForDevice;
}

static cudaError_t open_current(dpr_device *device, int ordinal) {
    size_t pending = 0;
    cudaError_t error = check_code(&device->code);
    if (error == cudaSuccess)
        error = dpr_nesting_pending(&pending);
    device->pending = (int64_t)pending;
    if (error == cudaSuccess)
        error = dpr_mail_create(&device->mail);
    if (error != cudaSuccess)
        return error;
    error = dpr_scratch_create(&device->scratch);
    if (error == cudaSuccess) {
        device->kernels = dpr_kernels_create();
        device->nesting = dpr_nesting_create(ordinal);
        device->calibration = dpr_calibration_create();
        if (!device->kernels || !device->nesting || !device->calibration) {
            dpr_kernels_destroy(device->kernels);
            dpr_calibration_destroy(device->calibration);
            dpr_nesting_destroy(device->nesting);
            dpr_scratch_destroy(device->scratch);
            error = cudaErrorMemoryAllocation;
        }
    }
    if (error != cudaSuccess)
        dpr_mail_destroy(device->mail);
    device->ordinal = ordinal;
    return error;
}

dpr_status dpr_device_open(int ordinal, dpr_device **out) {
    dpr_device *device = calloc(1, sizeof *device);
    if (!device)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for device %d", ordinal);
    int previous;
    cudaError_t error = dpr_current_enter(ordinal, &previous);
    if (error == cudaSuccess) {
        error = open_current(device, ordinal);
        dpr_current_leave(ordinal, previous);
    }
    if (error != cudaSuccess) {
        free(device);
        char what[32];
        snprintf(what, sizeof what, "opening device %d", ordinal);
        return dpr_current_failed(error, what);
    }
    *out = device;
    return DPR_OK;
}

void dpr_device_close(dpr_device *device) {
    if (!device)
        return;
    int previous;
    const cudaError_t error = dpr_current_enter(device->ordinal, &previous);
    if (error == cudaSuccess)
        (void)cudaDeviceSynchronize();
    dpr_scratch_destroy(device->scratch); /* without the device these free host memory alone */
    dpr_mail_destroy(device->mail);
    dpr_nesting_destroy(device->nesting);
    dpr_calibration_destroy(device->calibration);
    if (error == cudaSuccess)
        dpr_current_leave(device->ordinal, previous);
    else
        (void)cudaGetLastError();
    dpr_kernels_destroy(device->kernels);
    free(device);
}

dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending) {
    int previous;
    const cudaError_t error = dpr_current_enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    const dpr_status status = dpr_nesting_allow(device->nesting, pending);
    dpr_current_leave(device->ordinal, previous);
    if (status == DPR_OK)
        device->pending = (int64_t)pending;
    return status;
}

/* Whether kernels may be launched ahead of the work before them: compiled for less they do not wait for it. */
static int waits_by_itself(const dpr_device *device) {
    return device->code >= 90;
}

void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu) {
    dpr_nested_assume(gpu, device->pending);
    if (gpu->cc_major * 10 + gpu->cc_minor <= device->code)
        return;
    gpu->cc_major = device->code / 10;
    gpu->cc_minor = device->code % 10;
    if (device->code < 90)
        gpu->cluster_launch = 0;
}

/* ---- What the device holds of a kernel ---- */

enum { PORTABLE_SHARED_BYTES = 48 * 1024, PORTABLE_CLUSTER = 8 }; /* what needs no permission on any device */

static cudaError_t count_blocks(const dpr_kernel *kernel, int sm_count, dpr_residency *out) {
    int blocks = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->entry, kernel->threads,
                                                                            (size_t)kernel->shared_bytes);
    *out = (dpr_residency){blocks * sm_count, 0};
    return error;
}

static cudaError_t count_in_clusters(const dpr_kernel *kernel, int cluster, int sm_count, dpr_residency *out) {
    int clusters = 0;
    cudaError_t error = cudaSuccess;
    if (cluster > PORTABLE_CLUSTER)
        error = cudaFuncSetAttribute(kernel->entry, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute of_cluster = {.id = cudaLaunchAttributeClusterDimension};
    of_cluster.val.clusterDim.x = (unsigned)cluster;
    of_cluster.val.clusterDim.y = of_cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {.attrs = &of_cluster, .numAttrs = 1};
    config.gridDim = (dim3){(unsigned)(cluster * sm_count), 1, 1};
    config.blockDim = (dim3){(unsigned)kernel->threads, 1, 1};
    config.dynamicSmemBytes = (size_t)kernel->shared_bytes;
    error = cudaOccupancyMaxActiveClusters(&clusters, kernel->entry, &config);
    *out = (dpr_residency){clusters * cluster, cluster};
    return error;
}

/* On the current device. Gives the kernel the permissions that its launches there need. */
static cudaError_t count_resident(const dpr_kernel *kernel, int ordinal, dpr_residency *out) {
    int sm_count = 0;
    cudaError_t error = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, ordinal);
    if (error == cudaSuccess && kernel->shared_bytes > PORTABLE_SHARED_BYTES)
        error = cudaFuncSetAttribute(kernel->entry, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel->shared_bytes);
    if (error != cudaSuccess)
        return error;
    if (kernel->cluster == 0)
        return count_blocks(kernel, sm_count, out);
    error = count_in_clusters(kernel, kernel->cluster, sm_count, out);
    if (kernel->cluster > PORTABLE_CLUSTER && (error != cudaSuccess || out->blocks == 0)) {
        (void)cudaGetLastError();
        error = count_in_clusters(kernel, PORTABLE_CLUSTER, sm_count, out);
    }
    return error;
}

/* Loads the module. Its kernels wait for no other blocks, so nobody needs to know how many are resident. */
static dpr_status check_module(const dpr_device *device, const dpr_kernel *kernel) {
    CUfunction function;
    const dpr_status status = check_room(device->ordinal, kernel->module);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_module_function(kernel->module, kernel->entry, &function);
    if (error == cudaSuccess)
        return DPR_OK;
    (void)cudaGetLastError();
    if (dpr_driver_is_final(error) || error == cudaErrorMemoryAllocation)
        return dpr_current_failed(error, kernel->module->name);
    return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "the code for %s cannot be loaded on device %d: %s (%s)",
                    kernel->module->name, device->ordinal, cudaGetErrorString(error), cudaGetErrorName(error));
}

dpr_status dpr_device_resident(void *user, const dpr_kernel *kernel, dpr_residency *out) {
    const dpr_device *device = user;
    int previous;
    cudaError_t error = dpr_current_enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    if (kernel->module) {
        const dpr_status status = check_module(device, kernel);
        dpr_current_leave(device->ordinal, previous);
        *out = (dpr_residency){0, 0};
        return status;
    }
    error = count_resident(kernel, device->ordinal, out);
    dpr_current_leave(device->ordinal, previous);
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, "asking for a kernel's occupancy");
}

/* ---- What nested launches cost ---- */

static dpr_status calibrate(dpr_device *device, const dpr_gpu_caps *gpu) {
    int previous;
    const cudaError_t error = dpr_current_enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    const dpr_status status = dpr_calibrate(device->calibration, device, device->nesting, gpu);
    dpr_current_leave(device->ordinal, previous);
    return status;
}

dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu) {
    dpr_device *device = user;
    const dpr_status status = measure && !dpr_nested_refusal(gpu) ? calibrate(device, gpu) : DPR_OK;
    dpr_calibration_read(device->calibration, gpu);
    return status;
}

/* ---- Runs ---- */

static dpr_status wrong_stream(const dpr_device *device, dpr_stream stream) {
    (void)cudaGetLastError();
    return dpr_fail(DPR_ERR_WRONG_DEVICE, "stream is %p, which is no stream of device %d", (void *)stream,
                    device->ordinal);
}

/* On the current device. */
static dpr_status launch(dpr_device *device, const dpr_strategy *strategy, dpr_run *run) {
    dpr_slot *slot = NULL;
    cudaGraph_t graph = NULL;
    if (run->shape.scratch_bytes > 0) {
        const cudaError_t error = dpr_scratch_pin(device->scratch, run->stream, &slot, &graph);
        if (error == cudaErrorInvalidResourceHandle && run->stream)
            return wrong_stream(device, run->stream);
        if (error != cudaSuccess)
            return dpr_current_failed(error, "taking scratch memory");
        run->scratch = dpr_slot_memory(slot);
    }
    run->enqueue = dpr_kernels_enqueue;
    run->enqueuer = device->kernels;
    cudaError_t error = dpr_nesting_begin(device->nesting, strategy, run, graph);
    if (error == cudaSuccess)
        error = (cudaError_t)strategy->launch(run);
    const cudaError_t ended = dpr_nesting_end(run, error == cudaSuccess, graph);
    error = error == cudaSuccess ? ended : error;
    if (slot && error != cudaSuccess)
        dpr_scratch_clean(slot, run->stream);
    if (slot)
        dpr_scratch_unpin(slot);
    if (error == cudaErrorInvalidResourceHandle && run->stream)
        return wrong_stream(device, run->stream);
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, strategy->name);
}

dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run) {
    int previous;
    const cudaError_t error = dpr_current_enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    run->programmatic = waits_by_itself(device) && run->stream && run->stream != cudaStreamLegacy;
    const dpr_status status = launch(device, strategy, run);
    dpr_current_leave(device->ordinal, previous);
    return status;
}

static dpr_status synchronise(const dpr_strategy *strategy) {
    const cudaError_t error = cudaStreamSynchronize(NULL);
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, strategy->name);
}

/* The result of an enqueued run. Polling spares the driver's wait; it also ends where the kernel has failed, whose
 * error the driver's wait then tells. */
static dpr_status collect(const dpr_strategy *strategy, const dpr_mailbox *box, void *host_out, size_t result_bytes) {
    if (!dpr_mailbox_wait(box, result_bytes)) {
        const dpr_status status = synchronise(strategy);
        if (status != DPR_OK)
            return status;
        if (!dpr_mailbox_arrived(box, result_bytes))
            return dpr_fail(DPR_ERR_CUDA, "%s: the kernel ended without a result", strategy->name);
    }
    dpr_mailbox_read(box, host_out, result_bytes);
    return DPR_OK;
}

/* On the current device. */
static dpr_status run_to_host(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                              size_t result_bytes) {
    dpr_mailbox *box = dpr_mailbox_take(device->mail, run);
    if (!box)
        return dpr_fail(DPR_ERR_CUDA, "device %d has failed: none of the runs before has written its result",
                        device->ordinal);
    dpr_status status = launch(device, strategy, run);
    const int enqueued = status == DPR_OK;
    if (enqueued && run->nested) /* the report comes after the result, and *host_out changes last */
        status = synchronise(strategy);
    if (status == DPR_OK)
        status = collect(strategy, box, host_out, result_bytes);
    dpr_mailbox_return(device->mail, box, enqueued ? result_bytes : 0);
    return status;
}

dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes) {
    int previous;
    const cudaError_t error = dpr_current_enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    run->stream = NULL;
    dpr_status status = DPR_OK;
    if (host_out) {
        status = run_to_host(device, strategy, run, host_out, result_bytes);
    } else {
        status = launch(device, strategy, run);
        if (status == DPR_OK)
            status = synchronise(strategy);
    }
    dpr_current_leave(device->ordinal, previous);
    if (status == DPR_OK && run->nested && !run->report) /* in pageable memory, of a run without nested launches */
        *run->nested = (dpr_nested){0};
    return status;
}

dpr_status dpr_device_wait(int ordinal) {
    int previous;
    cudaError_t error = dpr_current_enter(ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    error = cudaStreamSynchronize(NULL);
    dpr_current_leave(ordinal, previous);
    return error == cudaSuccess ? DPR_OK : dpr_current_failed(error, "waiting for the default stream");
}
