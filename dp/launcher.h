/* What a launcher needs from its device. launcher_cuda.c implements it, or launcher_none.c in a build without CUDA. */
#ifndef DPR_DP_LAUNCHER_H
#define DPR_DP_LAUNCHER_H

#include "dpr.h"

/* For a GPU context, sets *table to the launch table in device memory (launch_table.cuh) and *pending to the number of
 * places of the device's launch pool. Returns DPR_ERR_STRATEGY_UNABLE if kernels cannot launch kernels there. */
dpr_status dpr_find_launch_table(dpr_ctx *ctx, void **table, size_t *pending);

/* Copies a launcher's account from device memory to *out and zeroes it there, after the work in the legacy default
 * stream. Both are done on return. */
dpr_status dpr_launcher_collect(dpr_launch_report *account, dpr_launch_report *out);

/* Frees a launcher's memory, after the work that uses it. */
void dpr_launcher_free(void *memory);

#endif
