#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "available.h"
#include "backend.h"

struct bench_timer {
    const bench_backend *backend;
    void *state;
    bench_device device;
    bench_room room;
    unsigned char *block;   /* a copy of what the pool is filled with */
    unsigned char *results; /* BENCH_CALLS of one batch */
    bench_reference best;   /* of all looks */
    bench_watch watch;
};

/* One call of bench_run(). */
typedef struct session {
    bench_timer *timer;
    const bench_point *point;
    const bench_rule *rule;
    bench_layout layout;
    int n;
    bench_batch batches[BENCH_SUBJECTS];
    bench_outcome *outcomes;
    double began;
} session;

/* ---- Names and small things ------------------------------------------------------------------------------------- */

const char *bench_mode_name(size_t mode) {
    static const char *const names[] = {
        [BENCH_GRAPH] = "graph", [BENCH_STREAM] = "stream", [BENCH_BLOCKING] = "blocking"};
    return mode < BENCH_MODES ? names[mode] : NULL;
}

const char *bench_cache_name(size_t cache) {
    static const char *const names[] = {[BENCH_COLD] = "cold", [BENCH_HOT] = "hot"};
    return cache < BENCH_CACHES ? names[cache] : NULL;
}

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int bench_make_calls(bench_batch *batch, const unsigned char *pool, size_t first) {
    const bench_subject *s = batch->subject;
    for (int i = 0; i < batch->calls; i++) {
        const unsigned char *in = pool + bench_offset(batch->layout, first + (size_t)i);
        if ((batch->code = s->call(s->user, in, batch->results + (size_t)i * BENCH_RESULT_STRIDE)) != 0)
            return batch->code;
    }
    return 0;
}

bench_summary bench_compare(const bench_outcome *a, const bench_outcome *b) {
    return bench_ratios(a->samples, b->samples, a->us.n < b->us.n ? a->us.n : b->us.n);
}

static double loss(double before, double after) {
    return before > 0 && after < before ? 1 - after / before : 0;
}

double bench_slowdown(const bench_reference *before, const bench_reference *after) {
    const double clock = loss(before->clock_mhz, after->clock_mhz);
    const double read = loss(before->read_gb_per_s, after->read_gb_per_s);
    return clock > read ? clock : read;
}

int bench_goes_on(const bench_watch *watch) {
    if (watch->tick)
        watch->tick(watch->tick_user);
    return !(watch->stop && *watch->stop) && (watch->end <= 0 || bench_now() < watch->end);
}

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

static dpr_status describe_gpu(bench_timer *timer) {
    bench_device *d = &timer->device;
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_machine *m;
    const dpr_status status = dpr_machine_read(d->ordinal, 0, &m);
    if (status != DPR_OK)
        return status;
    (void)dpr_machine_describe(m, &info);
    snprintf(d->name, sizeof d->name, "%s", info.gpu_name);
    d->sm_count = (int)machine_value(m, "gpu.sm_count");
    d->sm_clock_khz = (int)machine_value(m, "gpu.sm_clock_khz");
    d->memory_clock_khz = (int)machine_value(m, "gpu.memory_clock_khz");
    d->memory_bus_bits = (int)machine_value(m, "gpu.memory_bus_bits");
    d->cache_bytes = (uint64_t)machine_value(m, "gpu.l2_bytes");
    d->memory_bytes = (uint64_t)machine_value(m, "gpu.memory_bytes");
    dpr_machine_destroy(m);
    bench_cuda_versions(&d->driver_version, &d->runtime_version);
    return DPR_OK;
}

static dpr_status describe_cpu(bench_timer *timer) {
    bench_device *d = &timer->device;
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_machine *m;
    d->cache_bytes = timer->room.cache_bytes;
    const dpr_status status = dpr_machine_read(DPR_DEVICE_CPU, 0, &m);
    if (status != DPR_OK)
        return status;
    (void)dpr_machine_describe(m, &info);
    snprintf(d->name, sizeof d->name, "%s", info.cpu_name);
    d->sm_count = (int)machine_value(m, "cpu.cores");
    dpr_machine_destroy(m);
    return DPR_OK;
}

static const bench_backend *backend_of(int device) {
    return device == DPR_DEVICE_CPU ? &bench_cpu : &bench_cuda;
}

size_t bench_pool_most(int device) {
    return backend_of(device)->most(device);
}

int bench_timer_create(int device, size_t pool_bytes, bench_timer **out, char why[BENCH_WHY]) {
    bench_timer *t = calloc(1, sizeof *t);
    unsigned char *results = malloc((size_t)BENCH_CALLS * BENCH_RESULT_STRIDE);
    if (!t || !results) {
        snprintf(why, BENCH_WHY, "no host memory for a timer");
        free(t);
        free(results);
        return -1;
    }
    t->results = results;
    t->device.ordinal = device;
    t->backend = backend_of(device);
    if (t->backend->open(device, pool_bytes, &t->state, &t->room, why) != BENCH_GOOD) {
        free(t);
        free(results);
        return -1;
    }
    if ((t->room.on_gpu ? describe_gpu(t) : describe_cpu(t)) != DPR_OK) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        bench_timer_destroy(t);
        return -1;
    }
    *out = t;
    return 0;
}

