#include "fake_streams.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_device.h"
#include "fake_memory.h"
#include "fake_state.h"

struct CUevent_st {
    cudaStream_t stream; /* where it was recorded last */
    unsigned recorded, reached;
    double ns;            /* when it was reached */
    cudaGraph_t captured; /* the graph that the recording went to, or NULL */
    int users;            /* the program, until it destroys the event, and queued work that names it */
};

/* The per-thread default streams are one, which is in order with itself as each of them is. */
static struct CUstream_st per_thread = {.id = 2};
static struct CUstream_st legacy = {.id = 1, .next = &per_thread};
static unsigned long long next_stream_id = 3;
static double now_ns;
static int busy; /* until the host, which must not wait for it, says otherwise */

static void wait_for_device(void) {
    if (busy)
        fake_violate("the host waits for a device that is busy");
}

void fake_make_busy(int on) {
    busy = on;
}

void fake_set_busy(int on) {
    fake_lock();
    fake_make_busy(on);
    fake_unlock();
}

int fake_is_working(void) {
    int found = 0;
    fake_lock();
    for (cudaStream_t s = fake_streams(); s && !found; s = s->next)
        found = s->work.first != NULL;
    fake_unlock();
    return found;
}

/* ---- Work ---- */

cudaStream_t fake_stream_of(cudaStream_t stream) {
    return !stream || stream == cudaStreamLegacy ? &legacy : stream == cudaStreamPerThread ? &per_thread : stream;
}

cudaStream_t fake_streams(void) {
    return &legacy;
}

int fake_stream_is_live(cudaStream_t stream) {
    for (struct CUstream_st *s = &legacy; s; s = s->next)
        if (s == stream)
            return 1;
    return 0;
}

int fake_stream_is_usable(cudaStream_t stream) {
    const CUcontext of = fake_context_of_stream(stream), current = fake_current_context();
    return of && current && of->regular == current->regular;
}

CUcontext fake_context_of_stream(cudaStream_t stream) {
    stream = fake_stream_of(stream);
    if (!fake_stream_is_live(stream))
        return NULL;
    return stream->context ? stream->context : fake_current_context();
}

int fake_sms_of_stream(cudaStream_t stream) {
    const CUcontext of = fake_context_of_stream(stream);
    return of ? of->sms : 0;
}

static void drop(cudaStream_t stream) {
    struct CUstream_st *s = &per_thread;
    while (s->next != stream)
        s = s->next;
    s->next = stream->next;
    free(stream);
    fake_count_objects(-1);
}

void fake_end_streams_of(CUcontext context) {
    for (struct CUstream_st *s = per_thread.next, *next; s; s = next) {
        next = s->next;
        if (s->context != context)
            continue;
        fake_discard(&s->work);
        drop(s);
    }
    fake_discard(&legacy.work);
}

void fake_append(fake_queue *to, const fake_work *item) {
    fake_work *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *item;
    copy->next = NULL;
    if (copy->body)
        fake_graph_own(copy->body);
    if (to->last)
        to->last->next = copy;
    else
        to->first = copy;
    to->last = copy;
}

static void let_go(cudaEvent_t event) {
    if (--event->users > 0)
        return;
    free(event);
    fake_count_objects(-1);
}

static void free_work(fake_work *w) {
    if (w->event)
        let_go(w->event);
    if (w->body)
        fake_graph_release(w->body);
    free(w->staged);
    free(w);
}

/* What would go goes all the same. */
void fake_discard(fake_queue *q) {
    for (fake_work *w = q->first, *next; w; w = next) {
        next = w->next;
        if (w->type == FAKE_GIVE)
            (void)fake_pool_take_back(w->to);
        free_work(w);
    }
    *q = (fake_queue){NULL, NULL};
}

static void run_kernel(const fake_launch *launch) {
    cudaError_t error = cudaSuccess;
    const fake_fate fate = fake_next_fate(&error);
    if (fate == FAKE_FAULTS)
        fake_break(error);
    if (fate != FAKE_RUNS)
        return;
    const char *wrong = fake_kernel_run(launch);
    if (wrong)
        fake_violate(wrong);
    now_ns += fake_kernel_ns(launch);
}

static void run_first(fake_queue *q);

/* The work that an event stands behind was enqueued before the wait, so that this ends. */
static void await(const fake_work *w) {
    while (w->event->reached < w->turn && w->event->stream->work.first)
        run_first(&w->event->stream->work);
}

