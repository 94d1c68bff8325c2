#include "scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "capture.h"
#include "home.h"
#include "log.h"
#include "strategy.h"

/* A slab is 4 MiB. More slabs than MOST_SLABS are made only for captured calls, or when reclaim() can free none. */
enum { SLOTS_PER_SLAB = (4 << 20) / DPR_SCRATCH_BYTES, MOST_SLABS = 8, RECENT = 4096 };

typedef struct slab slab;

/* The state of a slot, in the low bits of its `use`. The other bits count its pins: the runs about to be enqueued.
 * `use` changes under the lock, with these exceptions: pins, a slot OF_STREAM that becomes SPOILT, and a slot OF_GRAPH
 * whose graph is destroyed. */
enum { FREE = 0, OF_STREAM = 1, OF_GRAPH = 2, CLOSING = 3, SPOILT = 4, STATES = 7, ONE_PIN = 8 };

struct dpr_slot {
    slab *home;
    pthread_mutex_t enqueuing; /* held by the run that is being enqueued */
    unsigned char *memory;
    atomic_uint use;
    atomic_ullong stream; /* while OF_STREAM: number of the stream; does not change while there are pins */
    int sms;              /* SMs of the stream, or of the one that was captured; changes with its owner */
};

/* The host memory of all slabs is freed when the device is closed and no graph holds a slot. */
struct slab {
    slab *next;
    dpr_scratch *owner;
    unsigned char *memory;
    dpr_slot slot[SLOTS_PER_SLAB];
};

struct dpr_scratch {
    dpr_home home;
    atomic_int users; /* 1 for the open device, and 1 for each slot OF_GRAPH; at 0, host memory is freed */
    pthread_mutex_t lock;
    slab *slabs;
    int slab_count;
    int reclaiming;                     /* reclaim() is waiting, without the lock */
    _Atomic(dpr_slot *) recent[RECENT]; /* by the stream's number; a hint that pin_recent() checks */
};

/* Zeroes device memory in a stream apart, because the default stream may not be used while another is captured. */
static cudaError_t zero(void *memory, size_t bytes) {
    cudaStream_t stream;
    const cudaError_t error = dpr_home_begin_apart(&stream);
    if (error != cudaSuccess)
        return error;
    return dpr_home_end_apart(stream, cudaMemsetAsync(memory, 0, bytes, stream));
}

static cudaError_t add_slab(dpr_scratch *scratch) {
    slab *s = calloc(1, sizeof *s);
    if (!s)
        return cudaErrorMemoryAllocation;
    const size_t bytes = (size_t)SLOTS_PER_SLAB * DPR_SCRATCH_BYTES;
    const int mode = dpr_capture_relax();
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) {
        error = zero(memory, bytes);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    dpr_capture_restore(mode);
    if (error != cudaSuccess) {
        free(s);
        return error;
    }
    s->owner = scratch;
    s->memory = memory;
    for (int i = 0; i < SLOTS_PER_SLAB; i++) {
        pthread_mutex_init(&s->slot[i].enqueuing, NULL);
        s->slot[i].home = s;
        s->slot[i].memory = s->memory + (size_t)i * DPR_SCRATCH_BYTES;
    }
    s->next = scratch->slabs;
    scratch->slabs = s;
    scratch->slab_count++;
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "%zu bytes of scratch memory at %p on device %d, the context's %d. piece", bytes,
                memory, scratch->home.ordinal, scratch->slab_count);
    return cudaSuccess;
}

static void let_go(dpr_scratch *scratch) {
    if (atomic_fetch_sub(&scratch->users, 1) != 1)
        return;
    pthread_mutex_destroy(&scratch->lock);
    for (slab *s = scratch->slabs, *next; s; s = next) {
        next = s->next;
        for (int i = 0; i < SLOTS_PER_SLAB; i++)
            pthread_mutex_destroy(&s->slot[i].enqueuing);
        free(s);
    }
    free(scratch);
}

cudaError_t dpr_scratch_create(const dpr_home *home, dpr_scratch **out) {
    dpr_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch)
        return cudaErrorMemoryAllocation;
    scratch->home = *home;
    atomic_init(&scratch->users, 1);
    pthread_mutex_init(&scratch->lock, NULL);
    const cudaError_t error = add_slab(scratch);
    if (error == cudaSuccess)
        *out = scratch;
    else
        let_go(scratch);
    return error;
}

