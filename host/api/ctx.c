#include "ctx.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "error.h"
#include "plan/caps_read.h"
#include "plan/choice_log.h"
#include "plan/registry.h"
#include "request.h"
#include "start.h"
#include "wisdom.h"

/* Choices are never changed or removed while the context lives, so readers need no lock. */
typedef struct entry {
    dpr_choice choice;
    struct entry *next;
} entry;

enum { BUCKETS = 256 };

/* The choices for streams whose work runs on `sms` SMs. */
typedef struct view {
    struct view *next;
    int sms;
    _Atomic uint64_t barred;        /* strategies that turned out too large for these SMs, as in dpr_machine */
    _Atomic(entry *) head[BUCKETS]; /* newest first */
} view;

struct dpr_ctx {
    dpr_machine machine;
    dpr_residence residence; /* where the machine's kernels run */
    dpr_device *gpu;         /* NULL on the CPU */
    view own;                /* for the SMs of the CUDA context */
    _Atomic(view *) others;  /* for streams with fewer SMs */
};

/* Makes a context on the calling thread's device if that can be used, otherwise on the CPU. If the device refuses the
 * number of pending launches, the CPU is not tried: it would refuse as well, and its sentence would hide the reason. */
static dpr_status create_auto(const dpr_ctx_options *options, dpr_ctx **out) {
    if (dpr_device_count() > 0) {
        const dpr_status status = dpr_ctx_create_ex(dpr_device_current(), options, out);
        if (status == DPR_OK || (status == DPR_ERR_INVALID_OPTION && options->pending_launches > 0))
            return status;
    }
    return dpr_ctx_create_ex(DPR_DEVICE_CPU, options, out);
}

static dpr_status open_gpu(dpr_ctx *ctx, const dpr_home *home, const dpr_ctx_options *options) {
    dpr_status status = dpr_device_open(home, &dpr_this_build, &ctx->gpu);
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

/* Makes a context on a GPU in this CUDA context, or on the CPU if `home` is NULL. */
static dpr_status create_in(const dpr_home *home, const dpr_ctx_options *options, dpr_ctx **out) {
    dpr_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a context");
    ctx->machine.device = home ? home->ordinal : DPR_DEVICE_CPU;
    dpr_status status = dpr_caps_read(ctx->machine.device, &ctx->machine.caps);
    if (status == DPR_OK && home)
        status = open_gpu(ctx, home, options);
    if (status != DPR_OK) {
        free(ctx);
        return status;
    }
    ctx->machine.driver = home ? dpr_device_driver() : 0;
    dpr_wisdom_attach(dpr_wisdom_current(), &ctx->machine);
    ctx->own.sms = (int)ctx->machine.caps.gpu.sm_count;
    if (home) {
        ctx->residence = dpr_device_residence(ctx->gpu);
        ctx->machine.resident = dpr_device_resident;
        ctx->machine.nested_costs = dpr_device_nested;
        ctx->machine.user = &ctx->residence;
    }
    *out = ctx;
    return DPR_OK;
}

/* Numbers of the homes in which load_kernels() is done. A home has one place, at its number modulo 64; another home may
 * take that place, and the first one's kernels are then asked for again. */
static _Atomic uint64_t loaded[64];

/* Loads the kernel of a strategy that is not in the registry. Returns 0 if that cannot be done. */
static int load_kernel_of(const dpr_strategy *strategy, const dpr_machine *machine) {
    dpr_residency unused;
    if (!strategy || !machine->resident)
        return 1;
    const dpr_kernel kernel = strategy->kernel(NULL);
    return machine->resident(machine->user, &kernel, &unused) == DPR_OK;
}

/* Loads all kernels that the planner may choose, by choosing for every pair: a choice asks how many blocks of a kernel
 * the device holds, and CUDA loads the kernel to answer. Otherwise CUDA would load each kernel at its first use, and
 * wait for all work on the device. A kernel that cannot be loaded is an error only for a call that needs it. */
static void load_kernels(const dpr_machine *machine, const dpr_home *home) {
    _Atomic uint64_t *const done = &loaded[home->id % (sizeof loaded / sizeof *loaded)];
    const dpr_strategy *candidates[DPR_STRATEGY_COUNT];
    dpr_choice unused;
    int all = 1;
    if (atomic_load(done) == home->id)
        return;
    /* By prediction, calls in streams and others choose alike. */
    const int kinds = machine->wisdom && machine->wisdom->times > 0 ? 4 : 2;
    for (int i = 0; i < DPR_OP_COUNT * DPR_DTYPE_COUNT * kinds; i++) {
        dpr_key key = {.f = {.nan = (uint8_t)(i % 2), .in_memory = DPR_MEMORY_DEVICE}};
        key.f.gpu_only = i % kinds > 1;
        key.f.op = (uint8_t)(i / kinds / DPR_DTYPE_COUNT);
        key.f.dtype = (uint8_t)(i / kinds % DPR_DTYPE_COUNT);
        key.f.ops = UINT32_C(1) << key.f.op;
        if (dpr_supported(dpr_key_op(&key), dpr_key_dtype(&key)) && dpr_candidates(&key, machine, candidates) > 0)
            all &= dpr_choose(&key, machine, &unused) == DPR_OK;
    }
    all &= load_kernel_of(dpr_this_build.partials, machine);
    all &= load_kernel_of(dpr_this_build.key_runs, machine);
    if (all)
        atomic_store(done, home->id);
}

static dpr_status create(int device, const dpr_ctx_options *options, dpr_ctx **out) {
    dpr_home home;
    if (device == DPR_DEVICE_CPU && options->pending_launches > 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "ctx_options->pending_launches is %zu; it must be 0 for a context of the CPU",
                        options->pending_launches);
    if (device == DPR_DEVICE_CPU)
        return create_in(NULL, options, out);
    dpr_status status = dpr_caps_check(device);
    if (status == DPR_OK)
        status = dpr_device_home(device, NULL, &home);
    if (status == DPR_OK)
        status = create_in(&home, options, out);
    if (status == DPR_OK)
        load_kernels(&(*out)->machine, &home);
    return status;
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
        const dpr_status status = dpr_adopt("ctx_options", "dpr_ctx_options", given, &options, sizeof options);
        if (status != DPR_OK)
            return status;
    }
    return device == DPR_DEVICE_AUTO ? create_auto(&options, out) : create(device, &options, out);
}

