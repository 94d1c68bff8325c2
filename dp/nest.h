/* What a nest needs from its device. nest_cuda.c implements it, or nest_none.c in a build without CUDA. */
#ifndef DPR_DP_NEST_H
#define DPR_DP_NEST_H

#include "dpr.h"

/* For a GPU context, sets *launcher to the launcher in device memory (launcher.cuh) and *pending to the number of
 * places of the device's launch pool. Returns DPR_ERR_STRATEGY_UNABLE if kernels cannot launch kernels there. */
dpr_status dpr_nest_launcher(dpr_ctx *ctx, void **launcher, size_t *pending);

/* Copies a nest's account from device memory to *out and zeroes it there, after the work in the legacy default stream.
 * Both are done on return. */
dpr_status dpr_nest_collect(dpr_nested *account, dpr_nested *out);

/* Frees a nest's memory, after the work that uses it. */
void dpr_nest_free(void *memory);

#endif
