#include "workspaces.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "capture.h"
#include "home.h"
#include "log.h"

/* The workspace of a captured run. */
typedef struct graph_memory {
    struct graph_memory *next;
    dpr_workspaces *owner;
    void *memory;
    atomic_int ended; /* 1: its graph is gone, and nobody uses the memory any more */
} graph_memory;

struct dpr_workspaces {
    dpr_home home;
    atomic_int users; /* the device and existing graphs; the last one to go frees host memory */
    atomic_int ended; /* graphs that are gone and whose memory is not freed yet */
    _Atomic(cudaMemPool_t) pool;
    pthread_mutex_t lock; /* protects the list of_graphs */
    graph_memory *of_graphs;
};

dpr_workspaces *dpr_workspaces_create(const dpr_home *home) {
    dpr_workspaces *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->home = *home;
    atomic_init(&work->users, 1);
    pthread_mutex_init(&work->lock, NULL);
    return work;
}

/* Removes the entries whose graphs are gone from the list, and returns them as a list. */
static graph_memory *take_ended(dpr_workspaces *work) {
    graph_memory *taken = NULL;
    pthread_mutex_lock(&work->lock);
    /* Reset before the search: a graph that ends now is found by this search or the next one. */
    atomic_store(&work->ended, 0);
    for (graph_memory **at = &work->of_graphs; *at;) {
        graph_memory *m = *at;
        if (!atomic_load(&m->ended)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = taken;
        taken = m;
    }
    pthread_mutex_unlock(&work->lock);
    return taken;
}

static void let_go(dpr_workspaces *work) {
    if (atomic_fetch_sub(&work->users, 1) != 1)
        return;
    for (graph_memory *m = work->of_graphs, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    pthread_mutex_destroy(&work->lock);
    free(work);
}

void dpr_workspaces_destroy(dpr_workspaces *work, int there) {
    if (!work)
        return;
    int failures = 0;
    for (graph_memory *m = work->of_graphs; m && there; m = m->next)
        failures += cudaFree(m->memory) != cudaSuccess;
    if (there && atomic_load(&work->pool))
        failures += cudaMemPoolDestroy(atomic_load(&work->pool)) != cudaSuccess;
    if (failures > 0)
        (void)cudaGetLastError();
    let_go(work);
}

/* ---- Memory ---- */

/* Memory that a run frees stays in the pool for the next run. */
static cudaError_t create_pool(int ordinal, cudaMemPool_t *out) {
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = ordinal},
    };
    cudaError_t error = cudaMemPoolCreate(out, &properties);
    if (error != cudaSuccess)
        return error;
    uint64_t all = UINT64_MAX;
    error = cudaMemPoolSetAttribute(*out, cudaMemPoolAttrReleaseThreshold, &all);
    if (error != cudaSuccess)
        (void)cudaMemPoolDestroy(*out);
    return error;
}

static cudaError_t pool_of(dpr_workspaces *work, cudaMemPool_t *out) {
    *out = atomic_load(&work->pool);
    if (*out)
        return cudaSuccess;
    cudaMemPool_t made, there = NULL;
    const int mode = dpr_capture_relax();
    const cudaError_t error = create_pool(work->home.ordinal, &made);
    dpr_capture_restore(mode);
    if (error != cudaSuccess)
        return error;
    if (atomic_compare_exchange_strong(&work->pool, &there, made)) {
        *out = made;
    } else { /* another thread was quicker */
        (void)cudaMemPoolDestroy(made);
        *out = there;
    }
    return cudaSuccess;
}

/* ---- Runs ---- */

/* The destructor of a graph's user object. CUDA allows no CUDA calls in it. It takes no lock either, because a thread
 * that holds one may be waiting for the device, and the device for the thread that calls this. */
static void CUDART_CB graph_ended(void *user) {
    graph_memory *m = user;
    dpr_workspaces *work = m->owner;
    atomic_store(&m->ended, 1); /* the last access to `m`: whoever finds it ended frees it */
    atomic_fetch_add(&work->ended, 1);
    let_go(work);
}

/* Frees the memory of graphs that are gone, in the order of any stream. */
static void free_ended(dpr_workspaces *work, cudaStream_t stream) {
    if (atomic_load(&work->ended) == 0)
        return;
    for (graph_memory *m = take_ended(work), *next; m; m = next) {
        next = m->next;
        if (cudaFreeAsync(m->memory, stream) != cudaSuccess)
            (void)cudaGetLastError();
        free(m);
    }
}