static void free_choices(view *v) {
    for (int i = 0; i < BUCKETS; i++) {
        for (entry *e = atomic_load(&v->head[i]), *next; e; e = next) {
            next = e->next;
            free(e);
        }
    }
}

void dpr_ctx_destroy(dpr_ctx *ctx) {
    if (!ctx)
        return;
    dpr_device_close(ctx->gpu);
    dpr_wisdom_release(ctx->machine.wisdom);
    free_choices(&ctx->own);
    for (view *v = atomic_load(&ctx->others), *next; v; v = next) {
        next = v->next;
        free_choices(v);
        free(v);
    }
    free(ctx);
}

int dpr_ctx_device(const dpr_ctx *ctx) {
    return ctx ? ctx->machine.device : DPR_DEVICE_CPU;
}
const dpr_machine *dpr_ctx_machine(const dpr_ctx *ctx) {
    return ctx ? &ctx->machine : NULL;
}
dpr_device *dpr_ctx_gpu(const dpr_ctx *ctx) {
    return ctx->gpu;
}
int dpr_ctx_threads(const dpr_ctx *ctx) {
    return (int)ctx->machine.caps.cpu.threads;
}

dpr_status dpr_ctx_reaches(const dpr_ctx *ctx, const char *argument, dpr_place place) {
    const int device = dpr_ctx_device(ctx);
    if (place.memory != DPR_MEMORY_DEVICE || place.device == device)
        return DPR_OK;
    if (device == DPR_DEVICE_CPU)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is in memory of device %d, and the context is the CPU's", argument,
                        place.device);
    return dpr_fail(DPR_ERR_WRONG_DEVICE, "%s is in memory of device %d, and the context is of device %d", argument,
                    place.device, device);
}

/* Fibonacci hashing: the key's fields are in different bytes, and the products' top bytes depend on all of them. */
static size_t bucket_of(dpr_key key) {
    const uint64_t mixed = key.words[0] * UINT64_C(0x9e3779b97f4a7c15) + key.words[1] * UINT64_C(0xd1342543de82ef95);
    return (size_t)(mixed >> 56) % BUCKETS;
}

static const entry *find_from(const entry *e, dpr_key key, uint64_t barred) {
    while (e && (!dpr_key_equal(&e->choice.key, &key) || e->choice.barred != barred))
        e = e->next;
    return e;
}

/* Makes a choice and adds it to the view. There is no lock, because a child forked while a thread holds one would find
 * it held forever. */
