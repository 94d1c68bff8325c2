#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "backend.h"

struct bench_timer {
    const bench_backend *backend;
    void *state;
    bench_device device;
    bench_room room;
    const unsigned char *block; /* what the pool is filled with */
    bench_reference best;       /* of all looks */
    bench_watch watch;
    unsigned char results[BENCH_CALLS * BENCH_MOST_STRIDE]; /* of one batch */
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

bench_status bench_make_calls(const bench_batch *batch, int calls, unsigned char *pool, size_t first,
                              unsigned char *out, dpr_stream stream) {
    const bench_subject *s = batch->subject;
    const int blocking = batch->point->mode == BENCH_BLOCKING;
    for (int i = 0; i < calls; i++, out += bench_stride(batch->point)) {
        unsigned char *in = pool + bench_offset(batch->layout, first + (size_t)i);
        unsigned char *to = batch->point->array_bytes ? in + bench_array_at(batch->point) : out;
        const int code = blocking ? s->call(s->user, in, to) : s->enqueue(s->user, in, to, stream);
        if (code != 0) {
            snprintf(batch->outcome->why, BENCH_WHY, "the call failed with %d", code);
            return BENCH_UNABLE;
        }
    }
    return BENCH_GOOD;
}

bench_summary bench_compare(const bench_outcome *a, const bench_outcome *b) {
    const int n = a->us.n < b->us.n ? a->us.n : b->us.n;
    double ratios[BENCH_SAMPLES];
    for (int i = 0; i < n; i++)
        ratios[i] = a->samples[i] / b->samples[i];
    return bench_summarise(ratios, n);
}

bench_summary bench_steady(const bench_outcome *of, const bench_outcome *launch, bench_mode mode) {
    static const double least = 1e-3; /* a launch that was disturbed may take longer than the call */
    const int both = of->us.n < launch->us.n ? of->us.n : launch->us.n, n = mode == BENCH_GRAPH ? 0 : both;
    double us[BENCH_SAMPLES];
    for (int i = 0; i < n; i++)
        us[i] = mode == BENCH_STREAM ? of->samples[i] / launch->samples[i] * 1e-3 * BENCH_STREAM_LAUNCH
                                     : fmax(of->samples[i] - launch->samples[i] + 1e-3 * BENCH_BLOCKING_LAUNCH, least);
    const bench_summary steady = bench_summarise(us, n);
    const int is_short = of->us.median <= BENCH_MOST_LAUNCHES * launch->us.median;
    return steady.bounded && is_short ? steady : (bench_summary){0};
}

int bench_keep(bench_outcome *o, double us, const bench_rule *rule, double began) {
    o->samples[o->us.n++] = us;
    /* Sorting all samples for each would come to more than taking them. */
    if (o->us.n >= rule->max_samples || o->us.n % (1 + o->us.n / 16) == 0) {
        const bench_summary summary = bench_summarise(o->samples, o->us.n);
        o->verdict = bench_judge(rule, &summary, seconds_now() - began);
    }
    return o->verdict == BENCH_MORE && o->us.n < BENCH_SAMPLES;
}

int bench_take_turns(int n, int (*take)(void *user, int i), void *user) {
    int done[BENCH_SUBJECTS] = {0}, left = n;
    for (int i = 0; left > 0; i = (i + 1) % n) {
        const int status = done[i] ? 1 : take(user, i);
        if (status < 0)
            return -1;
        done[i] |= status == 0;
        left -= status == 0;
    }
    return 0;
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
    return !(watch->stop && *watch->stop) && (watch->end <= 0 || seconds_now() < watch->end);
}

/* Bytes of the cache where the machine does not tell. */
static const uint64_t usual_cache = 4 << 20;

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

static const bench_backend *backend_of(int device) {
    return device == DPR_DEVICE_CPU ? &bench_cpu : &bench_cuda;
}

static dpr_status describe(bench_device *d) {
    const int on_gpu = d->ordinal != DPR_DEVICE_CPU;
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_machine *m;
    const dpr_status status = dpr_machine_read(d->ordinal, 0, &m);
    if (status != DPR_OK)
        return status;
    (void)dpr_machine_describe(m, &info);
    const int64_t host_cache_bytes = machine_value(m, "cpu.cache_bytes");
    const int64_t cache_bytes = on_gpu ? machine_value(m, "gpu.l2_bytes") : host_cache_bytes;
    snprintf(d->name, sizeof d->name, "%s", on_gpu ? info.gpu_name : info.cpu_name);
    d->sm_count = (int)machine_value(m, on_gpu ? "gpu.sm_count" : "cpu.cores");
    d->sm_clock_khz = (int)machine_value(m, "gpu.sm_clock_khz");
    d->memory_clock_khz = (int)machine_value(m, "gpu.memory_clock_khz");
    d->memory_bus_bits = (int)machine_value(m, "gpu.memory_bus_bits");
    d->cache_bytes = cache_bytes > 0 ? (uint64_t)cache_bytes : usual_cache;
    d->host_cache_bytes = host_cache_bytes > 0 ? (uint64_t)host_cache_bytes : usual_cache;
    d->memory_bytes = (uint64_t)machine_value(m, "gpu.memory_bytes");
    dpr_machine_destroy(m);
    return DPR_OK;
}

static bench_device device_of(int ordinal, dpr_memory memory) {
    const dpr_memory usual = ordinal == DPR_DEVICE_CPU ? DPR_MEMORY_HOST : DPR_MEMORY_DEVICE;
    return (bench_device){.ordinal = ordinal, .memory = memory == DPR_MEMORY_AUTO ? usual : memory};
}

size_t bench_pool_most(int device, dpr_memory memory) {
    bench_device d = device_of(device, memory);
    return describe(&d) == DPR_OK ? backend_of(device)->most(&d) : 0;
}

/* Describes the device and opens it. 0, or -1. */
static int open_device(bench_timer *t, size_t pool_bytes, char *why) {
    bench_device *d = &t->device;
    if (describe(d) != DPR_OK) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    const size_t most = t->backend->most(d), wanted = pool_bytes < most ? pool_bytes : most;
    d->pool_bytes = (wanted > BENCH_LEAST_POOL ? wanted : BENCH_LEAST_POOL) / BENCH_ALIGNMENT * BENCH_ALIGNMENT;
    if (t->backend->open(d, &t->state, why) != BENCH_GOOD)
        return -1;
    t->room = (bench_room){
        .on_gpu = d->ordinal != DPR_DEVICE_CPU, .pool_bytes = d->pool_bytes, .cache_bytes = (size_t)d->cache_bytes};
    return 0;
}

int bench_timer_create(int device, dpr_memory memory, size_t pool_bytes, bench_timer **out, char why[BENCH_WHY]) {
    bench_timer *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(why, BENCH_WHY, "no host memory for a timer");
        return -1;
    }
    t->backend = backend_of(device);
    t->device = device_of(device, memory);
    if (open_device(t, pool_bytes, why) != 0) {
        free(t);
        return -1;
    }
    *out = t;
    return 0;
}

