/* The choice of an engine, by what runs have taken.
 *
 * Before a recursion's first run, the costs of its roots stand for the number of tasks: the engine is chosen that takes
 * the least time for as many of the cheapest kind. Where costs are not known, it is the first one that can run the
 * call, because a GPU has more lanes than a CPU has cores. The report says how many tasks there are. Later calls with
 * similar roots run each engine that could be as fast two times in turn, and then stay with the fastest. Two times,
 * because a first run may load kernels, take memory, or move pages of managed memory to where the engine runs; the
 * shortest run counts. An engine that comes close to the fastest runs two times more, and so does the one that was the
 * fastest until another one is. From time to time, those that are close run again: what has disturbed them may be over.
 *
 * If only larger problems of the recursion have run, times are predicted from theirs. From smaller ones they are not:
 * what a short run of a GPU takes says little about a long one. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "api/ctx.h"
#include "clock.h"
#include "engines.h"

enum { MOST_ENGINES = 16, PLACES = 256, FEW_RUNS = 2, MANY_RUNS = 4 };

/* At most this many roots are asked what they cost, because every call asks again, also one that takes a microsecond.
 */
enum { MOST_ASKED = 64 };

/* The time of an engine that comes close to the fastest, as a multiple of the fastest's, is below this. */
static const double CLOSE = 1.3;

/* An engine is tried if the least time that it could take is below this share of the fastest so far. */
static const double WORTH_TRYING = 0.9;

/* Seconds that no launch of a GPU takes, from the call to what the host sees of it. To know this for the shortest runs
 * takes less time than to ask whether engines could run. */
static const double LAUNCH = 2e-6;

/* The first run of an engine is not repeated if it took so many times as long as the fastest run, and more than
 * SHORT seconds. */
static const double HOPELESS = 10, SHORT = 0.25;

/* Engines close to the fastest run again after FIRST_WAIT runs, and then after twice as many each time, up to
 * MOST_WAIT. */
enum { FIRST_WAIT = 16, MOST_WAIT = 256 };

/* Assumed costs tell which of two engines is faster only if the predictions differ by at least this factor. */
static const double CLEAR = 8;

/* Runs are no longer similar if the number of tasks has changed by this factor. */
enum { FACTOR = 4 };

/* What similar calls have in common. */
typedef struct kind {
    const dpr_recursion *recursion; /* NULL: the place is free */
    int device;
    int by_cost, size; /* the logarithm of the roots' costs together (by_cost is 1), or of their number */
    int threads;       /* of engine `cpu` */
    uint64_t cutoff;   /* it decides how many tasks there are */
} kind;

/* What was seen of runs of similar calls. */
typedef struct seen {
    kind of;
    uint64_t tasks;
    size_t last;                      /* engine that ran */
    unsigned since, wait;             /* runs since engines close to the fastest ran again; and until they do */
    double seconds[MOST_ENGINES];     /* of the shortest run, about; 0: there was none */
    double latest[MOST_ENGINES];      /* of the latest run */
    unsigned char runs[MOST_ENGINES]; /* at most MANY_RUNS; as many for an engine that cannot run the call */
} seen;

