/* Runs of strategies in a stream. */
#include "opened.h"

#include "error.h"
#include "home.h"

/* Kernels that were compiled for a compute capability below 9.0 do not wait for the work ahead of them. */
int dpr_device_overlaps(const dpr_device *device, dpr_stream stream) {
    return device->code >= 90 && stream && stream != cudaStreamLegacy;
}

dpr_status dpr_device_wrong_stream(const dpr_device *device, dpr_stream stream) {
    (void)cudaGetLastError();
    return dpr_fail_cuda(cudaErrorInvalidResourceHandle, DPR_ERR_WRONG_DEVICE,
                         "stream is %p, which does not belong to the CUDA context of ctx on device %d", (void *)stream,
                         device->home.ordinal);
}

static dpr_status launch_failed(const dpr_device *device, const dpr_strategy *strategy, const dpr_run *run,
                                cudaError_t error, dpr_misfit *misfit) {
    if (error == cudaErrorInvalidResourceHandle && run->stream)
        return dpr_device_wrong_stream(device, run->stream);
    misfit->too_large = error == cudaErrorCooperativeLaunchTooLarge || error == cudaErrorInvalidClusterSize;
    if (!misfit->too_large)
        return dpr_cuda_failed(error, strategy->name);
    (void)cudaGetLastError();
    return dpr_fail_cuda((int)error, DPR_ERR_STRATEGY_UNABLE,
                         "strategy \"%s\" cannot run in this stream: its %d SMs cannot hold all blocks at once (%s)",
                         strategy->name, run->sms, cudaGetErrorName(error));
}

/* Enqueues zeros for the part of the report that kernels do not write: what is behind its first `written` bytes. It
 * comes before the run's kernels, because these write *out, and nothing may fail after that. */
static cudaError_t clear_report(const dpr_run *run, size_t written) {
    if (!run->report || run->report_size <= written)
        return cudaSuccess;
    return cudaMemsetAsync((char *)run->report + written, 0, run->report_size - written, run->stream);
}

/* run->scratch and run->workspace are set. */
static cudaError_t enqueue_with_memory(const dpr_device *device, const dpr_strategy *strategy, dpr_run *run) {
    const int nested = strategy->role == DPR_ROLE_NESTED;
    cudaError_t error = clear_report(run, nested ? sizeof *run->report : 0);
    if (error == cudaSuccess && nested)
        error = (cudaError_t)device->hook->begin(run);
    if (error == cudaSuccess)
        error = (cudaError_t)strategy->launch(run);
    if (error == cudaSuccess && nested)
        error = (cudaError_t)device->hook->end(run);
    return error;
}

/* run->scratch is set. */
static cudaError_t enqueue(const dpr_device *device, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph) {
    cudaError_t error = cudaSuccess;
    run->enqueue = dpr_kernels_enqueue;
    run->enqueuer = device->kernels;
    run->workspace = NULL;
    const size_t bytes = strategy->workspace_bytes ? strategy->workspace_bytes(run) : 0;
    if (bytes > 0)
        error = dpr_workspaces_take(device->work, bytes, run->stream, graph, &run->workspace);
    if (error != cudaSuccess)
        return error;
    error = enqueue_with_memory(device, strategy, run);
    if (bytes > 0)
        dpr_workspaces_give_back(run->workspace, run->stream, graph);
    return error;
}

/* Pins scratch memory if the strategy needs any, which sets *sms (scratch.h). Finds the graph to which the run is being
 * captured, or NULL, if the strategy needs any memory. */
static cudaError_t prepare(const dpr_device *device, const dpr_strategy *strategy, const dpr_run *run, int *sms,
                           dpr_slot **slot, cudaGraph_t *graph) {
    unsigned long long id;
    if (strategy->scratch_bytes > 0)
        return dpr_scratch_pin(device->scratch, run->stream, sms, slot, graph);
    return strategy->workspace_bytes ? dpr_home_identify(run->stream, &id, graph) : cudaSuccess;
}

dpr_status dpr_device_launch(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit) {
    dpr_slot *slot = NULL;
    cudaGraph_t graph = NULL;
    int sms = run->sms;
    cudaError_t error = prepare(device, strategy, run, &sms, &slot, &graph);
    if (error == cudaErrorInvalidResourceHandle && run->stream)
        return dpr_device_wrong_stream(device, run->stream);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "preparing the memory of a run");
    if (sms != run->sms) {
        misfit->sms = sms;
        return DPR_ERR_STRATEGY_UNABLE;
    }
    run->scratch = slot ? dpr_slot_memory(slot) : NULL;
    error = enqueue(device, strategy, run, graph);
    if (slot && error != cudaSuccess)
        dpr_scratch_clean(slot, run->stream);
    if (slot)
        dpr_scratch_unpin(slot);
    return error == cudaSuccess ? DPR_OK : launch_failed(device, strategy, run, error, misfit);
}

/* Called in the home. */
static cudaError_t lend(dpr_device *device, size_t bytes, dpr_stream stream, dpr_loan *out) {
    unsigned long long id;
    cudaGraph_t graph = NULL;
    void *memory = NULL;
    int sms;
    cudaError_t error = dpr_home_stream_sms(&device->home, stream, &sms);
    if (error == cudaSuccess)
        error = dpr_home_identify(stream, &id, &graph);
    if (error == cudaSuccess)
        error = dpr_workspaces_take(device->work, bytes, stream, graph, &memory);
    if (error == cudaSuccess)
        *out = (dpr_loan){memory, graph};
    return error;
}

/* The legacy default stream may not be used while a stream that waits for it is captured: CUDA would refuse, and spoil
 * that capture. */
dpr_status dpr_device_check_usable(dpr_stream stream) {
    if ((stream && stream != cudaStreamLegacy) || dpr_home_has_legacy())
        return DPR_OK;
    return dpr_fail(DPR_ERR_CUDA,
                    "stream is the legacy default stream, and a stream that waits for it is being captured");
}

dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = dpr_device_check_usable(run->stream);
    run->programmatic = dpr_device_overlaps(device, run->stream);
    if (status == DPR_OK)
        status = dpr_device_launch(device, strategy, run, misfit);
    dpr_home_leave(&visit);
    return status;
}

dpr_status dpr_device_lend(dpr_device *device, size_t bytes, dpr_stream stream, dpr_loan *out) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = dpr_device_check_usable(stream);
    const cudaError_t error = status == DPR_OK ? lend(device, bytes, stream, out) : cudaSuccess;
    if (error == cudaErrorInvalidResourceHandle && stream)
        status = dpr_device_wrong_stream(device, stream);
    else if (error != cudaSuccess)
        status = dpr_cuda_failed(error, "taking device memory for a call");
    dpr_home_leave(&visit);
    return status;
}

void dpr_device_take_back(dpr_device *device, dpr_loan loan, dpr_stream stream) {
    dpr_visit visit;
    if (dpr_home_enter(&device->home, &visit) != DPR_OK)
        return;
    dpr_workspaces_give_back(loan.memory, stream, loan.graph);
    dpr_home_leave(&visit);
}
