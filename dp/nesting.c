#include "nesting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/home.h"
#include "error.h"

/* Work memory of a captured run. */
typedef struct graph_memory {
    struct graph_memory *next;
    dpr_nesting *owner;
    void *memory;
    atomic_int ended; /* its graph is gone, and nobody uses it any more */
} graph_memory;

struct dpr_nesting {
    dpr_home home;
    int allowed;      /* it has a part in the context's limit */
    atomic_int users; /* the device, and graphs that are there: the last one frees host memory */
    atomic_int ended; /* graphs that are gone, and whose memory is not given back yet */
    _Atomic(cudaMemPool_t) pool;
    pthread_mutex_t lock; /* of the list */
    graph_memory *of_graphs;
};

/* ---- The limit ---- */

enum { MOST_HOMES = 64 };

/* The limit of one CUDA context, while there are contexts of the library's that have set it. */
typedef struct limit {
    uint64_t home;
    int contexts; /* 0: the entry is free */
    size_t found, set;
} limit;

static struct {
    pthread_mutex_t lock;
    limit of[MOST_HOMES];
} limits = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held: the context's entry, or a free one; NULL if there is neither. */
static limit *limit_of(const dpr_home *home) {
    limit *free_one = NULL;
    for (int i = 0; i < MOST_HOMES; i++) {
        limit *l = &limits.of[i];
        if (l->contexts > 0 && l->home == home->id)
            return l;
        if (l->contexts == 0)
            free_one = l;
    }
    return free_one;
}

cudaError_t dpr_nesting_pending(size_t *out) {
    return cudaDeviceGetLimit(out, cudaLimitDevRuntimePendingLaunchCount);
}

static dpr_status set_limit(limit *l, const dpr_home *home, size_t pending) {
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
                        pending, home->ordinal, cudaGetErrorString(error));
    }
    if (now < pending) {
        (void)cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, found);
        return dpr_fail(DPR_ERR_INVALID_OPTION, "ctx_options->pending_launches is %zu, and device %d gives %zu",
                        pending, home->ordinal, now);
    }
    *l = (limit){.home = home->id, .found = found, .set = pending};
    return DPR_OK;
}

/* With the lock held. */
static dpr_status allow(const dpr_home *home, size_t pending) {
    limit *l = limit_of(home);
    dpr_status status = DPR_OK;
    if (!l)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "ctx_options->pending_launches is %zu, but %d other CUDA contexts have a number of their own, "
                        "which is the most",
                        pending, MOST_HOMES);
    if (l->contexts == 0)
        status = set_limit(l, home, pending);
    else if (l->set != pending)
        status = dpr_fail(DPR_ERR_INVALID_OPTION,
                          "ctx_options->pending_launches is %zu, and another context has set %zu on device %d", pending,
                          l->set, home->ordinal);
    if (status == DPR_OK)
        l->contexts++;
    return status;
}

dpr_status dpr_nesting_allow(dpr_nesting *nesting, size_t pending) {
    pthread_mutex_lock(&limits.lock);
    const dpr_status status = allow(&nesting->home, pending);
    pthread_mutex_unlock(&limits.lock);
    nesting->allowed = status == DPR_OK;
    return status;
}

static void put_limit_back(const dpr_home *home, int there) {
    pthread_mutex_lock(&limits.lock);
    limit *l = limit_of(home);
    if (--l->contexts == 0 && there
        && cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, l->found) != cudaSuccess)
        (void)cudaGetLastError();
    pthread_mutex_unlock(&limits.lock);
}

dpr_nesting *dpr_nesting_create(const dpr_home *home) {
    dpr_nesting *nesting = calloc(1, sizeof *nesting);
    if (!nesting)
        return NULL;
    nesting->home = *home;
    atomic_init(&nesting->users, 1);
    pthread_mutex_init(&nesting->lock, NULL);
    return nesting;
}