enum { MOST_TURNS = 1000 };

/* A body of kernels, as often as they say. */
static void run_loop(const fake_work *loop) {
    int turns = 0;
    fake_loop_begin(loop->loop);
    do
        for (const fake_work *w = fake_graph_work(loop->body)->first; w; w = w->next)
            run_kernel(&w->launch);
    while (fake_loop_goes_on(loop->loop) && turns++ < MOST_TURNS);
    if (turns > MOST_TURNS)
        fake_violate("a loop of a graph does not end");
}

static void reach(cudaEvent_t event, unsigned turn) {
    event->reached = turn;
    event->ns = now_ns;
}

static void run_first(fake_queue *q) {
    fake_work *w = q->first;
    q->first = w->next;
    if (!q->first)
        q->last = NULL;
    if (w->type == FAKE_KERNEL)
        run_kernel(&w->launch);
    else if (w->type == FAKE_COPY)
        memmove(w->to, w->from, w->size);
    else if (w->type == FAKE_FILL)
        fake_fill(w->to, w->byte, w->size);
    else if (w->type == FAKE_REACH)
        reach(w->event, w->turn);
    else if (w->type == FAKE_GIVE)
        (void)fake_pool_take_back(w->to);
    else if (w->type == FAKE_LOOP)
        run_loop(w);
    else
        await(w);
    free_work(w);
}

static void run_queue(fake_queue *q) {
    if (!q->first)
        return;
    fake_expose(1);
    while (q->first)
        run_first(q);
    fake_expose(0);
}

cudaError_t fake_enqueue(cudaStream_t stream, const fake_work *item) {
    stream = fake_stream_of(stream);
    if (!fake_stream_is_live(stream))
        return cudaErrorInvalidResourceHandle;
    stream->after_kernel = item->type == FAKE_KERNEL;
    if (stream->captured) {
        fake_append(fake_graph_work(stream->captured), item);
        return cudaSuccess;
    }
    fake_append(&stream->work, item);
    if (fake_is_eager())
        run_queue(&stream->work);
    return cudaSuccess;
}

/* A wait that fails: what was waited for went down with it. */
static void lose_work(cudaStream_t stream) {
    fake_lock();
    for (struct CUstream_st *s = &legacy; s; s = s->next)
        if (!stream || s == stream)
            fake_discard(&s->work);
    fake_unlock();
}

/* ---- Copies ---- */

WRAP(cudaMemcpy);
cudaError_t __wrap_cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    FAKE_BEGIN();
    (void)kind;
    if (fake_legacy_spoils(NULL))
        return fake_end(cudaErrorStreamCaptureImplicit);
    wait_for_device();
    run_queue(&legacy.work);
    fake_expose(1);
    memmove(to, from, size);
    fake_expose(0);
    return fake_end(cudaSuccess);
}

WRAP(cudaMemset);
cudaError_t __wrap_cudaMemset(void *to, int byte, size_t size) {
    FAKE_BEGIN();
    if (!fake_find(to, size))
        return fake_end(cudaErrorInvalidValue);
    const fake_work item = {.type = FAKE_FILL, .to = to, .size = size, .byte = byte};
    return fake_end(fake_enqueue(&legacy, &item));
}

/* Pageable memory is read before the call returns, and written before it returns. */
static int stage(fake_work *copy) {
    if (copy->size == 0 || fake_find(copy->from, copy->size))
        return 1;
    copy->staged = malloc(copy->size);
    if (copy->staged)
        copy->from = memcpy(copy->staged, copy->from, copy->size);
    return copy->staged != NULL;
}

WRAP(cudaMemcpyAsync);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
    FAKE_BEGIN();
    fake_work item = {.type = FAKE_COPY, .to = to, .from = from, .size = size};
    stream = fake_stream_of(stream);
    if (kind != cudaMemcpyDefault)
        return fake_end(cudaErrorInvalidMemcpyDirection);
    if (fake_legacy_spoils(stream == &legacy ? NULL : stream))
        return fake_end(cudaErrorStreamCaptureImplicit);
    if (!fake_stream_is_live(stream))
        return fake_end(cudaErrorInvalidResourceHandle);
    if (!stream->captured && !stage(&item))
        return fake_end(cudaErrorMemoryAllocation);
    const cudaError_t error = fake_enqueue(stream, &item);
    if (error != cudaSuccess)
        free(item.staged);
    else if (!stream->captured && !fake_find(to, size)) {
        wait_for_device();
        run_queue(&stream->work);
    }
    return fake_end(error);
}

