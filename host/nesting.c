#include "nesting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "capture.h"
#include "driver.h"
#include "error.h"

/* Work memory of a captured run. */
typedef struct graph_memory {
    struct graph_memory *next;
    dpr_nesting *owner;
    void *memory;
    int ended; /* its graph is gone, and nobody uses it any more */
} graph_memory;

struct dpr_nesting {
    int ordinal;
    int allowed; /* it has a part in the device's limit */
    _Atomic(cudaMemPool_t) pool;
    pthread_mutex_t lock; /* of what follows */
    graph_memory *of_graphs;
    atomic_int ended; /* of these, whose graphs are gone */
    int closed;       /* dpr_nesting_destroy() was called; the last graph's end frees everything */
};

/* ---- The limit ---- */

enum { MOST_DEVICES = 64 };

/* Of each device what contexts have set, and what was found. */
static struct {
    pthread_mutex_t lock;
    struct {
        int contexts;
        size_t found, set;
    } of[MOST_DEVICES];
} limits = {.lock = PTHREAD_MUTEX_INITIALIZER};

cudaError_t dpr_nesting_pending(size_t *out) {
    return cudaDeviceGetLimit(out, cudaLimitDevRuntimePendingLaunchCount);
}

cudaError_t dpr_nesting_credits(uint32_t *out) {
    size_t pending;
    const cudaError_t error = dpr_nesting_pending(&pending);
    if (error == cudaSuccess)
        *out = dpr_credits_of(pending);
    return error;
}

static dpr_status set_limit(int ordinal, size_t pending) {
    size_t found, now;
    cudaError_t error = dpr_nesting_pending(&found);
    if (error == cudaSuccess)
        error = cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending);
    if (error == cudaSuccess) {
        error = dpr_nesting_pending(&now);
        if (error != cudaSuccess)
            (void)cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, found);
    }
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return dpr_fail(DPR_ERR_INVALID_OPTION, "ctx_options->pending_launches is %zu, which device %d refuses: %s",
                        pending, ordinal, cudaGetErrorString(error));
    }
    if (now < pending) {
        (void)cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, found);
        return dpr_fail(DPR_ERR_INVALID_OPTION, "ctx_options->pending_launches is %zu, and device %d gives %zu",
                        pending, ordinal, now);
    }
    limits.of[ordinal].found = found;
    limits.of[ordinal].set = pending;
    return DPR_OK;
}

dpr_status dpr_nesting_allow(dpr_nesting *nesting, size_t pending) {
    const int ordinal = nesting->ordinal;
    dpr_status status = DPR_OK;
    if (ordinal >= MOST_DEVICES)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "ctx_options->pending_launches is set, and device %d is past the first %d", ordinal,
                        MOST_DEVICES);
    pthread_mutex_lock(&limits.lock);
    if (limits.of[ordinal].contexts == 0)
        status = set_limit(ordinal, pending);
    else if (limits.of[ordinal].set != pending)
        status = dpr_fail(DPR_ERR_INVALID_OPTION,
                          "ctx_options->pending_launches is %zu, and another context has set %zu on device %d", pending,
                          limits.of[ordinal].set, ordinal);
    if (status == DPR_OK) {
        limits.of[ordinal].contexts++;
        nesting->allowed = 1;
    }
    pthread_mutex_unlock(&limits.lock);
    return status;
}

/* Only on the device: the limit of another is none of ours. */
static void put_limit_back(int ordinal) {
    pthread_mutex_lock(&limits.lock);
    if (--limits.of[ordinal].contexts == 0 && dpr_driver_is_current(ordinal)
        && cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, limits.of[ordinal].found) != cudaSuccess)
        (void)cudaGetLastError();
    pthread_mutex_unlock(&limits.lock);
}

dpr_nesting *dpr_nesting_create(int ordinal) {
    dpr_nesting *nesting = calloc(1, sizeof *nesting);
    if (!nesting)
        return NULL;
    nesting->ordinal = ordinal;
    pthread_mutex_init(&nesting->lock, NULL);
    return nesting;
}

