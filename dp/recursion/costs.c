/* What operations take on the GPU at hand, and what follows from it. */
#include "costs.h"

#include <math.h>
#include <pthread.h>

#include "apart.h"
#include "api/ctx.h"
#include "clock.h"
#include "log.h"
#include "nested_host.h"
#include "probe.h"
#include "relaunch.h"

extern const dpr_strategy dpr_recursion_probe;

/* Costs that are assumed, and to which measured ones are compared. flat.block takes an H200 8.5 to 8.9 us for 1 to 4096
 * numbers (tests/results/h200-peers.json, sums of i32). Meeting and queue were measured on an H100, launches by kernels
 * on an H200. */
static const dpr_costs assumed = {
    .launch = 8.6e-6, .meeting = 1.55e-6, .queue = 68e-12, .nested = 10.6e-6, .relaunch = 4.6e-6};

/* A measured cost outside these limits is not the device's own: other work disturbed it. */
static const dpr_costs least = {.launch = 0.1e-6,
                                .meeting = 0.1e-6,
                                .queue = 0.5e-12,
                                .nested = 0.1e-6,
                                .relaunch = 0.1e-6},
                       most = {.launch = 1e-3, .meeting = 100e-6, .queue = 100e-9, .nested = 1e-3, .relaunch = 100e-6};

/* ---- Measuring ---- */

/* A run waits for so many seconds for a device that is busy, and is then the last: others may be waiting there for the
 * caller. */
static const double patience = 0.05;

static dpr_status run_probe(dpr_device *gpu, const dpr_probe *probe, dpr_probe_times *times) {
    dpr_run run = {.in = probe, .sms = dpr_device_residence(gpu).sms};
    return dpr_device_run_within(gpu, &dpr_recursion_probe, &run, times, sizeof *times, patience);
}

/* The shortest of several runs counts. */
static dpr_status measure_launch(dpr_device *gpu, dpr_costs *out) {
    enum { RUNS = 6 };
    static const dpr_probe nothing = {.blocks = 1, .threads = 32};
    dpr_status status = DPR_OK;
    dpr_probe_times unused;
    out->launch = HUGE_VAL;
    for (int i = 0; i < RUNS && status == DPR_OK; i++) {
        const double began = dpr_recursion_now();
        status = run_probe(gpu, &nothing, &unused);
        out->launch = fmin(out->launch, dpr_recursion_now() - began);
    }
    return status;
}

/* These rounds take an H100 less than 0.1 ms. */
static dpr_status measure_grid(dpr_device *gpu, dpr_costs *out) {
    enum { ROUNDS = 8 };
    const dpr_probe grid = {
        .blocks = (unsigned)dpr_device_residence(gpu).sms, .threads = DPR_MOST_LANES, .rounds = ROUNDS};
    dpr_probe_times times = {0};
    const dpr_status status = run_probe(gpu, &grid, &times);
    out->meeting = 1e-9 * times.meetings_ns / ROUNDS;
    out->queue = (1e-9 * times.operations_ns / ROUNDS - out->meeting) / ((double)grid.blocks * grid.threads);
    return status;
}

static int is_between(const dpr_costs *low, const dpr_costs *costs, const dpr_costs *high) {
    return low->launch <= costs->launch && costs->launch <= high->launch && low->meeting <= costs->meeting
           && costs->meeting <= high->meeting && low->queue <= costs->queue && costs->queue <= high->queue;
}

static void log_costs(int device, dpr_status status, const dpr_costs *found, int is_plausible) {
    dpr_log_line line;
    dpr_log_begin(&line, DPR_LOG_RECURSION);
    dpr_log_add(&line, "device %d: ", device);
    if (status != DPR_OK)
        dpr_log_add(&line, "costs are assumed, because they could not be measured: %s", dpr_last_error());
    else
        dpr_log_add(&line, "a launch takes %.2f us, a meeting of the grid %.2f us, a queue operation %.4f ns%s",
                    1e6 * found->launch, 1e6 * found->meeting, 1e9 * found->queue,
                    is_plausible ? "" : ", which is implausible, so that costs are assumed");
    dpr_log_end(&line);
}

/* A measurement that fails is not the call's error. */
static void measure(dpr_device *gpu, int device, dpr_costs *out) {
    dpr_costs found;
    dpr_kept_error before;
    dpr_error_keep(&before);
    dpr_status status = measure_launch(gpu, &found);
    if (status == DPR_OK)
        status = measure_grid(gpu, &found);
    const int is_plausible = status == DPR_OK && is_between(&least, &found, &most);
    if (is_plausible)
        *out = found;
    if (DPR_LOGS(RECURSION))
        log_costs(device, status, &found, is_plausible);
    dpr_error_put_back(&before);
}

/* One thread of the process measures at a time, because others would disturb it. */
void dpr_costs_measure(const dpr_recursion_call *call) {
    static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;
    dpr_device *gpu = dpr_ctx_gpu(call->ctx);
    dpr_costs_kept *kept = dpr_dp_costs(gpu);
    if (atomic_load(&kept->is_done))
        return;
    (void)pthread_mutex_lock(&measuring);
    if (!atomic_load(&kept->is_done))
        measure(gpu, dpr_ctx_device(call->ctx), &kept->measured);
    atomic_store(&kept->is_done, 1);
    (void)pthread_mutex_unlock(&measuring);
}

/* ---- Measuring launches by kernels ---- */

