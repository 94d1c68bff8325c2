/* What every reduction kernel takes, by value. */
#ifndef DPR_CORE_ARGS_H
#define DPR_CORE_ARGS_H

#include "strategy.h"

typedef struct dpr_kernel_args {
    const void *in;
    void *out;
    uint64_t count;
    void *scratch; /* DPR_SCRATCH_BYTES, or NULL for kernels that need none */
    dpr_init init;
} dpr_kernel_args;

#endif