void bench_timer_destroy(bench_timer *timer) {
    if (!timer)
        return;
    timer->backend->close(timer->state);
    free(timer->block);
    free(timer->results);
    free(timer);
}

const bench_device *bench_timer_device(const bench_timer *timer) {
    return &timer->device;
}

size_t bench_pool_bytes(const bench_timer *timer) {
    return timer->room.pool_bytes;
}

void bench_stop_at(bench_timer *timer, const volatile sig_atomic_t *flag) {
    timer->watch.stop = flag;
}

void bench_end_at(bench_timer *timer, double when) {
    timer->watch.end = when;
}

void bench_tick_at(bench_timer *timer, void (*tick)(void *user), void *user) {
    timer->watch.tick = tick;
    timer->watch.tick_user = user;
}

int bench_fill(bench_timer *timer, const void *block, size_t block_bytes, char why[BENCH_WHY]) {
    bench_room *room = &timer->room;
    if (block_bytes == 0 || block_bytes % BENCH_ALIGNMENT || block_bytes > room->pool_bytes) {
        snprintf(why, BENCH_WHY, "a block of %zu bytes does not fit the pool", block_bytes);
        return -1;
    }
    unsigned char *copy = malloc(block_bytes);
    if (!copy) {
        snprintf(why, BENCH_WHY, "no host memory for a block");
        return -1;
    }
    memcpy(copy, block, block_bytes);
    free(timer->block);
    timer->block = copy;
    room->block_bytes = block_bytes;
    const size_t whole = room->pool_bytes / block_bytes * block_bytes;
    return timer->backend->fill(timer->state, copy, block_bytes, whole, why) == BENCH_GOOD ? 0 : -1;
}

int bench_fits(const bench_timer *timer, const bench_point *point, char why[BENCH_WHY]) {
    bench_layout layout;
    return bench_lay(&timer->room, point, &layout, why);
}

int bench_look(bench_timer *timer, bench_reference *out, char why[BENCH_WHY]) {
    bench_reference *best = &timer->best;
    if (timer->backend->look(timer->state, out, why) != BENCH_GOOD)
        return -1;
    if (out->clock_mhz > best->clock_mhz)
        best->clock_mhz = out->clock_mhz;
    if (out->read_gb_per_s > best->read_gb_per_s)
        best->read_gb_per_s = out->read_gb_per_s;
    return 0;
}

/* ---- One point -------------------------------------------------------------------------------------------------- */

/* Takes note of what a backend's function returned. 0 if the subject may go on, 1 if it has ended; -1 if all has. */
static int note(bench_outcome *o, const bench_batch *batch, bench_status status) {
    if (status == BENCH_GOOD)
        return 0;
    o->state = BENCH_FAILED;
    o->code = status == BENCH_CALLBACK ? batch->code : 0;
    return status == BENCH_BROKEN ? -1 : 1;
}

static int start(session *s, int i) {
    bench_outcome *o = &s->outcomes[i];
    bench_batch *batch = &s->batches[i];
    if (s->point->mode == BENCH_BLOCKING ? !batch->subject->call : !batch->subject->enqueue) {
        o->state = BENCH_UNFIT;
        return 0;
    }
    if (!bench_goes_on(&s->timer->watch))
        return 0;
    const int status = note(o, batch, s->timer->backend->warm(s->timer->state, batch, o->why));
    o->calls = batch->calls;
    o->late = batch->late;
    if (status == 0)
        o->state = BENCH_DONE;
    return status < 0 ? -1 : 0;
}

static void check_results(bench_outcome *o, const bench_batch *batch) {
    if (!batch->subject->count_wrong)
        return;
    o->checked += batch->calls;
    o->wrong += batch->subject->count_wrong(batch->subject->user, batch->results, batch->calls);
}

/* Takes one sample of a subject. 1 if it wants more, 0 if not, -1 if the device has failed. */
static int take(session *s, int i) {
    bench_outcome *o = &s->outcomes[i];
    bench_batch *batch = &s->batches[i];
    const int status = note(o, batch, s->timer->backend->sample(s->timer->state, batch, &o->samples[o->us.n], o->why));
    o->late = batch->late;
    if (status != 0)
        return status < 0 ? -1 : 0;
    check_results(o, batch);
    o->us.n++;
    /* Sorting all samples for each would come to more than taking them. */
    if (o->us.n >= s->rule->max_samples || o->us.n % (1 + o->us.n / 16) == 0) {
        const bench_summary summary = bench_summarise(o->samples, o->us.n);
        o->verdict = bench_judge(s->rule, &summary, bench_now() - s->began);
    }
    return o->verdict == BENCH_MORE && o->us.n < BENCH_SAMPLES;
}

