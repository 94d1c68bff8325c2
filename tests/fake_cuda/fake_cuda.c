#include "fake_cuda.h"

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "fake_kernel.h"
#include "fake_memory.h"
#include "machine.h"

/* ---- State ---- */

/* A piece of queued work: a kernel, a copy or a fill. */
typedef struct work {
    struct work *next;
    enum { KERNEL, COPY, FILL } type;
    fake_launch launch;
    void *to;
    const void *from;
    size_t size;
    int byte;
} work;

typedef struct queue {
    work *first, *last;
} queue;

/* A user object, in a list of those of one graph. */
struct CUuserObject_st {
    struct CUuserObject_st *next;
    cudaHostFn_t destroy;
    void *user;
};

struct CUgraph_st {
    queue work;
    struct CUuserObject_st *objects;
    int owners; /* the graph itself, and each executable made of it */
};

struct CUgraphExec_st {
    cudaGraph_t graph;
};

struct CUstream_st {
    struct CUstream_st *next;
    unsigned long long id;
    queue work;
    cudaGraph_t captured; /* while it is being captured */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st legacy = {NULL, 1, {NULL, NULL}, NULL};
static struct CUstream_st *streams = &legacy;
static unsigned long long next_stream_id = 2;
static int objects_alive, calls, fail_at;
static cudaError_t fail_with;
static const char *failed_call, *violation;
static dpr_caps machine;
static _Thread_local int current_device;
static _Thread_local cudaError_t recorded;

void fake_fail_call(int call, cudaError_t error) {
    pthread_mutex_lock(&lock);
    fail_at = call;
    fail_with = error;
    if (call > 0) {
        calls = 0;
        failed_call = NULL;
    }
    pthread_mutex_unlock(&lock);
}

int fake_calls(void) {
    return calls;
}

const char *fake_failed_call(void) {
    return failed_call;
}

const char *fake_violation(void) {
    return violation;
}

int fake_live_objects(void) {
    return fake_blocks() + objects_alive;
}

cudaError_t fake_last_error(void) {
    return recorded;
}

static cudaError_t give(cudaError_t error) {
    if (error != cudaSuccess)
        recorded = error;
    return error;
}

static void violate(const char *what) {
    if (!violation)
        violation = what;
}

/* Takes the lock and counts the call; 0, with the lock released, if it is the one to fail. */
static int enter(const char *name) {
    pthread_mutex_lock(&lock);
    calls++;
    if (calls != fail_at)
        return 1;
    failed_call = name;
    pthread_mutex_unlock(&lock);
    return 0;
}

static cudaError_t begin(const char *name) {
    return enter(name) ? cudaSuccess : give(fail_with);
}

static cudaError_t end(cudaError_t error) {
    pthread_mutex_unlock(&lock);
    return give(error);
}

#define BEGIN()                                                                                                        \
    do {                                                                                                               \
        const cudaError_t injected = begin(__func__ + sizeof "__wrap_" - 1);                                           \
        if (injected != cudaSuccess)                                                                                   \
            return injected;                                                                                           \
    } while (0)

/* ---- Work ---- */

static cudaStream_t stream_of(cudaStream_t stream) {
    return stream ? stream : &legacy;
}

static int is_live(cudaStream_t stream) {
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s == stream)
            return 1;
    return 0;
}

static void append(queue *to, const work *item) {
    work *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *item;
    copy->next = NULL;
    if (to->last)
        to->last->next = copy;
    else
        to->first = copy;
    to->last = copy;
}

