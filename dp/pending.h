/* The size of the device's launch pool: how many launches from kernels may be pending at a time. It is a limit of the
 * CUDA context (cudaLimitDevRuntimePendingLaunchCount), which all of the library's contexts there share. Only in builds
 * with CUDA. */
#ifndef DPR_DP_PENDING_H
#define DPR_DP_PENDING_H

#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* Sets *out to how many launches may be pending in the current CUDA context. */
cudaError_t dpr_pending_count(size_t *out);

/* Sets how many launches may be pending in `home`, which is the current CUDA context, until dpr_pending_put_back().
 * Each of the library's contexts calls it at most once. Returns DPR_ERR_INVALID_OPTION if another one has set another
 * number, or if the device does not accept it. */
dpr_status dpr_pending_allow(const dpr_home *home, size_t pending);

/* Called once after each successful dpr_pending_allow(). The last call restores the limit that the first
 * dpr_pending_allow() found, if the CUDA context is still `there`. */
void dpr_pending_put_back(const dpr_home *home, int there);

#endif