WRAP(cudaMemsetAsync);
cudaError_t __wrap_cudaMemsetAsync(void *to, int byte, size_t size, cudaStream_t stream) {
    FAKE_BEGIN();
    if (!fake_find(to, size))
        return fake_end(cudaErrorInvalidValue);
    const fake_work item = {.type = FAKE_FILL, .to = to, .size = size, .byte = byte};
    return fake_end(fake_enqueue(stream, &item));
}

/* ---- Streams ---- */

WRAP(cudaStreamCreateWithFlags);
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    FAKE_BEGIN();
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return fake_end(cudaErrorMemoryAllocation);
    stream->id = next_stream_id++;
    stream->context = fake_current_context();
    stream->non_blocking = flags == cudaStreamNonBlocking;
    stream->next = per_thread.next;
    per_thread.next = stream;
    fake_count_objects(1);
    *out = stream;
    return fake_end(cudaSuccess);
}

WRAP(cudaStreamDestroy);
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) {
    FAKE_BEGIN();
    if (!fake_stream_is_live(stream) || !stream->context)
        return fake_end(cudaErrorInvalidResourceHandle);
    run_queue(&stream->work); /* destroying a stream leaves its work running */
    drop(stream);
    return fake_end(cudaSuccess);
}

/* Begins a call that waits for a stream, or asks for its end. An error, with the lock released, if that cannot be. */
static cudaError_t begin_waiting(const char *name, cudaStream_t *stream) {
    const cudaError_t injected = fake_begin(name);
    *stream = fake_stream_of(*stream);
    if (injected != cudaSuccess) {
        lose_work(*stream);
        return injected;
    }
    if (fake_stream_is_live(*stream))
        fake_spoil_capture_of(*stream);
    const cudaError_t error = !fake_stream_is_live(*stream)                  ? cudaErrorInvalidResourceHandle
                              : (*stream)->captured || fake_capture_spoilt() ? cudaErrorStreamCaptureUnsupported
                              : fake_legacy_spoils(*stream == &legacy ? NULL : *stream) ? cudaErrorStreamCaptureImplicit
                                                                                        : cudaSuccess;
    return error == cudaSuccess ? cudaSuccess : fake_end(error);
}

WRAP(cudaStreamSynchronize);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
    const cudaError_t refused = begin_waiting("cudaStreamSynchronize", &stream);
    if (refused != cudaSuccess)
        return refused;
    wait_for_device();
    run_queue(&stream->work);
    return fake_end(cudaSuccess);
}

/* Each question lets the device, unless it is busy, do one piece of the stream's work, so that whoever asks for long
 * enough sees its end. */
WRAP(cudaStreamQuery);
cudaError_t __wrap_cudaStreamQuery(cudaStream_t stream) {
    const cudaError_t refused = begin_waiting("cudaStreamQuery", &stream);
    if (refused != cudaSuccess)
        return refused;
    if (!stream->work.first)
        return fake_end(cudaSuccess);
    if (busy)
        return fake_end(cudaErrorNotReady);
    fake_expose(1);
    if (!busy)
        run_first(&stream->work);
    fake_expose(0);
    return fake_end(cudaErrorNotReady);
}

static atomic_int device_waits;

int fake_device_waits(void) {
    return atomic_load(&device_waits);
}

static void run_all(void) {
    wait_for_device();
    for (struct CUstream_st *s = &legacy; s; s = s->next)
        run_queue(&s->work);
}

void fake_wait_for_all(void) {
    atomic_fetch_add(&device_waits, 1);
    run_all();
}

WRAP(cudaDeviceSynchronize);
cudaError_t __wrap_cudaDeviceSynchronize(void) {
    atomic_fetch_add(&device_waits, 1);
    const cudaError_t injected = fake_begin("cudaDeviceSynchronize");
    if (injected != cudaSuccess) {
        lose_work(NULL);
        return injected;
    }
    if (fake_spoil_captures())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    run_all();
    return fake_end(cudaSuccess);
}

static atomic_int programmatic_kernels;

int fake_programmatic_kernels(void) {
    return atomic_load(&programmatic_kernels);
}

