/* Memory for runs whose kernels launch others: to work in, and for their reports. Only in builds with CUDA. */
#ifndef DPR_DP_WORK_MEMORY_H
#define DPR_DP_WORK_MEMORY_H

#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* Of one device. Any number of threads may use it at once. */
typedef struct dpr_work_memory dpr_work_memory;

dpr_work_memory *dpr_work_memory_create(const dpr_home *home); /* NULL: no host memory */

/* If the home is still `there`: gives back device memory, that of graphs too, which must not be launched any more. NULL
 * is allowed. */
void dpr_work_memory_destroy(dpr_work_memory *work, int there);

/* Device memory from the pool that runs have theirs from, in the order of a stream that is not being captured. It is to
 * be given back by cudaFreeAsync(). */
cudaError_t dpr_work_memory_allocate(dpr_work_memory *work, size_t bytes, cudaStream_t stream, void **out);

/* Sets run->work, run->report unless it is set, and run->launches, in the current context, in the order of the run's
 * stream, which is being captured to `graph` unless that is NULL. What a run uses is kept for others; a captured run's
 * memory belongs to its graph until that and all of its instances are destroyed. */
cudaError_t dpr_work_memory_begin(dpr_work_memory *work, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph);

/* After the run's launches, if `launched` with its report for the caller. */
cudaError_t dpr_work_memory_end(dpr_run *run, int launched, cudaGraph_t graph);

#endif
