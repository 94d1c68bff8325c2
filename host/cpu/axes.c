/* Reductions along axes. If one axis is reduced and its stride is 1, the elements of each result are contiguous, and
 * results are reduced like segments. Otherwise elements are copied to a buffer, tile by tile, so that they are
 * contiguous there. A tile has up to WIDTH neighbouring results, and a stretch of the elements of each. */
#include "axes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "segments.h"

enum {
    WIDTH = 256,         /* results of a tile: memory is read 1 KiB of F32 at a time */
    TILE_BYTES = 65536,  /* of elements in the buffer, which stays in the L2 cache */
    MOST_STRETCH = 2048, /* elements of a result in the buffer */
    PAD_BYTES = 64, /* after each result's elements: with a power of two between results, all map to a few cache sets */
    ROWS = 256,     /* results, at most, that are reduced at a time as segments of the array */
    TURNS = 16,     /* at least this many of these a thread, if there are enough results */
    LEAST_PART_BYTES = 1 << 18, /* of the elements of a tile, that are worth a part */
};

/* What a thread copies tiles to. */
typedef struct copies {
    _Alignas(64) unsigned char elements[TILE_BYTES + WIDTH * PAD_BYTES];
    int64_t offsets[MOST_STRETCH]; /* of a result's elements from its first one */
} copies;

typedef struct job {
    const dpr_run *run;
    const dpr_axes_layout *layout;
    const unsigned char *in; /* the element with all indices 0 */
    dpr_fold fold;
    int contiguous;         /* 1: the elements of a result lie one behind the other */
    size_t element, result; /* bytes */
    uint64_t width, tiles;  /* results of a tile; tiles of all results */
    uint64_t stretch;       /* elements of each result in the buffer, at most */
    size_t pitch;           /* elements from one result to the next there */
    uint64_t rows;          /* results that are reduced at a time as segments */
    uint64_t parts;         /* of each result's elements, which are reduced apart */
    dpr_acc *accs;          /* of all results for each part; NULL if there is one */
    _Atomic uint64_t next;  /* tile that nobody has taken */
} job;

/* ---- Places ---- */

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

/* Folds elements first .. end - 1 of each of a tile's results into accs, where they lie. */
static void fold_rows(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs) {
    for (size_t w = 0; w < t->width; w++) {
        const int64_t at = t->at.in + (int64_t)w * inner_kept(j->layout).in;
        j->fold(j->in + at * (int64_t)j->element, (size_t)first, (size_t)(end - first), &accs[w]);
    }
}

/* The same by way of copies. */
static void fold_tile(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, copies *to) {
    for (uint64_t from = first; from < end; from += j->stretch) {
        const size_t n = end - from < j->stretch ? (size_t)(end - from) : (size_t)j->stretch;
        find_offsets(j->layout, from, n, to->offsets);
        gather(j, j->in + t->at.in * (int64_t)j->element, to->offsets, n, t->width, to->elements);
        for (size_t w = 0; w < t->width; w++) {
            dpr_acc part;
            dpr_accs_start(j->run, &part);
            j->fold(to->elements, w * j->pitch, n, &part);
            if (seeks_index(j->run) && part.index >= 0)
                part.index += (int64_t)from - (int64_t)(w * j->pitch);
            dpr_accs_merge(j->run, &accs[w], &part);
        }
    }
}

static void write_result(const job *j, int64_t at, dpr_acc *acc) {
    dpr_run one = *j->run;
    one.out = (unsigned char *)j->run->out + at * (int64_t)j->result;
    dpr_accs_finish(&one, acc);
}

/* Reduces n segments of `in`, and writes result i to place outs[i] of the results. */
static void reduce_segments(const job *j, const void *in, const int64_t *begins, const int64_t *ends,
                            const int64_t *outs, size_t n) {
    const dpr_segment_list list = {.count = n, .begins = begins, .ends = ends, .dtype = DPR_I64};
    _Alignas(DPR_RESULT_BYTES) unsigned char results[ROWS * DPR_RESULT_BYTES];
    dpr_run some = *j->run;
    some.in = in;
    some.out = results;
    some.segments = &list;
    (void)dpr_cpu_segments(&some, 0, n, (dpr_segment_limits){j->fold, DPR_SHORT_SEGMENT, SIZE_MAX});
    for (size_t i = 0; i < n; i++)
        memcpy((unsigned char *)j->run->out + outs[i] * (int64_t)j->result, results + i * j->result, j->result);
}

_Static_assert(ROWS >= WIDTH, "reduce_segments() takes a tile");

