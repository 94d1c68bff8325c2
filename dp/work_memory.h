/* Device memory for runs whose kernels launch others: work memory and reports. Only in builds with CUDA. */
#ifndef DPR_DP_WORK_MEMORY_H
#define DPR_DP_WORK_MEMORY_H

#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* The work memory of one device. Any number of threads may use it at once. */
typedef struct dpr_work_memory dpr_work_memory;

dpr_work_memory *dpr_work_memory_create(const dpr_home *home); /* NULL: no host memory */

/* Frees host memory and, if the home is still `there`, device memory, including that of graphs, which must not be
 * launched any more. `work` may be NULL. */
void dpr_work_memory_destroy(dpr_work_memory *work, int there);

/* Allocates device memory from the pool of work memory, in the order of `stream`, which must not be being captured. The
 * caller frees it by cudaFreeAsync(). */
cudaError_t dpr_work_memory_allocate(dpr_work_memory *work, size_t bytes, cudaStream_t stream, void **out);

/* Sets run->work, run->launches and, if it is NULL, run->report. The home is the current CUDA context. Memory is
 * allocated in the order of the run's stream, which is being captured to `graph` unless that is NULL. The pool keeps
 * the memory of a run for others; that of a captured run belongs to the graph until it and all of its instances are
 * destroyed. */
cudaError_t dpr_work_memory_begin(dpr_work_memory *work, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph);

/* Called after the run's launches: frees its memory and, if `launched`, copies its report to the caller. */
cudaError_t dpr_work_memory_end(dpr_run *run, int launched, cudaGraph_t graph);

#endif
