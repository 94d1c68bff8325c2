/* The CPU as a device of the timing engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "backend.h"
#include "host_cache.h"

/* Where the rotation of buffers starts anew. */
#define AFRESH (SIZE_MAX / 2)

typedef struct cpu {
    host_cache cache;
    unsigned char *pool;
    const unsigned char *block; /* what the pool holds, again and again */
    size_t block_bytes;
    size_t *made;  /* of each repetition, bytes from its begin on that are there */
    size_t cursor; /* the buffer of the next call, of a cold batch; from AFRESH on the rotation starts anew */
} cpu;

static void cpu_close(void *state) {
    cpu *c = state;
    if (!c)
        return;
    host_cache_close(&c->cache);
    free(c->pool);
    free(c->made);
    free(c);
}

static size_t cpu_most(const bench_device *d) {
    const size_t available = (size_t)memory_available() / 5 * 4, other = host_cache_needs(d->cache_bytes);
    return available > other ? available - other : 0;
}

static bench_status cpu_open(bench_device *d, void **state, char *why) {
    cpu *c = calloc(1, sizeof *c);
    snprintf(why, BENCH_WHY, "no host memory for %zu bytes of data", d->pool_bytes);
    if (c && host_cache_open(d->cache_bytes, &c->cache, why) == 0)
        c->pool = aligned_alloc(BENCH_ALIGNMENT, d->pool_bytes);
    if (!c || !c->pool) {
        cpu_close(c);
        return BENCH_BROKEN;
    }
    *state = c;
    return BENCH_GOOD;
}

static bench_status cpu_fill(void *state, const void *block, size_t block_bytes, size_t bytes, char *why) {
    cpu *c = state;
    free(c->made);
    c->made = calloc(bytes / block_bytes, sizeof *c->made);
    c->block = block;
    c->block_bytes = block_bytes;
    if (!c->made)
        snprintf(why, BENCH_WHY, "no host memory for a pool");
    return c->made ? BENCH_GOOD : BENCH_BROKEN;
}

/* Makes the first `bytes` of repetition i. */
static void make_block(cpu *c, size_t i, size_t bytes) {
    if (c->made[i] < bytes) {
        memcpy(c->pool + i * c->block_bytes + c->made[i], c->block + c->made[i], bytes - c->made[i]);
        c->made[i] = bytes;
    }
}

static bench_status stopped_at(size_t done, size_t all, char *why) {
    snprintf(why, BENCH_WHY, "%zu of %zu MiB of memory were filled", done >> 20, all >> 20);
    return BENCH_STOPPED;
}

/* First touching memory takes longer than reading it, so it is done in pieces that can be stopped between. */
static bench_status cpu_make(void *state, const bench_layout *layout, size_t bytes, const bench_watch *watch,
                             char *why) {
    cpu *c = state;
    const size_t all = c->cache.bytes + layout->read * bytes;
    c->cursor = AFRESH;
    while (host_cache_make(&c->cache))
        if (!bench_goes_on(watch))
            return stopped_at(c->cache.made, all, why);
    for (size_t i = 0; i < layout->read; i++)
        for (size_t done = 0; done < bytes; done += c->block_bytes) {
            const size_t left = bytes - done;
            make_block(c, (i * layout->stride + done) / c->block_bytes, left < c->block_bytes ? left : c->block_bytes);
            if (!bench_goes_on(watch))
                return stopped_at(c->cache.bytes + i * bytes + done, all, why);
        }
    return BENCH_GOOD;
}

static bench_status cpu_put(void *state, size_t at, const void *from, size_t bytes, char *why) {
    (void)why;
    memcpy(((cpu *)state)->pool + at, from, bytes);
    return BENCH_GOOD;
}

/* Fills the caches. *seconds is how long that took. */
static bench_status read_other(cpu *c, double *seconds, char *why) {
    if (host_cache_fill(&c->cache, seconds) == DPR_OK)
        return BENCH_GOOD;
    snprintf(why, BENCH_WHY, "the caches cannot be filled: %s", dpr_last_error());
    return BENCH_BROKEN;
}

/* The array of results of the call that reads buffer i. */
static unsigned char *array_of(const cpu *c, const bench_batch *batch, size_t i) {
    return c->pool + bench_offset(batch->layout, i) + bench_array_at(batch->point);
}

static void poison_arrays(const cpu *c, const bench_batch *batch) {
    for (size_t i = 0; i < batch->layout->read && batch->point->array_bytes; i++)
        memset(array_of(c, batch, i), BENCH_POISON, batch->point->array_bytes);
}

/* Fills the caches when the rotation starts anew. Arrays of results are overwritten before that, all at once, so that
 * they are in the caches as little as what is read. */
static bench_status cpu_ready(void *state, const bench_batch *batch, int calls) {
    cpu *c = state;
    const bench_layout *l = batch->layout;
    double seconds;
    if (l->hop && c->cursor + (size_t)calls <= l->buffers)
        return BENCH_GOOD;
    poison_arrays(c, batch);
    if (!l->hop)
        return BENCH_GOOD;
    c->cursor = 0;
    return l->flush ? read_other(c, &seconds, batch->outcome->why) : BENCH_GOOD;
}

static bench_status cpu_time(void *state, const bench_batch *batch, int calls, double *us) {
    cpu *c = state;
    const double begin = seconds_now();
    const bench_status status = bench_make_calls(batch, calls, c->pool, c->cursor, batch->results, NULL);
    *us = 1e6 * (seconds_now() - begin) / calls;
    c->cursor += (size_t)calls;
    return status;
}

static bench_status cpu_compare(void *state, const bench_batch *batch, int *wrong) {
    const cpu *c = state;
    const bench_point *point = batch->point;
    const size_t calls = (size_t)batch->outcome->calls, first = c->cursor >= calls ? c->cursor - calls : 0;
    *wrong = 0;
    for (size_t i = 0; i < bench_arrays(batch->layout, batch->outcome->calls); i++)
        *wrong += memcmp(array_of(c, batch, first + i), point->expected, point->array_bytes) != 0;
    return BENCH_GOOD;
}

/* Multiplications of a linear congruential generator, each of which needs the one before. */
static double chain_mhz(void) {
    enum { STEPS = 1000000 };
    static volatile uint64_t sink;
    uint64_t x = sink | 1;
    const double begin = seconds_now();
    for (int i = 0; i < STEPS; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const double seconds = seconds_now() - begin;
    sink = x;
    return STEPS / seconds * 1e-6;
}

static bench_status cpu_look(void *state, bench_reference *out, char *why) {
    cpu *c = state;
    double seconds;
    if (read_other(c, &seconds, why) != BENCH_GOOD)
        return BENCH_BROKEN;
    c->cursor = AFRESH;
    *out = (bench_reference){chain_mhz(), 1e-9 * (double)c->cache.bytes / seconds};
    return BENCH_GOOD;
}

const bench_backend bench_cpu = {
    .most = cpu_most,
    .open = cpu_open,
    .close = cpu_close,
    .fill = cpu_fill,
    .make = cpu_make,
    .put = cpu_put,
    .ready = cpu_ready,
    .time = cpu_time,
    .compare = cpu_compare,
    .look = cpu_look,
};
