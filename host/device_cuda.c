/* Devices through the CUDA runtime. */
#include "device.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "error.h"
#include "registry.h"
#include "scratch.h"

/* Results of blocking calls on their way to the host: one line of pinned memory each. */
enum { MAILBOXES = 64, MAILBOX_BYTES = 64 };

struct dpr_device {
    int ordinal;
    dpr_scratch *scratch;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    unsigned char *mailboxes;
    int idle; /* entries of `stack` */
    unsigned char *stack[MAILBOXES];
};

static dpr_status failed(cudaError_t error, const char *what) {
    /* The runtime's own record of it would surprise a caller who shares the runtime. */
    (void)cudaGetLastError();
    const dpr_status status = error == cudaErrorMemoryAllocation ? DPR_ERR_OUT_OF_MEMORY
                              : error == cudaErrorNoDevice || error == cudaErrorNoKernelImageForDevice
                                  ? DPR_ERR_NO_DEVICE
                                  : DPR_ERR_CUDA;
    return dpr_fail(status, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* Makes `ordinal` current, and tells which device was. */
static cudaError_t enter(int ordinal, int *previous) {
    cudaError_t error = cudaGetDevice(previous);
    if (error == cudaSuccess && *previous != ordinal)
        error = cudaSetDevice(ordinal);
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error;
}

static void leave(int ordinal, int previous) {
    if (previous != ordinal && cudaSetDevice(previous) != cudaSuccess)
        (void)cudaGetLastError();
}

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

#define DPR_ATTRIBUTE_ROW(A, NAME, ATTRIBUTE, TEXT) {offsetof(dpr_gpu_caps, NAME), cudaDevAttr##ATTRIBUTE},

dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    static const attribute attributes[] = {DPR_GPU_CAPS_LIST(DPR_ATTRIBUTE_ROW, _)};
    dpr_gpu_caps caps = {0};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        int value = 0;
        const cudaError_t error = cudaDeviceGetAttribute(&value, attributes[i].attribute, ordinal);
        if (error != cudaSuccess)
            return failed(error, "cudaDeviceGetAttribute");
        *(int64_t *)(void *)((char *)&caps + attributes[i].offset) = value;
    }
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess)
        return failed(error, "cudaGetDeviceProperties");
    snprintf(name, 64, "%.63s", properties.name);
    *gpu = caps;
    return DPR_OK;
}

dpr_status dpr_device_memory(int ordinal, size_t *bytes) {
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess)
        return failed(error, "cudaGetDeviceProperties");
    *bytes = properties.totalGlobalMem;
    return DPR_OK;
}

dpr_status dpr_device_pci(int ordinal, char bus_id[16]) {
    const cudaError_t error = cudaDeviceGetPCIBusId(bus_id, 16, ordinal);
    return error == cudaSuccess ? DPR_OK : failed(error, "cudaDeviceGetPCIBusId");
}

dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    int previous;
    struct cudaFuncAttributes attributes;
    cudaError_t error = enter(ordinal, &previous);
    if (error != cudaSuccess)
        return failed(error, "cudaSetDevice");
    error = cudaFuncGetAttributes(&attributes, kernel->entry);
    leave(ordinal, previous);
    if (error != cudaSuccess)
        return failed(error, "cudaFuncGetAttributes");
    *use =
        (dpr_kernel_use){kernel->threads, attributes.numRegs, (int)attributes.sharedSizeBytes + kernel->shared_bytes};
    return DPR_OK;
}

dpr_status dpr_device_put(int ordinal, void *to, const void *host, size_t bytes) {
    int previous;
    cudaError_t error = enter(ordinal, &previous);
    if (error != cudaSuccess)
        return failed(error, "cudaSetDevice");
    error = cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice);
    leave(ordinal, previous);
    return error == cudaSuccess ? DPR_OK : failed(error, "copying the result to the device");
}

dpr_status dpr_device_upload(int ordinal, const void *host, size_t bytes, void **out) {
    int previous;
    cudaError_t error = enter(ordinal, &previous);
    if (error != cudaSuccess)
        return failed(error, "cudaSetDevice");
    void *memory = NULL;
    error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) {
        error = cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    leave(ordinal, previous);
    if (error != cudaSuccess)
        return failed(error, "copying to the device");
    *out = memory;
    return DPR_OK;
}

void dpr_device_free(int ordinal, void *memory) {
    int previous;
    if (enter(ordinal, &previous) == cudaSuccess) {
        (void)cudaFree(memory);
        leave(ordinal, previous);
    }
}

/* ---- An initialised device ---- */

/* Whether this build has machine code or PTX that the device runs: asked of the first kernel there is. */
static cudaError_t check_code(void) {
    const dpr_key key = {.f = {.op = DPR_SUM, .dtype = DPR_F32}};
    struct cudaFuncAttributes attributes;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (dpr_strategies[i]->side == DPR_ON_GPU)
            return cudaFuncGetAttributes(&attributes, dpr_strategies[i]->kernel(&key).entry);
    }
    return cudaErrorNoKernelImageForDevice;
}

