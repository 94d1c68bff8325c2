/* The driver's functions that the library asks for. Their errors have the runtime's numbers, but are not the runtime's
 * to keep. */
#include <cuda.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_device.h"
#include "fake_kernel.h"
#include "fake_memory.h"
#include "fake_modules.h"
#include "fake_state.h"
#include "fake_streams.h"

static void put_attribute(CUpointer_attribute attribute, const fake_block *block, void *value) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = !block ? 0 : block->kind == FAKE_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = block && block->kind == FAKE_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = block ? block->device : -2;
        break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = block ? block->context : NULL;
        break;
    default:
        fake_violate("the fake driver does not know a pointer attribute that is asked for");
    }
}

static CUresult CUDAAPI fake_pointer_attributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                                CUdeviceptr pointer) {
    const cudaError_t injected = fake_begin_quietly("cuPointerGetAttributes");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const fake_block *block = fake_find((const void *)(uintptr_t)pointer, 1);
    for (unsigned i = 0; i < count; i++)
        put_attribute(attributes[i], block, values[i]);
    fake_unlock();
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_launch_kernel_ex(const CUlaunchConfig *config, CUfunction function, void **params,
                                              void **extra) {
    (void)extra;
    const cudaError_t injected = fake_begin_in_context("cuLaunchKernelEx");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const cudaLaunchConfig_t as_runtime = {
        .gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .dynamicSmemBytes = config->sharedMemBytes,
        .stream = config->hStream,
        .attrs = (cudaLaunchAttribute *)config->attrs, /* which differ in their names alone */
        .numAttrs = config->numAttrs,
    };
    const cudaError_t error = fake_launch_kernel(&as_runtime, function, params);
    fake_unlock();
    return (CUresult)error;
}

static CUresult CUDAAPI fake_stream_get_id(CUstream stream, unsigned long long *id) {
    const cudaError_t injected = fake_begin_in_context("cuStreamGetId");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    stream = fake_stream_of(stream);
    const int live = fake_stream_is_live(stream);
    if (live)
        *id = stream->id;
    fake_unlock();
    return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult CUDAAPI fake_stream_get_capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                                     CUgraph *graph, const CUgraphNode **dependencies, size_t *count) {
    static _Thread_local CUgraphNode last;
    (void)id;
    const cudaError_t injected = fake_begin_in_context("cuStreamGetCaptureInfo");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    if (fake_legacy_is_forbidden(stream)) {
        fake_unlock();
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    stream = fake_stream_of(stream);
    const int live = fake_stream_is_live(stream);
    if (live) {
        *status = stream->captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
        if (stream->captured && graph)
            *graph = stream->captured;
        if (stream->captured && dependencies) {
            last = (CUgraphNode)(void *)fake_graph_work(stream->captured)->last;
            *dependencies = &last;
            *count = last != NULL;
        }
    }
    fake_unlock();
    return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

typedef void (*any_call)(void);

WRAP(cudaGetDriverEntryPointByVersion);
cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                                    unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *result) {
    static const struct {
        const char *name;
        any_call call;
    } calls[] = {
        {"cuPointerGetAttributes", (any_call)fake_pointer_attributes},
        {"cuCtxGetCurrent", (any_call)fake_ctx_get_current},
        {"cuCtxGetDevice", (any_call)fake_ctx_get_device},
        {"cuCtxPushCurrent", (any_call)fake_ctx_push_current},
        {"cuCtxPopCurrent", (any_call)fake_ctx_pop_current},
        {"cuDevicePrimaryCtxRetain", (any_call)fake_primary_retain},
        {"cuThreadExchangeStreamCaptureMode", (any_call)fake_exchange_capture_mode},
        {"cuCtxGetDevResource", (any_call)fake_ctx_get_resource},
        {"cuGreenCtxGetDevResource", (any_call)fake_green_get_resource},
        {"cuStreamGetCtx", (any_call)fake_stream_get_contexts},
        {"cuCtxGetId", (any_call)fake_ctx_get_id},
        {"cuEventQuery", (any_call)fake_event_query},
        {"cuLaunchKernelEx", (any_call)fake_launch_kernel_ex},
        {"cuStreamGetId", (any_call)fake_stream_get_id},
        {"cuStreamGetCaptureInfo", (any_call)fake_stream_get_capture_info},
        {"cuLibraryLoadData", (any_call)fake_library_load_data},
        {"cuLibraryGetKernel", (any_call)fake_library_get_kernel},
        {"cuLibraryGetGlobal", (any_call)fake_library_get_global},
        {"cuKernelGetFunction", (any_call)fake_kernel_get_function},
        {"cuGraphAddKernelNode", (any_call)fake_graph_add_kernel},
        {"cuGraphExecKernelNodeSetParams", (any_call)fake_graph_set_kernel},
        {"cuFuncGetAttribute", (any_call)fake_func_get_attribute},
        {"cuGraphConditionalHandleCreate", (any_call)fake_graph_create_condition},
        {"cuGraphAddNode", (any_call)fake_graph_add_node},
        {"cuStreamUpdateCaptureDependencies", (any_call)fake_stream_update_dependencies},
    };
    FAKE_BEGIN();
    (void)version, (void)flags;
    *entry = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(name, calls[i].name) == 0)
            memcpy(entry, &calls[i].call, sizeof *entry);
    *result = *entry ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (!*entry)
        fake_violate("the fake driver does not know a function that is asked for");
    return fake_end(cudaSuccess);
}

/* The handle of a kernel is its host address. */
WRAP(cudaGetFuncBySymbol);
cudaError_t __wrap_cudaGetFuncBySymbol(cudaFunction_t *function, const void *entry) {
    FAKE_BEGIN();
    if (fake_kernel_is_of_module(entry))
        return fake_end(cudaErrorInvalidDeviceFunction);
    *function = (cudaFunction_t)(uintptr_t)entry;
    return fake_end(cudaSuccess);
}