/* Takes those whose graphs are gone out of the list, and returns them as one. With the lock held. */
static graph_memory *take_ended(dpr_nesting *nesting) {
    graph_memory *taken = NULL;
    for (graph_memory **at = &nesting->of_graphs; *at;) {
        graph_memory *m = *at;
        if (!m->ended) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = taken;
        taken = m;
    }
    atomic_store(&nesting->ended, 0);
    return taken;
}

/* Called with the lock held; releases it. */
static void leave(dpr_nesting *nesting) {
    for (graph_memory *m = nesting->closed ? take_ended(nesting) : NULL, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    const int over = nesting->closed && !nesting->of_graphs;
    pthread_mutex_unlock(&nesting->lock);
    if (over) {
        pthread_mutex_destroy(&nesting->lock);
        free(nesting);
    }
}

void dpr_nesting_destroy(dpr_nesting *nesting) {
    if (!nesting)
        return;
    pthread_mutex_lock(&nesting->lock);
    for (graph_memory *m = nesting->of_graphs; m; m = m->next)
        (void)cudaFree(m->memory);
    if (atomic_load(&nesting->pool))
        (void)cudaMemPoolDestroy(atomic_load(&nesting->pool));
    if (nesting->allowed)
        put_limit_back(nesting->ordinal);
    nesting->closed = 1;
    leave(nesting);
}

/* ---- Memory ---- */

/* What a run gives back stays with the pool for the next one. */
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

static cudaError_t pool_of(dpr_nesting *nesting, cudaMemPool_t *out) {
    *out = atomic_load(&nesting->pool);
    if (*out)
        return cudaSuccess;
    cudaMemPool_t made, there = NULL;
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    const cudaError_t error = create_pool(nesting->ordinal, &made);
    dpr_capture_restore(mode);
    if (error != cudaSuccess)
        return error;
    if (atomic_compare_exchange_strong(&nesting->pool, &there, made)) {
        *out = made;
    } else { /* another thread was quicker */
        (void)cudaMemPoolDestroy(made);
        *out = there;
    }
    return cudaSuccess;
}

/* ---- Runs ---- */

/* A report that the kernels do not write to where the caller wants it comes first in a run's memory, and then its work
 * memory. */
enum { REPORT_BYTES = 256 };

/* Asked for each run, as the limit is anybody's to change. */
static cudaError_t find_credits(dpr_run *run) {
    const cudaError_t error = dpr_nesting_credits(&run->credits);
    if (error != cudaSuccess)
        return error;
    run->credits = dpr_credits_asked(run->credits, run->max_pending);
    return cudaSuccess;
}

/* The destructor of a graph's user object: CUDA allows no CUDA calls in it. */
static void CUDART_CB graph_ended(void *user) {
    graph_memory *m = user;
    dpr_nesting *nesting = m->owner;
    pthread_mutex_lock(&nesting->lock);
    m->ended = 1;
    atomic_fetch_add(&nesting->ended, 1);
    leave(nesting);
}

/* Gives the memory of graphs that are gone back in the order of a stream, which may be any. */
static void free_ended(dpr_nesting *nesting, cudaStream_t stream) {
    if (atomic_load(&nesting->ended) == 0)
        return;
    pthread_mutex_lock(&nesting->lock);
    graph_memory *taken = take_ended(nesting);
    pthread_mutex_unlock(&nesting->lock);
    for (graph_memory *m = taken, *next; m; m = next) {
        next = m->next;
        if (cudaFreeAsync(m->memory, stream) != cudaSuccess)
            (void)cudaGetLastError();
        free(m);
    }
}

/* From the pool, in a stream of its own, as the run's is being captured. Also gives back what dead graphs had, as there
 * may never be a run that is not captured. */
static cudaError_t allocate_apart(dpr_nesting *nesting, cudaMemPool_t pool, size_t bytes, void **out) {
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return error;
    free_ended(nesting, stream);
    error = cudaMallocFromPoolAsync(out, bytes, pool, stream);
    const cudaError_t waited = cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
    if (error == cudaSuccess && waited != cudaSuccess)
        (void)cudaFree(*out);
    return error == cudaSuccess ? waited : error;
}

/* Memory that is the graph's. */
static cudaError_t allocate_for_graph(dpr_nesting *nesting, cudaMemPool_t pool, size_t bytes, cudaGraph_t graph,
                                      void **out) {
    graph_memory *m = calloc(1, sizeof *m);
    if (!m)
        return cudaErrorMemoryAllocation;
    cudaUserObject_t object;
    cudaError_t error = allocate_apart(nesting, pool, bytes, &m->memory);
    if (error != cudaSuccess) {
        free(m);
        return error;
    }
    m->owner = nesting;
    error = cudaUserObjectCreate(&object, m, graph_ended, 1, cudaUserObjectNoDestructorSync);
    if (error != cudaSuccess) {
        (void)cudaFree(m->memory);
        free(m);
        return error;
    }
    pthread_mutex_lock(&nesting->lock);
    m->next = nesting->of_graphs;
    nesting->of_graphs = m;
    pthread_mutex_unlock(&nesting->lock);
    *out = m->memory;
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess)
        (void)cudaUserObjectRelease(object, 1); /* which calls graph_ended() */
    return error;
}