/* Takes those whose graphs are gone out of the list, and returns them as one. */
static graph_memory *take_ended(dpr_nesting *nesting) {
    graph_memory *taken = NULL;
    pthread_mutex_lock(&nesting->lock);
    atomic_store(&nesting->ended, 0); /* before it looks: one that comes now may be found by this look or the next */
    for (graph_memory **at = &nesting->of_graphs; *at;) {
        graph_memory *m = *at;
        if (!atomic_load(&m->ended)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = taken;
        taken = m;
    }
    pthread_mutex_unlock(&nesting->lock);
    return taken;
}

static void let_go(dpr_nesting *nesting) {
    if (atomic_fetch_sub(&nesting->users, 1) != 1)
        return;
    for (graph_memory *m = nesting->of_graphs, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    pthread_mutex_destroy(&nesting->lock);
    free(nesting);
}

void dpr_nesting_destroy(dpr_nesting *nesting, int there) {
    if (!nesting)
        return;
    int failures = 0;
    for (graph_memory *m = nesting->of_graphs; m && there; m = m->next)
        failures += cudaFree(m->memory) != cudaSuccess;
    if (there && atomic_load(&nesting->pool))
        failures += cudaMemPoolDestroy(atomic_load(&nesting->pool)) != cudaSuccess;
    if (failures > 0)
        (void)cudaGetLastError();
    if (nesting->allowed)
        put_limit_back(&nesting->home, there);
    let_go(nesting);
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
    const int mode = dpr_capture_relax();
    const cudaError_t error = create_pool(nesting->home.ordinal, &made);
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
static cudaError_t find_launches(dpr_run *run) {
    size_t pending = 0;
    const cudaError_t error = dpr_nesting_pending(&pending);
    run->launches = dpr_launches_of(pending, run->max_pending);
    return error;
}

/* The destructor of a graph's user object: CUDA allows no CUDA calls in it. Takes no lock either, because whoever holds
 * one may be waiting for the device, and the device for the thread that calls this. */
static void CUDART_CB graph_ended(void *user) {
    graph_memory *m = user;
    dpr_nesting *nesting = m->owner;
    atomic_store(&m->ended, 1); /* the last look at it: who finds it now frees it */
    atomic_fetch_add(&nesting->ended, 1);
    let_go(nesting);
}

/* Gives the memory of graphs that are gone back in the order of a stream, which may be any. */
static void free_ended(dpr_nesting *nesting, cudaStream_t stream) {
    if (atomic_load(&nesting->ended) == 0)
        return;
    for (graph_memory *m = take_ended(nesting), *next; m; m = next) {
        next = m->next;
        if (cudaFreeAsync(m->memory, stream) != cudaSuccess)
            (void)cudaGetLastError();
        free(m);
    }
}

/* From the pool, apart, because the run's stream is being captured. Also gives back what dead graphs had, because there
 * may never be a run that is not captured. */
static cudaError_t allocate_apart(dpr_nesting *nesting, cudaMemPool_t pool, size_t bytes, void **out) {
    cudaStream_t stream;
    cudaError_t error = dpr_home_begin_apart(&stream);
    if (error != cudaSuccess)
        return error;
    free_ended(nesting, stream);
    const cudaError_t allocated = cudaMallocFromPoolAsync(out, bytes, pool, stream);
    error = dpr_home_end_apart(stream, allocated);
    if (error != cudaSuccess && allocated == cudaSuccess)
        (void)cudaFree(*out);
    return error;
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
    atomic_fetch_add(&nesting->users, 1);
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
    const int mode = dpr_capture_relax();
    error = allocate_for_graph(nesting, pool, bytes, graph, out);
    dpr_capture_restore(mode);
    return error;
}

cudaError_t dpr_nesting_begin(dpr_nesting *nesting, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph) {
    void *memory = NULL;
    cudaError_t error = find_launches(run);
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
    if (launched && run->nested && run->nested != run->report)
        error = cudaMemcpyAsync(run->nested, run->report, sizeof *run->nested, cudaMemcpyDefault, run->stream);
    if (!graph && cudaFreeAsync((char *)run->work - REPORT_BYTES, run->stream) != cudaSuccess)
        (void)cudaGetLastError(); /* the result will be there all the same */
    return error;
}
