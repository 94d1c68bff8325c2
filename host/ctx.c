#include "ctx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "caps_read.h"
#include "error.h"

/* Choices are never changed or removed while the context lives, so readers need no lock. */
typedef struct entry {
    dpr_choice choice;
    struct entry *next;
} entry;

enum { BUCKETS = 256 };

struct dpr_ctx {
    int device;
    dpr_machine machine;
    dpr_device *gpu;                /* NULL on the CPU */
    pthread_mutex_t lock;           /* held by whoever adds to a bucket */
    _Atomic(const entry *) last;    /* the entry most recently asked for */
    _Atomic(entry *) head[BUCKETS]; /* newest first */
};

/* The calling thread's device if it can be used. */
static dpr_status create_auto(dpr_ctx **out) {
    if (dpr_device_count() > 0 && dpr_ctx_create(dpr_device_current(), out) == DPR_OK)
        return DPR_OK;
    return dpr_ctx_create(DPR_DEVICE_CPU, out);
}

dpr_status dpr_ctx_create(int device, dpr_ctx **out) {
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (device < DPR_DEVICE_AUTO)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "device is %d, which is neither a CUDA ordinal nor DPR_DEVICE_CPU nor DPR_DEVICE_AUTO", device);
    if (device == DPR_DEVICE_AUTO)
        return create_auto(out);
    dpr_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a context");
    dpr_status status = dpr_caps_read(device, &ctx->machine.caps);
    if (status == DPR_OK && device != DPR_DEVICE_CPU)
        status = dpr_device_open(device, &ctx->gpu);
    if (status != DPR_OK) {
        free(ctx);
        return status;
    }
    ctx->device = device;
    ctx->machine.blocks_per_sm = dpr_device_blocks_per_sm;
    ctx->machine.user = ctx->gpu;
    pthread_mutex_init(&ctx->lock, NULL);
    *out = ctx;
    return DPR_OK;
}

void dpr_ctx_destroy(dpr_ctx *ctx) {
    if (!ctx)
        return;
    dpr_device_close(ctx->gpu);
    for (int i = 0; i < BUCKETS; i++) {
        for (entry *e = atomic_load(&ctx->head[i]), *next; e; e = next) {
            next = e->next;
            free(e);
        }
    }
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

int dpr_ctx_device(const dpr_ctx *ctx) {
    return ctx ? ctx->device : DPR_DEVICE_CPU;
}
const dpr_machine *dpr_ctx_machine(const dpr_ctx *ctx) {
    return &ctx->machine;
}
dpr_device *dpr_ctx_gpu(const dpr_ctx *ctx) {
    return ctx->gpu;
}

/* Fibonacci hashing: the key's fields are in different bytes, and the product's top byte depends on all of them. */
static size_t bucket_of(dpr_key key) {
    return (size_t)((key.word * UINT64_C(0x9e3779b97f4a7c15)) >> 56) % BUCKETS;
}

static const entry *find(dpr_ctx *ctx, dpr_key key) {
    const entry *e = atomic_load_explicit(&ctx->head[bucket_of(key)], memory_order_acquire);
    while (e && e->choice.key.word != key.word)
        e = e->next;
    return e;
}

static dpr_status add(dpr_ctx *ctx, dpr_key key, const entry **out) {
    entry *e = malloc(sizeof *e);
    if (!e)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a plan");
    const dpr_status status = dpr_choose(&key, &ctx->machine, &e->choice);
    if (status != DPR_OK) {
        free(e);
        return status;
    }
    pthread_mutex_lock(&ctx->lock);
    const entry *other = find(ctx, key); /* of a thread that missed the same key */
    if (!other) {
        _Atomic(entry *) *head = &ctx->head[bucket_of(key)];
        e->next = atomic_load_explicit(head, memory_order_relaxed);
        atomic_store_explicit(head, e, memory_order_release);
    }
    pthread_mutex_unlock(&ctx->lock);
    if (other)
        free(e);
    *out = other ? other : e;
    return DPR_OK;
}

dpr_status dpr_ctx_choice(dpr_ctx *ctx, dpr_key key, const dpr_choice **out) {
    const entry *e = atomic_load_explicit(&ctx->last, memory_order_acquire);
    if (!e || e->choice.key.word != key.word) {
        e = find(ctx, key);
        if (!e) {
            const dpr_status status = add(ctx, key, &e);
            if (status != DPR_OK)
                return status;
        }
        atomic_store_explicit(&ctx->last, e, memory_order_release);
    }
    *out = &e->choice;
    return DPR_OK;
}

/* ---- The contexts of dpr_reduce() ---- */

enum { MOST_DEVICES = 64 };

static struct {
    pthread_mutex_t lock;
    _Atomic(dpr_ctx *) of_cpu;
    _Atomic(dpr_ctx *) of_device[MOST_DEVICES];
} defaults = {.lock = PTHREAD_MUTEX_INITIALIZER};

dpr_status dpr_ctx_default(int device, dpr_ctx **out) {
    if (device >= MOST_DEVICES)
        return dpr_fail(DPR_ERR_NO_DEVICE, "device %d is past the %d that dpr_reduce() serves", device, MOST_DEVICES);
    _Atomic(dpr_ctx *) *place = device < 0 ? &defaults.of_cpu : &defaults.of_device[device];
    dpr_ctx *ctx = atomic_load_explicit(place, memory_order_acquire);
    dpr_status status = DPR_OK;
    if (!ctx) {
        pthread_mutex_lock(&defaults.lock);
        ctx = atomic_load_explicit(place, memory_order_relaxed);
        if (!ctx) {
            status = dpr_ctx_create(device, &ctx);
            if (status == DPR_OK)
                atomic_store_explicit(place, ctx, memory_order_release);
        }
        pthread_mutex_unlock(&defaults.lock);
    }
    if (status == DPR_OK)
        *out = ctx;
    return status;
}

void dpr_ctx_drop_defaults(void) {
    pthread_mutex_lock(&defaults.lock);
    dpr_ctx_destroy(atomic_exchange(&defaults.of_cpu, NULL));
    for (int i = 0; i < MOST_DEVICES; i++)
        dpr_ctx_destroy(atomic_exchange(&defaults.of_device[i], NULL));
    pthread_mutex_unlock(&defaults.lock);
}
