/* The text of wisdom, line by line:
 *
 *   dpr wisdom 1                                        the format's version
 *   library 0.2.0 9ae16a3b2f90404f                      of dpr, and a signature of its lists of strategies, ...
 *   gpu 3fe3c0a1d54a2d11 NVIDIA H200                    a processor: its signature and name
 *   time flat.ticket sum f32 device stream array 1024:2350000 2048:2360000
 *                                                       a strategy of the processor above and a kind of call; numbers
 *                                                       of elements, and picoseconds
 *   end 4 a1b2c3d4e5f60718                              how many lines are above, and a signature of their bytes
 *
 * Words are divided by one space. The last line tells a file that was cut off or changed. */
#include "wisdom.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "caps_text.h"
#include "error.h"
#include "lists.h"
#include "registry.h"
#include "text.h"

/* ---- Signatures: FNV-1a of 64 bits ---- */

static const uint64_t signature_start = UINT64_C(0xcbf29ce484222325);

static uint64_t sign(uint64_t signature, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        signature = (signature ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return signature;
}

/* With the terminating zero, so that "ab", "c" and "a", "bc" differ. */
static uint64_t sign_word(uint64_t signature, const char *word) {
    return sign(signature, word, strlen(word) + 1);
}

/* Strategies, operations and types, whose numbers places have. */
static uint64_t sign_registry(void) {
    uint64_t signature = signature_start;
    for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++)
        signature = sign_word(signature, dpr_strategies[i]->name);
    for (int i = 0; i < DPR_OP_COUNT; i++)
        signature = sign_word(signature, dpr_ops[i].name);
    for (int i = 0; i < DPR_DTYPE_COUNT; i++)
        signature = sign_word(signature, dpr_dtypes[i].name);
    return signature;
}

/* Whether times depend on this capability. Bandwidths of the CPU are assumed, nested launches have costs of their own,
 * and the others may change from one run to the next. */
static int counts(const char *key, int on_gpu) {
    static const char *const others[] = {"cpu.core_mb_per_s", "cpu.total_mb_per_s",
                                         "gpu.memory_bytes",  "gpu.pending_launches",
                                         "gpu.mps",           "gpu.numa_node"};
    if (strncmp(key, on_gpu ? "gpu." : "cpu.", 4) != 0 || strncmp(key, "gpu.nest", 8) == 0)
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i]) == 0)
            return 0;
    return 1;
}

dpr_wise_processor dpr_wise_processor_of(const dpr_machine *machine, dpr_side side) {
    const dpr_caps *caps = &machine->caps;
    dpr_wise_processor out = {.on_gpu = side == DPR_ON_GPU};
    memcpy(out.name, out.on_gpu ? caps->gpu_name : caps->cpu_name, sizeof out.name);
    out.name[sizeof out.name - 1] = 0;
    out.signature = sign_word(signature_start, out.name);
    for (size_t i = 0; i < dpr_caps_count(caps); i++) {
        dpr_capability c = DPR_CAPABILITY_INIT;
        dpr_caps_entry(caps, i, &c);
        if (counts(c.key, out.on_gpu))
            out.signature = sign(sign_word(out.signature, c.key), &c.value, sizeof c.value);
    }
    if (out.on_gpu)
        out.signature = sign(out.signature, &machine->driver, sizeof machine->driver);
    return out;
}

/* ---- Places ---- */

/* The fields of a place, the highest first. */
typedef struct place {
    uint8_t processor, strategy, op, dtype, memory, in_stream, shape, segments;
} place;

enum { SHAPE_ARRAY, SHAPE_OFFSETS, SHAPE_RANGES, SHAPE_AXES, SHAPES };

static const char *const shape_names[SHAPES] = {"array", "offsets", "ranges", "axes"};
static const char *const call_names[2] = {"call", "stream"};
static const char *const memory_names[4] = {"host", "pinned", "managed", "device"}; /* from DPR_MEMORY_HOST on */