static dpr_status add(view *v, const dpr_machine *machine, dpr_key key, const entry **out) {
    entry *e = malloc(sizeof *e);
    if (!e)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a plan");
    const dpr_status status = dpr_choose(&key, machine, &e->choice);
    if (DPR_LOGS(PLAN))
        dpr_log_choice(status, &key, &e->choice, machine);
    if (status != DPR_OK) {
        free(e);
        return status;
    }
    _Atomic(entry *) *head = &v->head[bucket_of(key)];
    e->next = atomic_load_explicit(head, memory_order_acquire);
    do {
        const entry *other = find_from(e->next, key, machine->barred); /* another thread was quicker */
        if (other) {
            free(e);
            *out = other;
            return DPR_OK;
        }
    } while (!atomic_compare_exchange_weak_explicit(head, &e->next, e, memory_order_release, memory_order_acquire));
    *out = e;
    return DPR_OK;
}

/* Finds or makes the choice in a view. `stream` has the view's SMs; it is NULL if these are the context's own. */
static dpr_status choice_in(const dpr_ctx *ctx, view *v, dpr_key key, dpr_stream stream, const dpr_choice **out) {
    const uint64_t barred = atomic_load_explicit(&v->barred, memory_order_relaxed);
    if (v != &ctx->own && key.f.effort == DPR_WISDOM_ONLY) /* wisdom is of all SMs */
        key.f.effort = DPR_EFFORT_DEFAULT;
    const entry *e = find_from(atomic_load_explicit(&v->head[bucket_of(key)], memory_order_acquire), key, barred);
    if (!e) {
        dpr_residence residence = {ctx->gpu, stream, v->sms};
        dpr_machine machine = ctx->machine;
        machine.barred = barred;
        machine.caps.gpu.sm_count = v->sms;
        machine.user = &residence;
        if (v != &ctx->own)
            machine.wisdom = NULL;
        const dpr_status status = add(v, &machine, key, &e);
        if (status != DPR_OK)
            return status;
    }
    *out = &e->choice;
    return DPR_OK;
}

dpr_status dpr_ctx_choice(dpr_ctx *ctx, dpr_key key, const dpr_choice **out) {
    return choice_in(ctx, &ctx->own, key, NULL, out);
}

/* ---- Runs on a GPU ---- */

/* Finds or makes the view for `sms` SMs; NULL if there is no host memory. A context keeps one view for each number of
 * SMs that its streams have had. */
static view *view_of(dpr_ctx *ctx, int sms) {
    view *made = NULL, *first = atomic_load_explicit(&ctx->others, memory_order_acquire);
    if (sms == ctx->own.sms)
        return &ctx->own;
    for (;;) {
        for (view *v = first; v; v = v->next) {
            if (v->sms == sms) {
                free(made);
                return v;
            }
        }
        if (!made)
            made = calloc(1, sizeof *made);
        if (!made)
            return NULL;
        made->sms = sms;
        made->next = first;
        if (atomic_compare_exchange_weak_explicit(&ctx->others, &first, made, memory_order_release,
                                                  memory_order_acquire))
            return made;
    }
}

/* Replaces *choice, whose `strategy` does not fit the stream, with a choice of a GPU strategy for the stream's SMs. */
static dpr_status choose_again(dpr_ctx *ctx, const dpr_strategy *strategy, const dpr_misfit *misfit, dpr_stream stream,
                               const dpr_choice **choice) {
    view *v = view_of(ctx, misfit->sms ? misfit->sms : (*choice)->sms);
    if (!v)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a plan");
    if (misfit->too_large)
        atomic_fetch_or(&v->barred, UINT64_C(1) << dpr_strategy_index(strategy));
    dpr_key key = (*choice)->key;
    if (key.f.in_memory == DPR_MEMORY_PINNED) /* the caller launches a kernel next, and the CPU could read it, too */
        key.f.gpu_only = 1;
    if (key.f.effort == DPR_MEASURE) { /* the strategy was the quickest, and not asked for */
        key.f.effort = DPR_EFFORT_DEFAULT;
        key.f.strategy = 0;
    }
    return choice_in(ctx, v, key, v == &ctx->own ? NULL : stream, choice);
}

dpr_status dpr_ctx_run(dpr_ctx *ctx, const dpr_choice *choice, dpr_run *run, const dpr_host_result *result) {
    for (;;) {
        const dpr_choice_step *step = dpr_choice_at(choice, run->count);
        dpr_misfit misfit = {0, 0};
        run->limits = step->limits;
        run->sms = choice->sms;
        dpr_status status = dpr_start_on_gpu(ctx->gpu, step->strategy, run, result, &misfit);
        if (misfit.sms == 0 && (!misfit.too_large || (choice->key.f.strategy && choice->key.f.effort != DPR_MEASURE)))
            return status;
        status = choose_again(ctx, step->strategy, &misfit, run->stream, &choice);
        if (status != DPR_OK)
            return status;
    }
}

