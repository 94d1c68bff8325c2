/* Device memory for runs whose kernels launch others: workspace and reports. Only in builds with CUDA. */
#ifndef DPR_DP_WORKSPACES_H
#define DPR_DP_WORKSPACES_H

#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* The workspace of one device. Any number of threads may use it at once. */
typedef struct dpr_workspaces dpr_workspaces;

dpr_workspaces *dpr_workspaces_create(const dpr_home *home); /* NULL: no host memory */

/* Frees host memory and, if the home is still `there`, device memory, including that of graphs, which must not be
 * launched any more. `work` may be NULL. */
void dpr_workspaces_destroy(dpr_workspaces *work, int there);

/* Allocates device memory from the pool of workspace, in the order of `stream`, which must not be being captured. The
 * caller frees it by cudaFreeAsync(). */
cudaError_t dpr_workspaces_allocate(dpr_workspaces *work, size_t bytes, cudaStream_t stream, void **out);

/* Sets run->workspace, run->launches and, if it is NULL, run->report. The home is the current CUDA context. Memory is
 * allocated in the order of the run's stream, which is being captured to `graph` unless that is NULL. The pool keeps
 * the memory of a run for others; that of a captured run belongs to the graph until it and all of its instances are
 * destroyed. */
cudaError_t dpr_workspaces_begin(dpr_workspaces *work, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph);

/* Called after the run's launches: frees its memory and, if `launched`, copies its report to the caller. */
cudaError_t dpr_workspaces_end(dpr_run *run, int launched, cudaGraph_t graph);

#endif
