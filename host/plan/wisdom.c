#include "wisdom.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "caps_text.h"
#include "cpu/pool.h"
#include "error.h"
#include "lists.h"
#include "registry.h"
#include "wisdom_parts.h"

/* ---- Signatures ---- */

uint64_t dpr_sign(uint64_t signature, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        signature = (signature ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return signature;
}

uint64_t dpr_sign_word(uint64_t signature, const char *word) {
    return dpr_sign(signature, word, strlen(word) + 1);
}

/* Whether times depend on this capability. Bandwidths of the CPU are assumed, nested launches have costs of their own,
 * and the others may change from one run to the next. */
static int counts(const char *key, int on_gpu) {
    static const char *const others[] = {"cpu.core_mb_per_s", "cpu.total_mb_per_s",   "cpu.wake_ns",
                                         "gpu.memory_bytes",  "gpu.pending_launches", "gpu.mps",
                                         "gpu.numa_node"};
    if (strncmp(key, on_gpu ? "gpu." : "cpu.", 4) != 0 || strncmp(key, "gpu.nest", 8) == 0)
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i]) == 0)
            return 0;
    return 1;
}

int dpr_wise_is_control(char byte) {
    return (unsigned char)byte < ' ' || byte == 0x7f;
}

dpr_wise_processor dpr_wise_processor_of(const dpr_machine *machine, dpr_side side) {
    const dpr_caps *caps = &machine->caps;
    dpr_wise_processor out = {.on_gpu = side == DPR_ON_GPU};
    memcpy(out.name, out.on_gpu ? caps->gpu_name : caps->cpu_name, sizeof out.name);
    out.name[sizeof out.name - 1] = 0;
    for (char *c = out.name; *c; c++)
        if (dpr_wise_is_control(*c))
            *c = '?';
    out.signature = dpr_sign_word(DPR_SIGNATURE_START, out.name);
    for (size_t i = 0; i < dpr_caps_count(caps); i++) {
        dpr_capability c = DPR_CAPABILITY_INIT;
        dpr_caps_entry(caps, i, &c);
        if (counts(c.key, out.on_gpu))
            out.signature = dpr_sign(dpr_sign_word(out.signature, c.key), &c.value, sizeof c.value);
    }
    if (out.on_gpu)
        out.signature = dpr_sign(out.signature, &machine->driver, sizeof machine->driver);
    return out;
}

/* ---- Places ---- */

uint64_t dpr_wise_pack(dpr_wise_place p) {
    const uint8_t fields[8] = {p.processor, p.strategy, p.op, p.dtype, p.memory, p.run, p.shape, p.segments};
    uint64_t packed = 0;
    for (int i = 0; i < 8; i++)
        packed = packed << 8 | fields[i];
    return packed;
}

dpr_wise_place dpr_wise_unpack(uint64_t packed) {
    uint8_t f[8];
    for (int i = 7; i >= 0; i--, packed >>= 8)
        f[i] = (uint8_t)packed;
    return (dpr_wise_place){f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]};
}

/* Calls of effort DPR_MEASURE are warm. */
static dpr_wise_place place_of(int processor, const dpr_strategy *strategy, const dpr_key *key) {
    const int is_warm = key->f.effort == DPR_MEASURE;
    const int shape = !key->f.segments ? DPR_WISE_ARRAY
                      : key->f.strided ? DPR_WISE_AXES
                      : key->f.ranges  ? DPR_WISE_RANGES
                                       : DPR_WISE_OFFSETS;
    return (dpr_wise_place){
        (uint8_t)processor, (uint8_t)dpr_strategy_index(strategy),
        key->f.op,          key->f.dtype,
        key->f.in_memory,   (uint8_t)((key->f.gpu_only ? 1 : 0) + (is_warm ? DPR_WISE_WARM_CALL : 0)),
        (uint8_t)shape,     key->f.segments};
}

int dpr_wise_key(const dpr_key *key) {
    return !key->f.partial && !key->f.fused && !key->f.block && !key->f.depth;
}

int dpr_wise_find_processor(const dpr_wisdom *w, const dpr_wise_processor *p) {
    int i = 0;
    while (i < w->processors && (w->processor[i].signature != p->signature || w->processor[i].on_gpu != p->on_gpu))
        i++;
    return i;
}

