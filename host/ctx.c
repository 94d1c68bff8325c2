#include "ctx.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "caps_read.h"
#include "error.h"
#include "request.h"

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
    _Atomic(entry *) head[BUCKETS]; /* newest first */
};

/* The calling thread's device if it can be used. Where that refuses the number of pending launches the CPU would, too,
 * and its sentence would hide why. */
static dpr_status create_auto(const dpr_ctx_options *options, dpr_ctx **out) {
    if (dpr_device_count() > 0) {
        const dpr_status status = dpr_ctx_create_ex(dpr_device_current(), options, out);
        if (status == DPR_OK || (status == DPR_ERR_INVALID_OPTION && options->pending_launches > 0))
            return status;
    }
    return dpr_ctx_create_ex(DPR_DEVICE_CPU, options, out);
}

static dpr_status open_gpu(dpr_ctx *ctx, int device, const dpr_ctx_options *options) {
    dpr_status status = dpr_device_open(device, &ctx->gpu);
    if (status != DPR_OK)
        return status;
    if (options->pending_launches > 0)
        status = dpr_device_allow_pending(ctx->gpu, options->pending_launches);
    if (status == DPR_OK)
        dpr_device_limit(ctx->gpu, &ctx->machine.caps.gpu);
    else
        dpr_device_close(ctx->gpu);
    return status;
}

static dpr_status create(int device, const dpr_ctx_options *options, dpr_ctx **out) {
    if (device == DPR_DEVICE_CPU && options->pending_launches > 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "ctx_options->pending_launches is %zu, and the context is the CPU's",
                        options->pending_launches);
    dpr_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a context");
    dpr_status status = dpr_caps_read(device, &ctx->machine.caps);
    if (status == DPR_OK && device != DPR_DEVICE_CPU)
        status = open_gpu(ctx, device, options);
    if (status != DPR_OK) {
        free(ctx);
        return status;
    }
    ctx->device = device;
    ctx->machine.resident = dpr_device_resident;
    ctx->machine.nested = ctx->gpu ? dpr_device_nested : NULL;
    ctx->machine.user = ctx->gpu;
    *out = ctx;
    return DPR_OK;
}

dpr_status dpr_ctx_create(int device, dpr_ctx **out) {
    return dpr_ctx_create_ex(device, NULL, out);
}

dpr_status dpr_ctx_create_ex(int device, const dpr_ctx_options *given, dpr_ctx **out) {
    dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (device < DPR_DEVICE_AUTO)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "device is %d, which is neither a CUDA ordinal nor DPR_DEVICE_CPU nor DPR_DEVICE_AUTO", device);
    if (given) {
        const dpr_status status = dpr_request_adopt("ctx_options", given, &options, sizeof options);
        if (status != DPR_OK)
            return status;
    }
    return device == DPR_DEVICE_AUTO ? create_auto(&options, out) : create(device, &options, out);
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

static const entry *find_from(const entry *e, dpr_key key) {
    while (e && e->choice.key.word != key.word)
        e = e->next;
    return e;
}

/* Without a lock, which a process forked at this moment would find held for ever. */
static dpr_status add(dpr_ctx *ctx, dpr_key key, const entry **out) {
    entry *e = malloc(sizeof *e);
    if (!e)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a plan");
    const dpr_status status = dpr_choose(&key, &ctx->machine, &e->choice);
    if (status != DPR_OK) {
        free(e);
        return status;
    }
    _Atomic(entry *) *head = &ctx->head[bucket_of(key)];
    e->next = atomic_load_explicit(head, memory_order_acquire);
    do {
        const entry *other = find_from(e->next, key); /* of a thread that missed the same key */
        if (other) {
            free(e);
            *out = other;
            return DPR_OK;
        }
    } while (!atomic_compare_exchange_weak_explicit(head, &e->next, e, memory_order_release, memory_order_acquire));
    *out = e;
    return DPR_OK;
}

dpr_status dpr_ctx_choice(dpr_ctx *ctx, dpr_key key, const dpr_choice **out) {
    const entry *e = find_from(atomic_load_explicit(&ctx->head[bucket_of(key)], memory_order_acquire), key);
    if (!e) {
        const dpr_status status = add(ctx, key, &e);
        if (status != DPR_OK)
            return status;
    }
    *out = &e->choice;
    return DPR_OK;
}

/* ---- The contexts of dpr_reduce() ---- */

enum { MOST_DEVICES = 64 };

static _Atomic(dpr_ctx *) default_of_cpu, default_of_device[MOST_DEVICES];

dpr_status dpr_ctx_default(int device, dpr_ctx **out) {
    if (device >= MOST_DEVICES)
        return dpr_fail(DPR_ERR_NO_DEVICE, "device %d is past the %d that dpr_reduce() serves", device, MOST_DEVICES);
    _Atomic(dpr_ctx *) *place = device < 0 ? &default_of_cpu : &default_of_device[device];
    dpr_ctx *ctx = atomic_load_explicit(place, memory_order_acquire);
    if (!ctx) {
        dpr_ctx *made = NULL;
        const dpr_status status = dpr_ctx_create(device, &made);
        if (status != DPR_OK)
            return status;
        if (atomic_compare_exchange_strong(place, &ctx, made))
            ctx = made;
        else
            dpr_ctx_destroy(made); /* another thread was quicker */
    }
    *out = ctx;
    return DPR_OK;
}

void dpr_ctx_drop_defaults(void) {
    dpr_ctx_destroy(atomic_exchange(&default_of_cpu, NULL));
    for (int i = 0; i < MOST_DEVICES; i++)
        dpr_ctx_destroy(atomic_exchange(&default_of_device[i], NULL));
}
