/* What strategies with nested launches need from every device (host/cuda/hook.h). */
#include "cuda/hook.h"

#include <stdlib.h>

#include "calibration.h"
#include "cuda/module.h"
#include "graphs.h"
#include "nested_host.h"
#include "pending.h"
#include "recursion/costs.h"
#include "recursion/loop.h"

extern const dpr_strategy dpr_recursion_probe;

/* The state for one device. */
typedef struct state {
    dpr_home home;
    int allowed;     /* 1 if the limit of pending launches was set for this device */
    int64_t pending; /* most pending launches from kernels */
    dpr_calibration *calibration;
    dpr_graphs *graphs;
    dpr_costs_kept costs;
} state;

static void assume(dpr_gpu_caps *gpu) {
    dpr_nested_assume(gpu, DPR_FIRST_PENDING);
}

static void close_state(void *of, int there) {
    state *s = of;
    if (!s)
        return;
    if (s->allowed)
        dpr_pending_put_back(&s->home, there);
    dpr_calibration_destroy(s->calibration, there);
    dpr_graphs_destroy(s->graphs, there);
    free(s);
}

/* Loads a kernel, because CUDA waits for all work on the device where it loads one later. A call that cannot do without
 * the kernel finds the error itself. */
static void load(const void *entry) {
    cudaFunction_t unused;
    if (cudaGetFuncBySymbol(&unused, entry) != cudaSuccess)
        (void)cudaGetLastError();
}

static int open_state(const dpr_home *home, void **out) {
    size_t pending = 0;
    const cudaError_t error = dpr_pending_count(&pending);
    if (error != cudaSuccess)
        return (int)error;
    state *s = calloc(1, sizeof *s);
    if (!s)
        return cudaErrorMemoryAllocation;
    s->home = *home;
    s->pending = (int64_t)pending;
    s->calibration = dpr_calibration_create();
    s->graphs = dpr_graphs_create();
    *out = s;
    load(dpr_recursion_probe.kernel(NULL).entry); /* without it, costs of recursions are assumed */
    load(dpr_loop_condition());
    return s->calibration && s->graphs ? cudaSuccess : cudaErrorMemoryAllocation;
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

static dpr_status measure(void *of, dpr_device *device, dpr_workspaces *work, const dpr_gpu_caps *gpu) {
    state *s = of;
    if (dpr_nested_refusal(gpu) || !gpu->memory_pools)
        return DPR_OK;
    return dpr_calibrate(s->calibration, device, work, gpu);
}

static void read_measured(const void *of, dpr_gpu_caps *gpu) {
    const state *s = of;
    dpr_calibration_read(s->calibration, gpu);
}

dpr_graphs *dpr_dp_graphs(const dpr_device *device) {
    const state *s = dpr_device_hooked(device);
    return s->graphs;
}

dpr_costs_kept *dpr_dp_costs(const dpr_device *device) {
    state *s = dpr_device_hooked(device);
    return &s->costs;
}

/* Asks for the pool's size and the stack in each run, because anybody may change them. With less stack than at loading,
 * kernels launch nothing. */
static int begin(dpr_run *run) {
    size_t pending = 0;
    int has_stack = 0;
    cudaError_t error = dpr_pending_count(&pending);
    if (error == cudaSuccess)
        error = dpr_module_has_stack(&dpr_dp_module, &has_stack);
    if (!run->report)
        run->report = run->workspace; /* DPR_REPORT_BYTES at its beginning */
    run->launches = has_stack ? dpr_launches_of(pending, run->max_pending) : 0;
    return (int)error;
}

static int end(dpr_run *run) {
    if (!run->launch_report || run->launch_report == run->report)
        return cudaSuccess;
    return (int)cudaMemcpyAsync(run->launch_report, run->report, dpr_report_bytes(run), cudaMemcpyDefault, run->stream);
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
