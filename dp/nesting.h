/* What runs need whose kernels launch others: memory to work in, and to know how many launches may be pending. Only in
 * builds with CUDA. */
#ifndef DPR_DP_NESTING_H
#define DPR_DP_NESTING_H

#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* Of one device. Any number of threads may use it at once. */
typedef struct dpr_nesting dpr_nesting;

dpr_nesting *dpr_nesting_create(const dpr_home *home); /* NULL: no host memory */

/* If the home is still `there`: gives back device memory, that of graphs too, which must not be launched any more, and
 * the limit that dpr_nesting_allow() found. NULL is allowed. */
void dpr_nesting_destroy(dpr_nesting *nesting, int there);

/* Sets how many launches may be pending in the current context, until dpr_nesting_destroy(). DPR_ERR_INVALID_OPTION if
 * another context of the library's has set another number, or the device does not take it. */
dpr_status dpr_nesting_allow(dpr_nesting *nesting, size_t pending);

/* How many may be pending in the current context. */
cudaError_t dpr_nesting_pending(size_t *out);

/* Device memory from the pool that runs have theirs from, in the order of a stream that is not being captured. It is to
 * be given back by cudaFreeAsync(). */
cudaError_t dpr_nesting_allocate(dpr_nesting *nesting, size_t bytes, cudaStream_t stream, void **out);

/* Sets run->work, run->report unless it is set, and run->launches, in the current context, in the order of the run's
 * stream, which is being captured to `graph` unless that is NULL. What a run uses is kept for others; a captured run's
 * memory belongs to its graph until that and all of its instances are destroyed. Of a strategy without nested launches
 * it is the report alone, if that is set: all zero. */
cudaError_t dpr_nesting_begin(dpr_nesting *nesting, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph);

/* After the run's launches, if `launched` with its report for the caller. */
cudaError_t dpr_nesting_end(dpr_run *run, int launched, cudaGraph_t graph);

#endif