static uint64_t pack(place p) {
    const uint8_t fields[8] = {p.processor, p.strategy, p.op, p.dtype, p.memory, p.in_stream, p.shape, p.segments};
    uint64_t packed = 0;
    for (int i = 0; i < 8; i++)
        packed = packed << 8 | fields[i];
    return packed;
}

static place unpack(uint64_t packed) {
    uint8_t f[8];
    for (int i = 7; i >= 0; i--, packed >>= 8)
        f[i] = (uint8_t)packed;
    return (place){f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]};
}

static place place_of(int processor, const dpr_strategy *strategy, const dpr_key *key) {
    const int shape = !key->f.segments ? SHAPE_ARRAY
                      : key->f.strided ? SHAPE_AXES
                      : key->f.ranges  ? SHAPE_RANGES
                                       : SHAPE_OFFSETS;
    return (place){(uint8_t)processor, (uint8_t)dpr_strategy_index(strategy),
                   key->f.op,          key->f.dtype,
                   key->f.in_memory,   key->f.gpu_only ? 1 : 0,
                   (uint8_t)shape,     key->f.segments};
}

int dpr_wise_key(const dpr_key *key) {
    return !key->f.partial && !key->f.fused && !key->f.block && !key->f.depth;
}

static int find_processor(const dpr_wisdom *w, const dpr_wise_processor *p) {
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

size_t dpr_wise_times_of(const dpr_wisdom *w, int processor) {
    const place first = {.processor = (uint8_t)processor};
    const uint64_t next = pack(first) + (UINT64_C(1) << 56);
    return lower_bound(w, next, 0) - lower_bound(w, pack(first), 0);
}

dpr_wise_curve dpr_wise_find(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key) {
    const dpr_wisdom *w = machine->wisdom;
    const int processor = machine->wise[strategy->side];
    if (!w || processor < 0 || key->f.effort == DPR_ESTIMATE || !dpr_wise_key(key))
        return (dpr_wise_curve){NULL, 0};
    const uint64_t at = pack(place_of(processor, strategy, key));
    const size_t first = lower_bound(w, at, 0), end = lower_bound(w, at + 1, 0);
    return (dpr_wise_curve){w->time + first, end - first};
}

/* ---- A machine's wisdom ---- */

/* Times of sums in calls that block. */
static dpr_wise_curve find_sums(const dpr_machine *machine, const char *strategy, dpr_dtype dtype, dpr_memory memory) {
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(dtype), .in_memory = DPR_ROW(memory)}};
    const int i = dpr_strategy_find(strategy);
    return i < 0 ? (dpr_wise_curve){NULL, 0} : dpr_wise_find(machine, dpr_strategies[i], &key);
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

/* In MB/s; 0 if it is not known, or no rate that a machine may have. The fastest of some sums: arithmetic limits it
 * least. */
static int64_t rate_of(const dpr_machine *machine, const char *strategy) {
    static const dpr_dtype dtypes[] = {DPR_F32, DPR_F64, DPR_I32};
    static const double most = 1e9; /* that of core/caps.h */
    double best = 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        best = fmax(best, 1e-6 * rate_of_sum(machine, strategy, dtypes[i]));
    return best <= most ? (int64_t)best : 0;
}

static void take_rates(dpr_machine *machine) {
    const int64_t core = rate_of(machine, "cpu.simd"), total = rate_of(machine, "cpu.threads");
    machine->rates_measured = core > 0 && total > 0;
    if (!machine->rates_measured)
        return;
    machine->caps.cpu.core_mb_per_s = core;
    machine->caps.cpu.total_mb_per_s = total > core ? total : core;
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
        const int i = find_processor(wisdom, &p);
        machine->wise[side] = i < wisdom->processors && (side == DPR_ON_CPU || machine->caps.has_gpu) ? i : -1;
    }
    if (wisdom && wisdom->processors > 0)
        take_rates(machine);
    machine->launch_seconds = find_launch(machine);
}

