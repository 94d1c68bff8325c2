/* What strategies with nested launches need from every device (host/cuda/hook.h). */
#include "cuda/hook.h"

#include <stdlib.h>

#include "calibration.h"
#include "nested_host.h"
#include "pending.h"
#include "workspaces.h"

/* The state for one device. */
typedef struct state {
    dpr_home home;
    int allowed;     /* 1 if the limit of pending launches was set for this device */
    int64_t pending; /* most pending launches from kernels */
    dpr_workspaces *work;
    dpr_calibration *calibration;
} state;

static void assume(dpr_gpu_caps *gpu) {
    dpr_nested_assume(gpu, DPR_FIRST_PENDING);
}

static void close_state(void *of, int there) {
    state *s = of;
    if (!s)
        return;
    dpr_workspaces_destroy(s->work, there);
    if (s->allowed)
        dpr_pending_put_back(&s->home, there);
    dpr_calibration_destroy(s->calibration, there);
    free(s);
}

static int open_state(const dpr_home *home, void **out) {
    size_t pending = 0;
    const cudaError_t error = dpr_pending_count(&pending);
    if (error != cudaSuccess)
        return error;
    state *s = calloc(1, sizeof *s);
    if (!s)
        return cudaErrorMemoryAllocation;
    s->home = *home;
    s->pending = (int64_t)pending;
    s->work = dpr_workspaces_create(home);
    s->calibration = dpr_calibration_create();
    *out = s;
    return s->work && s->calibration ? cudaSuccess : cudaErrorMemoryAllocation;
}

static void limit(const void *of, dpr_gpu_caps *gpu) {
    const state *s = of;
    dpr_nested_assume(gpu, s->pending);
}

static dpr_status allow(void *of, size_t pending) {
    state *s = of;
    const dpr_status status = dpr_pending_allow(&s->home, pending);
    if (status == DPR_OK) {
        s->pending = (int64_t)pending;
        s->allowed = 1;
    }
    return status;
}

static dpr_status measure(void *of, dpr_device *device, const dpr_gpu_caps *gpu) {
    state *s = of;
    return dpr_nested_refusal(gpu) ? DPR_OK : dpr_calibrate(s->calibration, device, s->work, gpu);
}

static void read_measured(const void *of, dpr_gpu_caps *gpu) {
    const state *s = of;
    dpr_calibration_read(s->calibration, gpu);
}

static int begin(void *of, const dpr_strategy *strategy, dpr_run *run, struct CUgraph_st *graph) {
    state *s = of;
    return dpr_workspaces_begin(s->work, strategy, run, graph);
}

static int end(dpr_run *run, int launched, struct CUgraph_st *graph) {
    return dpr_workspaces_end(run, launched, graph);
}

const dpr_hook dpr_dp_hook = {
    .assume = assume,
    .open = open_state,
    .close = close_state,
    .limit = limit,
    .allow = allow,
    .measure = measure,
    .read = read_measured,
    .begin = begin,
    .end = end,
};