/* The first time at or after a place and a count. */
static size_t lower_bound(const dpr_wisdom *w, uint64_t at, uint64_t count) {
    size_t low = 0, high = w->times;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const dpr_wise_time *t = &w->time[middle];
        if (t->place < at || (t->place == at && t->count < count))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Times that follow one another. */
typedef struct span {
    const dpr_wise_time *at, *end;
} span;

/* The times of a processor; none if there is no such processor. */
static span times_on(const dpr_wisdom *w, int processor) {
    const uint64_t first = dpr_wise_pack((dpr_wise_place){.processor = (uint8_t)processor});
    return (span){w->time + lower_bound(w, first, 0), w->time + lower_bound(w, first + (UINT64_C(1) << 56), 0)};
}

size_t dpr_wise_times_of(const dpr_wisdom *w, int processor) {
    const span times = times_on(w, processor);
    return (size_t)(times.end - times.at);
}

static dpr_wise_curve curve_at(const dpr_wisdom *w, dpr_wise_place place) {
    const uint64_t at = dpr_wise_pack(place);
    const size_t first = lower_bound(w, at, 0), end = lower_bound(w, at + 1, 0);
    return (dpr_wise_curve){w->time + first, end - first};
}

static int has_times(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key) {
    return machine->wisdom && machine->wise[strategy->side] >= 0 && dpr_wise_key(key);
}

dpr_wise_curve dpr_wise_find(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key) {
    if (key->f.effort == DPR_ESTIMATE || !has_times(machine, strategy, key))
        return (dpr_wise_curve){NULL, 0};
    const int reads_as_pageable = strategy->side == DPR_ON_CPU && key->f.in_memory == DPR_MEMORY_PINNED;
    dpr_wise_place place = place_of(machine->wise[strategy->side], strategy, key), pageable = place;
    pageable.memory = DPR_MEMORY_HOST;
    dpr_wise_curve found = {NULL, 0};
    for (int other_caches = 0; other_caches < 2 && found.n == 0; other_caches++) {
        found = curve_at(machine->wisdom, place);
        if (found.n == 0 && reads_as_pageable)
            found = curve_at(machine->wisdom, pageable);
        place.run ^= DPR_WISE_WARM_CALL;
        pageable.run ^= DPR_WISE_WARM_CALL;
    }
    return found;
}

double dpr_wise_seconds(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key, uint64_t count) {
    if (!has_times(machine, strategy, key))
        return 0;
    const dpr_wisdom *w = machine->wisdom;
    const uint64_t at = dpr_wise_pack(place_of(machine->wise[strategy->side], strategy, key));
    const dpr_wise_time *t = &w->time[lower_bound(w, at, count)];
    return t < w->time + w->times && t->place == at && t->count == count ? 1e-12 * (double)t->picoseconds : 0;
}

int dpr_wise_of_other_threads(const dpr_machine *machine) {
    const dpr_wisdom *w = machine->wisdom;
    const dpr_wise_processor cpu = dpr_wise_processor_of(machine, DPR_ON_CPU);
    int same_name = 0;
    for (int i = 0; w && machine->wise[DPR_ON_CPU] < 0 && i < w->processors; i++)
        same_name |= !w->processor[i].on_gpu && strcmp(w->processor[i].name, cpu.name) == 0;
    return same_name;
}

/* ---- A machine's wisdom ---- */

/* Types whose sums on the CPU show what it can do. */
static const dpr_dtype summed[] = {DPR_F32, DPR_F64, DPR_I32};

/* Times of sums in calls that block, with cold caches. */
static dpr_wise_curve find_sums(const dpr_machine *machine, const char *strategy, dpr_dtype dtype, dpr_memory memory) {
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(dtype), .in_memory = DPR_ROW(memory)}};
    const int i = dpr_strategy_find(strategy);
    const dpr_strategy *s = i < 0 ? NULL : dpr_strategies[i];
    return s && has_times(machine, s, &key) ? curve_at(machine->wisdom, place_of(machine->wise[s->side], s, &key))
                                            : (dpr_wise_curve){NULL, 0};
}

/* Bytes a second that a strategy has read in the longest sum known of a type, if that is longer than what caches hold;
 * else 0. */
static double rate_of_sum(const dpr_machine *machine, const char *strategy, dpr_dtype dtype) {
    const dpr_wise_curve known = find_sums(machine, strategy, dtype, DPR_MEMORY_HOST);
    if (known.n == 0)
        return 0;
    const dpr_wise_time longest = known.time[known.n - 1];
    const double bytes = (double)longest.count * (double)dpr_dtypes[DPR_ROW(dtype)].size;
    return bytes > 2 * (double)machine->caps.cpu.cache_bytes ? bytes / (1e-12 * (double)longest.picoseconds) : 0;
}