static cudaError_t open_current(dpr_device *device) {
    cudaError_t error = check_code();
    if (error != cudaSuccess)
        return error;
    error = cudaHostAlloc((void **)&device->mailboxes, (size_t)MAILBOXES * MAILBOX_BYTES,
                          cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess)
        return error;
    error = dpr_scratch_create(&device->scratch);
    if (error != cudaSuccess)
        (void)cudaFreeHost(device->mailboxes);
    return error;
}

dpr_status dpr_device_open(int ordinal, dpr_device **out) {
    dpr_device *device = calloc(1, sizeof *device);
    if (!device)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for device %d", ordinal);
    int previous;
    cudaError_t error = enter(ordinal, &previous);
    if (error == cudaSuccess) {
        error = open_current(device);
        leave(ordinal, previous);
    }
    if (error != cudaSuccess) {
        free(device);
        char what[32];
        snprintf(what, sizeof what, "opening device %d", ordinal);
        return failed(error, what);
    }
    device->ordinal = ordinal;
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->returned, NULL);
    while (device->idle < MAILBOXES) {
        device->stack[device->idle] = device->mailboxes + (size_t)device->idle * MAILBOX_BYTES;
        device->idle++;
    }
    *out = device;
    return DPR_OK;
}

void dpr_device_close(dpr_device *device) {
    if (!device)
        return;
    int previous;
    if (enter(device->ordinal, &previous) == cudaSuccess) {
        (void)cudaDeviceSynchronize();
        dpr_scratch_destroy(device->scratch);
        (void)cudaFreeHost(device->mailboxes);
        leave(device->ordinal, previous);
    }
    pthread_cond_destroy(&device->returned);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

int dpr_device_blocks_per_sm(void *user, const dpr_kernel *kernel) {
    const dpr_device *device = user;
    int previous, blocks = 0;
    if (enter(device->ordinal, &previous) != cudaSuccess)
        return 0;
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->entry, kernel->threads,
                                                      (size_t)kernel->shared_bytes)
        != cudaSuccess) {
        (void)cudaGetLastError();
        blocks = 0;
    }
    leave(device->ordinal, previous);
    return blocks;
}

static dpr_status wrong_stream(const dpr_device *device, dpr_stream stream) {
    (void)cudaGetLastError();
    return dpr_fail(DPR_ERR_WRONG_DEVICE, "stream is %p, which is no stream of device %d", (void *)stream,
                    device->ordinal);
}

/* On the current device. */
static dpr_status launch(dpr_device *device, const dpr_strategy *strategy, dpr_run *run) {
    dpr_slot *slot = NULL;
    if (run->shape.scratch_bytes > 0) {
        const cudaError_t error = dpr_scratch_pin(device->scratch, run->stream, &slot);
        if (error == cudaErrorInvalidResourceHandle && run->stream)
            return wrong_stream(device, run->stream);
        if (error != cudaSuccess)
            return failed(error, "taking scratch memory");
        run->scratch = dpr_slot_memory(slot);
    }
    const cudaError_t error = (cudaError_t)strategy->launch(run);
    if (slot)
        dpr_scratch_unpin(device->scratch, slot);
    if (error == cudaErrorInvalidResourceHandle && run->stream)
        return wrong_stream(device, run->stream);
    return error == cudaSuccess ? DPR_OK : failed(error, strategy->name);
}

dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run) {
    int previous;
    const cudaError_t error = enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return failed(error, "cudaSetDevice");
    const dpr_status status = launch(device, strategy, run);
    leave(device->ordinal, previous);
    return status;
}

static unsigned char *take_mailbox(dpr_device *device) {
    pthread_mutex_lock(&device->lock);
    while (device->idle == 0)
        pthread_cond_wait(&device->returned, &device->lock);
    unsigned char *mailbox = device->stack[--device->idle];
    pthread_mutex_unlock(&device->lock);
    return mailbox;
}

static void return_mailbox(dpr_device *device, unsigned char *mailbox) {
    pthread_mutex_lock(&device->lock);
    device->stack[device->idle++] = mailbox;
    pthread_cond_signal(&device->returned);
    pthread_mutex_unlock(&device->lock);
}

dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes) {
    int previous;
    cudaError_t error = enter(device->ordinal, &previous);
    if (error != cudaSuccess)
        return failed(error, "cudaSetDevice");
    unsigned char *mailbox = host_out ? take_mailbox(device) : NULL;
    if (mailbox)
        run->out = mailbox;
    run->stream = NULL;
    dpr_status status = launch(device, strategy, run);
    if (status == DPR_OK) {
        error = cudaStreamSynchronize(NULL);
        if (error != cudaSuccess)
            status = failed(error, strategy->name);
        else if (mailbox)
            memcpy(host_out, mailbox, result_bytes);
    }
    if (mailbox)
        return_mailbox(device, mailbox);
    leave(device->ordinal, previous);
    return status;
}

dpr_status dpr_device_wait(int ordinal) {
    int previous;
    cudaError_t error = enter(ordinal, &previous);
    if (error != cudaSuccess)
        return failed(error, "cudaSetDevice");
    error = cudaStreamSynchronize(NULL);
    leave(ordinal, previous);
    return error == cudaSuccess ? DPR_OK : failed(error, "waiting for the default stream");
}
