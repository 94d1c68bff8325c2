#include "axes.h"

#include <stdlib.h>

#include "element.h"

enum {
    VECTOR_BYTES = 16,
    LINE_BYTES = 128,
    LONGEST_SPAN = 4096,   /* bytes of all columns of a row, at most, if a stage has several rows */
    LONGEST_ROW = 512,     /* bytes of a result's elements, at most, if they are read by way of shared memory */
    LEAST_STAGE = 2048,    /* bytes of a stage: less is not worth a block */
    IN_FLIGHT = 16,        /* units that a thread should have to read, so that its loads are in flight together */
    LANE_UNITS = 8,        /* the same, from shared memory */
    MEASURED_BY_LANE = 32, /* elements that a lane should read where merging lanes takes long (axes_measures.cu) */
    MOST_SEGMENTS = 32,
    LEAST_SEGMENT = 256,  /* pieces of a stage, and bytes of each */
    NARROW = 64,          /* columns of a tile at least, if there are enough: a warp reads whole lines of 128 bytes */
    SECTOR_UNITS = 8,     /* widths of tiles are multiples of this */
    MOST_PARTIALS = 32768 /* partial results of a tile, which one block combines */
};

static dpr_axes_divisor divisor(uint64_t n) {
    return (dpr_axes_divisor){n, n > 0 ? UINT64_MAX / n : 0};
}

/* The axes of a run: in bytes, with the kept ones in rising order, and with the reduced axis of the least stride last.
 */