/* Rates and times of a CPU may be no greater (core/caps.h). */
static const double most_of_caps = 1e9;

/* In MB/s; 0 if it is not known, or no rate that a machine may have. The fastest of some sums: arithmetic limits it
 * least. */
static int64_t rate_of(const dpr_machine *machine, const char *strategy) {
    double best = 0;
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        best = fmax(best, 1e-6 * rate_of_sum(machine, strategy, summed[i]));
    return best <= most_of_caps ? (int64_t)best : 0;
}

static void take_rates(dpr_machine *machine) {
    const int64_t core = rate_of(machine, "cpu.simd"), total = rate_of(machine, "cpu.threads");
    machine->rates_measured = core > 0 && total > 0;
    if (!machine->rates_measured)
        return;
    machine->caps.cpu.core_mb_per_s = core;
    machine->caps.cpu.total_mb_per_s = total > core ? total : core;
}

/* Nanoseconds that a sum of a type by all threads takes beyond reading: the shortest one known in which each thread has
 * a part of its own, if that is not so long that reading hides them; 0 if none is known, or none that a machine may
 * take. */
static int64_t wake_of_sum(const dpr_machine *machine, dpr_dtype dtype) {
    const dpr_cpu_caps *cpu = &machine->caps.cpu;
    const double threads = (double)cpu->threads, least = DPR_POOL_PART_BYTES * threads;
    const double rate = 1e6 * fmin((double)cpu->core_mb_per_s * threads, (double)cpu->total_mb_per_s);
    const dpr_wise_curve known = find_sums(machine, "cpu.threads", dtype, DPR_MEMORY_HOST);
    for (size_t i = 0; i < known.n; i++) {
        const double bytes = (double)known.time[i].count * (double)dpr_dtypes[DPR_ROW(dtype)].size;
        const double ns = 1e-3 * (double)known.time[i].picoseconds - 1e9 * bytes / rate;
        if (bytes >= least)
            return bytes <= 8 * least && ns <= most_of_caps ? (int64_t)ns : 0;
    }
    return 0;
}

/* The least of some sums: what disturbs one makes it longer. */
static void take_wake(dpr_machine *machine) {
    int64_t least = 0;
    for (size_t i = 0; i < sizeof summed / sizeof *summed && machine->rates_measured; i++) {
        const int64_t ns = wake_of_sum(machine, summed[i]);
        least = ns > 0 && (ns < least || least == 0) ? ns : least;
    }
    machine->wake_measured = least > 0 && machine->caps.cpu.threads > 1;
    if (machine->wake_measured)
        machine->caps.cpu.wake_ns = least;
}

static double find_launch(const dpr_machine *machine) {
    enum { FEW = 4096 }; /* as many take an H200 0.3 us longer than one */
    const dpr_wise_curve known = find_sums(machine, "flat.block", DPR_I32, DPR_MEMORY_DEVICE);
    return known.n > 0 && known.time[0].count <= FEW ? 1e-12 * (double)known.time[0].picoseconds : 0;
}

void dpr_wisdom_attach(const dpr_wisdom *wisdom, dpr_machine *machine) {
    machine->wisdom = wisdom;
    for (int side = 0; side < 2 && wisdom && wisdom->processors > 0; side++) {
        const dpr_wise_processor p = dpr_wise_processor_of(machine, (dpr_side)side);
        const int i = dpr_wise_find_processor(wisdom, &p);
        machine->wise[side] = i < wisdom->processors && (side == DPR_ON_CPU || machine->caps.has_gpu) ? i : -1;
    }
    if (wisdom && wisdom->processors > 0) {
        take_rates(machine);
        take_wake(machine);
    }
    machine->launch_seconds = find_launch(machine);
}

/* ---- Making wisdom ---- */

dpr_wisdom *dpr_wisdom_make(size_t times) {
    dpr_wisdom *made = malloc(sizeof *made + times * sizeof *made->time);
    if (!made)
        (void)dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu measured times", times);
    else {
        memset(made, 0, sizeof *made);
        atomic_init(&made->users, 1);
    }
    return made;
}

void dpr_wisdom_hold(const dpr_wisdom *wisdom) {
    atomic_fetch_add(&((dpr_wisdom *)wisdom)->users, 1);
}

void dpr_wisdom_release(const dpr_wisdom *wisdom) {
    if (wisdom && atomic_fetch_sub(&((dpr_wisdom *)wisdom)->users, 1) == 1)
        free((dpr_wisdom *)wisdom);
}

dpr_wisdom *dpr_wisdom_none(void) {
    return dpr_wisdom_make(0);
}

