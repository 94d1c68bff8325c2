/* Reductions along axes, in one of three ways. If one axis is reduced and its stride is 1, the elements of each result
 * are contiguous, and results are reduced like segments. If instead the elements of neighbouring results are
 * neighbours, rows of a tile of results are added up by the loops for columns. In all other cases elements are copied
 * to a buffer, tile by tile, so that they are contiguous there. */
#include "axes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "segments.h"

enum {
    WIDTH = 256,         /* results of a tile of copies: memory is read 1 KiB of F32 at a time */
    COLUMNS = 1024,      /* results of a tile of columns */
    LEAST_PERIOD = 512,  /* elements of several narrow rows that are taken for one */
    TILE_BYTES = 65536,  /* of elements in the buffer, which stays in the L2 cache */
    MOST_STRETCH = 2048, /* elements of a result in the buffer */
    PAD_BYTES = 64, /* after each result's elements: with a power of two between results, all map to a few cache sets */
    ROWS = DPR_RANGES,          /* results, at most, that are reduced at a time as segments of the array */
    LEAST_RUN_BYTES = 256,      /* of elements one behind the other that are not copied */
    LEAST_PERIODS = 64,         /* of these, if rows are enough: their columns are merged one by one */
    MOST_TURN = 4096,           /* rows or tiles, at most, that a thread takes at a time */
    TURNS = 16,                 /* at least this many of these a thread, if there are enough results */
    LEAST_PART_BYTES = 1 << 18, /* of the elements of a tile, that are worth a part */
};

/* The memory of a thread. */
typedef struct buffer {
    union {
        _Alignas(64) unsigned char elements[TILE_BYTES + WIDTH * PAD_BYTES]; /* copies of a tile's elements */
        dpr_acc accs[COLUMNS];                                               /* of a tile of columns */
        unsigned char results[COLUMNS * DPR_RESULT_BYTES];                   /* of it */
    } of;
    _Alignas(64) unsigned char columns[COLUMNS * DPR_COLUMN_BYTES];
    int64_t offsets[MOST_STRETCH]; /* of a result's elements from its first one */
} buffer;

typedef struct job {
    const dpr_run *run;
    const dpr_axes_layout *layout;
    const unsigned char *in; /* the element with all indices 0 */
    dpr_fold fold;
    dpr_segment_limits limits;
    dpr_fold_columns fold_columns;
    size_t strip;                       /* columns of a strip; 0: not reduced as columns */
    uint64_t period;                    /* rows that are taken for one */
    int contiguous;                     /* 1: the elements of a result lie one behind the other */
    int in_runs;                        /* 1: they do so in runs that are long enough to be folded where they lie */
    size_t element, result;             /* bytes */
    uint64_t width, tiles;              /* results of a tile; tiles of all results */
    uint64_t stretch;                   /* elements of each result in the buffer, at most */
    size_t pitch;                       /* elements from one result to the next there */
    uint64_t parts;                     /* of each result's elements, which are reduced apart */
    dpr_acc *accs;                      /* of all results for each part; NULL if there is one */
    uint64_t turn;                      /* rows, or parts of tiles, that a thread takes at a time */
    _Alignas(64) _Atomic uint64_t next; /* the first of them that nobody has taken */
} job;

/* ---- Places ---- */

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The innermost kept axis; an extent of 1 if there is none. */
static dpr_axis inner_kept(const dpr_axes_layout *at) {
    return at->kept > 0 ? at->keep[at->kept - 1] : (dpr_axis){1, 0, 0};
}

/* Where a result is: its first element in `in`, and its place in `out`. */
typedef struct place {
    int64_t in, out;
} place;

static place place_of(const dpr_axes_layout *at, uint64_t i) {
    place p = {0, 0};
    for (int d = at->kept - 1; d >= 0; d--) {
        const int64_t index = (int64_t)(i % at->keep[d].extent);
        i /= at->keep[d].extent;
        p.in += index * at->keep[d].in;
        p.out += index * at->keep[d].out;
    }
    return p;
}

/* Offsets of elements first .. first + n - 1 of a result from its first one. */
static void find_offsets(const dpr_axes_layout *at, uint64_t first, size_t n, int64_t *to) {
    const dpr_axis inner = at->reduce[at->reduced - 1];
    for (size_t i = 0; i < n;) {
        uint64_t rest = (first + i) / inner.extent;
        const uint64_t index = (first + i) % inner.extent;
        int64_t offset = (int64_t)index * inner.in;
        for (int d = at->reduced - 2; d >= 0; d--) {
            offset += (int64_t)(rest % at->reduce[d].extent) * at->reduce[d].in;
            rest /= at->reduce[d].extent;
        }
        for (uint64_t k = index; k < inner.extent && i < n; k++, offset += inner.in)
            to[i++] = offset;
    }
}

