/* The device's pool of pending launches: how many launches from kernels may wait at a time. It is a limit of the CUDA
 * context (cudaLimitDevRuntimePendingLaunchCount), which contexts of the library's share. Only in builds with CUDA. */
#ifndef DPR_DP_PENDING_H
#define DPR_DP_PENDING_H

#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* How many may be pending in the current context. */
cudaError_t dpr_pending_count(size_t *out);

/* Sets how many may be pending in `home`, which is the current context, until dpr_pending_put_back(). DPR_OK once for
 * each context of the library's. DPR_ERR_INVALID_OPTION if another one has set another number, or if the device does
 * not take it. */
dpr_status dpr_pending_allow(const dpr_home *home, size_t pending);

/* After each dpr_pending_allow() that went well: the last one puts back the limit that the first one found, if the home
 * is still `there`. */
void dpr_pending_put_back(const dpr_home *home, int there);

#endif
