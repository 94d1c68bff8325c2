/* What a nest needs of its device: nest_cuda.c, or nest_none.c in a build without CUDA. */
#ifndef DPR_HOST_NEST_H
#define DPR_HOST_NEST_H

#include "dpr.h"

/* On a GPU context: the launcher, in device memory (launcher.cuh), and how many launches may be pending on the device
 * for one more to be made. DPR_ERR_STRATEGY_UNABLE where kernels cannot launch kernels. */
dpr_status dpr_nest_launcher(dpr_ctx *ctx, void **launcher, uint32_t *credits);

/* Copies an account from the memory of device `ordinal` and makes it zero there, after what is in the legacy default
 * stream; done on return. */
dpr_status dpr_nest_collect(int ordinal, dpr_nested *account, dpr_nested *out);

/* Waits for all work of the device, and frees the memory. */
void dpr_nest_free(int ordinal, void *memory);

#endif
