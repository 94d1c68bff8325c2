/* Working in a CUDA context. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_HOME_H
#define DPR_HOST_CUDA_HOME_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device.h"

/* What dpr_home_leave() restores. */
typedef struct dpr_visit {
    int pushed; /* whether a context was pushed */
    int cancel; /* what dpr_cancel_hold() returned */
    int mode;   /* what dpr_capture_relax() returned */
} dpr_visit;

/* Makes the home's context the calling thread's current one until dpr_home_leave(), and holds back requests to cancel
 * the thread, which could otherwise end it inside CUDA. The thread's own contexts stay as they are: the home's is
 * pushed on top of them. DPR_ERR_CUDA with a sentence if the context is gone. */
dpr_status dpr_home_enter(const dpr_home *home, dpr_visit *visit);

/* Like dpr_home_enter(), for calls that CUDA forbids while any thread captures a stream in the global mode, and that
 * would spoil the capture: allocations, waits, and others. After this they are allowed, because they do not touch that
 * stream. cudaDeviceSynchronize() stays forbidden. */
dpr_status dpr_home_enter_relaxed(const dpr_home *home, dpr_visit *visit);

void dpr_home_leave(const dpr_visit *visit);

/* Whether the home's context is gone. Another error of CUDA's does not mean that it is. */
int dpr_home_is_gone(const dpr_home *home);

/* ---- On the current context, which is the home's ---- */

/* Sets home->regular, and *sms to the number of SMs on which the work of streams created in the home runs. */
cudaError_t dpr_home_examine(dpr_home *home, int *sms);

/* Number of SMs on which the work of `stream` runs: all of the device's, unless the stream belongs to a green context.
 * cudaErrorInvalidResourceHandle if the stream does not belong to the home, which has been examined. */
cudaError_t dpr_home_stream_sms(const dpr_home *home, cudaStream_t stream, int *out);

/* Finds the stream's number, which no other stream ever has, and the graph to which the stream is being captured, or
 * NULL. */
cudaError_t dpr_home_identify(cudaStream_t stream, unsigned long long *id, cudaGraph_t *graph);

/* Whether the legacy default stream may be used. It may not while a blocking stream is captured: that stream would have
 * to wait for it, so using it spoils the capture. */
int dpr_home_has_legacy(void);

/* Asks whether the stream's work is done, and leaves no error of the runtime's behind. cudaErrorStreamCaptureImplicit:
 * it is the legacy default stream, which nobody may ask now. */
cudaError_t dpr_home_ask(cudaStream_t stream);

/* Waits for all work of the context, even while cudaDeviceSynchronize() is forbidden. */
cudaError_t dpr_home_wait(void);

/* Waits for the work that the legacy default stream waits for; while that stream may not be used, for all work. */
cudaError_t dpr_home_wait_for_legacy(void);

/* Creates a stream for a piece of work apart from all others. dpr_home_end_apart() waits for that work and destroys the
 * stream. It returns `error` if that is not cudaSuccess, otherwise the error of the wait. */
cudaError_t dpr_home_begin_apart(cudaStream_t *out);
cudaError_t dpr_home_end_apart(cudaStream_t stream, cudaError_t error);

/* Copies between any two kinds of memory in such a stream. The copy is done on return. */
cudaError_t dpr_home_copy_apart(void *to, const void *from, size_t bytes);

/* Returns the status for an error of CUDA's, and keeps a sentence for dpr_last_error() that begins with `what`. */
dpr_status dpr_cuda_failed(cudaError_t error, const char *what);

#endif
