#include "scratch.h"

#include <pthread.h>
#include <stdlib.h>

#include "strategy.h"

/* 3 MiB of the 4 MiB that a context may hold. */
enum { SLOTS_PER_SLAB = 192, RECENT = 64 };

typedef struct slab slab;

struct dpr_slot {
    slab *home;
    unsigned long long stream; /* its owner's cudaStreamGetId, while state is OF_STREAM */
    unsigned pins;             /* runs about to be enqueued */
    enum { FREE, OF_STREAM, OF_GRAPH } state;
    unsigned char *memory;
};

/* A slab is given back when its context is gone and no graph holds a slot of it. */
struct slab {
    slab *next;
    dpr_scratch *owner;
    unsigned char *memory;
    dpr_slot slot[SLOTS_PER_SLAB];
};

struct dpr_scratch {
    pthread_mutex_t lock;
    slab *slabs;
    dpr_slot *recent[RECENT]; /* by stream; a hint that find_of_stream() checks */
    unsigned graph_slots;
    int closed; /* dpr_scratch_destroy() was called; the last graph's end frees everything */
};

/* Allocations are allowed in this thread although a stream somewhere is being captured: they do not touch that stream.
 */
static enum cudaStreamCaptureMode relax_capture(void) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static void restore_capture(enum cudaStreamCaptureMode mode) {
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
}

/* Zeroes in a stream of its own, as the default stream may not be used while another is captured. */
static cudaError_t zero(void *memory, size_t bytes) {
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return error;
    error = cudaMemsetAsync(memory, 0, bytes, stream);
    const cudaError_t waited = cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
    return error != cudaSuccess ? error : waited;
}

static cudaError_t add_slab(dpr_scratch *scratch) {
    slab *s = calloc(1, sizeof *s);
    if (!s)
        return cudaErrorMemoryAllocation;
    const size_t bytes = (size_t)SLOTS_PER_SLAB * DPR_SCRATCH_BYTES;
    const enum cudaStreamCaptureMode mode = relax_capture();
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) {
        error = zero(memory, bytes);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    restore_capture(mode);
    if (error != cudaSuccess) {
        free(s);
        return error;
    }
    s->owner = scratch;
    s->memory = memory;
    for (int i = 0; i < SLOTS_PER_SLAB; i++) {
        s->slot[i].home = s;
        s->slot[i].memory = s->memory + (size_t)i * DPR_SCRATCH_BYTES;
    }
    s->next = scratch->slabs;
    scratch->slabs = s;
    return cudaSuccess;
}

cudaError_t dpr_scratch_create(dpr_scratch **out) {
    dpr_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch)
        return cudaErrorMemoryAllocation;
    pthread_mutex_init(&scratch->lock, NULL);
    const cudaError_t error = add_slab(scratch);
    if (error != cudaSuccess) {
        pthread_mutex_destroy(&scratch->lock);
        free(scratch);
        return error;
    }
    *out = scratch;
    return cudaSuccess;
}

/* Called with the lock held; releases it. */
static void free_all(dpr_scratch *scratch) {
    pthread_mutex_unlock(&scratch->lock);
    pthread_mutex_destroy(&scratch->lock);
    for (slab *s = scratch->slabs, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    free(scratch);
}

void dpr_scratch_destroy(dpr_scratch *scratch) {
    pthread_mutex_lock(&scratch->lock);
    for (slab *s = scratch->slabs; s; s = s->next)
        (void)cudaFree(s->memory);
    scratch->closed = 1;
    if (scratch->graph_slots == 0)
        free_all(scratch);
    else
        pthread_mutex_unlock(&scratch->lock);
}

/* The destructor of a graph's user object: CUDA allows no CUDA calls in it. */
static void CUDART_CB graph_ended(void *user) {
    dpr_slot *slot = user;
    dpr_scratch *scratch = slot->home->owner;
    pthread_mutex_lock(&scratch->lock);
    slot->state = FREE;
    scratch->graph_slots--;
    if (scratch->closed && scratch->graph_slots == 0)
        free_all(scratch);
    else
        pthread_mutex_unlock(&scratch->lock);
}

static dpr_slot *find_of_stream(dpr_scratch *scratch, unsigned long long stream) {
    dpr_slot *recent = scratch->recent[stream % RECENT];
    if (recent && recent->state == OF_STREAM && recent->stream == stream)
        return recent;
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            if (s->slot[i].state == OF_STREAM && s->slot[i].stream == stream)
                return &s->slot[i];
        }
    }
    return NULL;
}

