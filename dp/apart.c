#include "apart.h"

#include <pthread.h>

enum { NESTED, GRAPH, KINDS };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running[KINDS], waiting[KINDS];
    int forever; /* 1: nested launches may be pending at any time */
} runs = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The caller has the lock. While runs of one kind are in flight and some of the other wait, no further ones begin, so
 * that the others' turn comes. */
static int must_wait(int kind) {
    const int other = !kind;
    return runs.running[other] > 0 || (runs.running[kind] > 0 && runs.waiting[other] > 0);
}

/* Returns 0 for a graph that may not run. */
static int begin(int kind) {
    (void)pthread_mutex_lock(&runs.lock);
    runs.waiting[kind]++;
    while (must_wait(kind) && !(kind == GRAPH && runs.forever))
        (void)pthread_cond_wait(&runs.changed, &runs.lock);
    const int may = !(kind == GRAPH && runs.forever);
    runs.waiting[kind]--;
    runs.running[kind] += (unsigned)may;
    (void)pthread_cond_broadcast(&runs.changed);
    (void)pthread_mutex_unlock(&runs.lock);
    return may;
}

static void end(int kind) {
    (void)pthread_mutex_lock(&runs.lock);
    runs.running[kind]--;
    (void)pthread_cond_broadcast(&runs.changed);
    (void)pthread_mutex_unlock(&runs.lock);
}

void dpr_apart_begin_nested(void) {
    (void)begin(NESTED);
}

void dpr_apart_end_nested(void) {
    end(NESTED);
}

void dpr_apart_nested_forever(void) {
    (void)begin(NESTED);
    (void)pthread_mutex_lock(&runs.lock);
    runs.forever = 1;
    (void)pthread_mutex_unlock(&runs.lock);
    end(NESTED);
}

unsigned dpr_apart_launches(unsigned launches) {
    (void)pthread_mutex_lock(&runs.lock);
    runs.forever = 1;
    const unsigned may = runs.running[GRAPH] > 0 ? 0 : launches;
    (void)pthread_cond_broadcast(&runs.changed);
    (void)pthread_mutex_unlock(&runs.lock);
    return may;
}

int dpr_apart_begin_graph(void) {
    return begin(GRAPH);
}

void dpr_apart_end_graph(void) {
    end(GRAPH);
}
