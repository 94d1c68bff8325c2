/* The workspaces of runs on one device. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_WORKSPACES_H
#define DPR_HOST_CUDA_WORKSPACES_H

#include <cuda_runtime_api.h>

#include "device.h"

/* The pool that a device's workspaces come from. Any number of threads may use it at once. */
typedef struct dpr_workspaces dpr_workspaces;

dpr_workspaces *dpr_workspaces_create(const dpr_home *home); /* NULL: no host memory */

/* Frees host memory and, if the home is still `there`, device memory, including that of graphs, which must not be
 * launched any more. `work` may be NULL. */
void dpr_workspaces_destroy(dpr_workspaces *work, int there);

/* Allocates device memory from the pool of workspace, in the order of `stream`, which must not be being captured. The
 * caller frees it by cudaFreeAsync(). */
cudaError_t dpr_workspaces_allocate(dpr_workspaces *work, size_t bytes, cudaStream_t stream, void **out);

/* Allocates the workspace of a run, `bytes` bytes (at least 1), in the order of its stream, which is being captured to
 * `graph` unless that is NULL. The home is the current CUDA context. The memory of a captured run belongs to the graph
 * until it and all of its instances are destroyed. */
cudaError_t dpr_workspaces_take(dpr_workspaces *work, size_t bytes, cudaStream_t stream, cudaGraph_t graph, void **out);

/* Called after the run's launches, or those of them that succeeded: the pool keeps the memory for others, except that
 * of a captured run. */
void dpr_workspaces_give_back(void *memory, cudaStream_t stream, cudaGraph_t graph);

#endif
