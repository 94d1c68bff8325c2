/* What a graph takes that launches itself again, as that of engine `graph` does for each phase (relaunch.c, and
 * relaunch.cu, which has the kernels). Only in builds with CUDA. */
#ifndef DPR_DP_RELAUNCH_H
#define DPR_DP_RELAUNCH_H

#include "args.h"

struct dpr_device;

/* The arguments of the kernels. */
typedef struct dpr_relaunch_args {
    dpr_kernel_args run; /* only out, tag and scratch are set */
    uint64_t deadline;   /* on the device's clock: from then on the graph does not launch itself */
    uint32_t rounds;     /* how often it launches itself before */
} dpr_relaunch_args;

/* What a run writes to its mailbox, in words of 32 bits. */
typedef struct dpr_relaunch_times {
    uint32_t rounds_ns;         /* of all rounds; 0 if the graph has not launched itself so often */
    uint32_t now_low, now_high; /* the device's clock, in nanoseconds */
} dpr_relaunch_times;

/* Measures how many seconds a graph of two small kernels takes for each launch of itself, in a stream of the device's
 * own (dpr_device_own_stream()). Loads the code for nested launches, waits for runs with nested launches in other
 * threads, and then for the device, each time for about `patience` seconds at most. Sets *seconds to 0 if
 * nothing can be measured, because nested launches may be pending at any time (apart.h), or those runs did not end.
 *
 * After an error the graph may come to its turn later, but does not launch itself then. */
dpr_status dpr_relaunch_measure(struct dpr_device *gpu, double patience, double *seconds);

#endif
