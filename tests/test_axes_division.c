/* How axes.tiles divides arrays among threads and blocks (axes.h): every element of every result is read once. The
 * threads of its kernels are imitated here, with the addresses and indices that they calculate. */
#include <stdlib.h>
#include <string.h>

#include "axes.h"
#include "data.h"
#include "support.h"

enum { MOST_READS = 1 << 20, ADDRESS = 1 << 20 };

/* A read: of an element, for a result, as number `index` of its elements. Places are in bytes. */
typedef struct read {
    int64_t in, out;
    uint64_t index;
} read;

typedef struct reads {
    size_t count;
    read *list;
} reads;

typedef struct scene {
    dpr_run run;
    dpr_axes_layout layout;
    dpr_axes_plan plan;
    int64_t element, result; /* bytes */
    int seeks_index;
    reads planned, wanted;
} scene;

static void note(reads *to, int64_t in, int64_t out, uint64_t index) {
    if (to->count < MOST_READS)
        to->list[to->count] = (read){in, out, index};
    to->count++;
}

static int compare(const void *a, const void *b) {
    const read *x = a, *y = b;
    if (x->out != y->out)
        return x->out < y->out ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->in > y->in) - (x->in < y->in);
}

/* ---- What the kernels do ---- */

static void add_along(const dpr_axes_axis *axes, int n, uint64_t i, read *at) {
    for (int d = n - 1; d >= 0; d--) {
        const uint64_t k = i % axes[d].extent.n;
        i /= axes[d].extent.n;
        at->in += (int64_t)k * axes[d].in;
        at->out += (int64_t)k * axes[d].out;
        at->index += k * axes[d].weight;
    }
}

static uint32_t lane_of(dpr_axes_lanes lanes, uint32_t thread) {
    const uint32_t i = thread * lanes.of_step >> 16, lane = i - (i * lanes.of_count >> 16) * lanes.count;
    EXPECT_EQ_U64(thread / lanes.step % lanes.count, lane);
    return lane;
}

/* A tile: its first indices along its two axes, and the place of this element and result. */
typedef struct tile {
    uint64_t column, row;
    read first;
} tile;

