/* Blocking runs: where the host waits for the result. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime() */
#include <string.h>

#include "driver.h"
#include "elapsed.h"
#include "error.h"
#include "home.h"
#include "opened.h"

/* ---- Streams of the caller's ---- */

/* Checks that a blocking call may wait for the stream. The question does not harm a capture of the stream. */
static dpr_status check_not_captured(const dpr_device *device, dpr_stream stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_NONE;
    const dpr_status status = dpr_device_check_usable(stream);
    if (status != DPR_OK)
        return status;
    const CUresult result = dpr_driver()->stream_get_capture_info(stream, &captured, NULL, NULL, NULL, NULL);
    if (result == CUDA_ERROR_INVALID_HANDLE)
        return dpr_device_wrong_stream(device, stream);
    if (result != CUDA_SUCCESS)
        return dpr_cuda_failed((cudaError_t)result, "asking whether a stream is being captured");
    if (captured == CU_STREAM_CAPTURE_STATUS_NONE)
        return DPR_OK;
    return dpr_fail(DPR_ERR_INVALID_OPTION,
                    "stream is %p, which is being captured, and a call that waits for its result cannot be captured",
                    (void *)stream);
}

/* The legacy default stream belongs to every CUDA context. */
static dpr_status check_home(const dpr_device *device, dpr_stream stream) {
    int sms;
    if (stream == cudaStreamLegacy)
        return DPR_OK;
    const cudaError_t error = dpr_home_stream_sms(&device->home, stream, &sms);
    if (error == cudaErrorInvalidResourceHandle)
        return dpr_device_wrong_stream(device, stream);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "asking for a stream's CUDA context");
}

/* Enqueues the copy in the stream, unless `to` is NULL, and waits for the stream. Called in the home. */
static dpr_status copy_and_wait(const dpr_device *device, dpr_stream stream, void *to, const void *from, size_t bytes) {
    dpr_status status = check_not_captured(device, stream);
    if (status == DPR_OK)
        status = check_home(device, stream);
    if (status != DPR_OK)
        return status;
    cudaError_t error = to ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream) : cudaSuccess;
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, to ? "copying the result" : "waiting for a stream");
}

dpr_status dpr_device_put_in_stream(dpr_device *device, dpr_stream stream, void *to, const void *from, size_t bytes) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = copy_and_wait(device, stream, to, from, bytes);
    dpr_home_leave(&visit);
    return status;
}

dpr_status dpr_device_wait_for_stream(dpr_device *device, dpr_stream stream) {
    return dpr_device_put_in_stream(device, stream, NULL, NULL, 0);
}

void dpr_device_drain(dpr_device *device, dpr_stream stream) {
    dpr_visit visit;
    if (dpr_home_enter_relaxed(&device->home, &visit) != DPR_OK)
        return;
    if ((stream ? cudaStreamSynchronize(stream) : dpr_home_wait_for_legacy()) != cudaSuccess)
        (void)cudaGetLastError();
    dpr_home_leave(&visit);
}

/* ---- Runs ---- */

/* Finds the device's own stream, or makes it on first use. */
static cudaError_t own_stream(dpr_device *device, cudaStream_t *out) {
    cudaStream_t made, there = NULL;
    *out = atomic_load(&device->own);
    if (*out)
        return cudaSuccess;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return error;
    if (atomic_compare_exchange_strong(&device->own, &there, made)) {
        *out = made;
    } else { /* another thread was quicker */
        (void)cudaStreamDestroy(made);
        *out = there;
    }
    return cudaSuccess;
}

dpr_status dpr_device_own_stream(dpr_device *device, dpr_stream *out) {
    dpr_visit visit;
    const dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = own_stream(device, out);
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "making a stream");
}

/* Finds the stream for a blocking run: the legacy default stream, because blocking calls come after the work in it and
 * in streams that it waits for. While that stream may not be used, waits for all work and finds the device's own
 * stream. */
static dpr_status stream_for_blocking(dpr_device *device, cudaStream_t *out) {
    *out = NULL;
    if (dpr_home_has_legacy())
        return DPR_OK;
    cudaError_t error = dpr_home_wait();
    if (error == cudaSuccess)
        error = own_stream(device, out);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "running while a stream is captured");
}

/* Waits for the run. A capture that forbids the legacy default stream may have begun since the run was enqueued. */
static dpr_status synchronise(const dpr_strategy *strategy, cudaStream_t stream) {
    const cudaError_t error = stream ? cudaStreamSynchronize(stream) : dpr_home_wait_for_legacy();
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, strategy->name);
}

/* Copies the result of an enqueued run, unless `host_out` is NULL. Polling avoids a wait through the driver. If no
 * result arrives in time, that wait follows, and returns the error if the kernel has failed. */
static dpr_status collect(const dpr_strategy *strategy, const dpr_run *run, const dpr_mailbox *box, void *host_out,
                          size_t result_bytes) {
    if (!dpr_mailbox_wait(box, result_bytes)) {
        const dpr_status status = synchronise(strategy, run->stream);
        if (status != DPR_OK)
            return status;
        if (!dpr_mailbox_arrived(box, result_bytes))
            return dpr_fail(DPR_ERR_CUDA, "%s: the kernel ended without a result", strategy->name);
    }
    if (host_out)
        dpr_mailbox_read(box, host_out, result_bytes);
    return DPR_OK;
}

/* Whether to wait for the kernel's end, and not only for its result. The report comes after the result, but *host_out
 * must change last. Without concurrent access, the caller may touch managed memory only after the kernel's end. */
static int must_end(const dpr_device *device, const dpr_run *run) {
    return run->launch_report || !device->concurrent_managed;
}