static dpr_slot *find_free(dpr_scratch *scratch) {
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            if (s->slot[i].state == FREE)
                return &s->slot[i];
        }
    }
    return NULL;
}

/* A free slot, of a new slab if need be. */
static cudaError_t take_free(dpr_scratch *scratch, dpr_slot **out) {
    *out = find_free(scratch);
    if (*out)
        return cudaSuccess;
    const cudaError_t error = add_slab(scratch);
    if (error == cudaSuccess)
        *out = find_free(scratch);
    return error;
}

/* Streams may have been destroyed with their work still running, so only the whole device's silence frees their slots.
 */
static cudaError_t reclaim(dpr_scratch *scratch) {
    const enum cudaStreamCaptureMode mode = relax_capture();
    const cudaError_t error = cudaDeviceSynchronize();
    restore_capture(mode);
    if (error != cudaSuccess)
        return error;
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            if (s->slot[i].state == OF_STREAM && s->slot[i].pins == 0)
                s->slot[i].state = FREE;
        }
    }
    return cudaSuccess;
}

static cudaError_t pin_for_stream(dpr_scratch *scratch, cudaStream_t stream, dpr_slot **out) {
    unsigned long long id;
    cudaError_t error = cudaStreamGetId(stream, &id);
    if (error != cudaSuccess)
        return error;
    dpr_slot *slot = find_of_stream(scratch, id);
    if (!slot) {
        /* Where waiting is not allowed, as during a capture elsewhere, there is a new slab. */
        if (!find_free(scratch) && reclaim(scratch) != cudaSuccess)
            (void)cudaGetLastError();
        error = take_free(scratch, &slot);
        if (error != cudaSuccess)
            return error;
    }
    scratch->recent[id % RECENT] = slot;
    slot->state = OF_STREAM;
    slot->stream = id;
    slot->pins++;
    *out = slot;
    return cudaSuccess;
}

static cudaError_t pin_for_graph(dpr_scratch *scratch, cudaGraph_t graph, dpr_slot **out) {
    dpr_slot *slot;
    cudaError_t error = take_free(scratch, &slot);
    if (error != cudaSuccess)
        return error;
    cudaUserObject_t object;
    error = cudaUserObjectCreate(&object, slot, graph_ended, 1, cudaUserObjectNoDestructorSync);
    if (error != cudaSuccess)
        return error;
    slot->state = OF_GRAPH;
    scratch->graph_slots++;
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess) {
        /* Its destructor takes the lock. */
        pthread_mutex_unlock(&scratch->lock);
        (void)cudaUserObjectRelease(object, 1);
        pthread_mutex_lock(&scratch->lock);
        return error;
    }
    slot->pins++;
    *out = slot;
    return cudaSuccess;
}

cudaError_t dpr_scratch_pin(dpr_scratch *scratch, cudaStream_t stream, dpr_slot **out) {
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
#if CUDART_VERSION >= 13000
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL);
#else
    cudaError_t error = cudaStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, NULL, NULL);
#endif
    if (error != cudaSuccess)
        return error;
    pthread_mutex_lock(&scratch->lock);
    error = status == cudaStreamCaptureStatusNone ? pin_for_stream(scratch, stream, out)
                                                  : pin_for_graph(scratch, graph, out);
    pthread_mutex_unlock(&scratch->lock);
    return error;
}

void dpr_scratch_unpin(dpr_scratch *scratch, dpr_slot *slot) {
    pthread_mutex_lock(&scratch->lock);
    slot->pins--;
    pthread_mutex_unlock(&scratch->lock);
}

void *dpr_slot_memory(const dpr_slot *slot) {
    return slot->memory;
}
