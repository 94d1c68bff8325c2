#include "apart.h"

#include <pthread.h>

#include "uncancelled.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running[DPR_APART_KINDS], waiting[DPR_APART_KINDS];
    dpr_apart latest; /* kind that has begun last */
    int forever;      /* 1: nested launches may be pending at any time */
} runs = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The caller has the lock. */
static int is_refused(dpr_apart kind) {
    return kind == DPR_APART_GRAPH && runs.forever;
}

static int must_wait(dpr_apart kind) {
    const dpr_apart other = kind == DPR_APART_GRAPH ? DPR_APART_NESTED : DPR_APART_GRAPH;
    return runs.running[other] > 0 || (runs.waiting[other] > 0 && runs.latest == kind);
}

/* The caller's thread is not cancelled meanwhile. */
static int begin(dpr_apart kind) {
    (void)pthread_mutex_lock(&runs.lock);
    runs.waiting[kind]++;
    while (!is_refused(kind) && must_wait(kind))
        (void)pthread_cond_wait(&runs.changed, &runs.lock);
    const int may = !is_refused(kind);
    runs.waiting[kind]--;
    if (may) {
        runs.running[kind]++;
        runs.latest = kind;
    }
    (void)pthread_cond_broadcast(&runs.changed); /* one less waits */
    (void)pthread_mutex_unlock(&runs.lock);
    return may;
}

int dpr_apart_begin(dpr_apart kind) {
    if (kind == DPR_APART_NONE)
        return 1;
    const int before = dpr_cancel_hold();
    const int may = begin(kind);
    dpr_cancel_release(before);
    return may;
}

void dpr_apart_end(dpr_apart kind) {
    if (kind == DPR_APART_NONE)
        return;
    (void)pthread_mutex_lock(&runs.lock);
    runs.running[kind]--;
    (void)pthread_cond_broadcast(&runs.changed);
    (void)pthread_mutex_unlock(&runs.lock);
}

void dpr_apart_nested_forever(void) {
    (void)dpr_apart_begin(DPR_APART_NESTED);
    (void)dpr_apart_launches(1);
    dpr_apart_end(DPR_APART_NESTED);
}

unsigned dpr_apart_launches(unsigned launches) {
    if (launches == 0)
        return 0;
    (void)pthread_mutex_lock(&runs.lock);
    runs.forever = 1;
    (void)pthread_cond_broadcast(&runs.changed); /* graphs that wait are refused */
    const unsigned may = runs.running[DPR_APART_GRAPH] > 0 ? 0 : launches;
    (void)pthread_mutex_unlock(&runs.lock);
    return may;
}
