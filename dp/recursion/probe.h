/* The kernel that measures what engine `persistent` does most: meetings of a grid, and operations on the queue of tasks
 * (probe.cu). The kernel is launched through a dpr_strategy that is not in the registry. */
#ifndef DPR_DP_PROBE_H
#define DPR_DP_PROBE_H

#include "args.h"

/* What to measure: a run's `in` points to it, in host memory. */
typedef struct dpr_probe {
    unsigned blocks, threads; /* of the grid, all of which must fit the device at a time; threads a block */
    unsigned rounds;          /* 0: the kernel does nothing but answer, for the time of a launch */
} dpr_probe;

/* What a run writes to its mailbox. */
typedef struct dpr_probe_times {
    uint32_t meetings_ns;   /* of `rounds` meetings of all blocks */
    uint32_t operations_ns; /* of as many, before each of which every lane makes a node that another lane could take */
} dpr_probe_times;

/* The kernel's arguments. */
typedef struct dpr_probe_args {
    dpr_kernel_args run; /* only out, tag and scratch are set */
    uint32_t rounds;
} dpr_probe_args;

#endif
