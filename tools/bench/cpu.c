/* The CPU as a device of the timing engine. Caches are filled by reading on all cores, so that none of them has the
 * buffers' lines in a cache of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "backend.h"

enum { LEAST_CACHE = 4 << 20 }; /* where the machine does not tell, or tells of none */

static const size_t least_pool = (size_t)16 << 20;

#define AFRESH (SIZE_MAX / 2)

typedef struct cpu {
    dpr_ctx *ctx; /* for reading */
    unsigned char *pool, *other;
    size_t other_bytes, other_made;
    const unsigned char *block; /* what the pool holds, again and again */
    size_t block_bytes;
    size_t *made;  /* of each repetition, bytes from its begin on that are there */
    size_t cursor; /* the buffer of the next call, of a cold batch; from AFRESH on the rotation starts anew */
} cpu;

static void cpu_close(void *state) {
    cpu *c = state;
    if (!c)
        return;
    dpr_ctx_destroy(c->ctx);
    free(c->pool);
    free(c->other);
    free(c->made);
    free(c);
}

static size_t round_up(size_t bytes) {
    return (bytes + BENCH_ALIGNMENT - 1) / BENCH_ALIGNMENT * BENCH_ALIGNMENT;
}

/* The last-level caches. */
static size_t cache_bytes(const dpr_ctx *ctx) {
    const int64_t told = machine_value(dpr_ctx_machine(ctx), "cpu.cache_bytes");
    return told > LEAST_CACHE ? (size_t)told : LEAST_CACHE;
}

static size_t other_bytes(const dpr_ctx *ctx) {
    return round_up(2 * cache_bytes(ctx));
}

/* What a pool may have next to the memory that fills caches. */
static size_t most_of(const dpr_ctx *ctx) {
    const size_t available = (size_t)memory_available() / 5 * 4, other = other_bytes(ctx);
    return available > other + least_pool ? available - other : least_pool;
}

static size_t cpu_most(int ordinal) {
    dpr_ctx *ctx;
    if (dpr_ctx_create(ordinal, &ctx) != DPR_OK)
        return 0;
    const size_t most = most_of(ctx);
    dpr_ctx_destroy(ctx);
    return most;
}

static void describe(const dpr_ctx *ctx, bench_device *d) {
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    (void)dpr_machine_describe(dpr_ctx_machine(ctx), &info);
    snprintf(d->name, sizeof d->name, "%s", info.cpu_name);
    d->sm_count = (int)machine_value(dpr_ctx_machine(ctx), "cpu.cores");
    d->cache_bytes = cache_bytes(ctx);
}

