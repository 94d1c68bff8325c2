/* What every reduction kernel takes, by value. */
#ifndef DPR_CORE_ARGS_H
#define DPR_CORE_ARGS_H

#include "strategy.h"

/* How a kernel may read its input. */
enum {
    DPR_READ_STREAMING = 1, /* larger than L2 holds: lines need not stay there */
    DPR_READ_AHEAD = 2,     /* device memory: lines may be brought to L2 while the work before is still running */
    DPR_READ_ENDS = 4       /* there are elements before the first whole vector of 16 bytes or after the last */
};

typedef struct dpr_kernel_args {
    const void *in;
    void *out;
    uint64_t count;
    uint64_t vectors;             /* whole ones, of 16 bytes on a 16-byte boundary, among the `count` elements */
    const uint64_t *device_count; /* as in dpr_run */
    void *scratch;                /* DPR_SCRATCH_BYTES of zeros, or NULL for kernels that need none */
    uint32_t head;                /* elements before the first whole vector */
    uint32_t reading;             /* DPR_READ_* */
    uint32_t tag;                 /* as in dpr_run */
    uint32_t partials;            /* of a second pass: how many it folds */
    dpr_init init;
} dpr_kernel_args;

#endif