static void discard(queue *q) {
    for (work *w = q->first, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    *q = (queue){NULL, NULL};
}

static void run_queue(queue *q) {
    if (!q->first)
        return;
    fake_expose(1);
    for (const work *w = q->first; w; w = w->next) {
        const char *wrong = NULL;
        if (w->type == KERNEL)
            wrong = fake_kernel_run(&w->launch);
        else if (w->type == COPY)
            memmove(w->to, w->from, w->size);
        else
            memset(w->to, w->byte, w->size);
        if (wrong)
            violate(wrong);
    }
    fake_expose(0);
    discard(q);
}

static cudaError_t enqueue(cudaStream_t stream, const work *item) {
    stream = stream_of(stream);
    if (!is_live(stream))
        return cudaErrorInvalidResourceHandle;
    append(stream->captured ? &stream->captured->work : &stream->work, item);
    return cudaSuccess;
}

/* A wait that fails: what was waited for went down with it. */
static void lose_work(cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (!stream || s == stream)
            discard(&s->work);
    pthread_mutex_unlock(&lock);
}

/* ---- The runtime's functions: the same types as the real ones, or the declarations clash ---- */

#define WRAP(NAME) extern __typeof__(NAME) __wrap_##NAME

WRAP(cudaGetErrorString);
const char *__wrap_cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "a fake error";
}

WRAP(cudaGetErrorName);
const char *__wrap_cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorFake";
}

WRAP(cudaGetLastError);
cudaError_t __wrap_cudaGetLastError(void) {
    const cudaError_t error = recorded;
    recorded = cudaSuccess;
    return error;
}

WRAP(cudaGetDeviceCount);
cudaError_t __wrap_cudaGetDeviceCount(int *count) {
    BEGIN();
    *count = FAKE_DEVICES;
    return end(cudaSuccess);
}

WRAP(cudaGetDevice);
cudaError_t __wrap_cudaGetDevice(int *device) {
    BEGIN();
    *device = current_device;
    return end(cudaSuccess);
}

WRAP(cudaSetDevice);
cudaError_t __wrap_cudaSetDevice(int device) {
    BEGIN();
    if (device < 0 || device >= FAKE_DEVICES)
        return end(cudaErrorInvalidDevice);
    current_device = device;
    return end(cudaSuccess);
}

/* The captured machine that the fake devices are. */
static cudaError_t load_machine(void) {
    char text[8192];
    if (machine.has_gpu)
        return cudaSuccess;
    FILE *file = fopen(TEST_MACHINES "/h200.caps", "r");
    if (!file)
        return cudaErrorUnknown;
    const size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return dpr_machine_parse(text, &machine) == DPR_OK ? cudaSuccess : cudaErrorUnknown;
}

WRAP(cudaDeviceGetAttribute);
cudaError_t __wrap_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    BEGIN();
    if (device < 0 || device >= FAKE_DEVICES)
        return end(cudaErrorInvalidDevice);
    const cudaError_t error = load_machine();
    if (error != cudaSuccess)
        return end(error);
    switch (attribute) {
#define ATTRIBUTE_CASE(A, NAME, ATTRIBUTE, text)                                                                       \
    case cudaDevAttr##ATTRIBUTE:                                                                                       \
        *value = (int)machine.gpu.NAME;                                                                                \
        break;
        DPR_GPU_CAPS_LIST(ATTRIBUTE_CASE, _)
#undef ATTRIBUTE_CASE
    default:
        return end(cudaErrorInvalidValue);
    }
    return end(cudaSuccess);
}

WRAP(cudaGetDeviceProperties);
cudaError_t __wrap_cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    BEGIN();
    if (device < 0 || device >= FAKE_DEVICES)
        return end(cudaErrorInvalidDevice);
    const cudaError_t error = load_machine();
    if (error != cudaSuccess)
        return end(error);
    memset(properties, 0, sizeof *properties);
    memcpy(properties->name, machine.gpu_name, sizeof machine.gpu_name);
    properties->totalGlobalMem = (size_t)139 << 30;
    return end(cudaSuccess);
}

WRAP(cudaDeviceGetPCIBusId);
cudaError_t __wrap_cudaDeviceGetPCIBusId(char *text, int length, int device) {
    BEGIN();
    snprintf(text, (size_t)length, "0000:%02x:00.0", 0x3b + device);
    return end(cudaSuccess);
}

