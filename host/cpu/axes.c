/* Reductions along axes, in the form that suits the places of the elements:
 *
 *   rows      one axis is reduced, and the elements of each result lie one behind the other: as segments
 *   runs      the same, if several axes are reduced, of long runs of elements: by `fold`, run by run
 *   columns   neighbouring results have neighbouring elements: row by row into a row of accumulators
 *   strips    the same, of fewer results than a vector has elements, if rows follow each other without gaps: several
 *             rows are taken as one row
 *   copies    elements are copied to a buffer, so that the elements of each result lie one behind the other there
 *
 * A tile has neighbouring results. */
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
    ROW_BYTES = 4096,           /* of a tile of columns: accumulators stay in the L1 or L2 cache */
    LEAST_ROW_BYTES = 256,      /* if there are too few tiles and too few rows for all threads */
    PART_ROWS = 1024,           /* of a tile of columns, in which merging them takes little time */
    PARTS_PER_THREAD = 4,       /* so that all threads are done at about the same time */
    LEAST_COLUMNS_BYTES = 64,   /* a vector of any instruction set */
    STRIP_BYTES = 256,          /* of the rows that are taken as one */
    LEAST_STRIPS = 16,          /* for fewer, copies are as fast */
    LEAST_RUN_BYTES = 256,
};

/* What a thread copies tiles to. */
typedef struct copies {
    _Alignas(64) unsigned char elements[TILE_BYTES + WIDTH * PAD_BYTES];
    int64_t offsets[MOST_STRETCH]; /* of elements `first`, first + 1 ... of a result from its first one */
    uint64_t first;
    size_t count;
} copies;

_Static_assert(16 * (ROW_BYTES + LEAST_COLUMNS_BYTES) <= TILE_BYTES + WIDTH * PAD_BYTES,
               "the buffer has room for accumulators of a tile of columns (dpr_many_columns.space)");

typedef enum form { ROWS_FORM, RUNS_FORM, COLUMNS_FORM, STRIPS_FORM, COPIES_FORM } form;