cudaError_t dpr_nesting_allocate(dpr_nesting *nesting, size_t bytes, cudaStream_t stream, void **out) {
    cudaMemPool_t pool = NULL;
    const cudaError_t error = pool_of(nesting, &pool);
    if (error != cudaSuccess)
        return error;
    free_ended(nesting, stream);
    return cudaMallocFromPoolAsync(out, bytes, pool, stream);
}

/* While the run's stream is being captured to `graph`. */
static cudaError_t allocate_captured(dpr_nesting *nesting, size_t bytes, cudaGraph_t graph, void **out) {
    cudaMemPool_t pool = NULL;
    cudaError_t error = pool_of(nesting, &pool);
    if (error != cudaSuccess)
        return error;
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    error = allocate_for_graph(nesting, pool, bytes, graph, out);
    dpr_capture_restore(mode);
    return error;
}

/* The report of a run without nested launches, unless it is to be in pageable memory. Before the run's kernels, as
 * nothing may fail after them: they write *out. */
static cudaError_t report_none(const dpr_run *run) {
    if (!run->report)
        return cudaSuccess;
    return cudaMemsetAsync(run->report, 0, sizeof *run->report, run->stream);
}

cudaError_t dpr_nesting_begin(dpr_nesting *nesting, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph) {
    if (!strategy->work_bytes)
        return report_none(run);
    void *memory = NULL;
    cudaError_t error = find_credits(run);
    if (error != cudaSuccess)
        return error;
    const size_t bytes = REPORT_BYTES + strategy->work_bytes(run);
    error = graph ? allocate_captured(nesting, bytes, graph, &memory)
                  : dpr_nesting_allocate(nesting, bytes, run->stream, &memory);
    if (error != cudaSuccess)
        return error;
    if (!run->report)
        run->report = memory;
    run->work = (char *)memory + REPORT_BYTES;
    return cudaSuccess;
}

cudaError_t dpr_nesting_end(dpr_run *run, int launched, cudaGraph_t graph) {
    cudaError_t error = cudaSuccess;
    if (!run->work)
        return cudaSuccess;
    if (launched && run->nested && run->nested != run->report)
        error = cudaMemcpyAsync(run->nested, run->report, sizeof *run->nested, cudaMemcpyDefault, run->stream);
    if (!graph && cudaFreeAsync((char *)run->work - REPORT_BYTES, run->stream) != cudaSuccess)
        (void)cudaGetLastError(); /* the result will be there all the same */
    return error;
}
