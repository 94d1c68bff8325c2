/* The parts of an open device, for this room alone. */
#ifndef DPR_HOST_CUDA_OPENED_H
#define DPR_HOST_CUDA_OPENED_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "device.h"
#include "hook.h"
#include "kernels.h"
#include "mailbox.h"
#include "scratch.h"
#include "workspaces.h"

struct dpr_device {
    dpr_home home;
    int sms;                   /* number of SMs on which the home's work runs */
    int code;                  /* compute capability that the kernels were compiled for, times 10: 75, 90 */
    int concurrent_managed;    /* whether the host may touch managed memory while a kernel runs */
    _Atomic(cudaStream_t) own; /* for blocking calls while the legacy default stream may not be used; NULL at first */
    dpr_scratch *scratch;
    dpr_workspaces *work;
    dpr_mail *mail;
    dpr_kernels *kernels;
    const dpr_hook *hook;
    void *hooked; /* the hook's state on this device */
};

/* Enqueues a run in run->stream, with scratch memory and a workspace. Called in the home. Errors and *misfit are those
 * of dpr_device_run(). */
dpr_status dpr_device_launch(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit);

/* Whether kernels in the stream may be launched before the work ahead of them is done. */
int dpr_device_overlaps(const dpr_device *device, dpr_stream stream);

/* Checks that work can be enqueued in the stream: DPR_ERR_CUDA for the legacy default stream while CUDA forbids it.
 * Called in the home. */
dpr_status dpr_device_check_usable(dpr_stream stream);

/* Fails with DPR_ERR_WRONG_DEVICE, and a sentence for a stream that does not belong to the device's home. */
dpr_status dpr_device_wrong_stream(const dpr_device *device, dpr_stream stream);

#endif
