/* Graphs that a kernel of theirs launches again, kept from one run to the next: making one takes 26 us, and giving it
 * other parameters 1 us (H200). A run has a graph for itself until it gives it back. Any number of threads may do so at
 * once. */
#ifndef DPR_DP_GRAPHS_H
#define DPR_DP_GRAPHS_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "cuda/device.h"

/* A kernel as a node of a graph, with one-dimensional blocks and grid. `params` must stay until the node is made. */
static inline CUDA_KERNEL_NODE_PARAMS dpr_kernel_node(CUfunction function, unsigned blocks, unsigned threads,
                                                      size_t shared_bytes, void **params) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                     .gridDimX = blocks,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = threads,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .sharedMemBytes = (unsigned)shared_bytes,
                                     .kernelParams = params};
}

/* The graphs of one device. */
typedef struct dpr_graphs dpr_graphs;

/* The graphs of an open device. The hook owns them (hook.c). */
dpr_graphs *dpr_dp_graphs(const dpr_device *device);

/* Two kernels, one after the other. */
enum { DPR_KEPT_KERNELS = 2 };
typedef struct dpr_kept_graph {
    struct dpr_kept_graph *next;
    CUfunction functions[DPR_KEPT_KERNELS];
    cudaGraph_t graph;
    CUgraphNode nodes[DPR_KEPT_KERNELS]; /* of `graph`, and the handles of the executable graph's */
    cudaGraphExec_t executable;
} dpr_kept_graph;

dpr_graphs *dpr_graphs_create(void); /* NULL: no host memory */
/* No run may have one of them. Frees only host memory if their home is no longer `there`. NULL is allowed. */
void dpr_graphs_destroy(dpr_graphs *graphs, int there);

/* Makes a graph of DPR_KEPT_KERNELS kernels, or takes one that was given back, and sets the parameters of its kernels.
 * Called in the home. */
cudaError_t dpr_graphs_take(dpr_graphs *graphs, const CUDA_KERNEL_NODE_PARAMS *kernels, dpr_kept_graph **out);

/* Gives back a graph. If launches of it may be in flight, because of an error, `is_done` is 0: it is destroyed, which
 * waits for them. */
cudaError_t dpr_graphs_give_back(dpr_graphs *graphs, dpr_kept_graph *graph, int is_done);

/* Gives back a graph whose launches might never end: it is destroyed with all graphs of the device. */
void dpr_graphs_abandon(dpr_graphs *graphs, dpr_kept_graph *graph);

#endif
