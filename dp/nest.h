/* What a nest needs of its device: nest_cuda.c, or nest_none.c in a build without CUDA. */
#ifndef DPR_DP_NEST_H
#define DPR_DP_NEST_H

#include "dpr.h"

/* On a GPU context: the launcher, in device memory (launcher.cuh), and how many places the device's pool of pending
 * launches has. DPR_ERR_STRATEGY_UNABLE where kernels cannot launch kernels. */
dpr_status dpr_nest_launcher(dpr_ctx *ctx, void **launcher, size_t *pending);

/* Copies a nest's account from device memory and makes it zero there, after what is in the legacy default stream; done
 * on return. */
dpr_status dpr_nest_collect(dpr_nested *account, dpr_nested *out);

/* Gives a nest's memory back, after the work that uses it. */
void dpr_nest_free(void *memory);

#endif
