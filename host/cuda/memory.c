/* Copies to device memory, waits for work that writes host memory, and memory that a caller keeps. */
#include "device.h"

#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "driver.h"
#include "error.h"
#include "home.h"
#include "log.h"

dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out) {
    return dpr_driver_place(pointer, argument, out);
}

/* Enters the home for work with memory of device `ordinal`. */
static dpr_status enter_device(int ordinal, void *owner, dpr_visit *visit) {
    dpr_home home;
    const dpr_status status = dpr_device_home(ordinal, owner, &home);
    return status == DPR_OK ? dpr_home_enter_relaxed(&home, visit) : status;
}

/* Waits after the copy, because one from pageable memory may return before the data have arrived. */
static cudaError_t copy_in_legacy(void *to, const void *from, size_t bytes) {
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, NULL);
    return error == cudaSuccess ? dpr_home_wait_for_legacy() : error;
}

static cudaError_t copy_after_legacy(void *to, const void *from, size_t bytes) {
    if (dpr_home_has_legacy())
        return copy_in_legacy(to, from, bytes);
    const cudaError_t error = dpr_home_wait();
    return error == cudaSuccess ? dpr_home_copy_apart(to, from, bytes) : error;
}

dpr_status dpr_device_put(dpr_place place, void *to, const void *from, size_t bytes) {
    dpr_visit visit;
    const dpr_status status = enter_device(place.device, place.owner, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = copy_after_legacy(to, from, bytes);
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "copying to or from the device");
}

dpr_status dpr_device_wait(dpr_place place) {
    dpr_visit visit;
    const dpr_status status = enter_device(place.device, place.owner, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_home_wait_for_legacy();
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "waiting for the default stream");
}

static cudaError_t take(dpr_memory memory, size_t bytes, void **out) {
    if (memory == DPR_MEMORY_DEVICE)
        return cudaMalloc(out, bytes);
    if (memory == DPR_MEMORY_MANAGED)
        return cudaMallocManaged(out, bytes, cudaMemAttachGlobal);
    const cudaError_t error = cudaHostAlloc(out, bytes, cudaHostAllocDefault);
    if (error == cudaSuccess)
        memset(*out, 0, bytes);
    return error;
}

dpr_status dpr_device_take(const dpr_device *device, dpr_memory memory, size_t bytes, void **out) {
    static const char *const kinds[] = {
        [DPR_MEMORY_DEVICE] = "device", [DPR_MEMORY_PINNED] = "pinned", [DPR_MEMORY_MANAGED] = "managed"};
    const dpr_home *home = dpr_device_home_of(device);
    char what[96];
    dpr_visit visit;
    const dpr_status status = dpr_home_enter_relaxed(home, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = take(memory, bytes, out);
    dpr_home_leave(&visit);
    snprintf(what, sizeof what, "%zu bytes of %s memory for device %d", bytes, kinds[memory], home->ordinal);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, what);
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "%s at %p for a caller's data", what, *out);
    return DPR_OK;
}

void dpr_device_give(const dpr_device *device, dpr_memory memory, void *at) {
    dpr_visit visit;
    if (!at || dpr_home_enter_relaxed(dpr_device_home_of(device), &visit) != DPR_OK)
        return;
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "the data at %p go back", at);
    if ((memory == DPR_MEMORY_PINNED ? cudaFreeHost(at) : cudaFree(at)) != cudaSuccess)
        (void)cudaGetLastError();
    dpr_home_leave(&visit);
}

static dpr_status copy(const dpr_device *device, void *to, const void *from, size_t bytes) {
    dpr_visit visit;
    const dpr_status status = dpr_home_enter_relaxed(dpr_device_home_of(device), &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_home_copy_apart(to, from, bytes);
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "copying to the device");
}

dpr_status dpr_device_upload(const dpr_device *device, const void *host, size_t bytes, size_t room, void **out) {
    void *memory;
    dpr_status status = dpr_device_take(device, DPR_MEMORY_DEVICE, room, &memory);
    if (status != DPR_OK)
        return status;
    if (bytes > 0)
        status = copy(device, memory, host, bytes);
    if (status == DPR_OK)
        *out = memory;
    else
        dpr_device_free(device, memory);
    return status;
}

void dpr_device_free(const dpr_device *device, void *memory) {
    dpr_device_give(device, DPR_MEMORY_DEVICE, memory);
}