void bench_timer_destroy(bench_timer *timer) {
    if (!timer)
        return;
    timer->backend->close(timer->state);
    free(timer);
}

const bench_device *bench_timer_device(const bench_timer *timer) {
    return &timer->device;
}

const bench_subject *bench_timer_launch(const bench_timer *timer) {
    return timer->backend->launch;
}

bench_reference bench_timer_best(const bench_timer *timer) {
    return timer->best;
}

bench_watch *bench_timer_watch(bench_timer *timer) {
    return &timer->watch;
}

/* Has the pool hold the block again and again. */
static bench_status fill(bench_timer *t, char *why) {
    const size_t block = t->room.block_bytes;
    return t->backend->fill(t->state, t->block, block, t->room.pool_bytes / block * block, why);
}

int bench_fill(bench_timer *timer, const void *block, size_t block_bytes, char why[BENCH_WHY]) {
    bench_room *room = &timer->room;
    if (block_bytes == 0 || block_bytes % BENCH_ALIGNMENT || block_bytes > room->pool_bytes) {
        snprintf(why, BENCH_WHY, "a block of %zu bytes does not fit the pool", block_bytes);
        return -1;
    }
    timer->block = block;
    room->block_bytes = block_bytes;
    return fill(timer, why) == BENCH_GOOD ? 0 : -1;
}

