#include "fake_contexts.h"

#include <stdlib.h>

#include "fake_cuda.h"
#include "fake_device.h"
#include "fake_memory.h"
#include "fake_state.h"
#include "fake_streams.h"

enum { DEEPEST = 16 };

static struct CUctx_st primaries[FAKE_DEVICES];
static CUcontext others; /* contexts that are gone stay in the list, because their handles may be asked for */
static unsigned long long next_id = 1;

static _Thread_local CUcontext stack[DEEPEST];
static _Thread_local int depth, chosen; /* `chosen`: by cudaSetDevice() */

CUcontext fake_current_context(void) {
    return depth > 0 ? stack[depth - 1] : NULL;
}

int fake_current_device(void) {
    return depth > 0 ? stack[depth - 1]->device : chosen;
}

static CUcontext primary_of(int device) {
    CUcontext primary = &primaries[device];
    if (primary->id == 0 || primary->gone)
        *primary = (struct CUctx_st){NULL, next_id++, device, (int)fake_machine()->gpu.sm_count, primary, 0};
    return primary;
}

void fake_have_context(void) {
    CUcontext current = fake_current_context();
    if (!current)
        stack[depth++] = primary_of(chosen);
    else if (current->gone && current == &primaries[current->device])
        (void)primary_of(current->device);
}

/* ---- For the tests ---- */

int fake_primary_is_made(int device) {
    return primaries[device].id != 0 && !primaries[device].gone;
}

static CUcontext make(int device, int sms) {
    CUcontext made = calloc(1, sizeof *made);
    if (!made)
        abort();
    *made = (struct CUctx_st){others, next_id++, device, sms, made, 0};
    others = made;
    return made;
}

CUcontext fake_ctx_create(int device) {
    fake_lock();
    CUcontext made = make(device, (int)fake_machine()->gpu.sm_count);
    fake_unlock();
    return made;
}

CUcontext fake_green_create(int device, int sms) {
    fake_lock();
    CUcontext made = make(device, sms);
    made->regular = primary_of(device);
    fake_unlock();
    return made;
}

void fake_ctx_push(CUcontext context) {
    stack[depth++] = context;
}

CUcontext fake_ctx_pop(void) {
    return depth > 0 ? stack[--depth] : NULL;
}

static void end_context(CUcontext context) {
    fake_give_all_of(context);
    fake_end_streams_of(context);
    context->gone = 1;
}

void fake_ctx_destroy(CUcontext context) {
    fake_lock();
    end_context(context);
    fake_unlock();
}

/* ---- The runtime's ---- */

WRAP(cudaGetDevice);
cudaError_t __wrap_cudaGetDevice(int *device) {
    FAKE_BEGIN();
    *device = fake_current_device();
    return fake_end(cudaSuccess);
}

WRAP(cudaSetDevice);
cudaError_t __wrap_cudaSetDevice(int device) {
    FAKE_BEGIN();
    if (device < 0 || device >= FAKE_DEVICES)
        return fake_end(cudaErrorInvalidDevice);
    chosen = device;
    depth += depth == 0;
    stack[depth - 1] = primary_of(device);
    return fake_end(cudaSuccess);
}

WRAP(cudaDeviceReset);
cudaError_t __wrap_cudaDeviceReset(void) {
    FAKE_BEGIN();
    end_context(primary_of(fake_current_device()));
    return fake_end(cudaSuccess);
}

/* ---- The driver's ---- */

static CUresult begin(const char *name) {
    return (CUresult)fake_begin_quietly(name);
}

static CUresult end(CUresult result) {
    fake_unlock();
    return result;
}

CUresult CUDAAPI fake_ctx_get_current(CUcontext *context) {
    const CUresult injected = begin("cuCtxGetCurrent");
    if (injected != CUDA_SUCCESS)
        return injected;
    *context = fake_current_context();
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_ctx_get_device(CUdevice *device) {
    const CUresult injected = begin("cuCtxGetDevice");
    if (injected != CUDA_SUCCESS)
        return injected;
    *device = fake_current_device();
    return end(fake_current_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult CUDAAPI fake_ctx_get_id(CUcontext context, unsigned long long *id) {
    const CUresult injected = begin("cuCtxGetId");
    if (injected != CUDA_SUCCESS)
        return injected;
    context = context ? context : fake_current_context();
    if (!context)
        return end(CUDA_ERROR_INVALID_CONTEXT);
    if (context->gone)
        return end(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    *id = context->id;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_ctx_push_current(CUcontext context) {
    const CUresult injected = begin("cuCtxPushCurrent");
    if (injected != CUDA_SUCCESS)
        return injected;
    if (depth == DEEPEST)
        fake_violate("contexts are pushed and not popped");
    else
        stack[depth++] = context;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_ctx_pop_current(CUcontext *context) {
    const CUresult injected = begin("cuCtxPopCurrent");
    if (depth == 0)
        fake_violate("a context is popped that nobody has pushed");
    else
        *context = stack[--depth];
    return injected != CUDA_SUCCESS ? injected : end(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_primary_retain(CUcontext *context, CUdevice device) {
    const CUresult injected = begin("cuDevicePrimaryCtxRetain");
    if (injected != CUDA_SUCCESS)
        return injected;
    *context = primary_of(device);
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_stream_get_contexts(CUstream stream, CUcontext *regular, CUgreenCtx *green) {
    const CUresult injected = (CUresult)fake_begin_in_context("cuStreamGetCtx");
    if (injected != CUDA_SUCCESS)
        return injected;
    if (fake_legacy_spoils(stream))
        return end(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CUcontext of = fake_context_of_stream(stream);
    if (!of)
        return end(CUDA_ERROR_INVALID_HANDLE);
    *regular = of->regular;
    *green = of->regular == of ? NULL : (CUgreenCtx)of;
    return end(CUDA_SUCCESS);
}

static int refuses_resources;

void fake_refuse_resources(int on) {
    refuses_resources = on;
}

CUresult CUDAAPI fake_ctx_get_resource(CUcontext context, CUdevResource *resource, CUdevResourceType type) {
    const CUresult injected = begin("cuCtxGetDevResource");
    if (injected != CUDA_SUCCESS)
        return injected;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return end(CUDA_ERROR_INVALID_RESOURCE_TYPE);
    if (refuses_resources)
        return end(CUDA_ERROR_NOT_SUPPORTED);
    resource->sm.smCount = (unsigned)context->sms;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_green_get_resource(CUgreenCtx context, CUdevResource *resource, CUdevResourceType type) {
    return fake_ctx_get_resource((CUcontext)context, resource, type);
}