/* Allocates from the pool in a stream of its own, because the run's stream is being captured. Also frees the memory of
 * graphs that are gone, because there may never be a run that is not captured. */
static cudaError_t allocate_apart(dpr_workspaces *work, cudaMemPool_t pool, size_t bytes, void **out) {
    cudaStream_t stream;
    cudaError_t error = dpr_home_begin_apart(&stream);
    if (error != cudaSuccess)
        return error;
    free_ended(work, stream);
    const cudaError_t allocated = cudaMallocFromPoolAsync(out, bytes, pool, stream);
    error = dpr_home_end_apart(stream, allocated);
    if (error != cudaSuccess && allocated == cudaSuccess)
        (void)cudaFree(*out);
    return error;
}

/* Allocates memory that belongs to the graph. */
static cudaError_t allocate_for_graph(dpr_workspaces *work, cudaMemPool_t pool, size_t bytes, cudaGraph_t graph,
                                      void **out) {
    graph_memory *m = calloc(1, sizeof *m);
    if (!m)
        return cudaErrorMemoryAllocation;
    cudaUserObject_t object;
    cudaError_t error = allocate_apart(work, pool, bytes, &m->memory);
    if (error != cudaSuccess) {
        free(m);
        return error;
    }
    m->owner = work;
    error = cudaUserObjectCreate(&object, m, graph_ended, 1, cudaUserObjectNoDestructorSync);
    if (error != cudaSuccess) {
        (void)cudaFree(m->memory);
        free(m);
        return error;
    }
    atomic_fetch_add(&work->users, 1);
    pthread_mutex_lock(&work->lock);
    m->next = work->of_graphs;
    work->of_graphs = m;
    pthread_mutex_unlock(&work->lock);
    *out = m->memory;
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess)
        (void)cudaUserObjectRelease(object, 1); /* this calls graph_ended() */
    return error;
}

cudaError_t dpr_workspaces_allocate(dpr_workspaces *work, size_t bytes, cudaStream_t stream, void **out) {
    cudaMemPool_t pool = NULL;
    const cudaError_t error = pool_of(work, &pool);
    if (error != cudaSuccess)
        return error;
    free_ended(work, stream);
    return cudaMallocFromPoolAsync(out, bytes, pool, stream);
}

/* As dpr_workspaces_allocate(), while the run's stream is being captured to `graph`. */
static cudaError_t allocate_captured(dpr_workspaces *work, size_t bytes, cudaGraph_t graph, void **out) {
    cudaMemPool_t pool = NULL;
    const cudaError_t error = pool_of(work, &pool);
    return error == cudaSuccess ? allocate_for_graph(work, pool, bytes, graph, out) : error;
}

cudaError_t dpr_workspaces_take(dpr_workspaces *work, size_t bytes, cudaStream_t stream, cudaGraph_t graph,
                                void **out) {
    const int mode = dpr_capture_relax(); /* this stream or another one may be being captured */
    const cudaError_t error =
        graph ? allocate_captured(work, bytes, graph, out) : dpr_workspaces_allocate(work, bytes, stream, out);
    dpr_capture_restore(mode);
    if (error == cudaSuccess && DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "%zu bytes of workspace at %p for a run in stream %p%s", bytes, *out, (void *)stream,
                graph ? ", which is being captured" : "");
    return error;
}

/* In the order of the stream; or, if that is the legacy default stream and a capture forbids it, after all work. */
static cudaError_t free_in(cudaStream_t stream, void *memory) {
    if ((stream && stream != cudaStreamLegacy) || dpr_home_has_legacy())
        return cudaFreeAsync(memory, stream);
    const cudaError_t error = dpr_home_wait();
    return error == cudaSuccess ? cudaFree(memory) : error;
}

void dpr_workspaces_give_back(void *memory, cudaStream_t stream, cudaGraph_t graph) {
    if (graph)
        return;
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "the workspace at %p goes back in stream %p", memory, (void *)stream);
    const int mode = dpr_capture_relax(); /* other streams may be being captured */
    cudaError_t error = free_in(stream, memory);
    if (error == cudaErrorStreamCaptureImplicit) /* the capture has begun after free_in() had looked */
        error = free_in(stream, memory);
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* a run that leaks its memory still gives its result */
    dpr_capture_restore(mode);
}
