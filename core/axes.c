#include "axes.h"

#include <stdlib.h>

#include "element.h"
#include "means.h"

enum {
    VECTOR_BYTES = 16,
    WARP = 32,
    GROUP_RESULTS = 16, /* results that a group has, if there are enough: what a block does first is spread over them */
    LONG_ROW = 64,      /* elements of a row that are not read one by one, if there are vectors between its edges */
    SHORT_COLUMN = 8,   /* elements of a column that one lane reads one by one although there are units, at most */
    LONG_COLUMN = 32,   /* the same where there are none; with more, sums of F32 would lose accuracy */
    IN_FLIGHT = 16,     /* units that a thread should have to read, if there are enough: loads in flight */
    LANE_BYTES = 64,    /* the same in bytes, where threads of the device would have nothing to do */
    MEASURED_BY_LANE = 32, /* elements that a lane should read where merging lanes takes long (axes_measures.cu) */
    NARROW = 64,           /* columns of a tile at least, if there are enough: a warp reads whole lines of 128 bytes */
    NARROW_BYTES = 256,    /* the same for units of several results, where there would be fewer than ENOUGH_TILES */
    ENOUGH_TILES = 128,    /* with fewer, many blocks would have to meet for each */
    SECTOR_UNITS = 8,      /* widths of tiles are multiples of this */
    ROUND_PARTS = 64,      /* DPR_AXES_PART_BYTES that each block must still have to read if another round shall pay */
    MOST_ROUNDS = 4,       /* the device reads faster while some blocks start as others end, but not with ever more */
    MOST_PARTIALS = 32768  /* partial results of a tile, which one block combines */
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
    uintptr_t base;                      /* address of the element with all indices 0 */
    uint64_t element, elements, outputs; /* bytes of one; their number; results */
    dpr_axes_blocks blocks;
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
    *all = (lists){
        .reduced = at->reduced, .element = (uint64_t)in, .elements = at->outputs * at->each, .outputs = at->outputs};
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

/* Whether lanes lie along the innermost reduced axis. */
static int lies_in_rows(const lists *all) {
    const dpr_axes_axis column = kept_axis(all, 0);
    return column.extent.n == 1 || is_nearer(&all->reduce[all->reduced - 1], &column);
}

/* Whether neighbouring results can be read by units, and every thread of the device has one. */
static int has_units(const lists *all) {
    const dpr_axes_axis column = kept_axis(all, 0);
    const uint64_t in_unit = DPR_AXES_UNIT_RESULTS(all->element), bytes = in_unit * all->element;
    return in_unit > 1 && all->elements / in_unit >= all->blocks.of_columns * DPR_AXES_THREADS
           && column.in == (int64_t)all->element && column.extent.n % in_unit == 0 && all->base % bytes == 0
           && is_even(all, 1, 0, (int64_t)bytes);
}

/* ---- How much a thread reads ---- */

/* Bytes of a unit. */
static uint64_t unit_bytes(const lists *all, const dpr_axes_plan *plan) {
    return plan->form == DPR_AXES_VECTORS ? VECTOR_BYTES : all->element * plan->in_unit;
}

/* Units that are worth a thread of their own where the device has threads left over. */
static uint64_t least_units(const lists *all, const dpr_axes_plan *plan) {
    return least(LANE_BYTES / unit_bytes(all, plan), IN_FLIGHT);
}

/* The blocks that the device holds at a time. */
static uint64_t blocks_of(const lists *all, const dpr_axes_plan *plan) {
    return plan->form == DPR_AXES_COLUMNS ? all->blocks.of_columns : all->blocks.others;
}

/* Doubles the number of threads for each unit of results as long as threads of the device are left over, up to
 * `most_threads`. */
static uint64_t spread(const lists *all, const dpr_axes_plan *plan, uint64_t threads, uint64_t most_threads) {
    const uint64_t units = all->outputs / plan->in_unit, most_units = blocks_of(all, plan) * DPR_AXES_THREADS;
    while (2 * threads <= most_threads && 2 * threads * units <= most_units)
        threads *= 2;
    return threads;
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
static uint64_t count_parts(const lists *all, const dpr_axes_plan *plan) {
    const uint64_t results = dpr_axes_tile_results(plan), tiles = most(plan->tiles.n, 1), blocks = blocks_of(all, plan);
    uint64_t best = 1;
    double best_share = 0;
    if (tiles >= 4 * blocks || tiles > DPR_AXES_TICKETS)
        return 1;
    const uint64_t worth = plan->each * all->element * results / DPR_AXES_PART_BYTES;
    const uint64_t highest = least(worth, MOST_PARTIALS / results);
    const uint64_t wanted_rounds = least(most(worth * tiles / (blocks * ROUND_PARTS), 1), MOST_ROUNDS);
    const uint64_t lowest = most(blocks * wanted_rounds / tiles, 1);
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

/* Divides the elements of a result among `parts` blocks, or fewer, so that a thread has `of_thread` units. */
static void set_parts(dpr_axes_plan *plan, uint64_t of_thread, uint64_t parts) {
    const uint64_t extent = plan->walk_axis.extent.n, count = plan->walk.count;
    /* Blocks do not meet where a thread has less than 2 * IN_FLIGHT units of the walk. */
    const uint64_t walk_parts =
        extent < 2 * count * IN_FLIGHT ? 1 : least(parts, most(extent / (count * of_thread), 1));
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

/* ---- Groups: results of few elements ---- */

/* How a group goes on by `results` of the tile. */
static dpr_axes_step group_step(const dpr_axes_plan *plan, uint64_t results) {
    const uint64_t columns = plan->tile_rows > 1 ? plan->tile_columns : UINT32_MAX;
    const int64_t rows = (int64_t)(results / columns), rest = (int64_t)(results % columns);
    const dpr_axes_axis *column = &plan->column_axis, *row = &plan->row_axis;
    return (dpr_axes_step){
        .columns = (uint32_t)rest,
        .all_columns = (uint32_t)columns,
        .in = rows * row->in + rest * column->in,
        .out = rows * row->out + rest * column->out,
        .wrap_in = row->in - (int64_t)plan->tile_columns * column->in,
        .wrap_out = row->out - (int64_t)plan->tile_columns * column->out,
    };
}

/* Lanes for each result. In a column it is one, and neighbouring lanes have neighbouring results. In a row it is one
 * for each vector, or for up to DPR_AXES_GROUP_UNITS elements; more if results are few. Returns 0 if groups do not suit
 * the run. */
static uint64_t lanes_of_result(const lists *all, const dpr_axes_plan *plan) {
    if (!lies_in_rows(all)) {
        const uint64_t longest_column = has_units(all) ? SHORT_COLUMN : LONG_COLUMN;
        const int all_threads = all->outputs >= all->blocks.others * DPR_AXES_THREADS;
        return plan->each <= DPR_AXES_GROUP_UNITS || (plan->each <= longest_column && all_threads);
    }
    if (!plan->in_vectors && all->reduce[0].in == (int64_t)all->element && plan->each >= LONG_ROW)
        return 0;
    const uint64_t group = power_from(divide_up(plan->units, plan->in_vectors ? 1 : DPR_AXES_GROUP_UNITS));
    return group <= WARP ? spread(all, plan, group, least(power_from(plan->units), WARP)) : 0;
}

/* Divides the run into groups of lanes, if they suit it. */
static int plan_groups(const lists *all, dpr_axes_plan *plan) {
    const dpr_axes_axis column = kept_axis(all, 0), *walk = &all->reduce[0];
    const uint64_t each = plan->each, in_vector = VECTOR_BYTES / all->element;
    if (all->reduced != 1 || all->elements == 0 || each > WARP * most(in_vector, DPR_AXES_GROUP_UNITS)
        || all->base % all->element != 0)
        return 0;
    plan->in_vectors = lies_in_rows(all) && walk->in == (int64_t)all->element && is_even(all, 0, 1, VECTOR_BYTES)
                       && all->base % VECTOR_BYTES == 0 && each % in_vector == 0;
    plan->units = (uint32_t)(plan->in_vectors ? each / in_vector : each);
    const uint64_t group = lanes_of_result(all, plan);
    if (group == 0)
        return 0;
    const uint64_t results = DPR_AXES_THREADS / group;
    const uint64_t even =
        least(GROUP_RESULTS * results, most(divide_up(all->outputs, most(all->blocks.others, 1)), results));
    const uint64_t columns = most(least(column.extent.n, even), 1);
    const uint64_t rows = columns < column.extent.n ? 1 : least(kept_axis(all, 1).extent.n, most(even / columns, 1));
    plan->form = DPR_AXES_GROUPS;
    plan->parts = 1;
    for (uint64_t n = group; n > 1; n /= 2)
        plan->log_group++;
    set_walk(all, 0, plan);
    set_tiles(all, &column, columns, rows, plan);
    plan->column_reciprocal = rows > 1 ? (uint32_t)(((UINT64_C(1) << 32) + columns - 1) / columns) : 0;
    plan->step = group_step(plan, results);
    return 1;
}

/* ---- Rows: lanes lie along the innermost reduced axis ---- */

/* Takes the innermost reduced axis by vectors, if that is possible. Edges are only for axes that threads walk along. */
static void take_vectors(lists *all, int may_have_edges, dpr_axes_plan *plan) {
    dpr_axes_axis *row = &all->reduce[all->reduced - 1];
    const uint64_t in_vector = VECTOR_BYTES / all->element;
    const int has_edges =
        !is_even(all, 0, 1, VECTOR_BYTES) || all->base % VECTOR_BYTES > 0 || row->extent.n % in_vector > 0;
    if (row->in != (int64_t)all->element || row->weight != 1 || all->base % all->element != 0
        || row->extent.n < 4 * in_vector || (has_edges && !may_have_edges))
        return;
    plan->form = DPR_AXES_VECTORS;
    plan->has_edges = (uint32_t)has_edges;
    plan->row_length = row->extent.n;
    *row = (dpr_axes_axis){divisor(row->extent.n / in_vector), in_vector, VECTOR_BYTES, 0};
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
    const uint64_t total = plan->walk_axis.extent.n * plan->rest_extent;
    uint64_t of_lane = by_elements ? MEASURED_BY_LANE : IN_FLIGHT;
    uint64_t slices = least(most(power_from(divide_up(total, of_lane)), fewest), DPR_AXES_THREADS);
    if (!by_elements) {
        slices = spread(all, plan, slices, least(total / least_units(all, plan), DPR_AXES_THREADS));
        of_lane = least(of_lane, most(total / slices, 1));
    }
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

/* The least units along a tile, if there are enough. In wide tiles, fewer threads share a result. */
static uint64_t narrowest(const lists *all, const dpr_axes_plan *plan) {
    uint64_t units = NARROW;
    while (plan->form == DPR_AXES_COLUMNS && units * unit_bytes(all, plan) > NARROW_BYTES
           && all->outputs / plan->in_unit / units < ENOUGH_TILES)
        units /= 2;
    return units;
}

/* Takes the innermost kept axis by units of several results. */
static void take_units(const lists *all, dpr_axes_axis *column, dpr_axes_plan *plan) {
    plan->form = DPR_AXES_COLUMNS;
    plan->in_unit = DPR_AXES_UNIT_RESULTS((uint32_t)all->element);
    column->extent = divisor(column->extent.n / plan->in_unit);
    column->in = (int64_t)(plan->in_unit * all->element);
}

static void plan_columns(lists *all, int by_elements, dpr_axes_plan *plan) {
    const int inner = all->reduced - 1, other = longest(all);
    const uint64_t length = all->reduce[inner].extent.n;
    const int walks_inner = length >= NARROW || length >= all->reduce[other].extent.n;
    dpr_axes_axis column = kept_axis(all, 0);
    plan->form = DPR_AXES_ELEMENTS;
    if (!by_elements && has_units(all))
        take_units(all, &column, plan);
    set_walk(all, walks_inner ? inner : other, plan);
    /* Few elements of a result are better read by few threads, and more results by a block. */
    const uint64_t extent = most(column.extent.n, 1), narrow = least(extent, narrowest(all, plan));
    uint64_t wanted = most(divide_up(plan->each, IN_FLIGHT), 1);
    if (!by_elements)
        wanted = spread(all, plan, wanted, plan->each / least_units(all, plan));
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

void dpr_axes_divide(const dpr_run *run, dpr_axes_blocks blocks, dpr_axes_plan *plan) {
    const int by_elements = dpr_runs_as_measure(&run->key);
    lists all;
    list_axes(run, &all);
    all.blocks = blocks;
    *plan =
        (dpr_axes_plan){.in_unit = 1, .each = run->axes->each, .in_first = all.in_first, .out_first = all.out_first};
    plan->other_count = all.kept > 2 ? all.kept - 2 : 0;
    if (!by_elements && plan_groups(&all, plan))
        return;
    (lies_in_rows(&all) ? plan_rows : plan_columns)(&all, by_elements, plan);
    plan->walk_lanes = divisor(plan->walk.count);
    set_parts(plan, by_elements ? IN_FLIGHT : least_units(&all, plan), count_parts(&all, plan));
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