static void raise_to(bench_reference *best, const bench_reference *one) {
    best->clock_mhz = fmax(best->clock_mhz, one->clock_mhz);
    best->read_gb_per_s = fmax(best->read_gb_per_s, one->read_gb_per_s);
}

/* The best of some, because another program may have the device for a moment. */
int bench_look(bench_timer *timer, bench_reference *out, char why[BENCH_WHY]) {
    bench_reference best = {0};
    for (int i = 0; i < 3; i++) {
        bench_reference one = {0};
        if (timer->backend->look(timer->state, &one, why) != BENCH_GOOD)
            return -1;
        raise_to(&best, &one);
    }
    raise_to(&timer->best, &best);
    *out = best;
    return 0;
}

/* ---- One point -------------------------------------------------------------------------------------------------- */

/* Takes note of what a backend's function returned. 0 if the subject may go on, 1 if it has ended; -1 if all has. */
static int note(bench_outcome *o, bench_status status) {
    if (status == BENCH_GOOD)
        return 0;
    o->state = BENCH_FAILED;
    return status == BENCH_BROKEN ? -1 : 1;
}

/* Takes the time of one of some calls. A hot point has one more call before them, for its effect on the cache. */
static bench_status time_calls(const session *s, const bench_batch *batch, int calls, double *us) {
    const bench_backend *backend = s->timer->backend;
    void *state = s->timer->state;
    bench_status status = s->point->cache == BENCH_HOT ? backend->time(state, batch, 1, us) : BENCH_GOOD;
    memset(batch->results, BENCH_POISON, (size_t)calls * bench_stride(batch->point));
    if (status == BENCH_GOOD)
        status = backend->ready(state, batch, calls);
    return status == BENCH_GOOD ? backend->time(state, batch, calls, us) : status;
}

static bench_status sample(const session *s, const bench_batch *batch, double *us) {
    return batch->graph ? s->timer->backend->replay(s->timer->state, batch, us)
                        : time_calls(s, batch, batch->outcome->calls, us);
}

/* How many calls batches of a subject have, of which one takes so long. */
static int calls_of(const session *s, const bench_subject *subject, double us) {
    const double batch_seconds = s->rule->seconds / s->n / s->rule->min_samples / 2;
    const int calls = bench_calls(&s->layout, 1e-6 * us, batch_seconds), most = subject->most_captured;
    return s->point->mode == BENCH_GRAPH && most > 0 && calls > most ? most : calls;
}

/* Makes a batch ready. The first call loads kernels or starts threads; the quicker of the next tells how long one
 * takes. On a GPU the first batches take longer, too. */
static bench_status warm(const session *s, bench_batch *batch) {
    double us = 0, least = 0;
    bench_status status = BENCH_GOOD;
    for (int i = 0; i < 3 && (i == 0 || bench_goes_on(&s->timer->watch)); i++) {
        if ((status = time_calls(s, batch, 1, &us)) != BENCH_GOOD)
            return status;
        least = i < 2 || us < least ? us : least;
    }
    batch->outcome->calls = calls_of(s, batch->subject, least);
    if (s->point->mode == BENCH_GRAPH)
        status = s->timer->backend->capture(s->timer->state, batch);
    for (int i = 0; i < 2 && s->timer->room.on_gpu && status == BENCH_GOOD; i++)
        status = sample(s, batch, &us);
    return status;
}

static int start(session *s, int i) {
    bench_outcome *o = &s->outcomes[i];
    if (!bench_goes_on(&s->timer->watch))
        return 0;
    const int status = note(o, warm(s, &s->batches[i]));
    if (status == 0)
        o->state = BENCH_DONE;
    return status < 0 ? -1 : 0;
}

static bench_status check_results(const session *s, const bench_batch *batch) {
    bench_outcome *o = batch->outcome;
    int wrong = 0;
    if (batch->point->array_bytes) {
        const bench_status status = s->timer->backend->compare(s->timer->state, batch, &wrong);
        o->checked += (long)bench_arrays(batch->layout, o->calls);
        o->wrong += wrong;
        return status;
    }
    if (!batch->subject->count_wrong)
        return BENCH_GOOD;
    o->checked += o->calls;
    o->wrong += batch->subject->count_wrong(batch->subject->user, batch->results, o->calls);
    return BENCH_GOOD;
}