/* ---- Making wisdom ---- */

static dpr_wisdom *make(size_t times) {
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
    return make(0);
}

/* Adds the processor if it is not there yet. Returns its number, or -1 if there is no room. */
static int add_processor(dpr_wisdom *w, const dpr_wise_processor *p) {
    const int i = find_processor(w, p);
    if (i < w->processors)
        return i;
    if (i == DPR_WISE_PROCESSORS)
        return -1;
    w->processor[w->processors++] = *p;
    return i;
}

static int compare(const void *a, const void *b) {
    const dpr_wise_time *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

/* Times are in order unless processors have changed their numbers. */
static void sort(dpr_wise_time *times, size_t n) {
    size_t i = 1;
    while (i < n && compare(&times[i - 1], &times[i]) < 0)
        i++;
    if (i < n)
        qsort(times, n, sizeof *times, compare);
}

/* Appends all times of `from`, whose processors may have other numbers in `to`. Returns 0 if a processor has no room.
 */
static int append(const dpr_wisdom *from, dpr_wisdom *to) {
    int number[DPR_WISE_PROCESSORS];
    for (int i = 0; i < from->processors; i++) {
        number[i] = add_processor(to, &from->processor[i]);
        if (number[i] < 0)
            return 0;
    }
    for (size_t i = 0; i < from->times; i++) {
        place p = unpack(from->time[i].place);
        p.processor = (uint8_t)number[p.processor];
        to->time[to->times] = from->time[i];
        to->time[to->times++].place = pack(p);
    }
    return 1;
}

/* Merges the two runs of times, which end at `middle` and at the end, each after it is in order. */
static void merge(const dpr_wisdom *both, size_t middle, dpr_wisdom *out) {
    const dpr_wise_time *a = both->time, *b = a + middle, *const a_end = b, *const b_end = a + both->times;
    while (a < a_end || b < b_end) {
        const int order = a == a_end ? 1 : b == b_end ? -1 : compare(a, b);
        out->time[out->times++] = order < 0 ? *a : *b;
        a += order <= 0;
        b += order >= 0;
    }
}

dpr_status dpr_wisdom_join(const dpr_wisdom *older, const dpr_wisdom *newer, dpr_wisdom **out) {
    const size_t most = older->times + newer->times;
    dpr_wisdom *both = make(most), *joined = make(most);
    dpr_status status = both && joined ? DPR_OK : DPR_ERR_OUT_OF_MEMORY;
    if (status == DPR_OK && !(append(older, both) && append(newer, both)))
        status = dpr_fail(DPR_ERR_WISDOM, "there are more than %d processors", DPR_WISE_PROCESSORS);
    if (status == DPR_OK) {
        joined->processors = both->processors;
        memcpy(joined->processor, both->processor, sizeof joined->processor);
        sort(both->time, older->times);
        sort(both->time + older->times, newer->times);
        merge(both, older->times, joined);
        if (joined->times > DPR_WISE_TIMES)
            status = dpr_fail(DPR_ERR_WISDOM, "there are more than %d times", DPR_WISE_TIMES);
    }
    dpr_wisdom_release(both);
    if (status == DPR_OK)
        *out = joined;
    else
        dpr_wisdom_release(joined);
    return status;
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
    dpr_wisdom *made = make(1);
    if (!made)
        return DPR_ERR_OUT_OF_MEMORY;
    made->processor[made->processors++] = dpr_wise_processor_of(machine, strategy->side);
    made->time[made->times++] = (dpr_wise_time){pack(place_of(0, strategy, key)), count, (uint64_t)picoseconds};
    *out = made;
    return DPR_OK;
}

/* ---- Writing ---- */

/* Writes the times from `first` on that have one place. Returns the index after the last of them. */
static size_t write_line(dpr_text *text, const dpr_wisdom *w, size_t first) {
    const place p = unpack(w->time[first].place);
    size_t i = first;
    dpr_text_add(text, "time %s %s %s %s %s %s", dpr_strategies[p.strategy]->name, dpr_ops[p.op].name,
                 dpr_dtypes[p.dtype].name, memory_names[p.memory - DPR_MEMORY_HOST], call_names[p.in_stream],
                 shape_names[p.shape]);
    if (p.shape != SHAPE_ARRAY)
        dpr_text_add(text, ":%d", p.segments - 1);
    for (; i < w->times && w->time[i].place == w->time[first].place; i++)
        dpr_text_add(text, " %llu:%llu", (unsigned long long)w->time[i].count,
                     (unsigned long long)w->time[i].picoseconds);
    dpr_text_add(text, "\n");
    return i;
}

static void format(dpr_text *text, const void *subject) {
    const dpr_wisdom *w = subject;
    size_t i = 0;
    int lines = 2;
    dpr_text_add(text, "dpr wisdom 1\nlibrary %s %016llx\n", DPR_VERSION_TEXT, (unsigned long long)sign_registry());
    for (int k = 0; k < w->processors; k++) {
        const dpr_wise_processor *p = &w->processor[k];
        dpr_text_add(text, "%s %016llx %s\n", p->on_gpu ? "gpu" : "cpu", (unsigned long long)p->signature, p->name);
        for (lines++; i < w->times && unpack(w->time[i].place).processor == k; lines++)
            i = write_line(text, w, i);
    }
    const uint64_t signature = text->buffer ? sign(signature_start, text->buffer, text->used) : 0;
    dpr_text_add(text, "end %d %016llx\n", lines, (unsigned long long)signature);
}

dpr_status dpr_wisdom_format(const dpr_wisdom *wisdom, char *text, size_t *len) {
    return dpr_text_fill(format, wisdom, text, len);
}

/* ---- Reading ---- */

typedef struct reader {
    const char *text, *at, *end;
    int line; /* from 1 */
    dpr_wisdom *wisdom;
    int processor; /* of the times that follow; below 0: none yet */
} reader;

static dpr_status refuse(const reader *r, const char *why) {
    return dpr_fail(DPR_ERR_WISDOM, "line %d: %s", r->line, why);
}

/* Copies the next word, up to a space or the end of the line, and steps over the space. 0 if it is empty, has `size`
 * bytes and more, or has a zero byte. */
static int take_word(reader *r, char *word, size_t size) {
    size_t n = 0;
    for (; r->at < r->end && *r->at != ' ' && *r->at != '\n'; r->at++, n++)
        if (n + 1 < size)
            word[n] = *r->at;
    word[n < size ? n : 0] = 0;
    if (r->at < r->end && *r->at == ' ')
        r->at++;
    return n > 0 && n < size && !memchr(word, 0, n);
}

/* Whether the line ends here. Steps over its end. */
static int take_end(reader *r) {
    const int ends = r->at < r->end && *r->at == '\n';
    r->at += ends;
    r->line += ends;
    return ends;
}

/* Reads a word of digits only. Leading zeros are refused. */
static int take_number(const char *word, uint64_t most, uint64_t *out) {
    uint64_t n = 0;
    if (!*word || (word[0] == '0' && word[1]))
        return 0;
    for (; *word; word++) {
        const uint64_t digit = (uint64_t)(*word - '0');
        if (*word < '0' || *word > '9' || n > (most - digit) / 10)
            return 0;
        n = 10 * n + digit;
    }
    *out = n;
    return 1;
}

/* Reads a word of 16 hexadecimal digits. */
static int take_signature(reader *r, uint64_t *out) {
    char word[20];
    *out = 0;
    if (!take_word(r, word, sizeof word) || strlen(word) != 16)
        return 0;
    for (const char *c = word; *c; c++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *c);
        if (!digit)
            return 0;
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return 1;
}

/* Finds the word among `n` names. Returns its number, or -1. */
static int find_name(const char *word, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static dpr_status read_head(reader *r) {
    char word[64];
    uint64_t signature;
    if (r->end - r->at < 13 || memcmp(r->at, "dpr wisdom 1\n", 13) != 0)
        return refuse(r, "it should be \"dpr wisdom 1\"");
    r->at += 12;
    (void)take_end(r);
    if (!take_word(r, word, sizeof word) || strcmp(word, "library") != 0 || !take_word(r, word, sizeof word))
        return refuse(r, "it should begin with \"library\" and a version");
    if (!take_signature(r, &signature))
        return refuse(r, "it should have a signature of 16 hexadecimal digits");
    if (strcmp(word, DPR_VERSION_TEXT) != 0)
        return dpr_fail(DPR_ERR_WISDOM, "line 2: it was written by dpr %s, and this is dpr %s", word, DPR_VERSION_TEXT);
    if (signature != sign_registry())
        return refuse(r, "it was written by a build of dpr with other strategies");
    return take_end(r) ? DPR_OK : refuse(r, "it should end here");
}

static dpr_status read_processor(reader *r, int on_gpu) {
    dpr_wise_processor p = {.on_gpu = on_gpu};
    size_t n = 0;
    if (!take_signature(r, &p.signature))
        return refuse(r, "it should have a signature of 16 hexadecimal digits");
    if (r->at[-1] != ' ')
        return refuse(r, "it should have a space and a name, perhaps an empty one, behind the signature");
    for (; r->at < r->end && *r->at != '\n'; r->at++, n++) {
        if (n + 1 >= sizeof p.name || *r->at == 0)
            return refuse(r, "the processor's name is too long, or has a zero byte");
        p.name[n] = *r->at;
    }
    r->processor = r->wisdom->processors;
    if (find_processor(r->wisdom, &p) < r->wisdom->processors)
        return refuse(r, "the processor stands there twice");
    if (add_processor(r->wisdom, &p) < 0)
        return refuse(r, "there are too many processors");
    return take_end(r) ? DPR_OK : refuse(r, "it should end here");
}

/* Reads "array", or another shape with a colon and the logarithm of the number of results. */
static int read_shape(char *word, place *p) {
    uint64_t log = 0;
    char *colon = strchr(word, ':');
    if (colon)
        *colon = 0;
    const int shape = find_name(word, shape_names, SHAPES);
    if (shape < 0 || (shape == SHAPE_ARRAY) != !colon || (colon && !take_number(colon + 1, 63, &log)))
        return 0;
    p->shape = (uint8_t)shape;
    p->segments = (uint8_t)(colon ? log + 1 : 0);
    return 1;
}

/* Find the word in the lists of operations and types, as find_name() does. */
static int find_op(const char *word) {
    int i = DPR_OP_COUNT - 1;
    while (i >= 0 && strcmp(word, dpr_ops[i].name) != 0)
        i--;
    return i;
}

static int find_dtype(const char *word) {
    int i = DPR_DTYPE_COUNT - 1;
    while (i >= 0 && strcmp(word, dpr_dtypes[i].name) != 0)
        i--;
    return i;
}

/* Reads the words before the times. */
static dpr_status read_place(reader *r, place *p) {
    char word[64];
    int i;
    if (!take_word(r, word, sizeof word) || (i = dpr_strategy_find(word)) < 0)
        return refuse(r, "the strategy is none of this build");
    if ((dpr_strategies[i]->side == DPR_ON_GPU) != r->wisdom->processor[r->processor].on_gpu)
        return refuse(r, "the strategy does not run on this processor");
    p->strategy = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_op(word)) < 0)
        return refuse(r, "there is no such operation");
    p->op = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_dtype(word)) < 0 || !(dpr_ops[p->op].domain & dpr_dtypes[i].kind))
        return refuse(r, "there is no such element type, or the operation has no meaning for it");
    p->dtype = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_name(word, memory_names, 4)) < 0)
        return refuse(r, "there is no such memory");
    p->memory = (uint8_t)(DPR_MEMORY_HOST + i);
    if (!take_word(r, word, sizeof word) || (i = find_name(word, call_names, 2)) < 0)
        return refuse(r, "it should say \"call\" or \"stream\"");
    p->in_stream = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || !read_shape(word, p))
        return refuse(r, "there is no such shape");
    return DPR_OK;
}