/* Rounds until no subject wants more samples. 0, or -1 if the device has failed. */
static int take_rounds(session *s) {
    int wants[BENCH_SUBJECTS] = {0}, some = 0;
    for (int i = 0; i < s->n; i++)
        some |= wants[i] = s->outcomes[i].state == BENCH_DONE;
    while (some) {
        some = 0;
        for (int i = 0; i < s->n; i++) {
            if (!wants[i])
                continue;
            if (!bench_goes_on(&s->timer->watch))
                return 0;
            const int status = take(s, i);
            if (status < 0)
                return -1;
            some |= wants[i] = status;
        }
    }
    return 0;
}

static bench_status set_mark(session *s, const void *from, char *why) {
    const bench_point *p = s->point;
    if (p->mark_bytes == 0)
        return BENCH_GOOD;
    return s->timer->backend->mark(s->timer->state, &s->layout, p->mark_at, from, p->mark_bytes, why);
}

static void summarise(bench_outcome *o) {
    const int n = o->us.n;
    o->us = bench_summarise(o->samples, n);
    if (n == 0)
        o->state = BENCH_INTERRUPTED;
    else if (o->us.n == 0) {
        o->state = BENCH_FAILED;
        snprintf(o->why, sizeof o->why, "out of memory");
    }
}

static int run(session *s, char *why) {
    if (set_mark(s, s->point->mark, why) != BENCH_GOOD)
        return -1;
    int status = 0, at = 0;
    for (; at < s->n && status == 0; at++)
        status = start(s, at);
    if (status == 0)
        status = take_rounds(s);
    for (int i = 0; i < s->n; i++) {
        bench_outcome *o = &s->outcomes[i];
        if (status != 0 && o->state == BENCH_FAILED && o->why[0])
            memcpy(why, o->why, BENCH_WHY);
        s->timer->backend->cool(s->timer->state, &s->batches[i]);
        if (o->state == BENCH_DONE)
            summarise(o);
    }
    const size_t mark_in_block = s->point->mark_at % s->timer->room.block_bytes;
    if (status == 0 && set_mark(s, s->timer->block + mark_in_block, why) != BENCH_GOOD)
        status = -1;
    return status;
}

static void prepare(session *s, const bench_subject *subjects) {
    for (int i = 0; i < s->n; i++) {
        s->batches[i] = (bench_batch){.subject = &subjects[i],
                                      .point = s->point,
                                      .layout = &s->layout,
                                      .watch = &s->timer->watch,
                                      .seconds = s->rule->seconds / s->n / s->rule->min_samples / 2,
                                      .results = s->timer->results};
        memset(&s->outcomes[i], 0, sizeof s->outcomes[i]);
        s->outcomes[i].state = BENCH_INTERRUPTED;
    }
}

/* Whether the data is made. 0 if that was stopped, with the reason in the outcomes; -1 if it failed. */
static int make_data(session *s, char *why) {
    const bench_backend *backend = s->timer->backend;
    if (!backend->make)
        return 1;
    const bench_status status = backend->make(s->timer->state, &s->layout, s->point->bytes, &s->timer->watch, why);
    for (int i = 0; i < s->n && status == BENCH_STOPPED; i++)
        memcpy(s->outcomes[i].why, why, BENCH_WHY);
    return status == BENCH_GOOD ? 1 : status == BENCH_STOPPED ? 0 : -1;
}

int bench_run(bench_timer *timer, const bench_point *point, const bench_rule *rule, const bench_subject *subjects,
              int n, bench_outcome *outcomes, char why[BENCH_WHY]) {
    session s = {.timer = timer, .point = point, .rule = rule, .n = n, .outcomes = outcomes, .began = bench_now()};
    bench_reference reference;
    if (n < 1 || n > BENCH_SUBJECTS) {
        snprintf(why, BENCH_WHY, "%d subjects; there may be 1 to %d", n, BENCH_SUBJECTS);
        return -1;
    }
    prepare(&s, subjects);
    if (bench_lay(&timer->room, point, &s.layout, why) != 0)
        return -1;
    const int made = make_data(&s, why);
    if (made <= 0)
        return made;
    if (timer->best.clock_mhz <= 0 && bench_look(timer, &reference, why) != 0)
        return -1;
    if (run(&s, why) != 0 || bench_look(timer, &reference, why) != 0)
        return -1;
    for (int i = 0; i < n; i++)
        outcomes[i].slowdown = bench_slowdown(&timer->best, &reference);
    return 0;
}