WRAP(cudaFuncGetAttributes);
cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *entry) {
    BEGIN();
    if (!fake_kernel_known(entry))
        return end(cudaErrorInvalidDeviceFunction);
    memset(attributes, 0, sizeof *attributes);
    attributes->numRegs = 32;
    attributes->maxThreadsPerBlock = 1024;
    return end(cudaSuccess);
}

WRAP(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
cudaError_t __wrap_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *entry, int threads,
                                                                 size_t shared) {
    BEGIN();
    if (!fake_kernel_known(entry) || threads < 1 || shared > 232448)
        return end(cudaErrorInvalidDeviceFunction);
    *blocks = 2048 / threads;
    return end(cudaSuccess);
}

/* ---- Memory ---- */

static cudaError_t take(void **memory, size_t size, fake_kind kind) {
    void *taken = fake_take(size, kind, current_device);
    if (!taken)
        return end(cudaErrorMemoryAllocation);
    *memory = taken;
    return end(cudaSuccess);
}

WRAP(cudaMalloc);
cudaError_t __wrap_cudaMalloc(void **memory, size_t size) {
    BEGIN();
    return take(memory, size, FAKE_DEVICE);
}

WRAP(cudaMallocManaged);
cudaError_t __wrap_cudaMallocManaged(void **memory, size_t size, unsigned flags) {
    BEGIN();
    (void)flags;
    return take(memory, size, FAKE_MANAGED);
}

WRAP(cudaHostAlloc);
cudaError_t __wrap_cudaHostAlloc(void **memory, size_t size, unsigned flags) {
    BEGIN();
    (void)flags;
    return take(memory, size, FAKE_PINNED);
}

WRAP(cudaFree);
cudaError_t __wrap_cudaFree(void *memory) {
    BEGIN();
    return end(!memory || fake_give(memory, 0) ? cudaSuccess : cudaErrorInvalidValue);
}

WRAP(cudaFreeHost);
cudaError_t __wrap_cudaFreeHost(void *memory) {
    BEGIN();
    return end(!memory || fake_give(memory, 1) ? cudaSuccess : cudaErrorInvalidValue);
}

WRAP(cudaMemGetInfo);
cudaError_t __wrap_cudaMemGetInfo(size_t *available, size_t *total) {
    BEGIN();
    *available = *total = (size_t)1 << 30;
    return end(cudaSuccess);
}

WRAP(cudaMemcpy);
cudaError_t __wrap_cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    BEGIN();
    (void)kind;
    run_queue(&legacy.work);
    fake_expose(1);
    memmove(to, from, size);
    fake_expose(0);
    return end(cudaSuccess);
}

WRAP(cudaMemcpyAsync);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
    BEGIN();
    (void)kind;
    const work item = {.type = COPY, .to = to, .from = from, .size = size};
    return end(enqueue(stream, &item));
}

WRAP(cudaMemsetAsync);
cudaError_t __wrap_cudaMemsetAsync(void *to, int byte, size_t size, cudaStream_t stream) {
    BEGIN();
    if (!fake_find(to, size))
        return end(cudaErrorInvalidValue);
    const work item = {.type = FILL, .to = to, .size = size, .byte = byte};
    return end(enqueue(stream, &item));
}

/* ---- Streams ---- */

WRAP(cudaStreamCreateWithFlags);
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    BEGIN();
    (void)flags;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return end(cudaErrorMemoryAllocation);
    stream->id = next_stream_id++;
    stream->next = legacy.next;
    legacy.next = stream;
    objects_alive++;
    *out = stream;
    return end(cudaSuccess);
}

WRAP(cudaStreamDestroy);
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) {
    BEGIN();
    for (struct CUstream_st *s = &legacy; s->next; s = s->next) {
        if (s->next != stream)
            continue;
        run_queue(&stream->work); /* destroying a stream leaves its work running */
        s->next = stream->next;
        free(stream);
        objects_alive--;
        return end(cudaSuccess);
    }
    return end(cudaErrorInvalidResourceHandle);
}