static void log_nested(int device, const char *what, dpr_status status, double found, double taken) {
    dpr_log_line line;
    dpr_log_begin(&line, DPR_LOG_RECURSION);
    dpr_log_add(&line, "device %d: %s takes %.2f us", device, what, 1e6 * taken);
    if (status != DPR_OK)
        dpr_log_add(&line, ", which is assumed, because it could not be measured: %s", dpr_last_error());
    else if (found != taken)
        dpr_log_add(&line, ", which is assumed, because %s",
                    found > 0 ? "what was measured is implausible" : "it could not be measured");
    dpr_log_end(&line);
}

/* Returns what was found if that is plausible, otherwise 0. */
static double choose_nested(const dpr_recursion_call *call, const char *what, dpr_status status, double found,
                            double at_least, double at_most, double otherwise) {
    const int is_plausible = status == DPR_OK && at_least <= found && found <= at_most;
    if (DPR_LOGS(RECURSION))
        log_nested(dpr_ctx_device(call->ctx), what, status, found, is_plausible ? found : otherwise);
    return is_plausible ? found : 0;
}

static double measure_relaunch(const dpr_recursion_call *call) {
    double found = 0;
    const dpr_status status = dpr_relaunch_measure(dpr_ctx_gpu(call->ctx), patience, &found);
    return choose_nested(call, "a round of a graph that launches itself", status, found, least.relaunch, most.relaunch,
                         assumed.relaunch);
}

/* What is measured for strategies with nested launches (calibration.c). */
static double measure_level(const dpr_recursion_call *call) {
    dpr_residence at = dpr_device_residence(dpr_ctx_gpu(call->ctx));
    dpr_gpu_caps gpu = dpr_ctx_machine(call->ctx)->caps.gpu;
    const dpr_status status = dpr_device_nested(&at, 1, &gpu);
    return choose_nested(call, "a level of nested launches", status,
                         gpu.nested_times_measured ? dpr_tail_seconds(&gpu) : 0, least.nested, most.nested,
                         assumed.nested);
}

/* Graphs come first: if nested launches are still pending when their measurement ends, graphs no longer launch
 * themselves. */
static void measure_nested(const dpr_recursion_call *call, dpr_costs *out) {
    dpr_kept_error before;
    dpr_error_keep(&before);
    if (!dpr_nested_refusal(&dpr_ctx_machine(call->ctx)->caps.gpu)) {
        out->relaunch = measure_relaunch(call);
        out->nested = measure_level(call);
    }
    dpr_error_put_back(&before);
}

/* This has a lock of its own, because it takes long, and calls that do not allow nested launches must not wait. */
void dpr_costs_measure_nested(const dpr_recursion_call *call) {
    static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;
    dpr_costs_kept *kept = dpr_dp_costs(dpr_ctx_gpu(call->ctx));
    if (atomic_load(&kept->is_nested_done))
        return;
    (void)pthread_mutex_lock(&measuring);
    if (!atomic_load(&kept->is_nested_done) && dpr_apart_is_quiet()) {
        measure_nested(call, &kept->measured_nested);
        atomic_store(&kept->is_nested_done, 1);
    }
    (void)pthread_mutex_unlock(&measuring);
}

/* ---- Predictions ---- */

/* Launches by kernels are measured apart from the others, and each by itself. */
static void add_nested(const dpr_costs_kept *kept, dpr_costs *costs) {
    const dpr_costs *found = &kept->measured_nested;
    const int is_done = atomic_load(&kept->is_nested_done);
    costs->nested = is_done && found->nested > 0 ? found->nested : assumed.nested;
    costs->relaunch = is_done && found->relaunch > 0 ? found->relaunch : assumed.relaunch;
}

dpr_costs dpr_costs_here(const dpr_recursion_call *call) {
    const dpr_costs_kept *kept = dpr_dp_costs(dpr_ctx_gpu(call->ctx));
    const double launch = dpr_ctx_machine(call->ctx)->launch_seconds;
    dpr_costs costs = assumed;
    if (launch > 0)
        costs.launch = launch;
    if (atomic_load(&kept->is_done) && kept->measured.launch > 0)
        costs = kept->measured;
    add_nested(kept, &costs);
    return costs;
}

double dpr_costs_scale(const dpr_recursion_call *call, double on_h200) {
    return on_h200 * (dpr_costs_here(call).launch / assumed.launch);
}

/* A level has at least one step, which a lane that is alone takes an H100 0.32 us for. A GPU with a higher clock may be
 * somewhat faster. */
double dpr_costs_levels(const dpr_recursion_call *call, uint64_t tasks) {
    return 0.25e-6 * dpr_engine_levels(call, tasks);
}

/* The grid's first warp solves up to 64 tasks alone. For more, the grid of an H100 takes about 0.6 ms (fib(30)) to 3.4
 * ms (fib(40)): a time for meetings, and one for each task. In a narrow tree a level takes it 3.3 us: from 117 levels
 * on, that is more than these meetings. fib's tasks and results are small enough for all lanes that an SM may have. */
double dpr_costs_persistent(const dpr_costs *costs, uint64_t tasks, double levels, unsigned lanes) {
    enum { FEW = 64 };
    const double launch = 15e-6 * costs->launch / assumed.launch,
                 meetings = fmax(385e-6, 3.3e-6 * levels) * costs->meeting / assumed.meeting,
                 task = 10e-12 * costs->queue / assumed.queue * DPR_MOST_LANES / lanes;
    return tasks <= FEW ? launch : launch + meetings + task * (double)tasks;
}