static bench_status cpu_open(bench_device *d, size_t pool_bytes, void **state, char *why) {
    cpu *c = calloc(1, sizeof *c);
    if (!c || dpr_ctx_create(d->ordinal, &c->ctx) != DPR_OK) {
        snprintf(why, BENCH_WHY, "%s", c ? dpr_last_error() : "no host memory for a timer");
        cpu_close(c);
        return BENCH_BROKEN;
    }
    describe(c->ctx, d);
    c->other_bytes = other_bytes(c->ctx);
    const size_t most = most_of(c->ctx);
    d->pool_bytes = round_up(pool_bytes < least_pool ? least_pool : pool_bytes > most ? most : pool_bytes);
    c->pool = aligned_alloc(BENCH_ALIGNMENT, d->pool_bytes);
    c->other = aligned_alloc(BENCH_ALIGNMENT, c->other_bytes);
    if (!c->pool || !c->other) {
        snprintf(why, BENCH_WHY, "no host memory for %zu bytes of data", d->pool_bytes + c->other_bytes);
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

/* Makes the next piece of the memory that fills caches. 0 if there is none. */
static int make_other(cpu *c) {
    enum { PIECE = 1 << 20 };
    const size_t left = c->other_bytes - c->other_made, piece = left < PIECE ? left : PIECE;
    memset(c->other + c->other_made, 0, piece);
    c->other_made += piece;
    return piece > 0;
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
    const size_t all = c->other_bytes + layout->read * bytes;
    while (make_other(c))
        if (!bench_goes_on(watch))
            return stopped_at(c->other_made, all, why);
    for (size_t i = 0; i < layout->read; i++)
        for (size_t done = 0; done < bytes; done += c->block_bytes) {
            const size_t left = bytes - done;
            make_block(c, (i * layout->stride + done) / c->block_bytes, left < c->block_bytes ? left : c->block_bytes);
            if (!bench_goes_on(watch))
                return stopped_at(c->other_bytes + i * bytes + done, all, why);
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
    int64_t sum;
    while (make_other(c)) {} /* pages that were never written are one page of zeros, which stays in the cache */
    const double begin = bench_now();
    const dpr_status status =
        dpr_reduce_ex(c->ctx, c->other, &sum, c->other_bytes / sizeof(int32_t), DPR_I32, DPR_SUM, NULL);
    *seconds = bench_now() - begin;
    if (status == DPR_OK)
        return BENCH_GOOD;
    snprintf(why, BENCH_WHY, "the caches cannot be filled: %s", dpr_last_error());
    return BENCH_BROKEN;
}

static bench_status calls(const cpu *c, bench_batch *batch, size_t first, char *why) {
    if (bench_make_calls(batch, c->pool, first) == 0)
        return BENCH_GOOD;
    snprintf(why, BENCH_WHY, "the call failed with %d", batch->code);
    return BENCH_CALLBACK;
}

/* The first buffer of the next batch; fills the caches when the rotation starts anew. */
static bench_status turn(cpu *c, const bench_batch *batch, size_t *first, char *why) {
    const bench_layout *l = batch->layout;
    const int anew = l->hop && c->cursor + (size_t)batch->calls > l->buffers;
    double seconds;
    *first = anew ? 0 : c->cursor;
    c->cursor = *first + (size_t)batch->calls;
    return anew && l->flush ? read_other(c, &seconds, why) : BENCH_GOOD;
}

static bench_status cpu_sample(void *state, bench_batch *batch, double *us, char *why) {
    cpu *c = state;
    size_t first;
    bench_status status = BENCH_GOOD;
    const int all = batch->calls;
    memset(batch->results, BENCH_POISON, (size_t)all * BENCH_RESULT_STRIDE);
    if (batch->point->cache == BENCH_HOT) {
        batch->calls = 1;
        status = calls(c, batch, 0, why);
        batch->calls = all;
        memset(batch->results, BENCH_POISON, BENCH_RESULT_STRIDE);
    }
    if (status == BENCH_GOOD)
        status = turn(c, batch, &first, why);
    if (status != BENCH_GOOD)
        return status;
    const double begin = bench_now();
    status = calls(c, batch, first, why);
    *us = 1e6 * (bench_now() - begin) / all;
    return status;
}

/* The first call starts threads; the quickest of the next tells how long one takes. */
static bench_status cpu_warm(void *state, bench_batch *batch, char *why) {
    double us = 0, least = 0;
    batch->calls = 1;
    for (int i = 0; i < 3; i++) {
        const bench_status status = cpu_sample(state, batch, &us, why);
        if (status != BENCH_GOOD)
            return status;
        least = i < 2 || us < least ? us : least;
        if (!bench_goes_on(batch->watch))
            break;
    }
    batch->calls = bench_calls(batch->layout, 1e-6 * least, batch->seconds);
    return BENCH_GOOD;
}

static void cpu_cool(void *state, bench_batch *batch) {
    (void)batch;
    ((cpu *)state)->cursor = AFRESH;
}

/* Multiplications of a linear congruential generator, each of which needs the one before. */
static double chain_mhz(void) {
    enum { STEPS = 1000000 };
    static volatile uint64_t sink;
    uint64_t x = sink | 1;
    const double begin = bench_now();
    for (int i = 0; i < STEPS; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const double seconds = bench_now() - begin;
    sink = x;
    return STEPS / seconds * 1e-6;
}

static bench_status cpu_look(void *state, bench_reference *out, char *why) {
    cpu *c = state;
    double seconds;
    if (read_other(c, &seconds, why) != BENCH_GOOD)
        return BENCH_BROKEN;
    c->cursor = AFRESH;
    *out = (bench_reference){chain_mhz(), 1e-9 * (double)c->other_bytes / seconds};
    return BENCH_GOOD;
}

const bench_backend bench_cpu = {
    .most = cpu_most,
    .open = cpu_open,
    .close = cpu_close,
    .fill = cpu_fill,
    .make = cpu_make,
    .put = cpu_put,
    .warm = cpu_warm,
    .sample = cpu_sample,
    .cool = cpu_cool,
    .look = cpu_look,
};
