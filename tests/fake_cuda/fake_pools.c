/* Memory in stream order. */
#include <stdlib.h>

#include "fake_cuda.h"
#include "fake_device.h"
#include "fake_memory.h"
#include "fake_state.h"
#include "fake_streams.h"

struct CUmemPoolHandle_st {
    struct CUmemPoolHandle_st *next;
    int device;
};

/* What pools have handed out. */
typedef struct handed {
    struct handed *next;
    void *memory;
    size_t size;
    int going; /* its return is in a stream's queue */
} handed;

static cudaMemPool_t pools;
static handed *out_there;

/* ---- Pools ---- */

/* The link that leads to a live pool, or NULL. */
static cudaMemPool_t *link_to(cudaMemPool_t pool) {
    for (cudaMemPool_t *link = &pools; *link; link = &(*link)->next)
        if (*link == pool)
            return link;
    fake_violate("a memory pool is used that is not there");
    return NULL;
}

WRAP(cudaMemPoolCreate);
cudaError_t __wrap_cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *properties) {
    FAKE_BEGIN();
    if (properties->allocType != cudaMemAllocationTypePinned || properties->location.type != cudaMemLocationTypeDevice
        || properties->location.id < 0 || properties->location.id >= FAKE_DEVICES)
        return fake_end(cudaErrorInvalidValue);
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    cudaMemPool_t pool = calloc(1, sizeof *pool);
    if (!pool)
        return fake_end(cudaErrorMemoryAllocation);
    *pool = (struct CUmemPoolHandle_st){pools, properties->location.id};
    pools = pool;
    fake_count_objects(1);
    *out = pool;
    return fake_end(cudaSuccess);
}

WRAP(cudaMemPoolSetAttribute);
cudaError_t __wrap_cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    FAKE_BEGIN();
    const int good = link_to(pool) && attribute == cudaMemPoolAttrReleaseThreshold && value;
    return fake_end(good ? cudaSuccess : cudaErrorInvalidValue);
}

/* What is still out stays until it is given back. */
WRAP(cudaMemPoolDestroy);
cudaError_t __wrap_cudaMemPoolDestroy(cudaMemPool_t pool) {
    FAKE_BEGIN();
    cudaMemPool_t *link = link_to(pool);
    if (!link)
        return fake_end(cudaErrorInvalidValue);
    *link = pool->next;
    free(pool);
    fake_count_objects(-1);
    return fake_end(cudaSuccess);
}

/* ---- Their memory ---- */

static handed **link_to_handed(const void *memory) {
    handed **link = &out_there;
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    return link;
}

int fake_pool_take_back(void *memory) {
    handed **link = link_to_handed(memory), *gone = *link;
    if (!gone)
        return 0;
    *link = gone->next;
    free(gone);
    return fake_give(memory, 0);
}

/* The stream, if memory can be taken and given back in its order. */
static cudaStream_t stream_for_memory(cudaStream_t stream) {
    stream = fake_stream_of(stream);
    if (!fake_stream_is_live(stream))
        return NULL;
    if (stream->captured) /* such a graph could have one instance only, and not be launched by a kernel */
        fake_violate("memory is taken or given back in a stream that is being captured");
    return stream->captured ? NULL : stream;
}

/* Whether so much is left. What is on its way back can be handed out again, in the order of the streams. */
static int has_room(size_t size) {
    size_t left = fake_memory_left();
    for (const handed *h = out_there; h; h = h->next)
        left += h->going ? h->size : 0;
    return size <= left;
}

/* There at once, and not when the stream gets there: what is too early is not noticed. */
WRAP(cudaMallocFromPoolAsync);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
    FAKE_BEGIN();
    if (fake_legacy_spoils(stream))
        return fake_end(cudaErrorStreamCaptureImplicit);
    stream = stream_for_memory(stream);
    if (!stream)
        return fake_end(cudaErrorInvalidResourceHandle);
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    if (!link_to(pool))
        return fake_end(cudaErrorInvalidValue);
    handed *one = malloc(sizeof *one);
    void *memory = one && has_room(size) ? fake_take_for_pool(size, pool->device) : NULL;
    if (!memory) {
        free(one);
        return fake_end(cudaErrorMemoryAllocation);
    }
    *one = (handed){out_there, memory, size, 0};
    out_there = one;
    stream->after_kernel = 0;
    *out = memory;
    return fake_end(cudaSuccess);
}

WRAP(cudaFreeAsync);
cudaError_t __wrap_cudaFreeAsync(void *memory, cudaStream_t stream) {
    FAKE_BEGIN();
    if (fake_legacy_spoils(stream))
        return fake_end(cudaErrorStreamCaptureImplicit);
    stream = stream_for_memory(stream);
    if (!stream)
        return fake_end(cudaErrorInvalidResourceHandle);
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    handed *one = *link_to_handed(memory);
    if (!one || one->going) {
        fake_violate("memory is given back that no pool has handed out, or twice");
        return fake_end(cudaErrorInvalidValue);
    }
    one->going = 1;
    const fake_work item = {.type = FAKE_GIVE, .to = memory};
    return fake_end(fake_enqueue(stream, &item));
}