/* Whether another subject wants more samples. */
static int others_go_on(const session *s, int i) {
    for (int k = 0; k < s->n; k++)
        if (k != i && s->outcomes[k].state == BENCH_DONE && s->outcomes[k].verdict == BENCH_MORE)
            return s->outcomes[i].us.n < BENCH_SAMPLES;
    return 0;
}

/* Takes one sample of a subject. 1 if it wants more, 0 if not, -1 if the device has failed. */
static int take(void *user, int i) {
    session *s = user;
    bench_outcome *o = &s->outcomes[i];
    double us;
    if (o->state != BENCH_DONE || !bench_goes_on(&s->timer->watch))
        return 0;
    bench_status taken = sample(s, &s->batches[i], &us);
    if (taken == BENCH_GOOD)
        taken = check_results(s, &s->batches[i]);
    const int status = note(o, taken);
    if (status != 0)
        return status < 0 ? -1 : 0;
    const int wants_more = bench_keep(o, us, s->rule, s->began);
    return s->batches[i].subject->accompanies ? others_go_on(s, i) : wants_more;
}

/* Writes `bytes` at `from` to the place `at` of all arrays. */
static bench_status put(session *s, size_t at, const void *from, size_t bytes, char *why) {
    bench_status status = BENCH_GOOD;
    for (size_t i = 0; bytes && i < s->layout.read && status == BENCH_GOOD; i++)
        status = s->timer->backend->put(s->timer->state, bench_offset(&s->layout, i) + at, from, bytes, why);
    return status;
}

static bench_status set_mark(session *s, char *why) {
    const bench_point *p = s->point;
    return put(s, p->bytes - p->mark_bytes, p->mark, p->mark_bytes, why);
}

/* Has all arrays hold the block again where the mark was, which may begin in one repetition and end in the next, and
 * where arrays of results were. */
static bench_status clear_mark(session *s, char *why) {
    if (s->point->array_bytes)
        return fill(s->timer, why);
    const size_t marked = s->point->mark_bytes, at = s->point->bytes - marked, block = s->timer->room.block_bytes;
    const size_t left = block - at % block, before = left < marked ? left : marked;
    const bench_status status = put(s, at, s->timer->block + at % block, before, why);
    return status == BENCH_GOOD ? put(s, at + before, s->timer->block, marked - before, why) : status;
}

static int run(session *s, char *why) {
    const bench_backend *backend = s->timer->backend;
    if (backend->expect && backend->expect(s->timer->state, s->point, why) != BENCH_GOOD)
        return -1;
    if (set_mark(s, why) != BENCH_GOOD)
        return -1;
    int status = 0;
    for (int i = 0; i < s->n && status == 0; i++)
        status = start(s, i);
    if (status == 0)
        status = bench_take_turns(s->n, take, s);
    for (int i = 0; i < s->n; i++) {
        bench_outcome *o = &s->outcomes[i];
        if (status != 0 && o->state == BENCH_FAILED && o->why[0])
            memcpy(why, o->why, BENCH_WHY);
        if (s->batches[i].graph)
            s->timer->backend->free_graph(s->batches[i].graph);
        if (o->state == BENCH_DONE)
            o->us = bench_summarise(o->samples, o->us.n);
        if (o->state == BENCH_DONE && o->us.n == 0)
            o->state = BENCH_INTERRUPTED;
    }
    if (status == 0 && clear_mark(s, why) != BENCH_GOOD)
        status = -1;
    return status;
}

static void prepare(session *s, const bench_subject *subjects) {
    for (int i = 0; i < s->n; i++) {
        bench_outcome *o = &s->outcomes[i];
        memset(o, 0, sizeof *o);
        o->state = BENCH_INTERRUPTED;
        s->batches[i] = (bench_batch){&subjects[i], s->point, &s->layout, o, s->timer->results, NULL};
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
    session s = {.timer = timer, .point = point, .rule = rule, .n = n, .outcomes = outcomes, .began = seconds_now()};
    bench_reference reference;
    if (n < 1 || n > BENCH_SUBJECTS) {
        snprintf(why, BENCH_WHY, "%d subjects; there may be 1 to %d", n, BENCH_SUBJECTS);
        return -1;
    }
    prepare(&s, subjects);
    if (bench_lay(&timer->room, point, &s.layout, why) != 0)
        return 1;
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