/* ---- Copies ---- */

/* Elements as words that may alias any type, with the least alignment that elements of the size have. */
typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias, aligned(4))) word8;
typedef struct __attribute__((may_alias)) word16 {
    uint64_t parts[2];
} word16;

/* Copies n elements of each of `width` results: to[w * pitch + i] is element i of result w. */
#define DEFINE_GATHER(WORD)                                                                                            \
    static void gather_##WORD(const WORD *in, const int64_t *offsets, size_t n, int64_t step, size_t width, WORD *to,  \
                              size_t pitch) {                                                                          \
        for (size_t i = 0; i < n; i++)                                                                                 \
            for (size_t w = 0; w < width; w++)                                                                         \
                to[w * pitch + i] = in[offsets[i] + (int64_t)w * step];                                                \
    }
DEFINE_GATHER(word1)
DEFINE_GATHER(word2)
DEFINE_GATHER(word4)
DEFINE_GATHER(word8)
DEFINE_GATHER(word16)

static void gather(const job *j, const void *in, const int64_t *offsets, size_t n, size_t width, void *to) {
    const int64_t step = inner_kept(j->layout).in;
    const size_t pitch = j->pitch;
    switch (j->element) {
    case 1:
        gather_word1(in, offsets, n, step, width, to, pitch);
        break;
    case 2:
        gather_word2(in, offsets, n, step, width, to, pitch);
        break;
    case 4:
        gather_word4(in, offsets, n, step, width, to, pitch);
        break;
    case 8:
        gather_word8(in, offsets, n, step, width, to, pitch);
        break;
    default:
        gather_word16(in, offsets, n, step, width, to, pitch);
        break;
    }
}

/* ---- Tiles ---- */

/* The results of a tile: they are neighbours along the innermost kept axis. */
typedef struct tile {
    uint64_t first; /* number of the first result */
    size_t width;
    place at;
} tile;

static tile tile_of(const job *j, uint64_t i) {
    const uint64_t extent = inner_kept(j->layout).extent, row = (extent + j->width - 1) / j->width;
    const uint64_t column = i % row * j->width, first = i / row * extent + column;
    const uint64_t width = extent - column < j->width ? extent - column : j->width;
    return (tile){first, (size_t)width, place_of(j->layout, first)};
}

static int seeks_index(const dpr_run *run) {
    return dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX;
}

/* Folds elements first .. end - 1 of each of a tile's results into accs, where they lie: runs along the innermost
 * reduced axis. */
static void fold_runs(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs) {
    const uint64_t extent = j->layout->reduce[j->layout->reduced - 1].extent;
    int64_t offset;
    for (uint64_t n; first < end; first += n) {
        n = least(end - first, extent - first % extent);
        find_offsets(j->layout, first, 1, &offset);
        for (size_t w = 0; w < t->width; w++) {
            const int64_t at = t->at.in + offset + (int64_t)w * inner_kept(j->layout).in;
            dpr_acc part;
            dpr_accs_start(j->run, &part);
            j->fold(j->in + at * (int64_t)j->element, 0, (size_t)n, &part);
            if (seeks_index(j->run) && part.index >= 0)
                part.index += (int64_t)first;
            dpr_accs_merge(j->run, &accs[w], &part);
        }
    }
}

/* The same by way of copies. */
static void fold_tile(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, buffer *to) {
    for (uint64_t from = first; from < end; from += j->stretch) {
        const size_t n = end - from < j->stretch ? (size_t)(end - from) : (size_t)j->stretch;
        find_offsets(j->layout, from, n, to->offsets);
        gather(j, j->in + t->at.in * (int64_t)j->element, to->offsets, n, t->width, to->of.elements);
        for (size_t w = 0; w < t->width; w++) {
            dpr_acc part;
            dpr_accs_start(j->run, &part);
            j->fold(to->of.elements, w * j->pitch, n, &part);
            if (seeks_index(j->run) && part.index >= 0)
                part.index += (int64_t)from - (int64_t)(w * j->pitch);
            dpr_accs_merge(j->run, &accs[w], &part);
        }
    }
}

