/* What every reduction kernel takes, by value, and its launch. */
#ifndef DPR_CORE_ARGS_H
#define DPR_CORE_ARGS_H

#include "strategy.h"

/* How a kernel may read its input. */
enum {
    DPR_READ_STREAMING = 1, /* larger than L2 holds: lines need not stay there */
    DPR_READ_ENDS = 2,      /* there are elements before the first whole vector of 16 bytes or after the last */
    DPR_READ_RUNS = 4       /* each block reads tiles that lie side by side; else blocks take turns */
};

struct dpr_kernel_args {
    const void *in;
    void *out;
    uint64_t count;
    uint64_t vectors;             /* whole ones, of 16 bytes on a 16-byte boundary, among the `count` elements */
    uint64_t rounds;              /* vectors that every thread of the grid has at least */
    uint64_t reciprocal;          /* (2^64 - 1) / the grid's threads */
    const uint64_t *device_count; /* as in dpr_run */
    void *scratch;                /* DPR_SCRATCH_BYTES of zeros, or NULL for kernels that need none */
    uint32_t head;                /* elements before the first whole vector */
    uint32_t reading;             /* DPR_READ_* */
    uint32_t ahead;               /* vectors that a thread may bring to L2 while the work before is still running */
    uint32_t tag;                 /* as in dpr_run */
    uint32_t partials;            /* of a second pass: how many it folds */
    dpr_init init;
    uint32_t meeting; /* how partial results meet, where a kernel has several ways (meetings.h) */
};

/* What a launch consists of, beside the kernel's arguments. */
struct dpr_launch {
    const void *entry;        /* as in dpr_kernel */
    const dpr_module *module; /* the same */
    unsigned blocks, threads;
    int shared_bytes;  /* dynamic, a block */
    unsigned cluster;  /* blocks a cluster; 0: no clusters */
    int cooperative;   /* 1: the grid synchronises */
    unsigned partials; /* as in dpr_kernel_args */
    uint32_t meeting;  /* the same */
};

#endif