typedef struct lists {
    dpr_axes_axis keep[DPR_MOST_DIMENSIONS], reduce[DPR_MOST_DIMENSIONS];
    int kept, reduced;
    int64_t in_first, out_first;
    uintptr_t base; /* address of the element with all indices 0 */
    uint64_t element;
} lists;

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}
static uint64_t divide_up(uint64_t a, uint64_t b) {
    return a / b + (a % b > 0);
}
static uint64_t power_from(uint64_t n) {
    uint64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static dpr_axes_lanes lanes(uint64_t count, uint64_t step) {
    const uint32_t n = (uint32_t)most(count, 1), s = (uint32_t)most(step, 1);
    return (dpr_axes_lanes){n, s, (65536 + n - 1) / n, (65536 + s - 1) / s};
}

/* Turns an axis round whose stride is negative. */
static void flip(dpr_axes_axis *axis, lists *all) {
    if (axis->in >= 0 || axis->extent.n == 0)
        return;
    all->in_first += (int64_t)(axis->extent.n - 1) * axis->in;
    all->out_first += (int64_t)(axis->extent.n - 1) * axis->out;
    axis->in = -axis->in;
    axis->out = -axis->out;
}

static int is_nearer(const dpr_axes_axis *a, const dpr_axes_axis *b) {
    return a->in != 0 && (b->in == 0 || llabs(a->in) < llabs(b->in));
}

static void list_axes(const dpr_run *run, lists *all) {
    const dpr_axes_layout *at = run->axes;
    const int64_t in = (int64_t)dpr_dtypes[run->key.f.dtype].size;
    const int64_t out = (int64_t)dpr_pair_size(dpr_key_op(&run->key), dpr_key_dtype(&run->key));
    const int seeks_index = dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX;
    uint64_t weight = 1;
    *all = (lists){.reduced = at->reduced, .element = (uint64_t)in};
    for (int d = 0; d < at->kept; d++) {
        if (at->keep[d].extent == 1)
            continue;
        dpr_axes_axis *axis = &all->keep[all->kept++];
        *axis = (dpr_axes_axis){divisor(at->keep[d].extent), 0, at->keep[d].in * in, at->keep[d].out * out};
        flip(axis, all);
    }
    for (int d = at->reduced - 1; d >= 0; d--) {
        all->reduce[d] = (dpr_axes_axis){divisor(at->reduce[d].extent), weight, at->reduce[d].in * in, 0};
        if (!seeks_index)
            flip(&all->reduce[d], all);
        weight *= at->reduce[d].extent;
    }
    for (int d = 0; d + 1 < at->reduced; d++)
        if (is_nearer(&all->reduce[d], &all->reduce[at->reduced - 1])) {
            const dpr_axes_axis nearer = all->reduce[d];
            all->reduce[d] = all->reduce[at->reduced - 1];
            all->reduce[at->reduced - 1] = nearer;
        }
    all->base = (uintptr_t)run->in + (uintptr_t)all->in_first;
}

static dpr_axes_axis kept_axis(const lists *all, int from_last) {
    const dpr_axes_axis none = {{1, UINT64_MAX}, 0, 0, 0};
    return all->kept > from_last ? all->keep[all->kept - 1 - from_last] : none;
}

/* Whether the base and all strides are multiples of `bytes`, except those of the innermost kept axis and of the
 * innermost reduced one, as asked. */
static int is_even(const lists *all, int but_kept, int but_reduced, int64_t bytes) {
    int even = 1;
    for (int d = 0; d < all->kept - but_kept; d++)
        even &= all->keep[d].in % bytes == 0;
    for (int d = 0; d < all->reduced - but_reduced; d++)
        even &= all->reduce[d].in % bytes == 0;
    return even;
}

/* ---- Tiles and parts, for all forms ---- */

/* Sets the kept axes, and a tile of `columns` units and `rows` indices of the next axis. */
static void set_tiles(const lists *all, const dpr_axes_axis *column_axis, uint64_t columns, uint64_t rows,
                      dpr_axes_plan *plan) {
    plan->column_axis = *column_axis;
    plan->row_axis = kept_axis(all, 1);
    plan->tile_columns = (uint32_t)columns;
    plan->tile_rows = (uint32_t)rows;
    plan->column_tiles = divisor(divide_up(plan->column_axis.extent.n, columns));
    plan->row_tiles = divisor(divide_up(plan->row_axis.extent.n, rows));
    uint64_t tiles = plan->column_tiles.n * plan->row_tiles.n;
    for (int d = 0; d < plan->other_count; d++) {
        plan->axes[d] = all->keep[d];
        tiles *= all->keep[d].extent.n;
    }
    plan->tiles = divisor(tiles);
}

/* The number of parts of each tile: if tiles are few, enough for all blocks, in rounds that are nearly full. */
static uint64_t count_parts(const dpr_axes_plan *plan, uint64_t element, uint64_t blocks) {
    const uint64_t results = dpr_axes_tile_results(plan, element), tiles = most(plan->tiles.n, 1);
    const uint64_t worth = plan->each * element * results / DPR_AXES_PART_BYTES;
    const uint64_t highest = least(worth, MOST_PARTIALS / results), lowest = most(blocks / tiles, 1);
    uint64_t best = 1;
    double best_share = 0;
    if (tiles >= 4 * blocks || tiles > DPR_AXES_TICKETS)
        return 1;
    for (uint64_t parts = lowest; parts <= 4 * lowest + 4; parts++) {
        const uint64_t n = most(least(parts, highest), 1), rounds = divide_up(tiles * n, blocks);
        const double share = (double)(tiles * n) / (double)(rounds * blocks);
        if (share > best_share + 0.05) {
            best = n;
            best_share = share;
        }
    }
    return best;
}

/* Divides the elements of a result among `parts` blocks, or fewer. */
static void set_parts(dpr_axes_plan *plan, uint64_t parts) {
    const uint64_t extent = plan->walk_axis.extent.n, count = plan->walk.count;
    const uint64_t walk_parts = least(parts, most(extent / (count * IN_FLIGHT), 1));
    const uint64_t rest_parts = least(parts / walk_parts, most(plan->rest_extent / plan->rest.count, 1));
    plan->walk_parts = (uint32_t)walk_parts;
    plan->parts = (uint32_t)(walk_parts * rest_parts);
    plan->walk_share = divide_up(divide_up(extent, walk_parts), count) * count;
    plan->rest_share = divide_up(plan->rest_extent, rest_parts);
}

/* Sets the reduced axes: axis `walk` of the list, and the rest. */
static void set_walk(const lists *all, int walk, dpr_axes_plan *plan) {
    plan->walk_axis = all->reduce[walk];
    plan->rest_extent = 1;
    for (int d = 0; d < all->reduced; d++) {
        if (d == walk)
            continue;
        plan->axes[plan->other_count + plan->rest_count++] = all->reduce[d];
        plan->rest_extent *= all->reduce[d].extent.n;
    }
}

/* The longest reduced axis but the innermost one; the innermost if there is no other. */
static int longest(const lists *all) {
    int at = all->reduced > 1 ? 0 : all->reduced - 1;
    for (int d = 1; d + 1 < all->reduced; d++)
        at = all->reduce[d].extent.n > all->reduce[at].extent.n ? d : at;
    return at;
}

/* ---- Stages: results of few elements, by way of shared memory ---- */

/* Bytes from the first element of some results to the end of the last one: `columns` neighbours in each of `rows`. */
static uint64_t span(const lists *all, uint64_t columns, uint64_t rows) {
    const dpr_axes_axis *walk = &all->reduce[0];
    return (columns - 1) * (uint64_t)kept_axis(all, 0).in + (rows - 1) * (uint64_t)kept_axis(all, 1).in
           + (walk->extent.n - 1) * (uint64_t)walk->in + all->element;
}

/* Whether at least half of the bytes are elements of `results` results. */
static int is_dense(const lists *all, uint64_t bytes, uint64_t results) {
    return bytes <= 2 * results * all->reduce[0].extent.n * all->element;
}

/* Chooses how many columns and rows a stage has, as one piece of the array. Returns 0 if it has too many gaps, or too
 * few results. */
static int fit_piece(const lists *all, uint64_t *columns, uint64_t *rows) {
    const dpr_axes_axis column = kept_axis(all, 0), row = kept_axis(all, 1);
    const uint64_t each = all->reduce[0].extent.n, bytes = each * all->element, line = (uint64_t)column.in;
    *columns = column.extent.n;
    *rows = 1;
    if ((double)(column.extent.n - 1) * (double)column.in < LONGEST_SPAN && span(all, *columns, 1) <= LONGEST_SPAN
        && is_dense(all, span(all, *columns, 1), *columns)) {
        const uint64_t pitch = (uint64_t)row.in;
        if (row.extent.n > 1 && pitch >= span(all, *columns, 1) && is_dense(all, pitch, *columns))
            *rows = least((DPR_AXES_STAGE_BYTES - span(all, *columns, 1)) / pitch + 1, row.extent.n);
        return all->kept == 1 || *rows > 1;
    }
    const uint64_t length = (each - 1) * (uint64_t)all->reduce[0].in + all->element;
    if (bytes > LONGEST_ROW || length > line || !is_dense(all, line, 1))
        return 0;
    *columns = least((DPR_AXES_STAGE_BYTES - length) / line + 1, column.extent.n);
    return 1;
}

/* The same as a piece for each element of a result. */
static int fit_segments(const lists *all, uint64_t *columns, uint64_t *rows) {
    const dpr_axes_axis column = kept_axis(all, 0), walk = all->reduce[0];
    const uint64_t most_bytes = DPR_AXES_STAGE_BYTES / most(walk.extent.n, 1) / VECTOR_BYTES * VECTOR_BYTES;
    if (walk.extent.n > MOST_SEGMENTS || column.in != (int64_t)all->element || walk.in % VECTOR_BYTES != 0
        || column.extent.n * all->element < LEAST_SEGMENT)
        return 0;
    const uint64_t fit = (most_bytes - VECTOR_BYTES) / all->element, line = LINE_BYTES / all->element;
    *columns = least(fit > line ? fit / line * line : fit, column.extent.n);
    *rows = 1;
    return 1;
}

/* Divides the run into stages, if they suit it. */
static int plan_stages(const lists *all, uint64_t outputs, uint64_t blocks, dpr_axes_plan *plan) {
    const dpr_axes_axis column = kept_axis(all, 0), *walk = &all->reduce[0];
    const uint64_t each = plan->each;
    uint64_t columns, rows;
    if (all->reduced != 1 || each == 0 || each * all->element > LONGEST_ROW || walk->in < 0 || column.in < 0
        || all->base % all->element != 0)
        return 0;
    plan->segments = 1;
    if (!fit_piece(all, &columns, &rows)) {
        if (!fit_segments(all, &columns, &rows))
            return 0;
        plan->segments = (uint32_t)each;
    }
    /* A small problem is divided among all blocks. */
    const uint64_t smallest = most(divide_up(LEAST_STAGE, each * all->element), 1);
    const uint64_t even = most(divide_up(outputs, blocks), smallest);
    if (rows > 1)
        rows = least(rows, divide_up(even, columns));
    else
        columns = least(columns, even);
    plan->form = DPR_AXES_STAGES;
    set_walk(all, 0, plan);
    set_tiles(all, &column, columns, rows, plan);
    plan->parts = 1;
    plan->of_columns = rows > 1 ? (uint32_t)(((UINT64_C(1) << 32) + columns - 1) / columns) : 0;
    plan->segment_pitch = (uint32_t)(divide_up(columns * all->element, VECTOR_BYTES) * VECTOR_BYTES + VECTOR_BYTES);
    plan->in_vectors = plan->segments == 1 && walk->in == (int64_t)all->element && is_even(all, 0, 1, VECTOR_BYTES)
                       && all->base % VECTOR_BYTES == 0 && each * all->element % VECTOR_BYTES == 0;
    const uint64_t units = plan->in_vectors ? each * all->element / VECTOR_BYTES : each, results = columns * rows;
    for (uint64_t n = 1; n < 32 && n < units && (2 * n * results <= DPR_AXES_THREADS || units > n * LANE_UNITS); n *= 2)
        plan->log_group++;
    return 1;
}

/* ---- Rows: lanes lie along the innermost reduced axis ---- */

/* Takes the innermost reduced axis by vectors, if that is possible. Edges are only for axes that threads walk along. */
static void take_vectors(lists *all, int may_have_edges, dpr_axes_plan *plan) {
    dpr_axes_axis *row = &all->reduce[all->reduced - 1];
    const uint64_t in_vector = VECTOR_BYTES / all->element;
    const uint64_t head = (0 - all->base) % VECTOR_BYTES / all->element;
    if (row->in != (int64_t)all->element || row->weight != 1 || all->base % all->element != 0
        || !is_even(all, 0, 1, VECTOR_BYTES) || row->extent.n < 4 * in_vector)
        return;
    const uint64_t tail = (row->extent.n - head) % in_vector;
    if (head + tail > 0 && !may_have_edges)
        return;
    plan->form = DPR_AXES_VECTORS;
    plan->head = (uint32_t)head;
    plan->tail = (uint32_t)tail;
    plan->row_length = row->extent.n;
    *row = (dpr_axes_axis){divisor((row->extent.n - head) / in_vector), in_vector, VECTOR_BYTES, 0};
}

static void plan_rows(lists *all, int by_elements, dpr_axes_plan *plan) {
    const int inner = all->reduced - 1, other = longest(all);
    const uint64_t length = all->reduce[inner].extent.n, in_vector = VECTOR_BYTES / all->element;
    const int walks_inner = other == inner || length >= all->reduce[other].extent.n * in_vector || length >= 4096;
    const dpr_axes_axis column = kept_axis(all, 0);
    plan->form = DPR_AXES_ELEMENTS;
    if (!by_elements)
        take_vectors(all, walks_inner, plan);
    set_walk(all, walks_inner ? inner : other, plan);
    const uint64_t units = all->reduce[inner].extent.n;
    const uint64_t fewest = by_elements ? 1 : plan->form == DPR_AXES_VECTORS ? 4 : 32;
    const uint64_t of_lane = by_elements ? MEASURED_BY_LANE : IN_FLIGHT;
    const uint64_t total = plan->walk_axis.extent.n * plan->rest_extent;
    uint64_t slices = least(most(power_from(divide_up(total, of_lane)), fewest), DPR_AXES_THREADS);
    slices = most(least(slices, power_from(total)), 1);
    uint64_t walk, rest;
    if (walks_inner) {
        const uint64_t wanted = least(most(power_from(divide_up(units, of_lane)), fewest), power_from(units));
        walk = most(least(wanted, slices), 1);
        rest = most(least(slices / walk, plan->rest_extent), 1);
    } else {
        rest = most(least(least(units, plan->rest_extent), slices), 1);
        walk = most(least(slices / rest, plan->walk_axis.extent.n), 1);
    }
    slices = walk * rest;
    const uint64_t columns = most(least(DPR_AXES_THREADS / slices, column.extent.n), 1);
    const uint64_t rows = most(least(DPR_AXES_THREADS / slices / columns, kept_axis(all, 1).extent.n), 1);
    plan->walk = lanes(walk, walks_inner ? 1 : rest);
    plan->rest = lanes(rest, walks_inner ? walk : 1);
    plan->slice = lanes(slices, 1);
    plan->x = lanes(columns, slices);
    plan->y = lanes(rows, slices * columns);
    set_tiles(all, &column, columns, rows, plan);
}

/* ---- Columns: lanes lie along the innermost kept axis ---- */

/* Takes the innermost kept axis by words, if that is possible. */
static void take_words(const lists *all, dpr_axes_axis *column, dpr_axes_plan *plan) {
    const uint64_t in_word = all->element < 4 ? 4 / all->element : 1;
    if (in_word == 1 || column->in != (int64_t)all->element || column->extent.n % in_word > 0 || all->base % 4 > 0
        || !is_even(all, 1, 0, 4))
        return;
    plan->form = DPR_AXES_WORDS;
    column->extent = divisor(column->extent.n / in_word);
    column->in = 4;
}

static void plan_columns(const lists *all, int by_elements, dpr_axes_plan *plan) {
    const int inner = all->reduced - 1, other = longest(all);
    const uint64_t length = all->reduce[inner].extent.n;
    const int walks_inner = length >= NARROW || length >= all->reduce[other].extent.n;
    dpr_axes_axis column = kept_axis(all, 0);
    plan->form = DPR_AXES_ELEMENTS;
    if (!by_elements)
        take_words(all, &column, plan);
    set_walk(all, walks_inner ? inner : other, plan);
    /* Few elements of a result are better read by few threads, and more results by a block. */
    const uint64_t wanted = most(divide_up(plan->each, IN_FLIGHT), 1);
    const uint64_t extent = most(column.extent.n, 1), narrow = least(extent, NARROW);
    const uint64_t wide = most(DPR_AXES_THREADS / least(wanted, DPR_AXES_THREADS / narrow), narrow);
    const uint64_t tiles = divide_up(extent, least(wide, extent));
    const uint64_t even = divide_up(divide_up(extent, tiles), SECTOR_UNITS) * SECTOR_UNITS;
    const uint64_t columns = least(least(even, extent), DPR_AXES_THREADS);
    const uint64_t free = DPR_AXES_THREADS / columns, rows = least(most(free / wanted, 1), kept_axis(all, 1).extent.n);
    const uint64_t slices = least(free / rows, wanted);
    const uint64_t walk = most(least(slices, plan->walk_axis.extent.n), 1);
    const uint64_t rest = most(least(slices / walk, plan->rest_extent), 1);
    plan->x = lanes(columns, 1);
    plan->walk = lanes(walk, columns);
    plan->rest = lanes(rest, columns * walk);
    plan->slice = lanes(walk * rest, columns);
    plan->y = lanes(rows, columns * walk * rest);
    set_tiles(all, &column, columns, rows, plan);
}

void dpr_axes_divide(const dpr_run *run, uint64_t blocks, dpr_axes_plan *plan) {
    const int by_elements = dpr_ops[run->key.f.op].fused_only;
    lists all;
    list_axes(run, &all);
    *plan = (dpr_axes_plan){.each = run->axes->each, .in_first = all.in_first, .out_first = all.out_first};
    plan->other_count = all.kept > 2 ? all.kept - 2 : 0;
    const dpr_axes_axis column = kept_axis(&all, 0);
    if (!by_elements && plan_stages(&all, run->axes->outputs, blocks, plan))
        return;
    if (column.extent.n == 1 || is_nearer(&all.reduce[all.reduced - 1], &column))
        plan_rows(&all, by_elements, plan);
    else
        plan_columns(&all, by_elements, plan);
    plan->walk_lanes = divisor(plan->walk.count);
    set_parts(plan, count_parts(plan, all.element, blocks));
}

/* Adds the axis to what lies between the first and the last element, in elements: `low` before the run's place, and
 * `span` in all, up to the number of elements. */
static void span_axis(const dpr_axis *axis, uint64_t elements, int64_t *low, uint64_t *span) {
    const uint64_t steps = axis->extent - 1, step = (uint64_t)llabs(axis->in);
    if (step > 0 && steps > elements / step) /* the product may be too large for the type */
        *span = elements + 1;
    if (*span > elements)
        return;
    *span += steps * step;
    *low += axis->in < 0 ? (int64_t)(steps * step) : 0;
}

dpr_axes_block dpr_axes_find_block(const dpr_run *run) {
    const dpr_axes_layout *at = run->axes;
    const uint64_t elements = at->outputs * at->each, size = dpr_dtypes[run->key.f.dtype].size;
    uint64_t span = 1;
    int64_t low = 0;
    if (elements == 0)
        return (dpr_axes_block){run->in, 0};
    for (int d = 0; d < at->kept; d++)
        span_axis(&at->keep[d], elements, &low, &span);
    for (int d = 0; d < at->reduced; d++)
        span_axis(&at->reduce[d], elements, &low, &span);
    if (span > elements)
        return (dpr_axes_block){run->in, 0};
    return (dpr_axes_block){(const char *)run->in - low * (int64_t)size, span * size};
}
