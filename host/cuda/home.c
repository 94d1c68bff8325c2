#include "home.h"

#include <limits.h>
#include <pthread.h>

#include "capture.h"
#include "driver.h"
#include "error.h"
#include "uncancelled.h"

dpr_status dpr_cuda_failed(cudaError_t error, const char *what) {
    /* Clears the runtime's record of the error, which would surprise a caller who shares the runtime. */
    (void)cudaGetLastError();
    const dpr_status status = error == cudaErrorMemoryAllocation ? DPR_ERR_OUT_OF_MEMORY
                              : error == cudaErrorNoDevice || error == cudaErrorNoKernelImageForDevice
                                  ? DPR_ERR_NO_DEVICE
                                  : DPR_ERR_CUDA;
    return dpr_fail_cuda((int)error, status, "%s: %s (%s)%s", what, cudaGetErrorString(error), cudaGetErrorName(error),
                         dpr_driver_is_final(error) ? "; CUDA cannot use the device again in this process" : "");
}

/* ---- Which context ---- */

enum { MOST_DEVICES = 64 };

/* The devices' primary contexts. They live as long as the process, unless it resets a device. */
static struct {
    pthread_mutex_t lock;
    dpr_home of[MOST_DEVICES];
} primaries = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether the context exists. If it does, *out is the home for it. */
static int find_alive(CUcontext context, int ordinal, dpr_home *out) {
    unsigned long long id = 0;
    if (!context || dpr_driver()->ctx_get_id(context, &id) != CUDA_SUCCESS)
        return 0;
    *out = (dpr_home){.context = context, .id = id, .ordinal = ordinal};
    return 1;
}

static int find_current(int ordinal, dpr_home *out) {
    CUcontext context = NULL;
    CUdevice device; /* a handle that is the ordinal */
    return dpr_driver()->ctx_get_current(&context) == CUDA_SUCCESS && find_alive(context, ordinal, out)
           && dpr_driver()->ctx_get_device(&device) == CUDA_SUCCESS && device == ordinal;
}

/* The caller holds the lock. */
static CUresult find_primary(int ordinal, dpr_home *out) {
    dpr_home *there = &primaries.of[ordinal];
    CUcontext context = NULL;
    if (find_alive(there->context, ordinal, out) && out->id == there->id)
        return CUDA_SUCCESS;
    *there = (dpr_home){0};
    const CUresult result = dpr_driver()->primary_retain(&context, ordinal);
    if (result != CUDA_SUCCESS)
        return result;
    if (!find_alive(context, ordinal, there))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = *there;
    return CUDA_SUCCESS;
}

dpr_status dpr_device_home_owning(const dpr_place *place, dpr_home *out) {
    if (find_alive(place->owner, place->device, out))
        return DPR_OK;
    return dpr_device_home(place->device, NULL, out);
}

dpr_status dpr_device_home(int ordinal, void *owner, dpr_home *out) {
    const char *why;
    dpr_home home;
    if (dpr_driver_devices(&why) == 0)
        return dpr_fail_cuda(dpr_driver_error(), DPR_ERR_NO_DEVICE, "device %d cannot be used: %s", ordinal, why);
    if (ordinal < 0 || ordinal >= MOST_DEVICES)
        return dpr_fail(DPR_ERR_NO_DEVICE, "device is %d; dpr serves devices 0 to %d only", ordinal, MOST_DEVICES - 1);
    if (find_current(ordinal, out) || find_alive(owner, ordinal, out))
        return DPR_OK;
    const int cancel = dpr_cancel_hold();
    pthread_mutex_lock(&primaries.lock);
    const CUresult result = find_primary(ordinal, &home);
    pthread_mutex_unlock(&primaries.lock);
    dpr_cancel_release(cancel);
    if (result != CUDA_SUCCESS)
        return dpr_cuda_failed((cudaError_t)result, "making a device's primary context");
    *out = home;
    return DPR_OK;
}

/* ---- Entering and leaving ---- */

/* Compares contexts by number, because CUDA uses a handle again after its context is gone, but never a number. */
static CUresult push(const dpr_home *home, dpr_visit *visit) {
    unsigned long long id = 0;
    if (dpr_driver()->ctx_get_id(NULL, &id) == CUDA_SUCCESS && id == home->id)
        return CUDA_SUCCESS;
    CUresult result = dpr_driver()->ctx_get_id(home->context, &id);
    if (result == CUDA_SUCCESS && id != home->id)
        result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result == CUDA_SUCCESS)
        result = dpr_driver()->ctx_push_current(home->context);
    visit->pushed = result == CUDA_SUCCESS;
    return result;
}

int dpr_home_is_gone(const dpr_home *home) {
    unsigned long long id = 0;
    const CUresult result = dpr_driver()->ctx_get_id(home->context, &id);
    return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || (result == CUDA_SUCCESS && id != home->id);
}

dpr_status dpr_home_enter(const dpr_home *home, dpr_visit *visit) {
    const char *why;
    *visit = (dpr_visit){.mode = -1};
    if (dpr_driver_devices(&why) == 0)
        return dpr_fail_cuda(dpr_driver_error(), DPR_ERR_CUDA, "device %d cannot be used: %s", home->ordinal, why);
    visit->cancel = dpr_cancel_hold();
    const CUresult result = push(home, visit);
    if (result == CUDA_SUCCESS)
        return DPR_OK;
    dpr_cancel_release(visit->cancel);
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return dpr_fail_cuda((int)result, DPR_ERR_CUDA,
                             "the CUDA context on device %d in which this dpr_ctx or dpr_launcher was made is gone: it "
                             "was destroyed, or reset with its device",
                             home->ordinal);
    return dpr_cuda_failed((cudaError_t)result, "entering a CUDA context");
}