void dpr_scratch_destroy(dpr_scratch *scratch, int there) {
    if (!scratch)
        return;
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "%d pieces of scratch memory go back to device %d", scratch->slab_count,
                scratch->home.ordinal);
    for (slab *s = scratch->slabs; s && there; s = s->next)
        if (cudaFree(s->memory) != cudaSuccess)
            (void)cudaGetLastError();
    let_go(scratch);
}

/* The destructor of a graph's user object, in which CUDA allows no CUDA calls. It takes no lock either, because a
 * thread that holds one may be waiting for the device, and the device for the thread that calls this. */
static void CUDART_CB graph_ended(void *user) {
    dpr_slot *slot = user;
    dpr_scratch *scratch = slot->home->owner;
    atomic_fetch_and(&slot->use, ~(unsigned)STATES);
    let_go(scratch);
}

static unsigned state_of(const dpr_slot *slot) {
    return atomic_load(&slot->use) & STATES;
}

static dpr_slot *find_of_stream(dpr_scratch *scratch, unsigned long long stream) {
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            if (state_of(&s->slot[i]) == OF_STREAM && atomic_load(&s->slot[i].stream) == stream)
                return &s->slot[i];
        }
    }
    return NULL;
}

static dpr_slot *find_free(dpr_scratch *scratch) {
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            if (atomic_load(&s->slot[i].use) == FREE)
                return &s->slot[i];
        }
    }
    return NULL;
}

/* Finds a free slot, in a new slab if necessary. */
static cudaError_t take_free(dpr_scratch *scratch, dpr_slot **out) {
    *out = find_free(scratch);
    if (*out)
        return cudaSuccess;
    const cudaError_t error = add_slab(scratch);
    if (error == cudaSuccess)
        *out = find_free(scratch);
    return error;
}

/* Changes all slots without pins that are in state `from` to state `to`. */
static void change_all(dpr_scratch *scratch, unsigned from, unsigned to) {
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            unsigned use = from;
            (void)atomic_compare_exchange_strong(&s->slot[i].use, &use, to);
        }
    }
}

/* Zeroes the slots that failed runs have left SPOILT. */
static void clean_spoilt(dpr_scratch *scratch) {
    for (slab *s = scratch->slabs; s; s = s->next) {
        for (int i = 0; i < SLOTS_PER_SLAB; i++) {
            if (atomic_load(&s->slot[i].use) != SPOILT)
                continue;
            if (zero(s->slot[i].memory, DPR_SCRATCH_BYTES) == cudaSuccess)
                atomic_store(&s->slot[i].use, FREE);
            else
                (void)cudaGetLastError();
        }
    }
}

/* Waits for all work of the device, and frees the slots of streams that had no pins before. A stream may have been
 * destroyed while its work was running, so only an idle device shows that its slot is free. Releases the lock during
 * the wait, because the device's work may be waiting for a thread that needs the lock. */
static cudaError_t reclaim(dpr_scratch *scratch) {
    change_all(scratch, OF_STREAM, CLOSING);
    scratch->reclaiming = 1;
    pthread_mutex_unlock(&scratch->lock);
    const int mode = dpr_capture_relax();
    const cudaError_t error = dpr_home_wait();
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY,
                "all scratch memory was in use: waited for device %d to take back what idle streams have",
                scratch->home.ordinal);
    pthread_mutex_lock(&scratch->lock);
    scratch->reclaiming = 0;
    change_all(scratch, CLOSING, error == cudaSuccess ? FREE : OF_STREAM);
    if (error == cudaSuccess)
        clean_spoilt(scratch);
    dpr_capture_restore(mode);
    return error;
}

/* Finds and pins, without the lock, the slot of a stream that has had a run lately; NULL if there is none. */
static dpr_slot *pin_recent(dpr_scratch *scratch, unsigned long long id) {
    dpr_slot *slot = atomic_load(&scratch->recent[id % RECENT]);
    if (!slot)
        return NULL;
    unsigned use = atomic_load(&slot->use);
    do {
        if ((use & STATES) != OF_STREAM || atomic_load(&slot->stream) != id)
            return NULL;
    } while (!atomic_compare_exchange_weak(&slot->use, &use, use + ONE_PIN));
    if (atomic_load(&slot->stream) == id)
        return slot;
    atomic_fetch_sub(&slot->use, ONE_PIN); /* it got another owner before it was pinned */
    return NULL;
}