/* Reduces a tile whose results have few elements each: as segments of the copies. */
static void do_short_tile(const job *j, const tile *t, copies *to) {
    int64_t begins[WIDTH], ends[WIDTH], outs[WIDTH];
    const size_t n = (size_t)j->layout->each;
    find_offsets(j->layout, 0, n, to->offsets);
    gather(j, j->in + t->at.in * (int64_t)j->element, to->offsets, n, t->width, to->elements);
    for (size_t w = 0; w < t->width; w++) {
        begins[w] = (int64_t)(w * j->pitch);
        ends[w] = begins[w] + (int64_t)n;
        outs[w] = t->at.out + (int64_t)w * inner_kept(j->layout).out;
    }
    reduce_segments(j, to->elements, begins, ends, outs, t->width);
}

/* Does part p of tile i. */
static void do_tile(const job *j, uint64_t i, uint64_t p, copies *to) {
    const tile t = tile_of(j, i);
    const uint64_t share = j->layout->each / j->parts, first = share * p;
    const uint64_t end = p + 1 < j->parts ? first + share : j->layout->each;
    dpr_acc own[WIDTH], *accs = j->accs ? j->accs + p * j->layout->outputs + t.first : own;
    if (j->parts == 1 && j->layout->each <= j->stretch) {
        do_short_tile(j, &t, to);
        return;
    }
    for (size_t w = 0; w < t.width; w++)
        dpr_accs_start(j->run, &accs[w]);
    if (j->contiguous)
        fold_rows(j, &t, first, end, accs);
    else
        fold_tile(j, &t, first, end, accs, to);
    for (size_t w = 0; w < t.width && j->parts == 1; w++)
        write_result(j, t.at.out + (int64_t)w * inner_kept(j->layout).out, &accs[w]);
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

/* The distance from the first element of the lowest row to that of the first one, in elements; at most 0. */
static int64_t lowest_row(const dpr_axes_layout *at) {
    int64_t lowest = 0;
    for (int d = 0; d < at->kept; d++)
        lowest += at->keep[d].in < 0 ? at->keep[d].in * (int64_t)(at->keep[d].extent - 1) : 0;
    return lowest;
}

static void do_rows(const job *j, uint64_t first, size_t n) {
    const dpr_axis inner = inner_kept(j->layout);
    const int64_t lowest = lowest_row(j->layout);
    int64_t begins[ROWS], ends[ROWS], outs[ROWS];
    place p = place_of(j->layout, first);
    for (size_t i = 0; i < n; i++) {
        begins[i] = p.in - lowest;
        ends[i] = begins[i] + (int64_t)j->layout->each;
        outs[i] = p.out;
        if ((first + i + 1) % inner.extent == 0)
            p = place_of(j->layout, first + i + 1);
        else
            p = (place){p.in + inner.in, p.out + inner.out};
    }
    reduce_segments(j, j->in + lowest * (int64_t)j->element, begins, ends, outs, n);
}

/* ---- Threads ---- */

static void do_all_rows(job *j) {
    const uint64_t outputs = j->layout->outputs;
    for (uint64_t i; (i = atomic_fetch_add(&j->next, j->rows)) < outputs;)
        do_rows(j, i, outputs - i < j->rows ? (size_t)(outputs - i) : (size_t)j->rows);
}

static void do_all_tiles(job *j) {
    copies to;
    for (uint64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->tiles * j->parts;)
        do_tile(j, i / j->parts, i % j->parts, &to);
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

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
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

int dpr_cpu_axes(const dpr_run *run, dpr_fold fold, int threads) {
    const dpr_axes_layout *layout = run->axes;
    const uint64_t inner = inner_kept(layout).extent, share = layout->outputs / ((uint64_t)threads * TURNS);
    job j = {.run = run, .layout = layout, .in = run->in, .fold = fold, .parts = 1};
    j.element = dpr_dtypes[run->key.f.dtype].size;
    j.result = dpr_pair_size(dpr_key_op(&run->key), dpr_key_dtype(&run->key));
    j.contiguous = layout->reduced == 1 && layout->reduce[0].in == 1;
    j.width = least(inner, WIDTH);
    j.tiles = layout->outputs / inner * ((inner + j.width - 1) / j.width);
    j.stretch = least(least(MOST_STRETCH, TILE_BYTES / (j.element * j.width)), layout->each);
    j.pitch = (size_t)j.stretch + PAD_BYTES / j.element;
    j.rows = share < 1 ? 1 : least(share, ROWS);
    divide(&j, (uint64_t)threads);
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