dpr_status dpr_home_enter_relaxed(const dpr_home *home, dpr_visit *visit) {
    const dpr_status status = dpr_home_enter(home, visit);
    if (status == DPR_OK)
        visit->mode = dpr_capture_relax();
    return status;
}

void dpr_home_leave(const dpr_visit *visit) {
    CUcontext context;
    dpr_capture_restore(visit->mode);
    if (visit->pushed)
        (void)dpr_driver()->ctx_pop_current(&context);
    dpr_cancel_release(visit->cancel);
}

/* ---- On the current context ---- */

/* Finds a stream's regular context and its number of SMs. A green context shares everything except the SMs with the
 * regular context that it was made from. */
static CUresult contexts_of(cudaStream_t stream, CUcontext *regular, int *sms) {
    const dpr_driver_calls *driver = dpr_driver();
    CUdevResource of_sms;
    CUgreenCtx green = NULL;
    CUresult result = driver->stream_get_contexts(stream, regular, &green);
    if (result == CUDA_SUCCESS)
        result = green ? driver->green_get_resource(green, &of_sms, CU_DEV_RESOURCE_TYPE_SM)
                       : driver->ctx_get_resource(*regular, &of_sms, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS)
        *sms = (int)of_sms.sm.smCount;
    return result;
}

/* The number of all the device's SMs, for drivers without green contexts, on which no stream has fewer. */
static cudaError_t all_sms(const dpr_home *home, int *out) {
    return cudaDeviceGetAttribute(out, cudaDevAttrMultiProcessorCount, home->ordinal);
}

/* Asks about a stream of its own, because asking about the default stream spoils the capture of a blocking stream. */
cudaError_t dpr_home_examine(dpr_home *home, int *sms) {
    CUcontext regular = NULL;
    cudaStream_t stream;
    if (!dpr_driver()->stream_get_contexts)
        return all_sms(home, sms);
    cudaError_t error = dpr_home_begin_apart(&stream);
    if (error == cudaSuccess)
        error = dpr_home_end_apart(stream, (cudaError_t)contexts_of(stream, &regular, sms));
    home->regular = regular;
    return error == cudaErrorNotSupported ? all_sms(home, sms) : error;
}

cudaError_t dpr_home_stream_sms(const dpr_home *home, cudaStream_t stream, int *out) {
    CUcontext regular = NULL;
    if (!dpr_driver()->stream_get_contexts)
        return all_sms(home, out);
    const CUresult result = contexts_of(stream, &regular, out);
    if ((result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED) && regular != home->regular)
        return cudaErrorInvalidResourceHandle;
    return result == CUDA_ERROR_NOT_SUPPORTED ? all_sms(home, out) : (cudaError_t)result;
}

/* The legacy default stream cannot be captured. */
cudaError_t dpr_home_identify(cudaStream_t stream, unsigned long long *id, cudaGraph_t *graph) {
    CUstreamCaptureStatus status;
    *graph = NULL;
    *id = ULLONG_MAX;
    if (!stream || stream == cudaStreamLegacy)
        return cudaSuccess;
    const CUresult result = dpr_driver()->stream_get_capture_info(stream, &status, NULL, graph, NULL, NULL);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return cudaErrorStreamCaptureInvalidated;
    if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return cudaSuccess;
    *graph = NULL;
    return (cudaError_t)dpr_driver()->stream_get_id(stream, id);
}

/* This question does not harm the capture. */
int dpr_home_has_legacy(void) {
    CUstreamCaptureStatus status;
    return dpr_driver()->stream_get_capture_info(NULL, &status, NULL, NULL, NULL, NULL)
           != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* cudaFree() waits for all work that may use the memory, which is any work of the context (seen on an H200, driver
 * 580). */
cudaError_t dpr_home_ask(cudaStream_t stream) {
    if (!stream && !dpr_home_has_legacy())
        return cudaErrorStreamCaptureImplicit;
    const cudaError_t error = cudaStreamQuery(stream);
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* the question leaves its answer there */
    return error;
}

cudaError_t dpr_home_wait(void) {
    void *memory;
    const cudaError_t error = cudaMalloc(&memory, 1);
    return error == cudaSuccess ? cudaFree(memory) : error;
}

cudaError_t dpr_home_wait_for_legacy(void) {
    return dpr_home_has_legacy() ? cudaStreamSynchronize(NULL) : dpr_home_wait();
}

cudaError_t dpr_home_begin_apart(cudaStream_t *out) {
    return cudaStreamCreateWithFlags(out, cudaStreamNonBlocking);
}

cudaError_t dpr_home_end_apart(cudaStream_t stream, cudaError_t error) {
    const cudaError_t waited = cudaStreamSynchronize(stream);
    if (cudaStreamDestroy(stream) != cudaSuccess)
        (void)cudaGetLastError(); /* the work is done */
    return error == cudaSuccess ? waited : error;
}

cudaError_t dpr_home_copy_apart(void *to, const void *from, size_t bytes) {
    cudaStream_t stream;
    const cudaError_t error = dpr_home_begin_apart(&stream);
    if (error != cudaSuccess)
        return error;
    return dpr_home_end_apart(stream, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}