int dpr_wise_compare(const dpr_wise_time *a, const dpr_wise_time *b) {
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

/* Numbers the processors of `from`, behind those that there are, except those that `besides` has and the first
 * `left_out` of the others. NULL for `besides`: none. */
static void add_processors(const dpr_wisdom *from, const dpr_wisdom *besides, int left_out, dpr_wisdom *to) {
    for (int i = 0; i < from->processors; i++) {
        const dpr_wise_processor *p = &from->processor[i];
        if (!besides || (dpr_wise_find_processor(besides, p) == besides->processors && left_out-- <= 0))
            to->processor[to->processors++] = *p;
    }
}

static void add_time(dpr_wise_time t, int processor, dpr_wisdom *to) {
    dpr_wise_place p = dpr_wise_unpack(t.place);
    p.processor = (uint8_t)processor;
    t.place = dpr_wise_pack(p);
    to->time[to->times++] = t;
}

/* Compares times of one processor, whatever its numbers are. */
static int compare_on_processor(dpr_wise_time a, dpr_wise_time b) {
    a.place <<= 8;
    b.place <<= 8;
    return dpr_wise_compare(&a, &b);
}

/* Adds a processor's times. Of equal ones the newer one is taken. */
static void merge(span older, span newer, int processor, dpr_wisdom *to) {
    while (older.at < older.end || newer.at < newer.end) {
        const int order = older.at == older.end   ? 1
                          : newer.at == newer.end ? -1
                                                  : compare_on_processor(*older.at, *newer.at);
        add_time(order < 0 ? *older.at : *newer.at, processor, to);
        older.at += order <= 0;
        newer.at += order >= 0;
    }
}

/* Joins the times of two wisdoms to a third one, but drops the first `left_out` processors of those that only the older
 * one has. The newer one's processors come last. Returns NULL if there is no memory. */
static dpr_wisdom *join_without(const dpr_wisdom *older, int left_out, const dpr_wisdom *newer) {
    dpr_wisdom *made = dpr_wisdom_make(older->times + newer->times);
    if (!made)
        return NULL;
    add_processors(older, newer, left_out, made);
    add_processors(newer, NULL, 0, made);
    for (int i = 0; i < made->processors; i++) {
        const dpr_wise_processor *p = &made->processor[i];
        merge(times_on(older, dpr_wise_find_processor(older, p)), times_on(newer, dpr_wise_find_processor(newer, p)), i,
              made);
    }
    return made;
}

dpr_status dpr_wisdom_join(const dpr_wisdom *older, const dpr_wisdom *newer, dpr_wisdom **out) {
    int others = 0; /* processors that only the older one has */
    for (int i = 0; i < older->processors; i++)
        others += dpr_wise_find_processor(newer, &older->processor[i]) == newer->processors;
    const int excess = others + newer->processors - DPR_WISE_PROCESSORS;
    for (int left_out = excess > 0 ? excess : 0;; left_out++) {
        dpr_wisdom *joined = join_without(older, left_out, newer);
        if (!joined)
            return DPR_ERR_OUT_OF_MEMORY;
        if (joined->times <= DPR_WISE_TIMES) {
            *out = joined;
            return DPR_OK;
        }
        dpr_wisdom_release(joined);
        if (left_out >= others)
            return dpr_fail(DPR_ERR_WISDOM,
                            "there are more than %d times of the processors that are measured; begin a new file, or "
                            "call dpr_wisdom_forget()",
                            DPR_WISE_TIMES);
    }
}

dpr_status dpr_wisdom_single(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key,
                             uint64_t count, double seconds, dpr_wisdom **out) {
    const double picoseconds = seconds * 1e12;
    if (count < 1 || count > DPR_WISE_MOST)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "count is %llu; there is wisdom of 1 to 2^53 elements",
                        (unsigned long long)count);
    if (!(picoseconds >= 1 && picoseconds <= (double)DPR_WISE_LONGEST))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "seconds is %g; it should be from 1e-12 to 1000", seconds);
    if (!dpr_wise_key(key))
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "there is no wisdom of several operations, nor of a block size or depth that is asked for");
    dpr_wisdom *made = dpr_wisdom_make(1);
    if (!made)
        return DPR_ERR_OUT_OF_MEMORY;
    made->processor[made->processors++] = dpr_wise_processor_of(machine, strategy->side);
    made->time[made->times++] =
        (dpr_wise_time){dpr_wise_pack(place_of(0, strategy, key)), count, (uint64_t)picoseconds};
    *out = made;
    return DPR_OK;
}