static void write_result(const job *j, int64_t at, dpr_acc *acc) {
    dpr_acc_finish(j->run, acc, (unsigned char *)j->run->out + at * (int64_t)j->result);
}

/* Writes the first n results of a tile. */
static void write_results(const job *j, const tile *t, size_t n, dpr_acc *accs) {
    for (size_t w = 0; w < n; w++)
        write_result(j, t->at.out + (int64_t)w * inner_kept(j->layout).out, &accs[w]);
}

/* Reduces n ranges of `in`, and writes the results to places `at`, at + 1 * step, ... */
static void reduce_ranges(const job *j, const void *in, dpr_range *ranges, int64_t at, int64_t step, size_t n) {
    _Alignas(DPR_RESULT_BYTES) unsigned char results[ROWS * DPR_RESULT_BYTES];
    unsigned char *out = (unsigned char *)j->run->out + at * (int64_t)j->result;
    dpr_run some = *j->run;
    some.in = in;
    dpr_cpu_ranges(&some, ranges, n, (size_t)j->layout->each, j->limits, step == 1 ? out : results);
    for (size_t i = 0; i < n && step != 1; i++)
        memcpy(out + (int64_t)i * step * (int64_t)j->result, results + i * j->result, j->result);
}

_Static_assert(ROWS >= WIDTH, "reduce_ranges() takes a tile");

/* Reduces a tile whose results have few elements each: as segments of the copies. */
static void do_short_tile(const job *j, const tile *t, buffer *to) {
    dpr_range ranges[WIDTH];
    const size_t n = (size_t)j->layout->each;
    find_offsets(j->layout, 0, n, to->offsets);
    gather(j, j->in + t->at.in * (int64_t)j->element, to->offsets, n, t->width, to->of.elements);
    for (size_t w = 0; w < t->width; w++)
        ranges[w] = (dpr_range){w * j->pitch, w * j->pitch + n};
    reduce_ranges(j, to->of.elements, ranges, t->at.out, inner_kept(j->layout).out, t->width);
}

/* Folds elements first .. end - 1 of each of a tile's results to accs; if that is NULL, these are all elements, and
 * writes the results. */
static void do_tile(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, buffer *to) {
    dpr_acc own[WIDTH], *into = accs ? accs : own;
    if (!accs && end <= j->stretch && !j->in_runs) {
        do_short_tile(j, t, to);
        return;
    }
    for (size_t w = 0; w < t->width; w++)
        dpr_accs_start(j->run, &into[w]);
    if (j->in_runs)
        fold_runs(j, t, first, end, into);
    else
        fold_tile(j, t, first, end, into, to);
    write_results(j, t, accs ? 0 : t->width, own);
}

/* ---- Columns ---- */

/* Adds rows first .. end - 1 of strips that begin at element `at`. */
static void add_rows(const job *j, int64_t at, size_t strips, uint64_t first, uint64_t end, buffer *to) {
    dpr_columns c = {.in = j->in + at * (int64_t)j->element,
                     .offsets = to->offsets,
                     .strips = strips,
                     .accs = to->columns,
                     .is_first = 1};
    (void)j->fold_columns(&c);
    c.is_first = 0;
    for (; first < end; first += c.rows) {
        c.rows = end - first < MOST_STRETCH ? (size_t)(end - first) : MOST_STRETCH;
        find_offsets(j->layout, first, c.rows, to->offsets);
        (void)j->fold_columns(&c);
    }
}

/* Writes the results of the strips of a tile. */
static void write_columns(const job *j, const tile *t, size_t strips, buffer *to) {
    const int64_t step = inner_kept(j->layout).out;
    const size_t n = strips * j->strip;
    unsigned char *out = (unsigned char *)j->run->out + t->at.out * (int64_t)j->result;
    dpr_columns c = {.strips = strips, .accs = to->columns};
    if (j->run->init.present)
        c.unpacked = to->of.accs;
    else
        c.out = step == 1 ? out : to->of.results;
    (void)j->fold_columns(&c);
    if (j->run->init.present)
        write_results(j, t, n, to->of.accs);
    for (size_t i = 0; i < n && c.out == to->of.results; i++)
        memcpy(out + (int64_t)i * step * (int64_t)j->result, to->of.results + i * j->result, j->result);
}