WRAP(cudaStreamSynchronize);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
    const cudaError_t injected = begin("cudaStreamSynchronize");
    stream = stream_of(stream);
    if (injected != cudaSuccess) {
        lose_work(stream);
        return injected;
    }
    if (!is_live(stream))
        return end(cudaErrorInvalidResourceHandle);
    if (stream->captured)
        return end(cudaErrorStreamCaptureUnsupported);
    run_queue(&stream->work);
    return end(cudaSuccess);
}

WRAP(cudaDeviceSynchronize);
cudaError_t __wrap_cudaDeviceSynchronize(void) {
    const cudaError_t injected = begin("cudaDeviceSynchronize");
    if (injected != cudaSuccess) {
        lose_work(NULL);
        return injected;
    }
    for (struct CUstream_st *s = streams; s; s = s->next)
        run_queue(&s->work);
    return end(cudaSuccess);
}

WRAP(cudaStreamGetId);
cudaError_t __wrap_cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    BEGIN();
    if (!is_live(stream_of(stream)))
        return end(cudaErrorInvalidResourceHandle);
    *id = stream_of(stream)->id;
    return end(cudaSuccess);
}

WRAP(cudaLaunchKernelExC);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *entry, void **arguments) {
    BEGIN();
    work item = {.type = KERNEL};
    const char *wrong = fake_kernel_prepare(config, entry, arguments, &item.launch);
    if (wrong) {
        violate(wrong);
        return end(cudaErrorInvalidValue);
    }
    return end(enqueue(config->stream, &item));
}

WRAP(cudaLaunchKernel);
cudaError_t __wrap_cudaLaunchKernel(const void *entry, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
    (void)entry, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    violate("a kernel is launched by its C++ name");
    return cudaErrorNotSupported;
}

/* ---- Capture and graphs ---- */

WRAP(cudaThreadExchangeStreamCaptureMode);
cudaError_t __wrap_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    static _Thread_local enum cudaStreamCaptureMode of_thread = cudaStreamCaptureModeGlobal;
    BEGIN();
    const enum cudaStreamCaptureMode old = of_thread;
    of_thread = *mode;
    *mode = old;
    return end(cudaSuccess);
}

WRAP(cudaStreamBeginCapture);
cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    BEGIN();
    (void)mode;
    if (!stream || !is_live(stream))
        return end(cudaErrorStreamCaptureUnsupported);
    stream->captured = calloc(1, sizeof *stream->captured);
    if (!stream->captured)
        return end(cudaErrorMemoryAllocation);
    stream->captured->owners = 1;
    objects_alive++;
    return end(cudaSuccess);
}

WRAP(cudaStreamEndCapture);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    BEGIN();
    if (!stream || !is_live(stream) || !stream->captured)
        return end(cudaErrorIllegalState);
    *graph = stream->captured;
    stream->captured = NULL;
    return end(cudaSuccess);
}

WRAP(cudaStreamGetCaptureInfo);
cudaError_t __wrap_cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                            unsigned long long *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                                            size_t *count) {
    BEGIN();
    (void)id, (void)dependencies, (void)edges, (void)count;
    stream = stream_of(stream);
    if (!is_live(stream))
        return end(cudaErrorInvalidResourceHandle);
    *status = stream->captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (stream->captured && graph)
        *graph = stream->captured;
    return end(cudaSuccess);
}

WRAP(cudaUserObjectCreate);
cudaError_t __wrap_cudaUserObjectCreate(cudaUserObject_t *out, void *user, cudaHostFn_t destroy, unsigned references,
                                        unsigned flags) {
    BEGIN();
    if (references != 1 || flags != cudaUserObjectNoDestructorSync)
        return end(cudaErrorInvalidValue);
    struct CUuserObject_st *object = calloc(1, sizeof *object);
    if (!object)
        return end(cudaErrorMemoryAllocation);
    *object = (struct CUuserObject_st){NULL, destroy, user};
    objects_alive++;
    *out = object;
    return end(cudaSuccess);
}