/* ---- The contexts of dpr_reduce() ---- */

/* A place for the context of one CUDA context. `home` is the number of its dpr_home, so that nobody uses a context
 * whose CUDA context is gone. 0: the place is empty. CHANGING: one thread is changing the place, and others wait. */
typedef struct default_ctx {
    _Atomic uint64_t home;
    _Atomic(dpr_ctx *) ctx;
} default_ctx;

enum { MOST_HOMES = 64 };
static const uint64_t CHANGING = UINT64_MAX;

static default_ctx defaults[MOST_HOMES];
static _Atomic(dpr_ctx *) default_of_cpu;

/* Returns the place's number, after waiting for a thread that is changing the place. The wait is short. */
static uint64_t settled(const default_ctx *place) {
    uint64_t home;
    while ((home = atomic_load_explicit(&place->home, memory_order_acquire)) == CHANGING)
        (void)sched_yield();
    return home;
}

/* Searches from the number's own place (modulo MOST_HOMES) to the first place that has never been taken. */
static dpr_ctx *find_default(uint64_t home) {
    for (uint64_t i = 0; i < MOST_HOMES; i++) {
        const default_ctx *place = &defaults[(home + i) % MOST_HOMES];
        const uint64_t there = settled(place);
        if (there == home)
            return atomic_load(&place->ctx);
        if (there == 0)
            return NULL;
    }
    return NULL;
}

/* Puts ctx into the place if the place is empty, or if the CUDA context of the dpr_ctx in it is gone. Returns whether
 * it did. */
static int put_default(default_ctx *place, uint64_t there, uint64_t home, dpr_ctx *ctx) {
    if (!atomic_compare_exchange_strong(&place->home, &there, CHANGING))
        return 0;
    dpr_ctx *old = atomic_load(&place->ctx);
    const int is_free = !old || dpr_device_is_gone(old->gpu);
    if (is_free) {
        dpr_ctx_destroy(old);
        atomic_store(&place->ctx, ctx);
    }
    atomic_store_explicit(&place->home, is_free ? home : there, memory_order_release);
    return is_free;
}

/* Puts `made` into the table, or destroys it if another thread has added a context for the same home. Sets *out to the
 * one in the table. */
static dpr_status add_default(uint64_t home, dpr_ctx *made, dpr_ctx **out) {
    for (uint64_t i = 0; i < MOST_HOMES;) {
        default_ctx *place = &defaults[(home + i) % MOST_HOMES];
        const uint64_t there = settled(place);
        if (there == home) {
            dpr_ctx_destroy(made);
            *out = atomic_load(&place->ctx);
            return DPR_OK;
        }
        if (put_default(place, there, home, made)) {
            *out = made;
            return DPR_OK;
        }
        i += atomic_load(&place->home) == there; /* a place that has changed is tried again */
    }
    dpr_ctx_destroy(made);
    return dpr_fail(DPR_ERR_NO_DEVICE, "dpr_reduce() serves at most %d CUDA contexts at a time, and all are in use",
                    MOST_HOMES);
}

static dpr_status default_for_cpu(dpr_ctx **out) {
    dpr_ctx *there = NULL, *made = NULL;
    const dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &made);
    if (status != DPR_OK)
        return status;
    if (!atomic_compare_exchange_strong(&default_of_cpu, &there, made))
        dpr_ctx_destroy(made); /* another thread was quicker */
    *out = there ? there : made;
    return DPR_OK;
}

dpr_status dpr_ctx_default(const dpr_place *at, dpr_ctx **out) {
    const dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    dpr_home home;
    dpr_ctx *made = NULL;
    if (at->device < 0) {
        *out = atomic_load_explicit(&default_of_cpu, memory_order_acquire);
        return *out ? DPR_OK : default_for_cpu(out);
    }
    dpr_status status = dpr_device_home(at->device, at->owner, &home);
    if (status != DPR_OK)
        return status;
    *out = find_default(home.id);
    if (*out)
        return DPR_OK;
    status = create_in(&home, &options, &made);
    return status == DPR_OK ? add_default(home.id, made, out) : status;
}

/* In a child that was forked while a thread changed a place, the place stays CHANGING; its context is left alone. */
void dpr_ctx_drop_defaults(void) {
    dpr_ctx_destroy(atomic_exchange(&default_of_cpu, NULL));
    for (int i = 0; i < MOST_HOMES; i++)
        if (atomic_exchange(&defaults[i].home, 0) != CHANGING)
            dpr_ctx_destroy(atomic_exchange(&defaults[i].ctx, NULL));
}