static tile tile_at(const dpr_axes_plan *p, uint64_t number) {
    const uint64_t rows = number / p->column_tiles.n;
    tile t = {number % p->column_tiles.n * p->tile_columns, rows % p->row_tiles.n * p->tile_rows, {0, 0, 0}};
    t.first = (read){p->in_first, p->out_first, 0};
    add_along(p->axes, p->other_count, rows / p->row_tiles.n, &t.first);
    add_along(&p->column_axis, 1, t.column, &t.first);
    add_along(&p->row_axis, 1, t.row, &t.first);
    return t;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* A result of a group: its place, and its column in the tile. */
typedef struct group_place {
    read first;
    uint32_t column;
} group_place;

static void go_on(const dpr_axes_step *step, group_place *at) {
    at->first.in += step->in;
    at->first.out += step->out;
    at->column += step->columns;
    if (at->column < step->all_columns)
        return;
    at->first.in += step->wrap_in;
    at->first.out += step->wrap_out;
    at->column -= step->all_columns;
}

/* What the lanes of a group read of one result. */
static void read_of_group(scene *s, const read *first) {
    const dpr_axes_plan *p = &s->plan;
    const int64_t in_unit = p->in_vectors ? 16 / s->element : 1, distance = p->in_vectors ? 16 : p->walk_axis.in;
    const uint32_t lanes = 1U << p->log_group;
    EXPECT_TRUE(!p->in_vectors || (uintptr_t)first->in % 16 == (0 - (uintptr_t)s->run.in) % 16);
    for (uint32_t lane = 0; lane < lanes; lane++)
        for (uint32_t u = lane; u < p->units; u += p->in_vectors ? p->units : lanes)
            for (int64_t e = 0; e < in_unit; e++)
                note(&s->planned, first->in + u * distance + e * s->element, first->out,
                     u * (uint64_t)in_unit + (uint64_t)e);
}

static void read_groups(scene *s, const tile *t) {
    const dpr_axes_plan *p = &s->plan;
    const uint64_t columns = least(p->column_axis.extent.n - t->column, p->tile_columns),
                   rows = least(p->row_axis.extent.n - t->row, p->tile_rows);
    const uint32_t groups = DPR_AXES_THREADS >> p->log_group;
    for (uint32_t group = 0; group < groups; group++) {
        const uint64_t row = p->tile_rows > 1 ? (uint64_t)group * p->column_reciprocal >> 32 : 0;
        group_place at = {t->first, (uint32_t)(group - row * p->tile_columns)};
        EXPECT_TRUE(p->tile_rows == 1 || row == group / p->tile_columns);
        add_along(&p->column_axis, 1, at.column, &at.first);
        add_along(&p->row_axis, 1, row, &at.first);
        for (uint64_t i = group; i < columns * rows; i += groups, go_on(&p->step, &at))
            read_of_group(s, &at.first);
    }
}

/* What a thread reads of the row of a result that begins at `row`, in the walk's part `part`. */
static void read_walk(scene *s, read row, uint64_t part, uint32_t lane, int64_t elements) {
    const dpr_axes_plan *p = &s->plan;
    const uint64_t address = (uintptr_t)s->run.in + (uint64_t)row.in, in_vector = (uint64_t)(16 / s->element);
    const uint64_t head = p->has_edges ? (0 - address) % 16 / (uint64_t)s->element : 0;
    const uint64_t extent = p->has_edges ? (p->row_length - head) / in_vector : p->walk_axis.extent.n;
    const uint64_t begin = part * p->walk_share, end = least(begin + p->walk_share, extent);
    for (uint64_t k = begin + lane; k < end; k += p->walk.count)
        for (int64_t e = 0; e < elements; e++)
            note(&s->planned, row.in + (int64_t)k * p->walk_axis.in + ((int64_t)head + e) * s->element, row.out,
                 row.index + k * p->walk_axis.weight + head + (uint64_t)e);
    if (!p->has_edges || part > 0)
        return;
    const uint64_t edges = p->row_length - extent * in_vector;
    for (uint64_t i = lane; i < edges; i += p->walk.count) {
        const uint64_t edge = i < head ? i : p->row_length - edges + i;
        note(&s->planned, row.in + (int64_t)edge * s->element, row.out, row.index + edge);
    }
}

static void read_part(scene *s, const tile *t, uint64_t part, uint32_t thread) {
    const dpr_axes_plan *p = &s->plan;
    const int64_t of_unit = p->in_unit, of_vector = p->form == DPR_AXES_VECTORS ? 16 / s->element : 1;
    const uint32_t x = lane_of(p->x, thread), y = lane_of(p->y, thread);
    if (t->column + x >= p->column_axis.extent.n || t->row + y >= p->row_axis.extent.n)
        return;
    const uint64_t begin = part / p->walk_parts * p->rest_share, end = least(begin + p->rest_share, p->rest_extent);
    for (int64_t e = 0; e < of_unit; e++)
        for (uint64_t i = begin + lane_of(p->rest, thread); i < end; i += p->rest.count) {
            read row = {t->first.in + x * p->column_axis.in + y * p->row_axis.in + e * s->element,
                        t->first.out + (int64_t)(t->column * (uint64_t)(of_unit - 1)) * p->column_axis.out
                            + (x * of_unit + e) * p->column_axis.out + y * p->row_axis.out,
                        0};
            add_along(p->axes + p->other_count, p->rest_count, i, &row);
            read_walk(s, row, part % p->walk_parts, lane_of(p->walk, thread), of_vector);
        }
}

static void read_all(scene *s) {
    const dpr_axes_plan *p = &s->plan;
    for (uint64_t i = 0; i < p->tiles.n; i++) {
        const tile t = tile_at(p, i);
        if (p->form == DPR_AXES_GROUPS) {
            read_groups(s, &t);
            continue;
        }
        for (uint64_t part = 0; part < p->parts; part++)
            for (uint32_t thread = 0; thread < p->x.count * p->y.count * p->slice.count; thread++)
                read_part(s, &t, part, thread);
    }
}

/* ---- What is to be read ---- */

static void list_wanted(scene *s) {
    const dpr_axes_layout *at = &s->layout;
    for (uint64_t o = 0; o < at->outputs; o++)
        for (uint64_t i = 0; i < at->each; i++) {
            int64_t in = 0, out = 0;
            uint64_t left = o;
            for (int d = at->kept - 1; d >= 0; left /= at->keep[d].extent, d--) {
                in += (int64_t)(left % at->keep[d].extent) * at->keep[d].in;
                out += (int64_t)(left % at->keep[d].extent) * at->keep[d].out;
            }
            left = i;
            for (int d = at->reduced - 1; d >= 0; left /= at->reduce[d].extent, d--)
                in += (int64_t)(left % at->reduce[d].extent) * at->reduce[d].in;
            note(&s->wanted, in * s->element, out * s->result, i);
        }
}

static void check_limits(const scene *s) {
    const dpr_axes_plan *p = &s->plan;
    EXPECT_TRUE(p->parts == 1 || p->tiles.n <= DPR_AXES_TICKETS);
    EXPECT_TRUE(p->parts >= 1 && p->tiles.n >= 1);
    if (p->form == DPR_AXES_GROUPS) {
        EXPECT_TRUE(p->log_group <= 5 && (!p->in_vectors || p->units <= 1U << p->log_group));
        return;
    }
    EXPECT_EQ_U64(p->slice.count, p->walk.count * p->rest.count);
    EXPECT_TRUE(p->x.count * p->y.count * p->slice.count <= DPR_AXES_THREADS);
    EXPECT_EQ_U64(p->tile_columns, p->x.count);
    EXPECT_EQ_U64(p->tile_rows, p->y.count);
}

static void expect_divided(scene *s, uint64_t blocks) {
    reads *got = &s->planned, *wanted = &s->wanted;
    got->count = wanted->count = 0;
    s->run.axes = &s->layout;
    dpr_axes_divide(&s->run, (dpr_axes_blocks){(blocks + 1) / 2, blocks}, &s->plan);
    check_limits(s);
    read_all(s);
    list_wanted(s);
    /* Only results that are indices depend on which element is which. */
    for (size_t i = 0; !s->seeks_index && i < got->count && i < MOST_READS; i++)
        got->list[i].index = 0;
    for (size_t i = 0; !s->seeks_index && i < wanted->count && i < MOST_READS; i++)
        wanted->list[i].index = 0;
    int same = got->count == wanted->count && got->count <= MOST_READS;
    if (same) {
        qsort(got->list, got->count, sizeof *got->list, compare);
        qsort(wanted->list, got->count, sizeof *got->list, compare);
    }
    for (size_t i = 0; same && i < got->count; i++)
        same = compare(&got->list[i], &wanted->list[i]) == 0;
    EXPECT_THAT(same,
                "form %u of %d kept and %d reduced axes, %llu results of %llu: %zu reads instead of %zu, or others",
                s->plan.form, s->layout.kept, s->layout.reduced, (unsigned long long)s->layout.outputs,
                (unsigned long long)s->layout.each, got->count, wanted->count);
}

/* ---- Shapes ---- */

static void set_pair(scene *s, dpr_op op, dpr_dtype dtype) {
    s->run.key.f.op = DPR_ROW(op);
    s->run.key.f.dtype = DPR_ROW(dtype);
    s->element = (int64_t)dpr_dtype_size(dtype);
    s->seeks_index = op == DPR_ARGMAX;
    s->result = (int64_t)(dpr_result_values(op) * dpr_dtype_size(dpr_result_dtype(op, dtype)));
}

static void start(scene *s) {
    memset(s, 0, sizeof *s);
    s->planned.list = malloc(MOST_READS * sizeof(read));
    s->wanted.list = malloc(MOST_READS * sizeof(read));
    s->run.in = (const void *)ADDRESS; /* never read */
}

static void end(scene *s) {
    free(s->planned.list);
    free(s->wanted.list);
}

/* Adds axes in an order of their strides that chance decides, with gaps, turned round, and with strides of 0. */
static void choose_layout(scene *s, uint64_t most, uint64_t *seed) {
    dpr_axes_layout *at = &s->layout;
    const uint32_t dimensions = 1 + data_below(seed, data_below(seed, 4) ? 3 : DPR_MOST_DIMENSIONS);
    const int gaps = data_below(seed, 2) == 0, turns = data_below(seed, 3) == 0;
    int64_t in = data_below(seed, 8) ? 1 : 2, out = 1;
    uint64_t left = most;
    memset(at, 0, sizeof *at);
    at->outputs = at->each = 1;
    for (uint32_t d = 0; d < dimensions; d++) {
        const uint64_t limit = data_below(seed, 2) ? 40 : left, n = 1 + data_below(seed, (uint32_t)least(limit, left));
        const int kept = data_below(seed, 2) == 0, back = turns && data_below(seed, 2);
        dpr_axis *axis = kept ? &at->keep[at->kept++] : &at->reduce[at->reduced++];
        *axis = (dpr_axis){n, data_below(seed, 20) ? (back ? -in : in) : 0, kept ? (back ? -out : out) : 0};
        *(kept ? &at->outputs : &at->each) *= n;
        const int overlaps = data_below(seed, 16) == 0; /* results share elements */
        in = in * (int64_t)(overlaps ? 1 : n)
             + (gaps ? (int64_t)(data_below(seed, 2) ? data_below(seed, 9) : data_below(seed, 5) * 16) : 0);
        out = kept ? out * (int64_t)n + data_below(seed, 2) : out;
        left = left / n > 0 ? left / n : 1;
    }
    if (at->reduced == 0)
        at->reduce[at->reduced++] = (dpr_axis){1, 1, 0};
    /* The list runs from the innermost axis outwards; layouts begin with the outermost. */
    for (int i = 0; data_below(seed, 4) && i < at->kept / 2; i++) {
        const dpr_axis swapped = at->keep[i];
        at->keep[i] = at->keep[at->kept - 1 - i];
        at->keep[at->kept - 1 - i] = swapped;
    }
    for (int i = 0; data_below(seed, 4) && i < at->reduced / 2; i++) {
        const dpr_axis swapped = at->reduce[i];
        at->reduce[i] = at->reduce[at->reduced - 1 - i];
        at->reduce[at->reduced - 1 - i] = swapped;
    }
}

TEST(AxesDivision, every_element_is_read_once) {
    static const dpr_dtype types[] = {DPR_U8, DPR_F16, DPR_F32, DPR_F64, DPR_C128};
    int forms[4] = {0}, rows = 0, parts = 0, edges = 0;
    uint64_t seed = 20;
    scene s;
    start(&s);
    for (int round = 0; round < 3000; round++) {
        const int seeks_index = data_below(&seed, 3) == 0;
        const dpr_dtype dtype = types[data_below(&seed, seeks_index ? 4 : 5)];
        set_pair(&s, seeks_index ? DPR_ARGMAX : DPR_SUM, dtype);
        const uint32_t step = dtype == DPR_C128 ? 8 : (uint32_t)s.element;
        s.run.in = (const void *)(uintptr_t)(ADDRESS + data_below(&seed, 2) * data_below(&seed, 40) * step);
        choose_layout(&s, round % 20 == 0 ? 200000 : 10000, &seed);
        expect_divided(&s, UINT64_C(1) << data_below(&seed, 11));
        forms[s.plan.form]++;
        rows += s.plan.form == DPR_AXES_GROUPS && s.plan.tile_rows > 1;
        parts += s.plan.parts > 1;
        edges += s.plan.has_edges > 0;
    }
    for (int form = 0; form < 4; form++)
        EXPECT_THAT(forms[form] > 10, "form %d was divided %d times", form, forms[form]);
    EXPECT_THAT(rows > 10 && parts > 10 && edges > 10, "%d divisions with rows, %d with parts, %d with edges", rows,
                parts, edges);
    end(&s);
}

/* Operations that are FUSED (ops.def) have kernels that read by elements alone. */
TEST(AxesDivision, measures_are_read_by_elements) {
    static const dpr_op ops[] = {DPR_VAR, DPR_MINMAX};
    static const dpr_dtype types[] = {DPR_U8, DPR_F16, DPR_F64};
    int parts = 0;
    uint64_t seed = 21;
    scene s;
    start(&s);
    for (int round = 0; round < 600; round++) {
        set_pair(&s, ops[round % 2], types[round / 2 % 3]);
        choose_layout(&s, round % 20 == 0 ? 200000 : 10000, &seed);
        expect_divided(&s, UINT64_C(1) << data_below(&seed, 11));
        EXPECT_EQ_I64(DPR_AXES_ELEMENTS, s.plan.form);
        parts += s.plan.parts > 1;
    }
    EXPECT_TRUE(parts > 10);
    end(&s);
}

/* Results of no elements are written, too. */
TEST(AxesDivision, no_elements) {
    scene s;
    start(&s);
    set_pair(&s, DPR_SUM, DPR_F32);
    s.layout = (dpr_axes_layout){.kept = 1, .reduced = 2, .keep = {{1000, 0, 1}}, .outputs = 1000};
    s.layout.reduce[0] = (dpr_axis){0, 0, 0};
    s.layout.reduce[1] = (dpr_axis){5, 0, 0};
    expect_divided(&s, 256);
    EXPECT_TRUE(s.plan.tiles.n * s.plan.x.count * s.plan.y.count >= 1000);
    end(&s);
}

/* ---- The memory that has the elements ---- */

/* Returns whether there is a block. */
static int expect_block(scene *s) {
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    s->wanted.count = 0;
    s->run.axes = &s->layout;
    list_wanted(s);
    for (size_t i = 0; i < s->wanted.count; i++) {
        const int64_t in = s->wanted.list[i].in;
        lowest = in < lowest ? in : lowest;
        highest = in > highest ? in : highest;
    }
    const dpr_axes_block block = dpr_axes_find_block(&s->run);
    const uint64_t bytes = (uint64_t)(highest - lowest + s->element), room = s->wanted.count * (uint64_t)s->element;
    EXPECT_EQ_U64(bytes > room ? 0 : bytes, block.bytes);
    if (block.bytes > 0)
        EXPECT_TRUE(block.first == (const char *)s->run.in + lowest);
    return block.bytes > 0;
}

TEST(AxesDivision, block_of_all_elements) {
    int blocks = 0, gaps = 0;
    uint64_t seed = 22;
    scene s;
    start(&s);
    for (int round = 0; round < 2000; round++) {
        set_pair(&s, DPR_SUM, round % 2 ? DPR_U8 : DPR_F64);
        choose_layout(&s, 2000, &seed);
        *(expect_block(&s) ? &blocks : &gaps) += 1;
    }
    EXPECT_TRUE(blocks > 100 && gaps > 100);
    end(&s);
}

TEST(AxesDivision, no_block_where_there_are_no_elements_or_very_large_gaps) {
    scene s;
    start(&s);
    set_pair(&s, DPR_SUM, DPR_F32);
    s.run.axes = &s.layout;
    s.layout = (dpr_axes_layout){.kept = 1, .reduced = 1, .keep = {{1000, 1, 1}}, .outputs = 1000};
    EXPECT_EQ_U64(0, dpr_axes_find_block(&s.run).bytes);
    s.layout.reduce[0] = (dpr_axis){1 << 20, INT64_C(1) << 44, 0};
    s.layout.each = 1 << 20;
    EXPECT_EQ_U64(0, dpr_axes_find_block(&s.run).bytes);
    s.layout.reduce[0].in = INT64_MIN / 4;
    EXPECT_EQ_U64(0, dpr_axes_find_block(&s.run).bytes);
    end(&s);
}
