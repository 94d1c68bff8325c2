#include <stdlib.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_cuda.h"
#include "fake_modules.h"
#include "fake_state.h"
#include "fake_streams.h"

/* A user object, in a list of those of one graph. */
struct CUuserObject_st {
    struct CUuserObject_st *next;
    cudaHostFn_t destroy;
    void *user;
};

struct CUgraph_st {
    fake_queue work;
    struct CUuserObject_st *objects;
    int owners; /* the graph itself, and each executable made of it */
    cudaStream_t origin;
    int spoilt;
};

struct CUgraphExec_st {
    cudaGraph_t graph;
};

fake_queue *fake_graph_work(cudaGraph_t graph) {
    return &graph->work;
}

/* Destructors may take locks of the library's, so the fake's must be free. */
static void end_object(struct CUuserObject_st *object) {
    fake_count_objects(-1);
    fake_unlock();
    object->destroy(object->user);
    free(object);
    fake_lock();
}

static void release_graph(cudaGraph_t graph) {
    if (--graph->owners > 0)
        return;
    for (struct CUuserObject_st *object = graph->objects, *next; object; object = next) {
        next = object->next;
        end_object(object);
    }
    fake_discard(&graph->work);
    free(graph);
    fake_count_objects(-1);
}

/* ---- Capture ---- */

static _Thread_local enum cudaStreamCaptureMode of_thread = cudaStreamCaptureModeGlobal;
static int globally; /* captures whose mode minds the calls of every thread */

int fake_spoil_captures(void) {
    for (cudaStream_t s = fake_streams(); s; s = s->next)
        if (s->captured)
            s->captured->spoilt = 1;
    return globally > 0;
}

int fake_capture_spoilt(void) {
    return of_thread != cudaStreamCaptureModeRelaxed && fake_spoil_captures();
}

int fake_legacy_is_forbidden(cudaStream_t stream) {
    if (stream && stream != cudaStreamLegacy)
        return 0;
    for (cudaStream_t s = fake_streams(); s; s = s->next)
        if (s->captured && !s->non_blocking)
            return 1;
    return 0;
}

int fake_legacy_spoils(cudaStream_t stream) {
    return fake_legacy_is_forbidden(stream) && fake_spoil_captures();
}

static void exchange(enum cudaStreamCaptureMode *mode) {
    const enum cudaStreamCaptureMode old = of_thread;
    of_thread = *mode;
    *mode = old;
}

CUresult CUDAAPI fake_exchange_capture_mode(CUstreamCaptureMode *mode) {
    const cudaError_t injected = fake_begin_quietly("cuThreadExchangeStreamCaptureMode");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    exchange((enum cudaStreamCaptureMode *)mode);
    fake_unlock();
    return CUDA_SUCCESS;
}

cudaError_t fake_capture(cudaStream_t stream) {
    if (!stream || !fake_stream_is_live(stream))
        return cudaErrorStreamCaptureUnsupported;
    stream->captured = calloc(1, sizeof *stream->captured);
    if (!stream->captured)
        return cudaErrorMemoryAllocation;
    stream->captured->owners = 1;
    stream->captured->origin = stream;
    globally++;
    fake_count_objects(1);
    return cudaSuccess;
}

WRAP(cudaStreamBeginCapture);
cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    FAKE_BEGIN();
    return fake_end(mode == cudaStreamCaptureModeGlobal ? fake_capture(stream) : cudaErrorStreamCaptureUnsupported);
}

WRAP(cudaStreamEndCapture);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    FAKE_BEGIN();
    if (!stream || !fake_stream_is_live(stream) || !stream->captured || stream->captured->origin != stream)
        return fake_end(cudaErrorIllegalState);
    *graph = stream->captured;
    globally--;
    for (cudaStream_t s = fake_streams(); s; s = s->next)
        if (s->captured == *graph)
            s->captured = NULL;
    if ((*graph)->spoilt) {
        release_graph(*graph);
        *graph = NULL;
        return fake_end(cudaErrorStreamCaptureInvalidated);
    }
    return fake_end(cudaSuccess);
}

/* ---- User objects and graphs ---- */

WRAP(cudaUserObjectCreate);
cudaError_t __wrap_cudaUserObjectCreate(cudaUserObject_t *out, void *user, cudaHostFn_t destroy, unsigned references,
                                        unsigned flags) {
    FAKE_BEGIN();
    if (references != 1 || flags != cudaUserObjectNoDestructorSync)
        return fake_end(cudaErrorInvalidValue);
    struct CUuserObject_st *object = calloc(1, sizeof *object);
    if (!object)
        return fake_end(cudaErrorMemoryAllocation);
    *object = (struct CUuserObject_st){NULL, destroy, user};
    fake_count_objects(1);
    *out = object;
    return fake_end(cudaSuccess);
}

WRAP(cudaUserObjectRelease);
cudaError_t __wrap_cudaUserObjectRelease(cudaUserObject_t object, unsigned references) {
    FAKE_BEGIN();
    if (references != 1)
        return fake_end(cudaErrorInvalidValue);
    end_object(object);
    return fake_end(cudaSuccess);
}

