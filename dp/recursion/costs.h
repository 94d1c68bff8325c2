/* What operations take on the GPU at hand, for predictions of engines. Only in builds with CUDA. */
#ifndef DPR_DP_COSTS_H
#define DPR_DP_COSTS_H

#include <stdatomic.h>

#include "cuda/device.h"
#include "engines.h"

/* In seconds. */
typedef struct dpr_costs {
    double launch;  /* of a blocking run of a small kernel, until its result is there */
    double meeting; /* of all blocks of a grid that has a block on each SM */
    double queue;   /* time of the lanes' operations on the queue of tasks, divided by their number; all lanes of such a
                       grid work at once */
    double nested;  /* of a level of nested launches: a tail launch by a kernel, until the launched kernel runs */
    double relaunch; /* of a round of a graph of two kernels that launches itself again */
} dpr_costs;

/* What was measured on one open device. All 0 at first. */
typedef struct dpr_costs_kept {
    atomic_int is_done;        /* 1: the device was measured, or it was tried */
    dpr_costs measured;        /* launch, meeting and queue, all 0 if measuring failed */
    atomic_int is_nested_done; /* the same for launches by kernels */
    dpr_costs measured_nested; /* nested and relaunch, each 0 if measuring it failed */
} dpr_costs_kept;

/* Returns the costs of an open device. The hook keeps them until the device is closed (hook.c). */
dpr_costs_kept *dpr_dp_costs(const dpr_device *device);

/* A dpr_engine's measure(): measures the costs on the context's GPU, once. This takes about 0.4 ms, or about 50
 * ms if others keep the device busy. It works in a stream of the library's own, also while others are captured. If it
 * fails, the costs stay assumed. */
void dpr_costs_measure(const dpr_recursion_call *call);

/* A dpr_engine's measure(), for engines whose kernels launch kernels or graphs: measures what that costs on the
 * context's GPU, once. It loads the code for nested launches, which takes some 0.1 s where no other context has loaded
 * it, and for which CUDA waits for the device's work. Then it takes some ms, or about 0.1 s if others keep the device
 * busy. While runs of such engines are in flight in other threads, it does nothing, and a later call measures. A cost
 * that cannot be measured stays assumed: that of graphs, if nested launches may be pending at any time (apart.h); and
 * if nested launches are still pending when the measurement ends, they are from then on. */
void dpr_costs_measure_nested(const dpr_recursion_call *call);

/* The costs on the context's GPU, as far as they are known: those that were measured; otherwise wisdom's time of a
 * launch (`dpr tune`), and what is assumed. */
dpr_costs dpr_costs_here(const dpr_recursion_call *call);

/* Seconds there of what takes `on_h200` seconds on an H200, above all with launches. */
double dpr_costs_scale(const dpr_recursion_call *call, double on_h200);

/* Seconds that the levels of so many tasks take a GPU at least, one after another. */
double dpr_costs_levels(const dpr_recursion_call *call, uint64_t tasks);

/* About what a first run of engine `persistent` takes for so many tasks of the cheapest kind, in at least so many
 * levels, at these costs, if the tasks' sizes leave an SM room for so many lanes. */
double dpr_costs_persistent(const dpr_costs *costs, uint64_t tasks, double levels, unsigned lanes);

#endif