/* do_tile() for a tile of columns. Those that fill no strip are copied. */
static void do_columns(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, buffer *to) {
    const size_t strips = t->width / j->strip, whole = strips * j->strip;
    tile rest = {t->first + whole, t->width - whole, t->at};
    dpr_columns c = {.strips = strips, .accs = to->columns, .unpacked = accs};
    if (strips > 0) {
        add_rows(j, t->at.in, strips, first, end, to);
        if (accs)
            (void)j->fold_columns(&c);
        else
            write_columns(j, t, strips, to);
    }
    rest.at.in += (int64_t)whole;
    rest.at.out += (int64_t)whole * inner_kept(j->layout).out;
    if (rest.width > 0)
        do_tile(j, &rest, first, end, accs ? accs + whole : NULL, to);
}

/* do_tile() for rows that are so narrow that several of them, one behind the other, are taken for one row. Its columns
 * are then merged. Rows that are left over are copied. */
static void do_periods(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, buffer *to) {
    const size_t wide = (size_t)j->period * t->width;
    const uint64_t periods = (end - first) / j->period;
    dpr_acc own[WIDTH], *into = accs ? accs : own;
    dpr_columns c = {.in = j->in + t->at.in * (int64_t)j->element,
                     .offsets = to->offsets,
                     .strips = wide / j->strip,
                     .accs = to->columns,
                     .is_first = 1};
    for (uint64_t done = 0; done < periods; done += c.rows, c.is_first = 0) {
        c.rows = periods - done < MOST_STRETCH ? (size_t)(periods - done) : MOST_STRETCH;
        for (size_t i = 0; i < c.rows; i++)
            to->offsets[i] = (int64_t)(first * t->width + (done + i) * wide);
        (void)j->fold_columns(&c);
    }
    c.rows = 0;
    c.unpacked = to->of.accs;
    (void)j->fold_columns(&c);
    for (size_t w = 0; w < t->width; w++)
        dpr_accs_start(j->run, &into[w]);
    for (size_t i = 0; i < wide; i++)
        dpr_accs_merge(j->run, &into[i % t->width], &to->of.accs[i]);
    fold_tile(j, t, first + periods * j->period, end, into, to);
    write_results(j, t, accs ? 0 : t->width, own);
}

/* Does part p of tile i. */
static void do_part(const job *j, uint64_t i, uint64_t p, buffer *to) {
    const tile t = tile_of(j, i);
    const uint64_t share = j->layout->each / j->parts, first = share * p;
    const uint64_t end = p + 1 < j->parts ? first + share : j->layout->each;
    dpr_acc *accs = j->accs ? j->accs + p * j->layout->outputs + t.first : NULL;
    if (j->strip == 0)
        do_tile(j, &t, first, end, accs, to);
    else if (j->period > 1)
        do_periods(j, &t, first, end, accs, to);
    else
        do_columns(j, &t, first, end, accs, to);
}

/* Merges the parts of all results, in their order. */
static void merge_parts(const job *j) {
    for (uint64_t i = 0; i < j->layout->outputs; i++) {
        for (uint64_t p = 1; p < j->parts; p++)
            dpr_accs_merge(j->run, &j->accs[i], &j->accs[p * j->layout->outputs + i]);
        write_result(j, place_of(j->layout, i).out, &j->accs[i]);
    }
}

/* ---- Rows: results whose elements lie one behind the other, as segments of the array ---- */

/* Reduces n neighbours along the innermost kept axis. */
static void do_neighbours(const job *j, place first, size_t n) {
    const dpr_axis inner = inner_kept(j->layout);
    const int64_t lowest = inner.in < 0 ? first.in + inner.in * (int64_t)(n - 1) : first.in;
    dpr_range ranges[ROWS];
    for (size_t i = 0; i < n; i++) {
        const size_t begin = (size_t)(first.in + (int64_t)i * inner.in - lowest);
        ranges[i] = (dpr_range){begin, begin + (size_t)j->layout->each};
    }
    reduce_ranges(j, j->in + lowest * (int64_t)j->element, ranges, first.out, inner.out, n);
}

static void do_rows(const job *j, uint64_t first, uint64_t end) {
    const uint64_t extent = inner_kept(j->layout).extent;
    for (uint64_t n; first < end; first += n) {
        n = least(least(end - first, ROWS), extent - first % extent);
        do_neighbours(j, place_of(j->layout, first), (size_t)n);
    }
}

/* ---- Threads ---- */

static void do_all_rows(job *j) {
    const uint64_t outputs = j->layout->outputs;
    for (uint64_t i; (i = atomic_fetch_add(&j->next, j->turn)) < outputs;)
        do_rows(j, i, least(i + j->turn, outputs));
}