typedef struct job {
    const dpr_run *run;
    dpr_axes_layout layout;  /* the run's; if the form is not that of rows, the innermost kept axis is the one with the
                                least distance of elements */
    const unsigned char *in; /* the element with all indices 0 */
    dpr_fold_many many;      /* may be NULL in the forms of rows, runs and copies */
    dpr_fold fold;
    form form;
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

/* Finds the offsets of elements first .. first + n - 1 of a result, unless they are there from the tile before. */
static void need_offsets(const job *j, uint64_t first, size_t n, copies *to) {
    if (to->first != first || to->count != n)
        find_offsets(&j->layout, first, n, to->offsets);
    to->first = first;
    to->count = n;
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
    const int64_t step = inner_kept(&j->layout).in;
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
    const uint64_t extent = inner_kept(&j->layout).extent, row = (extent + j->width - 1) / j->width;
    const uint64_t column = i % row * j->width, first = i / row * extent + column;
    const uint64_t width = extent - column < j->width ? extent - column : j->width;
    return (tile){first, (size_t)width, place_of(&j->layout, first)};
}

static int seeks_index(const dpr_run *run) {
    return dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX;
}

/* Folds elements first .. end - 1 of each of a tile's results into accs, where they lie. */
static void fold_rows(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs) {
    for (size_t w = 0; w < t->width; w++) {
        const int64_t at = t->at.in + (int64_t)w * inner_kept(&j->layout).in;
        j->fold(j->in + at * (int64_t)j->element, (size_t)first, (size_t)(end - first), &accs[w]);
    }
}

/* The same by way of copies. */
static void fold_tile(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, copies *to) {
    for (uint64_t from = first; from < end; from += j->stretch) {
        const size_t n = end - from < j->stretch ? (size_t)(end - from) : (size_t)j->stretch;
        need_offsets(j, from, n, to);
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

static int are_neighbours(const int64_t *places, size_t n) {
    int64_t gaps = 0;
    for (size_t i = 1; i < n; i++)
        gaps |= places[i] - places[i - 1] - 1;
    return n > 0 && gaps == 0;
}

/* Reduces n segments of `in`, and writes result i to place outs[i] of the results. Any of the first `readable` elements
 * may be read. */
static void reduce_segments(const job *j, const void *in, size_t readable, const int64_t *begins, const int64_t *ends,
                            const int64_t *outs, size_t n) {
    const dpr_segment_list list = {.count = n, .begins = begins, .ends = ends, .dtype = DPR_I64};
    const int in_place = are_neighbours(outs, n);
    _Alignas(DPR_RESULT_BYTES) unsigned char results[ROWS * DPR_RESULT_BYTES];
    unsigned char *out = j->run->out;
    dpr_run some = *j->run;
    some.in = in;
    some.count = readable;
    some.out = in_place ? out + outs[0] * (int64_t)j->result : results;
    some.segments = &list;
    (void)dpr_cpu_segments(&some, 0, n, (dpr_segment_limits){j->many, j->fold, DPR_SHORT_SEGMENT, SIZE_MAX});
    for (size_t i = 0; i < n && !in_place; i++)
        memcpy(out + outs[i] * (int64_t)j->result, results + i * j->result, j->result);
}

_Static_assert(ROWS >= WIDTH, "reduce_segments() takes a tile");

/* Reduces a tile whose results have few elements each: as segments of the copies. */
static void do_short_tile(const job *j, const tile *t, copies *to) {
    int64_t begins[WIDTH], ends[WIDTH], outs[WIDTH];
    const size_t n = (size_t)j->layout.each;
    need_offsets(j, 0, n, to);
    gather(j, j->in + t->at.in * (int64_t)j->element, to->offsets, n, t->width, to->elements);
    for (size_t w = 0; w < t->width; w++) {
        begins[w] = (int64_t)(w * j->pitch);
        ends[w] = begins[w] + (int64_t)n;
        outs[w] = t->at.out + (int64_t)w * inner_kept(&j->layout).out;
    }
    reduce_segments(j, to->elements, sizeof to->elements / j->element, begins, ends, outs, t->width);
}

/* ---- Runs ---- */

/* Folds elements first .. end - 1 of each of a tile's results into accs, run by run. */
static void fold_runs(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs) {
    const uint64_t run = j->layout.reduce[j->layout.reduced - 1].extent;
    const int64_t step = inner_kept(&j->layout).in;
    for (uint64_t from = first, next; from < end; from = next) {
        int64_t offset;
        next = from - from % run + run < end ? from - from % run + run : end;
        find_offsets(&j->layout, from, 1, &offset);
        for (size_t w = 0; w < t->width; w++) {
            const unsigned char *at = j->in + (t->at.in + (int64_t)w * step + offset) * (int64_t)j->element;
            dpr_acc part;
            dpr_accs_start(j->run, &part);
            j->fold(at, 0, (size_t)(next - from), &part);
            part.index += seeks_index(j->run) && part.index >= 0 ? (int64_t)from : 0;
            dpr_accs_merge(j->run, &accs[w], &part);
        }
    }
}

/* ---- Columns ---- */

/* Folds elements first .. end - 1 of each of a tile's results. They go into accs; if that is NULL, results are written.
 */
static void fold_columns(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, copies *to) {
    const int64_t step = inner_kept(&j->layout).out;
    unsigned char *out = (unsigned char *)j->run->out + t->at.out * (int64_t)j->result;
    dpr_many_columns c = {.in = j->in + t->at.in * (int64_t)j->element,
                          .offsets = to->offsets,
                          .columns = t->width,
                          .space = to->elements,
                          .out = step == 1 ? out : to->elements,
                          .accs = accs,
                          .init = &j->run->init};
    for (uint64_t from = first; from < end; from += c.rows) {
        c.rows = end - from < MOST_STRETCH ? (size_t)(end - from) : MOST_STRETCH;
        c.first = (size_t)from;
        c.folded = (size_t)(from - first) + c.rows;
        c.begins = from == first;
        c.ends = from + c.rows == end;
        need_offsets(j, from, c.rows, to);
        (void)j->many(NULL, &c);
    }
    if (step != 1 && !accs)
        dpr_results_spread(out, step, to->elements, t->width, j->result);
}

/* ---- Strips ---- */

/* Rows that are taken as one. */
static size_t strip_rows(const job *j) {
    const size_t row = (size_t)inner_kept(&j->layout).extent * j->element;
    return (STRIP_BYTES + row - 1) / row;
}

/* Folds rows first .. end - 1 of a tile into accs. Column c of a strip has elements of result c % width. */
static void fold_strips(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, copies *to) {
    const size_t rows = strip_rows(j), strip = rows * t->width;
    const uint64_t strips = (end - first) / rows;
    dpr_acc apart[STRIP_BYTES + LEAST_COLUMNS_BYTES];
    dpr_many_columns c = {.in = j->in + (t->at.in + (int64_t)(first * t->width)) * (int64_t)j->element,
                          .offsets = to->offsets,
                          .columns = strip,
                          .space = to->elements,
                          .accs = apart,
                          .init = &j->run->init};
    to->count = 0;
    for (size_t i = 0; i < strip; i++)
        dpr_accs_start(j->run, &apart[i]);
    for (uint64_t from = 0; from < strips; from += c.rows) {
        c.rows = strips - from < MOST_STRETCH ? (size_t)(strips - from) : MOST_STRETCH;
        c.first = (size_t)from;
        c.folded = c.first + c.rows;
        c.begins = from == 0;
        c.ends = from + c.rows == strips;
        for (size_t i = 0; i < c.rows; i++)
            to->offsets[i] = (int64_t)((from + i) * strip);
        (void)j->many(NULL, &c);
    }
    for (size_t i = 0; i < strip && strips > 0; i++) {
        if (seeks_index(j->run) && apart[i].index >= 0)
            apart[i].index = (int64_t)first + apart[i].index * (int64_t)rows + (int64_t)(i / t->width);
        dpr_accs_merge(j->run, &accs[i % t->width], &apart[i]);
    }
    fold_tile(j, t, first + strips * rows, end, accs, to);
}

/* ---- Tiles in every form ---- */

static int has_columns(const job *j, const tile *t) {
    return j->form == COLUMNS_FORM && t->width * j->element >= LEAST_COLUMNS_BYTES;
}

static void fold_part(const job *j, const tile *t, uint64_t first, uint64_t end, dpr_acc *accs, copies *to) {
    if (j->form == ROWS_FORM)
        fold_rows(j, t, first, end, accs);
    else if (j->form == RUNS_FORM)
        fold_runs(j, t, first, end, accs);
    else if (j->form == STRIPS_FORM)
        fold_strips(j, t, first, end, accs, to);
    else if (has_columns(j, t))
        fold_columns(j, t, first, end, accs, to);
    else
        fold_tile(j, t, first, end, accs, to);
}

/* Does part p of tile i. */
static void do_tile(const job *j, uint64_t i, uint64_t p, copies *to) {
    const tile t = tile_of(j, i);
    const uint64_t share = j->layout.each / j->parts, first = share * p;
    const uint64_t end = p + 1 < j->parts ? first + share : j->layout.each;
    dpr_acc own[WIDTH], *accs = j->accs ? j->accs + p * j->layout.outputs + t.first : own;
    if (j->parts == 1 && has_columns(j, &t)) {
        fold_columns(j, &t, first, end, NULL, to);
        return;
    }
    if (j->parts == 1 && j->form == COPIES_FORM && j->layout.each <= j->stretch) {
        do_short_tile(j, &t, to);
        return;
    }
    for (size_t w = 0; w < t.width; w++)
        dpr_accs_start(j->run, &accs[w]);
    fold_part(j, &t, first, end, accs, to);
    for (size_t w = 0; w < t.width && j->parts == 1; w++)
        write_result(j, t.at.out + (int64_t)w * inner_kept(&j->layout).out, &accs[w]);
}

/* Merges the parts of all results, in their order. */
static void merge_parts(const job *j) {
    for (uint64_t i = 0; i < j->layout.outputs; i++) {
        for (uint64_t p = 1; p < j->parts; p++)
            dpr_accs_merge(j->run, &j->accs[i], &j->accs[p * j->layout.outputs + i]);
        write_result(j, place_of(&j->layout, i).out, &j->accs[i]);
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

/* Elements of `size` bytes from that element on that may be read. A gap between rows that is shorter than a page has no
 * page of its own, so it may be. If one is longer, none is. */
static size_t readable_rows(const dpr_axes_layout *at, size_t size) {
    enum { PAGE = 4096 };
    uint64_t length = at->each;
    for (int d = at->kept - 1; d >= 0; d--) { /* from the shortest step to the longest, and those of 0 */
        const uint64_t step = (uint64_t)llabs(at->keep[d].in);
        if (step > length && (step - length) * size >= PAGE)
            return 0;
        length += (at->keep[d].extent - 1) * step;
    }
    return (size_t)length;
}

static void do_rows(const job *j, uint64_t first, size_t n) {
    const dpr_axis inner = inner_kept(&j->layout);
    const int64_t lowest = lowest_row(&j->layout);
    int64_t begins[ROWS], ends[ROWS], outs[ROWS] = {0};
    place p = place_of(&j->layout, first);
    uint64_t left = inner.extent - first % inner.extent; /* along the inner axis */
    for (size_t i = 0; i < n; i++) {
        begins[i] = p.in - lowest;
        ends[i] = begins[i] + (int64_t)j->layout.each;
        outs[i] = p.out;
        p = (place){p.in + inner.in, p.out + inner.out};
        if (--left == 0) {
            left = inner.extent;
            p = place_of(&j->layout, first + i + 1);
        }
    }
    reduce_segments(j, j->in + lowest * (int64_t)j->element, readable_rows(&j->layout, j->element), begins, ends, outs,
                    n);
}

/* ---- Threads ---- */

static void do_all_rows(job *j) {
    const uint64_t outputs = j->layout.outputs;
    for (uint64_t i; (i = atomic_fetch_add(&j->next, j->rows)) < outputs;)
        do_rows(j, i, outputs - i < j->rows ? (size_t)(outputs - i) : (size_t)j->rows);
}

static void do_all_tiles(job *j) {
    copies to;
    to.first = to.count = 0;
    for (uint64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->tiles * j->parts;)
        do_tile(j, i / j->parts, i % j->parts, &to);
}

static void do_all(job *j) {
    if (j->form == ROWS_FORM && j->parts == 1)
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
    const int is_rows = j->form == ROWS_FORM;
    const uint64_t units = is_rows ? j->layout.outputs : j->tiles, width = is_rows ? 1 : j->width;
    const uint64_t worth = j->layout.each * j->element * width / LEAST_PART_BYTES;
    const uint64_t parts = least(worth, (PARTS_PER_THREAD * threads + units - 1) / units);
    if (threads == 1 || parts < 2)
        return;
    j->accs = malloc((size_t)(parts * j->layout.outputs) * sizeof *j->accs);
    j->parts = j->accs ? parts : 1;
}

/* Makes the kept axis with the least distance of elements the innermost one. The order of kept axes numbers the
 * results, and nothing else. */
static void sort_kept(dpr_axes_layout *at) {
    for (int d = 0; d + 1 < at->kept; d++) {
        const dpr_axis axis = at->keep[d], inner = at->keep[at->kept - 1];
        const int64_t far = inner.in < 0 ? -inner.in : inner.in, near = axis.in < 0 ? -axis.in : axis.in;
        if (near == 0 || near >= far)
            continue;
        at->keep[at->kept - 1] = axis;
        at->keep[d] = inner;
    }
}

static form form_of(const job *j) {
    const dpr_axes_layout *at = &j->layout;
    const dpr_axis keep = inner_kept(at), reduce = at->reduce[at->reduced - 1];
    const int has_rows = j->many && (j->many(NULL, NULL) & DPR_MANY_COLUMNS) && keep.in == 1
                         && !(seeks_index(j->run) && at->each > INT32_MAX);
    if (at->reduced == 1 && reduce.in == 1)
        return ROWS_FORM;
    if (has_rows && keep.extent * j->element >= LEAST_COLUMNS_BYTES)
        return COLUMNS_FORM;
    if (has_rows && at->reduced == 1 && reduce.in == (int64_t)keep.extent && at->each >= LEAST_STRIPS * strip_rows(j))
        return STRIPS_FORM;
    return reduce.in == 1 && reduce.extent * j->element >= LEAST_RUN_BYTES ? RUNS_FORM : COPIES_FORM;
}

/* Narrow tiles take up to twice the time for an element, because each row begins in another page. Parts of few rows
 * take time to merge. */
uint64_t dpr_cpu_tile_columns(const dpr_axes_layout *at, size_t element, uint64_t threads) {
    const uint64_t inner = inner_kept(at).extent, rows = at->outputs / inner, least_columns = LEAST_ROW_BYTES / element,
                   parts = at->each < PART_ROWS ? 1 : at->each / PART_ROWS;
    uint64_t columns = ROW_BYTES / element;
    while (threads > 1 && columns > least_columns
           && rows * ((inner + columns - 1) / columns) * parts < PARTS_PER_THREAD * threads)
        columns /= 2;
    return least(inner, columns);
}

/* MINMAX of columns, as MIN and MAX one after the other: the results of each are in every second place. */
static int reduce_to_extremes(const dpr_run *run, int threads) {
    dpr_axes_layout layout = *run->axes;
    for (int d = 0; d < layout.kept; d++)
        layout.keep[d].out *= 2;
    for (int i = 0; i < 2; i++) {
        dpr_run one = dpr_run_extreme(run, i);
        one.axes = &layout;
        (void)dpr_cpu_axes(&one, dpr_cpu_fold_many(&one.key), dpr_cpu_fold(&one.key), threads);
    }
    return 0;
}

int dpr_cpu_axes(const dpr_run *run, dpr_fold_many many, dpr_fold fold, int threads) {
    job j = {.run = run, .layout = *run->axes, .in = run->in, .many = many, .fold = fold, .parts = 1};
    const uint64_t share = j.layout.outputs / ((uint64_t)threads * TURNS);
    j.element = dpr_dtypes[run->key.f.dtype].size;
    j.result = dpr_pair_size(dpr_key_op(&run->key), dpr_key_dtype(&run->key));
    j.form = form_of(&j);
    if (j.form != ROWS_FORM) {
        sort_kept(&j.layout);
        j.form = form_of(&j);
    }
    if (dpr_key_op(&run->key) == DPR_MINMAX && (j.form == COLUMNS_FORM || j.form == STRIPS_FORM))
        return reduce_to_extremes(run, threads);
    const uint64_t inner = inner_kept(&j.layout).extent;
    j.width =
        j.form == COLUMNS_FORM ? dpr_cpu_tile_columns(&j.layout, j.element, (uint64_t)threads) : least(inner, WIDTH);
    j.tiles = j.layout.outputs / inner * ((inner + j.width - 1) / j.width);
    j.stretch = least(least(MOST_STRETCH, TILE_BYTES / (j.element * least(j.width, WIDTH))), j.layout.each);
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
