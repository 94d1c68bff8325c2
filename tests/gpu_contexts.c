#include "gpu_contexts.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"

struct gpu_context {
    CUcontext handle;
    CUgreenCtx green; /* NULL: a regular one */
};

/* A function of the driver's, which the tests are not linked with. */
static void *entry(const char *name, unsigned version) {
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result) != cudaSuccess)
        return NULL;
    return found;
}

#define DRIVER(RESULT, NAME, VERSION, ...)                                                                             \
    RESULT(CUDAAPI *NAME)(__VA_ARGS__) = NULL;                                                                         \
    void *NAME##_entry = entry("cu" #NAME, VERSION);                                                                   \
    memcpy(&NAME, &NAME##_entry, sizeof NAME##_entry);                                                                 \
    if (!NAME)                                                                                                         \
    return 0

static gpu_context *wrap(CUcontext handle, CUgreenCtx green) {
    gpu_context *context = malloc(sizeof *context);
    if (context)
        *context = (gpu_context){handle, green};
    return context;
}

gpu_context *gpu_context_create(int device) {
    CUcontext made, popped;
    DRIVER(CUresult, CtxCreate, 3020, CUcontext *, unsigned, CUdevice);
    DRIVER(CUresult, CtxPopCurrent, 7000, CUcontext *);
    if (CtxCreate(&made, 0, device) != CUDA_SUCCESS || CtxPopCurrent(&popped) != CUDA_SUCCESS)
        return NULL;
    return wrap(made, NULL);
}

gpu_context *gpu_green_create(int device, unsigned sms) {
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUcontext handle;
    unsigned groups = 1;
    DRIVER(CUresult, DeviceGetDevResource, 12040, CUdevice, CUdevResource *, CUdevResourceType);
    DRIVER(CUresult, DevSmResourceSplitByCount, 12040, CUdevResource *, unsigned *, const CUdevResource *,
           CUdevResource *, unsigned, unsigned);
    DRIVER(CUresult, DevResourceGenerateDesc, 12040, CUdevResourceDesc *, CUdevResource *, unsigned);
    DRIVER(CUresult, GreenCtxCreate, 12040, CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
    DRIVER(CUresult, CtxFromGreenCtx, 12040, CUcontext *, CUgreenCtx);
    if (DeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS
        || DevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, sms) != CUDA_SUCCESS
        || DevResourceGenerateDesc(&description, &part, 1) != CUDA_SUCCESS
        || GreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS
        || CtxFromGreenCtx(&handle, green) != CUDA_SUCCESS)
        return NULL;
    return wrap(handle, green);
}

int gpu_context_destroy(gpu_context *context) {
    DRIVER(CUresult, CtxDestroy, 4000, CUcontext);
    DRIVER(CUresult, GreenCtxDestroy, 12040, CUgreenCtx);
    const CUresult result = context->green ? GreenCtxDestroy(context->green) : CtxDestroy(context->handle);
    free(context);
    return result == CUDA_SUCCESS;
}

int gpu_context_push(gpu_context *context) {
    DRIVER(CUresult, CtxPushCurrent, 7000, CUcontext);
    return CtxPushCurrent(context->handle) == CUDA_SUCCESS;
}

int gpu_context_pop(void) {
    CUcontext popped;
    DRIVER(CUresult, CtxPopCurrent, 7000, CUcontext *);
    return CtxPopCurrent(&popped) == CUDA_SUCCESS;
}

void *gpu_context_current(void) {
    CUcontext current = NULL;
    DRIVER(CUresult, CtxGetCurrent, 7000, CUcontext *);
    return CtxGetCurrent(&current) == CUDA_SUCCESS ? current : NULL;
}

int gpu_primary_is_made(int device) {
    unsigned flags;
    int active = 0;
    DRIVER(CUresult, DevicePrimaryCtxGetState, 7000, CUdevice, unsigned *, int *);
    return DevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

dpr_stream gpu_blocking_stream_create(void) {
    cudaStream_t stream = NULL;
    return cudaStreamCreateWithFlags(&stream, cudaStreamDefault) == cudaSuccess ? stream : NULL;
}