static dpr_status read_times(reader *r) {
    char word[64];
    place p = {.processor = (uint8_t)r->processor};
    if (r->processor < 0)
        return refuse(r, "no processor stands above it");
    const dpr_status status = read_place(r, &p);
    if (status != DPR_OK)
        return status;
    do {
        dpr_wise_time t = {pack(p), 0, 0}, *last = r->wisdom->time + r->wisdom->times;
        char *colon = take_word(r, word, sizeof word) ? strchr(word, ':') : NULL;
        if (colon)
            *colon = 0;
        if (!colon || !take_number(word, DPR_WISE_MOST, &t.count) || t.count == 0
            || !take_number(colon + 1, DPR_WISE_LONGEST, &t.picoseconds) || t.picoseconds == 0)
            return refuse(r, "a time should be a number of elements, a colon, and picoseconds, both at least 1");
        if (r->wisdom->times == DPR_WISE_TIMES)
            return refuse(r, "there are too many times");
        if (r->wisdom->times > 0 && compare(last - 1, &t) >= 0)
            return refuse(r, "times do not rise by place and by number of elements");
        *last = t;
        r->wisdom->times++;
    } while (r->at[-1] == ' ');
    return take_end(r) ? DPR_OK : refuse(r, "it should end here");
}

/* Reads the last line, whose first byte is at `begin`. */
static dpr_status read_last(reader *r, const char *begin) {
    char word[24];
    uint64_t lines, signature;
    const int above = r->line - 1;
    if (!take_word(r, word, sizeof word) || !take_number(word, INT32_MAX, &lines) || (int)lines != above)
        return refuse(r, "it should say how many lines are above");
    if (!take_signature(r, &signature) || signature != sign(signature_start, r->text, (size_t)(begin - r->text)))
        return refuse(r, "the text above is not what was written");
    if (!take_end(r))
        return refuse(r, "it should end here");
    return r->at == r->end ? DPR_OK : refuse(r, "text follows the last line");
}

