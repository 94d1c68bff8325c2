#define _POSIX_C_SOURCE 200809L /* clock_gettime, pthread_condattr_setclock */
#include "apart.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "cuda/elapsed.h"
#include "uncancelled.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running[DPR_APART_KINDS], waiting[DPR_APART_KINDS];
    dpr_apart latest; /* kind that has begun last */
    int forever;      /* 1: nested launches may be pending at any time */
} runs = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Waits for changes by a clock that nobody sets. */
static void make_condition(void) {
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&runs.changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void lock(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_condition);
    (void)pthread_mutex_lock(&runs.lock);
}

/* The time `seconds` from now, or 1e9 s (31 years) if that is sooner. */
static struct timespec deadline(double seconds) {
    const double most = 1e9, whole = floor(fmin(seconds, most));
    struct timespec t = dpr_now();
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)(1e9 * (fmin(seconds, most) - whole));
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* The caller has the lock. */
static int is_refused(dpr_apart kind) {
    return kind == DPR_APART_GRAPH && runs.forever;
}

static int must_wait(dpr_apart kind) {
    const dpr_apart other = kind == DPR_APART_GRAPH ? DPR_APART_NESTED : DPR_APART_GRAPH;
    return runs.running[other] > 0 || (runs.waiting[other] > 0 && runs.latest == kind);
}

/* The caller's thread is not cancelled meanwhile. */
static dpr_apart_turn begin(dpr_apart kind, double seconds) {
    const struct timespec end = deadline(seconds);
    int error = 0;
    lock();
    runs.waiting[kind]++;
    while (!error && !is_refused(kind) && must_wait(kind))
        error = pthread_cond_timedwait(&runs.changed, &runs.lock, &end);
    const dpr_apart_turn turn = is_refused(kind)  ? DPR_APART_REFUSED
                                : must_wait(kind) ? DPR_APART_LATE
                                                  : DPR_APART_BEGUN;
    runs.waiting[kind]--;
    if (turn == DPR_APART_BEGUN) {
        runs.running[kind]++;
        runs.latest = kind;
    }
    (void)pthread_cond_broadcast(&runs.changed); /* one less waits */
    (void)pthread_mutex_unlock(&runs.lock);
    return turn;
}

dpr_apart_turn dpr_apart_begin(dpr_apart kind, double seconds) {
    if (kind == DPR_APART_NONE)
        return DPR_APART_BEGUN;
    const int before = dpr_cancel_hold();
    const dpr_apart_turn turn = begin(kind, seconds);
    dpr_cancel_release(before);
    return turn;
}

void dpr_apart_end(dpr_apart kind) {
    if (kind == DPR_APART_NONE)
        return;
    lock();
    runs.running[kind]--;
    (void)pthread_cond_broadcast(&runs.changed);
    (void)pthread_mutex_unlock(&runs.lock);
}

int dpr_apart_is_quiet(void) {
    unsigned runs_now = 0;
    lock();
    for (int kind = 0; kind < DPR_APART_KINDS; kind++)
        runs_now += runs.running[kind] + runs.waiting[kind];
    (void)pthread_mutex_unlock(&runs.lock);
    return runs_now == 0;
}

void dpr_apart_nested_forever(void) {
    (void)dpr_apart_begin(DPR_APART_NESTED, HUGE_VAL);
    (void)dpr_apart_launches(1);
    dpr_apart_end(DPR_APART_NESTED);
}

unsigned dpr_apart_launches(unsigned launches) {
    if (launches == 0)
        return 0;
    lock();
    runs.forever = 1;
    (void)pthread_cond_broadcast(&runs.changed); /* graphs that wait are refused */
    const unsigned may = runs.running[DPR_APART_GRAPH] > 0 ? 0 : launches;
    (void)pthread_mutex_unlock(&runs.lock);
    return may;
}