static atomic_uint largest_grid;

unsigned fake_largest_grid(void) {
    return atomic_exchange(&largest_grid, 0);
}

static void note_grid(unsigned blocks) {
    unsigned before = atomic_load(&largest_grid);
    while (blocks > before && !atomic_compare_exchange_weak(&largest_grid, &before, blocks)) {}
}

cudaError_t fake_launch_kernel(const cudaLaunchConfig_t *config, const void *entry, void **arguments) {
    fake_work item = {.type = FAKE_KERNEL};
    cudaStream_t stream = fake_stream_of(config->stream);
    if (!fake_stream_is_usable(stream))
        return cudaErrorInvalidResourceHandle;
    if (fake_legacy_spoils(config->stream))
        return cudaErrorStreamCaptureImplicit;
    const cudaError_t too_large = fake_kernel_fits(config, fake_sms_of_stream(stream));
    if (too_large != cudaSuccess)
        return too_large;
    const char *wrong = fake_kernel_prepare(config, entry, arguments, stream->after_kernel, &item.launch);
    if (!wrong && stream == &legacy && fake_kernel_is_programmatic(config))
        wrong = "a kernel is launched ahead of the work of all other streams that the legacy stream waits for";
    if (wrong) {
        fake_violate(wrong);
        return cudaErrorInvalidValue;
    }
    atomic_fetch_add(&programmatic_kernels, fake_kernel_is_programmatic(config) != 0);
    note_grid(config->gridDim.x);
    return fake_enqueue(stream, &item);
}

WRAP(cudaLaunchKernel);
cudaError_t __wrap_cudaLaunchKernel(const void *entry, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
    (void)entry, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    fake_violate("a kernel is launched by its C++ name");
    return cudaErrorNotSupported;
}

/* ---- Events ---- */

WRAP(cudaEventCreateWithFlags);
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    FAKE_BEGIN();
    (void)flags;
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (!event)
        return fake_end(cudaErrorMemoryAllocation);
    event->users = 1;
    fake_count_objects(1);
    *out = event;
    return fake_end(cudaSuccess);
}

WRAP(cudaEventDestroy);
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) {
    FAKE_BEGIN();
    let_go(event);
    return fake_end(cudaSuccess);
}

WRAP(cudaEventRecord);
cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    FAKE_BEGIN();
    stream = fake_stream_of(stream);
    if (!fake_stream_is_live(stream))
        return fake_end(cudaErrorInvalidResourceHandle);
    event->captured = stream->captured;
    event->stream = stream;
    if (stream->captured)
        return fake_end(cudaSuccess);
    event->users++;
    const fake_work item = {.type = FAKE_REACH, .event = event, .turn = ++event->recorded};
    return fake_end(fake_enqueue(stream, &item));
}

/* Captured work is done in the order in which it was captured, which no dependency can contradict. */
WRAP(cudaStreamWaitEvent);
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    FAKE_BEGIN();
    (void)flags;
    stream = fake_stream_of(stream);
    if (!fake_stream_is_live(stream))
        return fake_end(cudaErrorInvalidResourceHandle);
    if (event->captured && !stream->captured)
        stream->captured = event->captured;
    if (event->captured != stream->captured)
        return fake_end(cudaErrorStreamCaptureIsolation);
    stream->after_kernel = 0;
    if (event->captured || event->recorded == 0)
        return fake_end(cudaSuccess);
    event->users++;
    const fake_work item = {.type = FAKE_AWAIT, .event = event, .turn = event->recorded};
    return fake_end(fake_enqueue(stream, &item));
}

/* Who asks waits, unless the device is busy. */
CUresult CUDAAPI fake_event_query(CUevent event) {
    const cudaError_t injected = fake_begin_in_context("cuEventQuery");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const int forbidden = fake_capture_spoilt();
    if (event->reached < event->recorded && !busy && !forbidden)
        run_queue(&event->stream->work);
    const int reached = event->reached == event->recorded;
    fake_unlock();
    if (forbidden)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

WRAP(cudaEventElapsedTime);
cudaError_t __wrap_cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    FAKE_BEGIN();
    if (from->reached == 0 || to->reached < to->recorded)
        return fake_end(cudaErrorNotReady);
    *ms = (float)(1e-6 * (to->ns - from->ns));
    return fake_end(cudaSuccess);
}
