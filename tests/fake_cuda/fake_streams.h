/* Queues of work, and the streams that have them. With the fake's lock held. */
#ifndef DPR_TESTS_FAKE_STREAMS_H
#define DPR_TESTS_FAKE_STREAMS_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "fake_kernel.h"

/* A piece of queued work: a kernel, a copy, a fill, an event that is reached or one that is waited for, memory that
 * goes back to its pool, or a loop. */
typedef struct fake_work {
    struct fake_work *next;
    enum { FAKE_KERNEL, FAKE_COPY, FAKE_FILL, FAKE_REACH, FAKE_AWAIT, FAKE_GIVE, FAKE_LOOP } type;
    fake_launch launch;
    void *to;
    const void *from;
    void *staged; /* of a copy from pageable memory: what it held, to be freed; else NULL */
    size_t size;
    int byte;
    cudaEvent_t event;
    unsigned turn;    /* of the event: how often it has been recorded */
    cuuint64_t loop;  /* its number, */
    cudaGraph_t body; /* and its work, which each copy of the loop owns */
} fake_work;

typedef struct fake_queue {
    fake_work *first, *last;
} fake_queue;

struct CUstream_st {
    struct CUstream_st *next;
    unsigned long long id;
    CUcontext context; /* of streams that were created */
    int non_blocking;
    fake_queue work;
    cudaGraph_t captured; /* the graph it is being captured to, or NULL */
    int after_kernel;     /* what was enqueued last is a kernel */
};

/* The stream that a handle stands for, and whether it is alive. */
cudaStream_t fake_stream_of(cudaStream_t stream);
int fake_stream_is_live(cudaStream_t stream);

/* Whether it is alive, and may be used in the calling thread's context. */
int fake_stream_is_usable(cudaStream_t stream);

/* The context of a stream, which is the calling thread's for default streams; NULL if it is not alive. And the SMs. */
CUcontext fake_context_of_stream(cudaStream_t stream);
int fake_sms_of_stream(cudaStream_t stream);

/* What happens to streams whose context goes: so does their work. */
void fake_end_streams_of(CUcontext context);

/* Runs all that is queued on any device. */
void fake_wait_for_all(void);

/* All of them, in a list. */
cudaStream_t fake_streams(void);

void fake_append(fake_queue *to, const fake_work *item);
void fake_discard(fake_queue *q);

/* Appends a copy of the item to the stream's work, or to that of the graph it is being captured to. */
cudaError_t fake_enqueue(cudaStream_t stream, const fake_work *item);

/* Enqueues a kernel; what is wrong with the launch is a violation. */
cudaError_t fake_launch_kernel(const cudaLaunchConfig_t *config, const void *entry, void **arguments);

/* Begins to capture the stream in the global mode. */
cudaError_t fake_capture(cudaStream_t stream);

/* The driver's. */
CUresult CUDAAPI fake_event_query(CUevent event);

/* Whether a capture forbids the calling thread calls that are not work of a stream, because the thread's capture mode
 * is not relaxed; the capture is spoilt from here on (fake_graphs.c). */
int fake_capture_spoilt(void);

/* Whether this is the legacy default stream while a stream is captured that would wait for it. The second is for a call
 * that uses the stream: it also spoils the capture if so. */
int fake_legacy_is_forbidden(cudaStream_t stream);
int fake_legacy_spoils(cudaStream_t stream);

/* Spoils all captures; whether there are any. */
int fake_spoil_captures(void);

/* The driver's. */
CUresult CUDAAPI fake_exchange_capture_mode(CUstreamCaptureMode *mode);
CUresult CUDAAPI fake_graph_add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                       const CUDA_KERNEL_NODE_PARAMS *kernel);
CUresult CUDAAPI fake_graph_set_kernel(CUgraphExec run, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel);

CUresult CUDAAPI fake_graph_create_condition(cuuint64_t *handle, CUgraph graph, CUcontext context, unsigned value,
                                             unsigned flags);
CUresult CUDAAPI fake_graph_add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                     CUgraphNodeParams *params);
CUresult CUDAAPI fake_stream_update_dependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
                                                 unsigned flags);

/* The work of a graph, to which captured work goes (fake_graphs.c). */
fake_queue *fake_graph_work(cudaGraph_t graph);

/* One more owner of a graph, and one less. */
void fake_graph_own(cudaGraph_t graph);
void fake_graph_release(cudaGraph_t graph);

/* Makes the capture of the stream, if there is one, one that cannot end. */
void fake_spoil_capture_of(cudaStream_t stream);

/* Sets whether a loop goes on; NULL, or what is wrong. And what was set last, or the value that it begins with. */
const char *fake_loop_set(cuuint64_t loop, int on);
int fake_loop_goes_on(cuuint64_t loop);
void fake_loop_begin(cuuint64_t loop);

/* Memory of a pool that goes, in a stream's order or out of it (fake_pools.c). 0 if it is no pool's. */
int fake_pool_take_back(void *memory);

#endif