static dpr_status mailboxes_lost(const dpr_device *device) {
    return dpr_fail(DPR_ERR_CUDA, "device %d has failed: none of the runs before has written its result",
                    device->home.ordinal);
}

/* Waits until the result is there, or the stream's work is done, for about so long. Returns whether it is. */
static int await(const dpr_run *run, const dpr_mailbox *box, size_t result_bytes, double seconds) {
    const struct timespec start = dpr_now();
    cudaError_t error = cudaErrorNotReady;
    while (!dpr_mailbox_wait(box, result_bytes) && error == cudaErrorNotReady) {
        if ((double)dpr_ns_since(start) > 1e9 * seconds)
            return 0;
        error = dpr_home_ask(run->stream);
        if (error == cudaErrorStreamCaptureImplicit)
            error = cudaErrorNotReady;
    }
    return 1;
}

/* Waits for an enqueued run to end, `seconds` long at most unless that is 0. */
static dpr_status finish(const dpr_device *device, const dpr_strategy *strategy, const dpr_run *run,
                         const dpr_mailbox *box, void *host_out, size_t result_bytes, double seconds) {
    if (seconds > 0 && !await(run, box, result_bytes, seconds))
        return dpr_fail_cuda(cudaErrorNotReady, DPR_ERR_CUDA, "%s: the kernels have not ended after %g seconds",
                             strategy->name, seconds);
    const dpr_status status = must_end(device, run) ? synchronise(strategy, run->stream) : DPR_OK;
    return status == DPR_OK ? collect(strategy, run, box, host_out, result_bytes) : status;
}

/* Runs with a mailbox, which it gives back, for the result; or, if `host_out` is NULL, for the word that says that all
 * results are in memory. Called in the home. If launch() returns cudaErrorNotReady, kernels that may write the mailbox
 * are in flight (device.h). */
static dpr_status run_with(dpr_device *device, dpr_mailbox *box, const dpr_strategy *strategy, dpr_run *run,
                           void *host_out, size_t result_bytes, dpr_misfit *misfit, double seconds) {
    dpr_status status = dpr_device_launch(device, strategy, run, misfit);
    const int is_given_up = status == DPR_ERR_CUDA && dpr_last_cuda_error() == cudaErrorNotReady,
              enqueued = status == DPR_OK || is_given_up;
    if (status == DPR_OK)
        status = finish(device, strategy, run, box, host_out, result_bytes, seconds);
    dpr_mailbox_return(device->mail, box, enqueued ? result_bytes : 0);
    run->done = NULL;
    run->tag = 0;
    return status;
}

static dpr_status run_to_host(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                              size_t result_bytes, dpr_misfit *misfit, double seconds) {
    dpr_mailbox *box = dpr_mailbox_take(device->mail, &run->out, &run->tag);
    return box ? run_with(device, box, strategy, run, host_out, result_bytes, misfit, seconds) : mailboxes_lost(device);
}

/* Takes a mailbox for the end of a run of segments, which spares the wait through the driver. NULL if there is none, or
 * if the kernel has to end before the call returns. */
static dpr_mailbox *mailbox_for_end(dpr_device *device, const dpr_strategy *strategy, dpr_run *run) {
    if (!strategy->tells_end || !run->segments || must_end(device, run))
        return NULL;
    return dpr_mailbox_try(device->mail, &run->done, &run->tag);
}

static dpr_status run_and_wait(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                               size_t result_bytes, dpr_misfit *misfit, double seconds) {
    dpr_status status = DPR_OK;
    if (run->stream) {
        status = check_not_captured(device, run->stream);
        run->programmatic = dpr_device_overlaps(device, run->stream);
    } else {
        status = stream_for_blocking(device, &run->stream);
    }
    if (status != DPR_OK)
        return status;
    if (host_out)
        return run_to_host(device, strategy, run, host_out, result_bytes, misfit, seconds);
    dpr_mailbox *box = mailbox_for_end(device, strategy, run);
    if (box)
        return run_with(device, box, strategy, run, NULL, sizeof(uint32_t), misfit, seconds);
    status = dpr_device_launch(device, strategy, run, misfit);
    return status == DPR_OK ? synchronise(strategy, run->stream) : status;
}

/* Called in the home. */
static dpr_status run_apart(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                            size_t result_bytes, double seconds) {
    dpr_misfit misfit = {0, 0};
    const cudaError_t error = own_stream(device, &run->stream);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "making a stream");
    const dpr_status status = run_to_host(device, strategy, run, host_out, result_bytes, &misfit, seconds);
    return misfit.sms == 0 ? status : dpr_fail(status, "%s: the stream has %d SMs", strategy->name, misfit.sms);
}

dpr_status dpr_device_run_within(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                 size_t result_bytes, double seconds) {
    dpr_visit visit;
    if (!device->concurrent_managed)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                        "%s: the host may not touch managed memory of device %d while a kernel runs", strategy->name,
                        device->home.ordinal);
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = run_apart(device, strategy, run, host_out, result_bytes, seconds);
    dpr_home_leave(&visit);
    return status;
}

/* Zeroes the part of a report in pageable memory that no kernel has written. */
static void complete_report(const dpr_run *run) {
    if (!run->launch_report || run->report == run->launch_report)
        return;
    const size_t written = run->report ? dpr_report_bytes(run) : 0;
    memset((char *)run->launch_report + written, 0, run->report_size - written);
}

dpr_status dpr_device_run_limited(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                  size_t result_bytes, dpr_misfit *misfit, double seconds) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = run_and_wait(device, strategy, run, host_out, result_bytes, misfit, seconds);
    dpr_home_leave(&visit);
    if (status == DPR_OK)
        complete_report(run);
    return status;
}

dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes, dpr_misfit *misfit) {
    return dpr_device_run_limited(device, strategy, run, host_out, result_bytes, misfit, 0);
}