WRAP(cudaGraphRetainUserObject);
cudaError_t __wrap_cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned references,
                                             unsigned flags) {
    FAKE_BEGIN();
    if (references != 1 || flags != cudaGraphUserObjectMove)
        return fake_end(cudaErrorInvalidValue);
    object->next = graph->objects;
    graph->objects = object;
    return fake_end(cudaSuccess);
}

WRAP(cudaGraphCreate);
cudaError_t __wrap_cudaGraphCreate(cudaGraph_t *out, unsigned flags) {
    FAKE_BEGIN();
    (void)flags;
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (!graph)
        return fake_end(cudaErrorMemoryAllocation);
    graph->owners = 1;
    fake_count_objects(1);
    *out = graph;
    return fake_end(cudaSuccess);
}

/* ---- Graphs that are made of kernels ---- */

static int made;

int fake_graphs_made(void) {
    return made;
}

/* Kernels of recursions, and a module's kernel that launches the graph again: here it does nothing, so that a launch of
 * the graph is one phase. */
static cudaError_t prepare(const CUDA_KERNEL_NODE_PARAMS *kernel, fake_launch *out) {
    const cudaLaunchConfig_t config = {.gridDim = {kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ},
                                       .blockDim = {kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ},
                                       .dynamicSmemBytes = kernel->sharedMemBytes};
    memset(out, 0, sizeof *out);
    if (fake_module_gave(kernel->func))
        return cudaSuccess;
    const char *wrong = fake_recursion_has(kernel->func)
                            ? fake_kernel_prepare(&config, kernel->func, kernel->kernelParams, 0, out)
                            : "a graph is made of a kernel that is of no recursion";
    if (wrong)
        fake_violate(wrong);
    return wrong ? cudaErrorInvalidValue : cudaSuccess;
}

CUresult CUDAAPI fake_graph_add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                       const CUDA_KERNEL_NODE_PARAMS *kernel) {
    fake_work item = {.type = FAKE_KERNEL};
    const cudaError_t injected = fake_begin_in_context("cuGraphAddKernelNode");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    if (count != (graph->work.first != NULL) || (count > 0 && *dependencies != (CUgraphNode)(void *)graph->work.last))
        fake_violate("the kernels of a graph do not come one after the other");
    const cudaError_t error = prepare(kernel, &item.launch);
    if (error == cudaSuccess) {
        fake_append(&graph->work, &item);
        *node = (CUgraphNode)(void *)graph->work.last;
    }
    fake_unlock();
    return (CUresult)error;
}

/* Also changes the graph that the executable was made of, which nobody looks at. */
CUresult CUDAAPI fake_graph_set_kernel(CUgraphExec run, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel) {
    const cudaError_t injected = fake_begin_in_context("cuGraphExecKernelNodeSetParams");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    cudaError_t error = cudaErrorInvalidValue;
    for (fake_work *w = run->graph->work.first; w; w = w->next)
        if ((CUgraphNode)(void *)w == node)
            error = prepare(kernel, &w->launch);
    fake_unlock();
    return (CUresult)error;
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph) {
    struct CUgraphExec_st *run = calloc(1, sizeof *run);
    if (!run)
        return cudaErrorMemoryAllocation;
    run->graph = graph;
    graph->owners++;
    fake_count_objects(1);
    *out = run;
    return cudaSuccess;
}

WRAP(cudaGraphInstantiate);
cudaError_t __wrap_cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    FAKE_BEGIN();
    if (flags != cudaGraphInstantiateFlagDeviceLaunch)
        return fake_end(cudaErrorNotSupported);
    made++;
    return fake_end(instantiate(out, graph));
}

WRAP(cudaGraphUpload);
cudaError_t __wrap_cudaGraphUpload(cudaGraphExec_t run, cudaStream_t stream) {
    FAKE_BEGIN();
    return fake_end(run && fake_stream_is_usable(fake_stream_of(stream)) ? cudaSuccess : cudaErrorInvalidValue);
}

WRAP(cudaGraphInstantiateWithFlags);
cudaError_t __wrap_cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    FAKE_BEGIN();
    (void)flags;
    return fake_end(instantiate(out, graph));
}

WRAP(cudaGraphLaunch);
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t stream) {
    FAKE_BEGIN();
    cudaError_t error = cudaSuccess;
    for (const fake_work *w = run->graph->work.first; w && error == cudaSuccess; w = w->next)
        error = fake_enqueue(stream, w);
    return fake_end(error);
}

WRAP(cudaGraphDestroy);
cudaError_t __wrap_cudaGraphDestroy(cudaGraph_t graph) {
    FAKE_BEGIN();
    release_graph(graph);
    return fake_end(cudaSuccess);
}

WRAP(cudaGraphExecDestroy);
cudaError_t __wrap_cudaGraphExecDestroy(cudaGraphExec_t run) {
    FAKE_BEGIN();
    release_graph(run->graph);
    free(run);
    fake_count_objects(-1);
    return fake_end(cudaSuccess);
}