static dpr_status read_lines(reader *r) {
    dpr_status status = read_head(r);
    while (status == DPR_OK) {
        const char *begin = r->at;
        char word[8];
        if (r->at == r->end)
            return refuse(r, "the last line, \"end\", is missing");
        if (!take_word(r, word, sizeof word))
            return refuse(r, "it should begin with \"cpu\", \"gpu\", \"time\" or \"end\"");
        if (strcmp(word, "end") == 0)
            return read_last(r, begin);
        if (strcmp(word, "time") == 0)
            status = read_times(r);
        else if (strcmp(word, "cpu") == 0 || strcmp(word, "gpu") == 0)
            status = read_processor(r, word[0] == 'g');
        else
            status = refuse(r, "it should begin with \"cpu\", \"gpu\", \"time\" or \"end\"");
    }
    return status;
}

dpr_status dpr_wisdom_parse(const char *text, size_t size, dpr_wisdom **out) {
    reader r = {text, text, text + size, 1, NULL, -1};
    size_t colons = 0;
    for (size_t i = 0; i < size; i++)
        colons += text[i] == ':';
    r.wisdom = make(colons < DPR_WISE_TIMES ? colons : DPR_WISE_TIMES);
    if (!r.wisdom)
        return DPR_ERR_OUT_OF_MEMORY;
    const dpr_status status = read_lines(&r);
    if (status == DPR_OK)
        *out = r.wisdom;
    else
        dpr_wisdom_release(r.wisdom);
    return status;
}
