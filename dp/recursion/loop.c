#include "loop.h"

#include "cuda/driver.h"
#include "graphs.h"

const char *dpr_loop_refusal(void) {
    const char *why;
    return dpr_driver_devices(&why) > 0 && dpr_driver()->graph_create_condition
               ? NULL
               : "needs a driver of CUDA 12.4 or newer";
}

/* A conditional node, and the graph in it. */
typedef struct loop {
    CUgraphConditionalHandle handle;
    CUgraphNode node;
    CUgraph body;
} loop;

/* The loop's body is done at least once. It does one phase, and condition.cu ends the loop after the last one, or after
 * an error: phases.cuh says why there is a last one. */
static CUresult add_loop(CUgraph graph, const CUgraphNode *after, size_t count, loop *out) {
    const dpr_driver_calls *driver = dpr_driver();
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUcontext context = NULL;
    CUresult result = driver->ctx_get_current(&context);
    if (result == CUDA_SUCCESS)
        result = driver->graph_create_condition(&out->handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    if (result != CUDA_SUCCESS)
        return result;
    params.conditional.handle = out->handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    params.conditional.ctx = context;
    result = driver->graph_add_node(&out->node, graph, after, count, &params);
    if (result == CUDA_SUCCESS)
        out->body = params.conditional.phGraph_out[0];
    return result;
}

static CUresult fill(const loop *l, const CUDA_KERNEL_NODE_PARAMS *phase, CUfunction condition,
                     const struct dpr_arena *arena) {
    CUgraphConditionalHandle handle = l->handle;
    void *params[] = {&arena, &handle};
    const CUDA_KERNEL_NODE_PARAMS question = dpr_kernel_node(condition, 1, 1, 0, params);
    CUgraphNode first, last;
    const CUresult result = dpr_driver()->graph_add_kernel(&first, l->body, NULL, 0, phase);
    return result == CUDA_SUCCESS ? dpr_driver()->graph_add_kernel(&last, l->body, &first, 1, &question) : result;
}

cudaError_t dpr_loop_capture(cudaStream_t stream, const CUDA_KERNEL_NODE_PARAMS *phase, CUfunction condition,
                             const struct dpr_arena *arena) {
    const dpr_driver_calls *driver = dpr_driver();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    const CUgraphNode *after = NULL;
    size_t count = 0;
    loop l;
    CUresult result = driver->stream_get_capture_info(stream, &status, NULL, &graph, &after, &count);
    if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        result = CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS)
        result = add_loop(graph, after, count, &l);
    if (result == CUDA_SUCCESS)
        result = fill(&l, phase, condition, arena);
    if (result == CUDA_SUCCESS)
        result = driver->stream_update_dependencies(stream, &l.node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return (cudaError_t)result;
}