static cudaError_t pin_for_stream(dpr_scratch *scratch, unsigned long long id, int sms, dpr_slot **out) {
    dpr_slot *slot = find_of_stream(scratch, id);
    if (slot) {
        atomic_fetch_add(&slot->use, ONE_PIN);
    } else {
        /* If the wait fails, take_free() makes a new slab. */
        if (!find_free(scratch) && scratch->slab_count >= MOST_SLABS && !scratch->reclaiming
            && reclaim(scratch) != cudaSuccess)
            (void)cudaGetLastError();
        const cudaError_t error = take_free(scratch, &slot);
        if (error != cudaSuccess)
            return error;
        slot->sms = sms;
        atomic_store(&slot->stream, id);
        atomic_store(&slot->use, OF_STREAM + ONE_PIN);
    }
    atomic_store(&scratch->recent[id % RECENT], slot);
    *out = slot;
    return cudaSuccess;
}

static cudaError_t pin_for_graph(dpr_scratch *scratch, cudaGraph_t graph, int sms, dpr_slot **out) {
    dpr_slot *slot;
    cudaError_t error = take_free(scratch, &slot);
    if (error != cudaSuccess)
        return error;
    cudaUserObject_t object;
    error = cudaUserObjectCreate(&object, slot, graph_ended, 1, cudaUserObjectNoDestructorSync);
    if (error != cudaSuccess)
        return error;
    slot->sms = sms;
    atomic_fetch_add(&scratch->users, 1);
    atomic_store(&slot->use, OF_GRAPH);
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess) {
        (void)cudaUserObjectRelease(object, 1); /* which calls graph_ended() */
        return error;
    }
    atomic_fetch_add(&slot->use, ONE_PIN);
    *out = slot;
    return cudaSuccess;
}

/* Pins a slot for a stream that has had no run lately, or for a graph. */
static cudaError_t pin_new(dpr_scratch *scratch, cudaStream_t stream, unsigned long long id, cudaGraph_t graph,
                           int *sms, dpr_slot **out) {
    const int wanted = *sms;
    cudaError_t error = dpr_home_stream_sms(&scratch->home, stream, sms);
    if (error != cudaSuccess || *sms != wanted)
        return error;
    pthread_mutex_lock(&scratch->lock);
    error = graph ? pin_for_graph(scratch, graph, wanted, out) : pin_for_stream(scratch, id, wanted, out);
    pthread_mutex_unlock(&scratch->lock);
    if (error == cudaSuccess && DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "scratch memory at %p for %s %p", (void *)(*out)->memory,
                graph ? "the graph captured from stream" : "stream", (void *)stream);
    return error;
}

static cudaError_t pin(dpr_scratch *scratch, cudaStream_t stream, unsigned long long id, cudaGraph_t graph, int *sms,
                       dpr_slot **out) {
    dpr_slot *slot = graph ? NULL : pin_recent(scratch, id);
    *out = NULL;
    if (!slot)
        return pin_new(scratch, stream, id, graph, sms, out);
    const int wanted = *sms;
    *sms = slot->sms;
    if (*sms == wanted)
        *out = slot;
    else
        atomic_fetch_sub(&slot->use, ONE_PIN);
    return cudaSuccess;
}

cudaError_t dpr_scratch_pin(dpr_scratch *scratch, cudaStream_t stream, int *sms, dpr_slot **out,
                            cudaGraph_t *captured_to) {
    unsigned long long id;
    cudaError_t error = dpr_home_identify(stream, &id, captured_to);
    if (error == cudaSuccess)
        error = pin(scratch, stream, id, *captured_to, sms, out);
    if (error != cudaSuccess || !*out)
        return error;
    pthread_mutex_lock(&(*out)->enqueuing);
    if (state_of(*out) != SPOILT)
        return cudaSuccess;
    dpr_scratch_unpin(*out); /* the run before has spoilt it */
    return dpr_scratch_pin(scratch, stream, sms, out, captured_to);
}

void dpr_scratch_unpin(dpr_slot *slot) {
    pthread_mutex_unlock(&slot->enqueuing);
    atomic_fetch_sub(&slot->use, ONE_PIN);
}

void dpr_scratch_clean(dpr_slot *slot, cudaStream_t stream) {
    const int is_usable = (stream && stream != cudaStreamLegacy) || dpr_home_has_legacy();
    if (is_usable && cudaMemsetAsync(slot->memory, 0, DPR_SCRATCH_BYTES, stream) == cudaSuccess)
        return;
    (void)cudaGetLastError();
    unsigned use = atomic_load(&slot->use);
    while ((use & STATES) == OF_STREAM && !atomic_compare_exchange_weak(&slot->use, &use, use - OF_STREAM + SPOILT)) {}
}

void *dpr_slot_memory(const dpr_slot *slot) {
    return slot->memory;
}