static struct {
    pthread_mutex_t lock;
    seen places[PLACES];
    unsigned next; /* place to be used again, if all are taken */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A thread that forks waits for one that is reading or noting a run, so that the child finds the lock free and all
 * places whole. */
static void before_fork(void) {
    (void)pthread_mutex_lock(&memory.lock);
}
static void after_fork(void) {
    (void)pthread_mutex_unlock(&memory.lock);
}

/* Runs when the library is loaded, for the reason that host/cpu/cores.c gives. */
__attribute__((constructor(101))) static void watch_forks(void) {
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- Similar calls ---- */

static int has_host_roots(const dpr_recursion_call *call) {
    dpr_place place;
    return dpr_device_place(call->roots, "roots", &place) == DPR_OK && place.memory == DPR_MEMORY_HOST;
}

/* Whether roots can be asked what they cost. */
static int knows_costs(const dpr_recursion_call *call) {
    return call->recursion->cost && call->n > 0 && has_host_roots(call);
}

/* The root of number i among those that are asked: in the i-th of parts of equal length, at another place in each,
 * because costs may repeat in the array. The multiplier is 2^16 over the golden ratio, which spreads places evenly. */
static size_t asked_root(size_t n, size_t asked, size_t i) {
    const size_t step = n / asked, rest = n % asked;
    const size_t begin = i * step + i * rest / asked, end = (i + 1) * step + (i + 1) * rest / asked;
    return begin + ((i * 40503 & 0xffff) * (uint64_t)(end - begin) >> 16);
}

/* What the roots cost together, at most UINT64_MAX; of many, those that are asked stand for all. */
static uint64_t sum_costs(const dpr_recursion_call *call) {
    const dpr_recursion *r = call->recursion;
    const size_t asked = call->n < MOST_ASKED ? call->n : MOST_ASKED;
    uint64_t sum = 0;
    for (size_t i = 0; i < asked; i++) {
        const void *root = (const char *)call->roots + asked_root(call->n, asked, i) * r->task_bytes;
        const uint64_t cost = r->cost(call->data, root);
        sum = cost < UINT64_MAX - sum ? sum + cost : UINT64_MAX;
    }
    const double all = (double)sum * ((double)call->n / (double)asked);
    return call->n == asked ? sum : all < 0x1p64 ? (uint64_t)all : UINT64_MAX;
}

static int logarithm(uint64_t n) {
    int log = 0;
    while (n >>= 1)
        log++;
    return log;
}

/* Whether sizes can be compared. */
static int is_comparable(const kind *a, const kind *b) {
    return a->recursion == b->recursion && a->device == b->device && a->by_cost == b->by_cost
           && a->threads == b->threads && a->cutoff == b->cutoff;
}

void dpr_engine_size(dpr_recursion_call *call) {
    call->by_cost = knows_costs(call);
    call->cost = call->by_cost ? sum_costs(call) : 0;
    call->size = logarithm(call->by_cost ? call->cost : call->n);
}

static kind kind_of(const dpr_recursion_call *call) {
    return (kind){.recursion = call->recursion,
                  .device = dpr_ctx_device(call->ctx),
                  .by_cost = call->by_cost,
                  .threads = call->options.threads,
                  .cutoff = call->cutoff,
                  .size = call->size};
}

/* The place of similar runs; NULL if there were none. The caller holds the lock. */
static seen *find(const kind *of) {
    for (int i = 0; i < PLACES; i++)
        if (is_comparable(&memory.places[i].of, of) && memory.places[i].of.size == of->size)
            return &memory.places[i];
    return NULL;
}

/* The place of the smallest problem that was larger; NULL if there was none. The caller holds the lock. */
static const seen *find_larger(const kind *of) {
    const seen *best = NULL;
    for (int i = 0; i < PLACES; i++) {
        const seen *s = &memory.places[i];
        if (is_comparable(&s->of, of) && s->of.size > of->size && (!best || s->of.size < best->of.size))
            best = s;
    }
    return best;
}

static seen *find_or_make(const kind *of) {
    seen *place = find(of);
    if (place)
        return place;
    place = &memory.places[memory.next];
    memory.next = (memory.next + 1) % PLACES;
    *place = (seen){.of = *of};
    return place;
}

/* ---- The choice ---- */

/* Whether the engine can run the call, and the call lets the library choose it. */
static int is_able(const dpr_engine *engine, const dpr_recursion_call *call) {
    return engine->least_seconds && (!engine->nested || call->options.allow_nested) && !engine->refusal(call);
}

/* Whether engines of the CPU may follow the pointers in the policy's data. In a context of a GPU these may point to
 * device memory, unless host_data says otherwise. */
static int host_reaches_data(const dpr_recursion_call *call) {
    return !dpr_ctx_gpu(call->ctx) || !call->recursion->gpu || call->recursion->host_data;
}

/* Whether the library may choose the engine for the call. */
static int is_candidate(const dpr_engine *engine, const dpr_recursion_call *call) {
    return is_able(engine, call) && (engine->on_gpu || host_reaches_data(call));
}

/* The first engine that the library may choose. If there is none, the first one, whose refusal says why. */
static const dpr_engine *first_candidate(const dpr_recursion_call *call) {
    size_t i = 0;
    do
        if (is_candidate(dpr_engines[i], call))
            return dpr_engines[i];
    while (dpr_engines[++i]);
    return dpr_engines[0];
}

/* Finds the engine of the GPU, or of the CPU, that should be the fastest for as many tasks as the roots cost, and at
 * least one for each of them. Sets *seconds; NULL if there is none. */
static const dpr_engine *find_likely(const dpr_recursion_call *call, int on_gpu, double *seconds) {
    const uint64_t tasks = call->cost > call->n ? call->cost : call->n;
    const dpr_engine *best = NULL;
    *seconds = HUGE_VAL;
    for (size_t i = 0; dpr_engines[i]; i++) {
        const dpr_engine *engine = dpr_engines[i];
        if (engine->on_gpu != on_gpu || !engine->likely_seconds || !is_candidate(engine, call))
            continue;
        const double likely = engine->likely_seconds(call, tasks);
        if (likely < *seconds) {
            best = engine;
            *seconds = likely;
        }
    }
    return best;
}

/* The time that this takes is not the engine's. */
static void measure(const dpr_engine *engine, const dpr_recursion_call *call) {
    const double began = dpr_recursion_now();
    engine->measure(call);
    *call->waited += dpr_recursion_now() - began;
}

/* Whether two predictions differ by less than assumed costs may be wrong. */
static int is_unclear(double a, double b) {
    return a < CLEAR * b && b < CLEAR * a;
}

/* The engine that should be the fastest, if the costs of the roots tell how many tasks there are. NULL: nobody knows.
 * The GPU is measured where that can change the choice, because it makes the call slower. */
static const dpr_engine *first_by_cost(const dpr_recursion_call *call) {
    double cpu_seconds, gpu_seconds;
    if (!call->by_cost)
        return NULL;
    const dpr_engine *cpu = find_likely(call, 0, &cpu_seconds), *gpu = find_likely(call, 1, &gpu_seconds);
    if (cpu && gpu && gpu->measure && is_unclear(cpu_seconds, gpu_seconds)) {
        measure(gpu, call);
        gpu = find_likely(call, 1, &gpu_seconds);
    }
    return cpu && cpu_seconds < gpu_seconds ? cpu : gpu;
}

static const dpr_engine *first(const dpr_recursion_call *call, const char **reason) {
    const dpr_engine *engine = first_by_cost(call);
    *reason = "it should be the fastest, by what the roots cost";
    if (engine)
        return engine;
    engine = first_candidate(call);
    *reason = engine->on_gpu ? "the context has a GPU" : "the context has no GPU that can run it";
    return engine;
}

/* Sets *best to the number of the candidate that was the fastest. Returns 0 if none has run; others may have, by name.
 */
static int find_best(const seen *s, const dpr_recursion_call *call, size_t *best) {
    int has_run = 0;
    for (size_t i = 0; dpr_engines[i]; i++)
        if (s->seconds[i] > 0 && (!has_run || s->seconds[i] < s->seconds[*best])
            && is_candidate(dpr_engines[i], call)) {
            *best = i;
            has_run = 1;
        }
    return has_run;
}

/* The least time of the engine. If assumed costs of launches by kernels leave open whether that is less than `seconds`,
 * they are measured. This makes the call slower, so it is not done in a call that has a limit of time. */
static double find_least(const dpr_engine *engine, const dpr_recursion_call *call, uint64_t tasks, double seconds) {
    if (engine->nested && engine->measure && !call->is_limited
        && is_unclear(engine->least_seconds(call, tasks), seconds))
        measure(engine, call);
    return engine->least_seconds(call, tasks);
}

/* Whether engine i should run, because it may turn out to be the fastest, which now is `best`. */
static int is_worth_trying(const seen *s, size_t i, size_t best, const dpr_recursion_call *call) {
    const double shortest = s->seconds[best];
    if (dpr_engines[i]->on_gpu && shortest < LAUNCH)
        return 0;
    const int enough = i != best && s->seconds[i] < CLOSE * shortest ? MANY_RUNS : FEW_RUNS;
    if (s->runs[i] >= enough || (s->runs[i] == 1 && s->seconds[i] > SHORT && s->seconds[i] > HOPELESS * shortest))
        return 0;
    return is_candidate(dpr_engines[i], call)
           && find_least(dpr_engines[i], call, s->tasks, WORTH_TRYING * shortest) < WORTH_TRYING * shortest;
}

static const dpr_engine *by_experience(const seen *s, const dpr_recursion_call *call, const char **reason) {
    size_t best = 0;
    if (!find_best(s, call, &best))
        return first(call, reason);
    *reason = "it could be faster than what ran before";
    if (is_worth_trying(s, s->last, best, call)) /* its data are where it runs */
        return dpr_engines[s->last];
    for (size_t i = 0; dpr_engines[i]; i++)
        if (is_worth_trying(s, i, best, call))
            return dpr_engines[i];
    *reason = "it was the fastest for similar roots";
    return dpr_engines[best];
}

/* Finds the engine with the least prediction for a run that has this share of the tasks of a larger one: among the
 * engines that have run (`tried`), whose times are scaled, or among those that have not, of which only the least time
 * is known. Sets *seconds; NULL if there is none. */
static const dpr_engine *find_fastest(const seen *larger, int tried, double share, const dpr_recursion_call *call,
                                      double *seconds) {
    const uint64_t tasks = (uint64_t)(share * (double)larger->tasks);
    const dpr_engine *best = NULL;
    *seconds = HUGE_VAL;
    for (size_t i = 0; dpr_engines[i]; i++) {
        const int has_run = larger->seconds[i] > 0, is_unable = !has_run && larger->runs[i] > 0;
        if (has_run != tried || is_unable || !is_candidate(dpr_engines[i], call))
            continue;
        const double least = dpr_engines[i]->least_seconds(call, tasks), scaled = share * larger->seconds[i];
        const double predicted = scaled > least ? scaled : least;
        if (predicted < *seconds) {
            best = dpr_engines[i];
            *seconds = predicted;
        }
    }
    return best;
}

/* An engine that has not run is chosen only if what the others take is not the work, but the time to begin. */
static const dpr_engine *by_prediction(const seen *larger, const dpr_recursion_call *call, const char **reason) {
    const double share = 1 / (double)(UINT64_C(1) << (larger->of.size - call->size));
    double seconds, least;
    const dpr_engine *best = find_fastest(larger, 1, share, call, &seconds);
    const dpr_engine *other = find_fastest(larger, 0, share, call, &least);
    if (!best)
        return first(call, reason);
    if (other && least < seconds && seconds <= best->least_seconds(call, (uint64_t)(share * (double)larger->tasks)))
        best = other;
    *reason = "it should be the fastest, by what larger problems took";
    return best;
}

/* What was seen of similar calls, or, if there were none, of larger ones. The recursion is NULL if there were neither.
 */
static seen look_up(const dpr_recursion_call *call) {
    const kind of = kind_of(call);
    (void)pthread_mutex_lock(&memory.lock);
    const seen *found = find(&of);
    if (!found)
        found = find_larger(&of);
    const seen known = found ? *found : (seen){0};
    (void)pthread_mutex_unlock(&memory.lock);
    return known;
}

static int is_similar(const seen *known, const dpr_recursion_call *call) {
    return known->of.recursion && known->of.size == call->size;
}

/* Every root is a task, also if similar runs had fewer roots, which cost more. */
static void expect(dpr_recursion_call *call, const seen *known) {
    const uint64_t tasks = known->tasks > call->n ? known->tasks : call->n;
    call->tasks = call->by_cost && is_similar(known, call) ? tasks : 0;
}

const dpr_engine *dpr_engine_choose(dpr_recursion_call *call, const char **reason) {
    const seen known = look_up(call);
    expect(call, &known);
    if (is_similar(&known, call))
        return by_experience(&known, call, reason);
    return known.of.recursion ? by_prediction(&known, call, reason) : first(call, reason);
}

void dpr_engine_expect(dpr_recursion_call *call) {
    const seen known = call->by_cost ? look_up(call) : (seen){0};
    expect(call, &known);
}

static double least_of(double a, double b) {
    return a < b ? a : b;
}

/* The fastest of the engines that every call may have, or `engine`, if none of them has run. */
static size_t fastest_of(const seen *s, size_t engine) {
    size_t best = engine;
    for (size_t i = 0; dpr_engines[i]; i++)
        if (!dpr_engines[i]->nested && s->seconds[i] > 0 && (s->seconds[best] == 0 || s->seconds[i] < s->seconds[best]))
            best = i;
    return best;
}

/* Lets engines that come close to the fastest run again, if it is time. */
static void renew(seen *s, size_t fastest) {
    if (++s->since <= s->wait)
        return;
    for (size_t i = 0; dpr_engines[i] && s->wait > 0; i++)
        if (s->runs[i] > FEW_RUNS && s->seconds[i] > 0 && s->seconds[i] < CLOSE * s->seconds[fastest])
            s->runs[i] = FEW_RUNS;
    s->since = 0;
    s->wait = s->wait == 0 ? FIRST_WAIT : s->wait < MOST_WAIT ? 2 * s->wait : s->wait;
}

/* Adds a run to what was seen. The shortest run counts, but is forgotten slowly: as far as two runs in turn were slow,
 * because one may have been interrupted, or may have moved pages of managed memory back; and by a quarter at most. That
 * may let another engine be the fastest, so the one before is tried again. */
static void add(seen *s, size_t engine, const dpr_recursion_report *report) {
    const double before = s->seconds[engine], both = least_of(report->seconds, s->latest[engine]);
    if (s->tasks > 0 && (report->tasks > FACTOR * s->tasks || report->tasks < s->tasks / FACTOR)) {
        memset(s->seconds, 0, sizeof s->seconds);
        memset(s->runs, 0, sizeof s->runs);
        s->since = s->wait = 0;
    }
    s->tasks = report->tasks;
    if (s->runs[engine] < MANY_RUNS)
        s->runs[engine]++;
    const size_t fastest = fastest_of(s, engine);
    if (s->seconds[engine] == 0 || report->seconds <= before)
        s->seconds[engine] = report->seconds;
    else if (both > before)
        s->seconds[engine] = before + least_of(both - before, before) / 4;
    const size_t now_fastest = fastest_of(s, engine);
    if (now_fastest != fastest && s->runs[fastest] > FEW_RUNS)
        s->runs[fastest] = FEW_RUNS;
    renew(s, now_fastest);
    s->latest[engine] = report->seconds;
    s->last = engine;
}

static size_t number_of(const dpr_engine *engine) {
    size_t i = 0;
    while (dpr_engines[i] != engine)
        i++;
    return i;
}

void dpr_engine_note(const dpr_recursion_call *call, const dpr_engine *engine, const dpr_recursion_report *report) {
    const kind of = kind_of(call);
    (void)pthread_mutex_lock(&memory.lock);
    add(find_or_make(&of), number_of(engine), report);
    (void)pthread_mutex_unlock(&memory.lock);
}

void dpr_engine_note_unable(const dpr_recursion_call *call, const dpr_engine *engine) {
    const kind of = kind_of(call);
    (void)pthread_mutex_lock(&memory.lock);
    seen *place = find_or_make(&of);
    place->runs[number_of(engine)] = MANY_RUNS;
    if (engine->nested)
        place->seconds[number_of(engine)] = 0; /* what its launches need may be lacking from now on */
    (void)pthread_mutex_unlock(&memory.lock);
}
