/* Measures what a graph takes that launches itself again.
 *
 * Such a graph must not be in flight while kernels launch kernels (apart.h), also if it could not run in time, because
 * others keep the device busy. So it gets a deadline on the device's clock, which the host reads before: a graph that
 * comes to its turn later does not launch itself, and the host lets nested launches begin only after the deadline. */
#define _POSIX_C_SOURCE 199309L /* nanosleep() */
#include "relaunch.h"

#include <time.h>

#include "apart.h"
#include "clock.h"
#include "cuda/device.h"
#include "cuda/home.h"
#include "cuda/module.h"
#include "error.h"
#include "graphs.h"
#include "nested_host.h"

/* On an H100 a round takes about 5 us. The first run may also load what the graph needs. */
enum { ROUNDS = 32, RUNS = 2, THREADS = 32 };

static const char tell[] = "dpr_relaunch_tell";

/* One run: `in` of it points to this. */
typedef struct trial {
    dpr_graphs *graphs;
    uint64_t deadline;
    uint32_t rounds; /* 0: the device only tells the time */
    dpr_kept_graph *graph;
} trial;

/* ---- Launches ---- */

static cudaError_t take_graph(const dpr_run *run, trial *t, dpr_relaunch_args *args) {
    void *params[] = {args};
    CUDA_KERNEL_NODE_PARAMS kernels[] = {dpr_kernel_node(NULL, (unsigned)run->sms, THREADS, 0, params),
                                         dpr_kernel_node(NULL, 1, 1, 0, params)};
    cudaError_t error = dpr_module_function(&dpr_dp_module, "dpr_relaunch_round", &kernels[0].func);
    if (error == cudaSuccess)
        error = dpr_module_function(&dpr_dp_module, "dpr_relaunch_again", &kernels[1].func);
    return error == cudaSuccess ? dpr_graphs_take(t->graphs, kernels, &t->graph) : error;
}

static cudaError_t launch_graph(const dpr_run *run, trial *t, dpr_relaunch_args *args) {
    cudaError_t error = take_graph(run, t, args);
    if (error == cudaSuccess)
        error = cudaGraphUpload(t->graph->executable, run->stream);
    return error == cudaSuccess ? cudaGraphLaunch(t->graph->executable, run->stream) : error;
}

static int launch(const dpr_run *run) {
    trial *t = (trial *)run->in;
    const dpr_launch last = {.entry = tell, .module = &dpr_dp_module, .blocks = 1, .threads = THREADS};
    dpr_relaunch_args args = {.run = {.out = run->out, .tag = run->tag, .scratch = run->scratch},
                              .deadline = t->deadline,
                              .rounds = t->rounds};
    const cudaError_t error = t->rounds > 0 ? launch_graph(run, t, &args) : cudaSuccess;
    return error == cudaSuccess ? run->enqueue(run, &last, &args.run) : (int)error;
}

static const dpr_strategy strategy = {
    .name = "costs of graphs",
    .text = "a graph launches itself again",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .launch = launch,
};

/* ---- Runs ---- */

static dpr_status run_trial(dpr_device *gpu, trial *t, double patience, dpr_relaunch_times *times) {
    dpr_run run = {.in = t, .sms = dpr_device_residence(gpu).sms};
    return dpr_device_run_within(gpu, &strategy, &run, times, sizeof *times, patience);
}

/* Gives the graph back. One that may be in flight is destroyed with the device. */
static void put_away(const dpr_device *gpu, const trial *t, int is_done) {
    dpr_visit visit;
    if (!is_done || dpr_home_enter_relaxed(dpr_device_home_of(gpu), &visit) != DPR_OK) {
        dpr_graphs_abandon(t->graphs, t->graph);
        return;
    }
    (void)dpr_graphs_give_back(t->graphs, t->graph, 1);
    dpr_home_leave(&visit);
}

static void sleep_until(double then) {
    const struct timespec nap = {.tv_nsec = 1000 * 1000};
    while (dpr_recursion_now() < then)
        (void)nanosleep(&nap, NULL);
}

/* Returns after the deadline if the graph may be in flight. */
static dpr_status time_rounds(dpr_device *gpu, double patience, double *seconds) {
    trial t = {.graphs = dpr_dp_graphs(gpu)};
    dpr_relaunch_times times = {0};
    dpr_status status = run_trial(gpu, &t, patience, &times);
    const double began = dpr_recursion_now();
    if (status != DPR_OK)
        return status;
    t.deadline = ((uint64_t)times.now_high << 32 | times.now_low) + (uint64_t)(1e9 * patience / 2);
    t.rounds = ROUNDS;
    status = run_trial(gpu, &t, patience, &times);
    if (t.graph && status != DPR_OK)
        sleep_until(began + patience);
    if (t.graph)
        put_away(gpu, &t, status == DPR_OK);
    *seconds = 1e-9 * times.rounds_ns / ROUNDS;
    return status;
}

/* The shortest run counts, of those whose graph came to its turn before its deadline. */
static dpr_status measure(dpr_device *gpu, double patience, double *seconds) {
    double of_run = 0;
    dpr_status status = DPR_OK;
    for (int i = 0; i < RUNS && status == DPR_OK; i++) {
        status = time_rounds(gpu, patience, &of_run);
        if (status == DPR_OK && of_run > 0 && (*seconds == 0 || of_run < *seconds))
            *seconds = of_run;
    }
    return status;
}

/* A graph that launches itself needs as much stack as launched kernels. */
static dpr_status check_stack(const dpr_device *gpu) {
    dpr_visit visit;
    int has_stack = 0;
    const dpr_status status = dpr_home_enter_relaxed(dpr_device_home_of(gpu), &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_module_has_stack(&dpr_dp_module, &has_stack);
    dpr_home_leave(&visit);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "asking for the stack of threads");
    return has_stack ? DPR_OK
                     : dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                                "a graph cannot launch itself: cudaLimitStackSize is lower than when the code for "
                                "nested launches was loaded");
}

dpr_status dpr_relaunch_measure(dpr_device *gpu, double patience, double *seconds) {
    dpr_residence at = dpr_device_residence(gpu);
    const dpr_kernel kernel = {.entry = tell, .threads = THREADS, .module = &dpr_dp_module};
    dpr_residency unused;
    *seconds = 0;
    dpr_status status = dpr_device_resident(&at, &kernel, &unused);
    if (status == DPR_OK)
        status = check_stack(gpu);
    if (status != DPR_OK || dpr_apart_begin(DPR_APART_GRAPH, patience) != DPR_APART_BEGUN)
        return status;
    status = measure(gpu, patience, seconds);
    dpr_apart_end(DPR_APART_GRAPH);
    return status;
}
