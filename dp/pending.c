#include "pending.h"

#include <pthread.h>

#include "error.h"

enum { MOST_HOMES = 64 };

/* The limit of one CUDA context, while contexts of the library have set it. */
typedef struct limit {
    uint64_t home;
    int contexts; /* 0: the entry is free */
    size_t found, set;
} limit;

static struct {
    pthread_mutex_t lock;
    limit of[MOST_HOMES];
} limits = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* In a child, which cannot use the driver, another thread of the parent may have had the lock. */
static void unlock_in_child(void) {
    (void)pthread_mutex_init(&limits.lock, NULL);
}

/* Runs when the library is loaded, for the reason that host/cpu/cores.c gives. */
__attribute__((constructor(101))) static void watch_forks(void) {
    (void)pthread_atfork(NULL, NULL, unlock_in_child);
}

/* Returns the CUDA context's entry, or a free one, or NULL if there is neither. The lock is held. */
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

cudaError_t dpr_pending_count(size_t *out) {
    return cudaDeviceGetLimit(out, cudaLimitDevRuntimePendingLaunchCount);
}

static dpr_status set_limit(limit *l, const dpr_home *home, size_t pending) {
    size_t found, now;
    cudaError_t error = dpr_pending_count(&found);
    if (error == cudaSuccess)
        error = cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending);
    if (error == cudaSuccess) {
        error = dpr_pending_count(&now);
        if (error != cudaSuccess)
            (void)cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, found);
    }
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return dpr_fail_cuda((int)error, DPR_ERR_INVALID_OPTION,
                             "ctx_options->pending_launches is %zu, which device %d refuses: %s", pending,
                             home->ordinal, cudaGetErrorString(error));
    }
    if (now < pending) {
        (void)cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, found);
        return dpr_fail(DPR_ERR_INVALID_OPTION, "ctx_options->pending_launches is %zu, and device %d gives %zu",
                        pending, home->ordinal, now);
    }
    *l = (limit){.home = home->id, .found = found, .set = pending};
    return DPR_OK;
}

/* As dpr_pending_allow(). The lock is held. */
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

dpr_status dpr_pending_allow(const dpr_home *home, size_t pending) {
    pthread_mutex_lock(&limits.lock);
    const dpr_status status = allow(home, pending);
    pthread_mutex_unlock(&limits.lock);
    return status;
}

void dpr_pending_put_back(const dpr_home *home, int there) {
    pthread_mutex_lock(&limits.lock);
    limit *l = limit_of(home);
    if (--l->contexts == 0 && there
        && cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, l->found) != cudaSuccess)
        (void)cudaGetLastError();
    pthread_mutex_unlock(&limits.lock);
}