/* Destructors take the library's locks, so the fake's must be free. */
static void end_object(struct CUuserObject_st *object) {
    objects_alive--;
    pthread_mutex_unlock(&lock);
    object->destroy(object->user);
    free(object);
    pthread_mutex_lock(&lock);
}

WRAP(cudaUserObjectRelease);
cudaError_t __wrap_cudaUserObjectRelease(cudaUserObject_t object, unsigned references) {
    BEGIN();
    if (references != 1)
        return end(cudaErrorInvalidValue);
    end_object(object);
    return end(cudaSuccess);
}

WRAP(cudaGraphRetainUserObject);
cudaError_t __wrap_cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned references,
                                             unsigned flags) {
    BEGIN();
    if (references != 1 || flags != cudaGraphUserObjectMove)
        return end(cudaErrorInvalidValue);
    object->next = graph->objects;
    graph->objects = object;
    return end(cudaSuccess);
}

static void release_graph(cudaGraph_t graph) {
    if (--graph->owners > 0)
        return;
    for (struct CUuserObject_st *object = graph->objects, *next; object; object = next) {
        next = object->next;
        end_object(object);
    }
    discard(&graph->work);
    free(graph);
    objects_alive--;
}

WRAP(cudaGraphInstantiateWithFlags);
cudaError_t __wrap_cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    BEGIN();
    (void)flags;
    struct CUgraphExec_st *run = calloc(1, sizeof *run);
    if (!run)
        return end(cudaErrorMemoryAllocation);
    run->graph = graph;
    graph->owners++;
    objects_alive++;
    *out = run;
    return end(cudaSuccess);
}

WRAP(cudaGraphLaunch);
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t stream) {
    BEGIN();
    cudaError_t error = cudaSuccess;
    for (const work *w = run->graph->work.first; w && error == cudaSuccess; w = w->next)
        error = enqueue(stream, w);
    return end(error);
}

WRAP(cudaGraphDestroy);
cudaError_t __wrap_cudaGraphDestroy(cudaGraph_t graph) {
    BEGIN();
    release_graph(graph);
    return end(cudaSuccess);
}

WRAP(cudaGraphExecDestroy);
cudaError_t __wrap_cudaGraphExecDestroy(cudaGraphExec_t run) {
    BEGIN();
    release_graph(run->graph);
    free(run);
    objects_alive--;
    return end(cudaSuccess);
}

/* ---- The driver's functions that the library asks for ---- */

static void put_attribute(CUpointer_attribute attribute, const fake_block *block, CUdeviceptr pointer, void *value) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = !block ? 0 : block->kind == FAKE_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = block && block->kind == FAKE_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = block ? block->device : -2;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = block ? pointer : 0;
        break;
    default:
        violate("the fake driver does not know a pointer attribute that is asked for");
    }
}

static CUresult CUDAAPI fake_pointer_attributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                                CUdeviceptr pointer) {
    if (!enter("cuPointerGetAttributes")) /* the driver's errors are not the runtime's to keep */
        return CUDA_ERROR_UNKNOWN;
    const fake_block *block = fake_find((const void *)(uintptr_t)pointer, 1);
    for (unsigned i = 0; i < count; i++)
        put_attribute(attributes[i], block, pointer, values[i]);
    (void)end(cudaSuccess);
    return CUDA_SUCCESS;
}

WRAP(cudaGetDriverEntryPointByVersion);
cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                                    unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *result) {
    BEGIN();
    (void)version, (void)flags;
    const int known = strcmp(name, "cuPointerGetAttributes") == 0;
    *entry = known ? (void *)(uintptr_t)fake_pointer_attributes : NULL;
    *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (!known)
        violate("the fake driver does not know a function that is asked for");
    return end(cudaSuccess);
}
