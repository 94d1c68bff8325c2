#include <stdlib.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_cuda.h"
#include "fake_modules.h"
#include "fake_state.h"
#include "fake_streams.h"
#include "recursion/loop.h"

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
    int loose; /* a loop was added that nothing captured comes behind */
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

void fake_graph_own(cudaGraph_t graph) {
    graph->owners++;
}

void fake_graph_release(cudaGraph_t graph) {
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

void fake_spoil_capture_of(cudaStream_t stream) {
    if (stream->captured)
        stream->captured->spoilt = 1;
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
    if ((*graph)->loose && !(*graph)->spoilt)
        fake_violate("a capture ends with a loop that its stream does not know");
    if ((*graph)->spoilt) {
        fake_graph_release(*graph);
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
    if (kernel->func == (CUfunction)(uintptr_t)dpr_loop_condition()) {
        out->asked = *(void **)kernel->kernelParams[0];
        out->loop = *(cuuint64_t *)kernel->kernelParams[1];
        return cudaSuccess;
    }
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

/* ---- Loops ---- */

/* By number: the context in which a loop's condition may be set, what it begins with, and what it is now. */
enum { MOST_LOOPS = 1 << 16 };
static struct {
    CUcontext context;
    CUgraph graph;
    int first, now;
} loops[MOST_LOOPS];
static cuuint64_t loop_count;

CUresult CUDAAPI fake_graph_create_condition(cuuint64_t *handle, CUgraph graph, CUcontext context, unsigned value,
                                             unsigned flags) {
    const cudaError_t injected = fake_begin_in_context("cuGraphConditionalHandleCreate");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const int good =
        context == fake_current_context() && flags == CU_GRAPH_COND_ASSIGN_DEFAULT && loop_count + 1 < MOST_LOOPS;
    if (good) {
        *handle = ++loop_count;
        loops[*handle].context = context;
        loops[*handle].graph = graph;
        loops[*handle].first = (int)value;
    }
    fake_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_loop(CUgraph graph, CUDA_CONDITIONAL_NODE_PARAMS *params) {
    static CUgraph bodies[MOST_LOOPS];
    const cuuint64_t loop = params->handle;
    if (loop == 0 || loop > loop_count || loops[loop].graph != graph || loops[loop].context != params->ctx
        || params->type != CU_GRAPH_COND_TYPE_WHILE || params->size != 1)
        return CUDA_ERROR_INVALID_VALUE;
    bodies[loop] = calloc(1, sizeof *bodies[loop]);
    if (!bodies[loop])
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_count_objects(1);
    const fake_work item = {.type = FAKE_LOOP, .loop = loop, .body = bodies[loop]};
    fake_append(&graph->work, &item);
    graph->loose = 1;
    params->phGraph_out = &bodies[loop];
    return CUDA_SUCCESS;
}

static int is_last_work(CUgraph graph, const CUgraphNode *nodes, size_t count) {
    return count == (graph->work.last != NULL) && (count == 0 || *nodes == (CUgraphNode)(void *)graph->work.last);
}

CUresult CUDAAPI fake_graph_add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                     CUgraphNodeParams *params) {
    const cudaError_t injected = fake_begin_in_context("cuGraphAddNode");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (!is_last_work(graph, dependencies, count))
        fake_violate("a loop does not come behind what was captured before");
    else if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        result = add_loop(graph, &params->conditional);
    if (result == CUDA_SUCCESS)
        *node = (CUgraphNode)(void *)graph->work.last;
    fake_unlock();
    return result;
}

CUresult CUDAAPI fake_stream_update_dependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
                                                 unsigned flags) {
    const cudaError_t injected = fake_begin_in_context("cuStreamUpdateCaptureDependencies");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const int good = fake_stream_is_live(stream) && stream->captured && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES;
    if (good && !is_last_work(stream->captured, dependencies, count))
        fake_violate("what is captured next does not come behind what was added to the graph");
    if (good)
        stream->captured->loose = 0;
    fake_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

void fake_loop_begin(cuuint64_t loop) {
    loops[loop].now = loops[loop].first;
}

const char *fake_loop_set(cuuint64_t loop, int on) {
    if (loop == 0 || loop > loop_count)
        return "a condition is set that there is not";
    loops[loop].now = on;
    return NULL;
}

int fake_loop_goes_on(cuuint64_t loop) {
    return loops[loop].now;
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
    fake_graph_release(graph);
    return fake_end(cudaSuccess);
}

WRAP(cudaGraphExecDestroy);
cudaError_t __wrap_cudaGraphExecDestroy(cudaGraphExec_t run) {
    FAKE_BEGIN();
    fake_graph_release(run->graph);
    free(run);
    fake_count_objects(-1);
    return fake_end(cudaSuccess);
}