static void do_all_tiles(job *j) {
    const uint64_t n = j->tiles * j->parts;
    buffer to;
    for (uint64_t i; (i = atomic_fetch_add(&j->next, j->turn)) < n;)
        for (uint64_t k = i; k < least(i + j->turn, n); k++)
            do_part(j, k / j->parts, k % j->parts, &to);
}

static void do_all(job *j) {
    if (j->contiguous && j->parts == 1)
        do_all_rows(j);
    else
        do_all_tiles(j);
}

static void task(void *user, int part, dpr_pool_cell *cell) {
    (void)part;
    (void)cell;
    do_all(user);
}

/* Divides the elements of each result into parts if there are too few tiles, or too few rows, for all threads. */
static void divide(job *j, uint64_t threads) {
    const uint64_t units = j->contiguous ? j->layout->outputs : j->tiles, width = j->contiguous ? 1 : j->width;
    const uint64_t worth = j->layout->each * j->element * width / LEAST_PART_BYTES;
    const uint64_t parts = least(worth, 4 * threads / units);
    if (threads == 1 || parts < 2)
        return;
    j->accs = malloc((size_t)(parts * j->layout->outputs) * sizeof *j->accs);
    j->parts = j->accs ? parts : 1;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
    while (b > 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How many rows are taken for one: 1 unless rows are narrow, lie one behind the other, and are many. */
static uint64_t period_of(const dpr_axes_layout *at, uint64_t strip) {
    const uint64_t width = inner_kept(at).extent, rows = strip / greatest_divisor(width, strip), wide = rows * width;
    uint64_t times = least(LEAST_PERIOD / wide, at->each / rows / LEAST_PERIODS);
    if (at->reduced > 1 || at->reduce[0].in != (int64_t)width || wide > COLUMNS || width > WIDTH)
        return 1;
    times = times < 1 ? 1 : times;
    return at->each >= 4 * rows * times ? rows * times : 1;
}

/* Chooses the way, and the tiles. */
static void choose(job *j) {
    const dpr_axes_layout *layout = j->layout;
    const uint64_t inner = inner_kept(layout).extent;
    const dpr_columns none = {.strips = 0};
    uint64_t copied;
    j->contiguous = layout->reduced == 1 && layout->reduce[0].in == 1;
    j->in_runs = layout->reduce[layout->reduced - 1].in == 1
                 && layout->reduce[layout->reduced - 1].extent * j->element >= LEAST_RUN_BYTES;
    j->fold_columns = dpr_cpu_fold_columns(&j->run->key);
    j->strip = !j->contiguous && inner_kept(layout).in == 1 ? j->fold_columns(&none) : 0;
    j->period = j->strip ? period_of(layout, j->strip) : 1;
    if (j->period == 1 && inner < j->strip)
        j->strip = 0;
    j->width = least(inner, j->strip && j->period == 1 ? COLUMNS : WIDTH);
    j->tiles = layout->outputs / inner * ((inner + j->width - 1) / j->width);
    copied = j->strip && j->period == 1 ? j->strip : j->width;
    j->stretch = least(least(MOST_STRETCH, TILE_BYTES / (j->element * copied)), layout->each);
    j->pitch = (size_t)j->stretch + PAD_BYTES / j->element;
}

int dpr_cpu_axes(const dpr_run *run, int threads) {
    const dpr_axes_layout *layout = run->axes;
    uint64_t units;
    job j = {.run = run, .layout = layout, .in = run->in, .parts = 1};
    j.limits = dpr_cpu_segment_limits(&run->key, SIZE_MAX);
    j.fold = j.limits.fold;
    j.element = dpr_dtypes[run->key.f.dtype].size;
    j.result = dpr_pair_size(dpr_key_op(&run->key), dpr_key_dtype(&run->key));
    choose(&j);
    divide(&j, (uint64_t)threads);
    units = j.contiguous && j.parts == 1 ? layout->outputs : j.tiles * j.parts;
    j.turn = units / ((uint64_t)threads * TURNS);
    j.turn = j.turn < 1 ? 1 : least(j.turn, MOST_TURN);
    dpr_pool *pool = threads > 1 ? dpr_pool_acquire(threads) : NULL;
    if (pool) {
        (void)dpr_pool_run(pool, threads, threads, task, &j);
        dpr_pool_release(pool);
    } else {
        do_all(&j);
    }
    if (j.parts > 1)
        merge_parts(&j);
    free(j.accs);
    return 0;
}
