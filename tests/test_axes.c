/* Reductions along axes, on the CPU: each result is compared with that of a call for its elements, copied to an array.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "axes_shapes.h"
#include "cpu/axes.h"
#include "reference.h"
#include "support.h"

enum { MOST_ELEMENTS = 1 << 16, RESULT_BYTES = 16 };

typedef struct scene {
    dpr_ctx *ctx;
    dpr_op op;
    dpr_dtype dtype;
    dpr_options options;
    axes_shape shape;
    const unsigned char *in;
} scene;

/* The offset of index i of reduced dimensions, or of those that are kept. */
static int64_t offset(const scene *s, int reduced, uint64_t i, const int64_t *strides) {
    int64_t at = 0;
    for (int d = s->shape.axes.dimensions - 1; d >= 0; d--)
        if (is_reduced(&s->shape, d) == reduced) {
            at += (int64_t)(i % s->shape.extents[d]) * strides[d];
            i /= s->shape.extents[d];
        }
    return at;
}

/* Whether two results are the same: bit by bit, unless they are sums that were formed in another order. */
static int is_same(const scene *s, const void *a, const void *b) {
    const dpr_dtype type = dpr_result_dtype(s->op, s->dtype);
    const double bound = type == DPR_F32 || type == DPR_C64 ? 1e-5 : 1e-12;
    const size_t parts = type == DPR_C64 || type == DPR_C128 ? 2 : 1;
    dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
    (void)dpr_dtype_describe(type, &info);
    if (s->op == DPR_MINMAX || s->op == DPR_MIN || s->op == DPR_MAX
        || (info.kind != DPR_KIND_FLOAT && info.kind != DPR_KIND_COMPLEX))
        return memcmp(a, b, ref_result_size(s->op, s->dtype)) == 0;
    for (size_t i = 0; i < parts; i++) {
        const double x = bound > 1e-6 ? (double)((const float *)a)[i] : ((const double *)a)[i];
        const double y = bound > 1e-6 ? (double)((const float *)b)[i] : ((const double *)b)[i];
        if (!(x == y || (x != x && y != y)
              || (x - y <= bound * (1 + y * (y > 0 ? 1 : -1)) && y - x <= bound * (1 + y * (y > 0 ? 1 : -1)))))
            return 0;
    }
    return 1;
}

/* Expects a plan of the scene to write the same bytes as the call did. */
static void expect_plan(const scene *s, const unsigned char *known, int64_t first, size_t bytes) {
    const size_t size = ref_result_size(s->op, s->dtype);
    unsigned char *out = malloc(bytes);
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    memset(out, 0x5a, bytes);
    problem.op = s->op;
    problem.dtype = s->dtype;
    problem.axes = &s->shape.axes;
    problem.options = &s->options;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, out + first * (int64_t)size, NULL));
    EXPECT_THAT(memcmp(known, out, bytes) == 0, "%s of %s: a plan gives other results", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype));
    dpr_plan_destroy(plan);
    free(out);
}

/* Runs the scene, whose results lie in `places` places of `out`, the one with all indices 0 at `first`. */
static void expect_right(const scene *s, int64_t first, size_t places) {
    const size_t size = ref_result_size(s->op, s->dtype), element = dpr_dtype_size(s->dtype);
    const uint64_t outputs = axes_product(&s->shape, 0), each = axes_product(&s->shape, 1);
    unsigned char *out = malloc(places * size + 1), *copy = malloc((size_t)each * element + 1);
    uint64_t wrong = 0;
    memset(out, 0x5a, places * size + 1);
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s->ctx, s->in, out + first * (int64_t)size, s->dtype, s->op, &s->shape.axes,
                                          &s->options));
    expect_plan(s, out, first, places * size + 1);
    for (uint64_t o = 0; o < outputs; o++) {
        _Alignas(RESULT_BYTES) unsigned char known[RESULT_BYTES];
        const int64_t from = offset(s, 0, o, s->shape.strides), to = first + offset(s, 0, o, s->shape.out_strides);
        for (uint64_t i = 0; i < each; i++)
            memcpy(copy + i * element, s->in + (from + offset(s, 1, i, s->shape.strides)) * (int64_t)element, element);
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, copy, known, (size_t)each, s->dtype, s->op, &s->options));
        wrong += !is_same(s, out + to * (int64_t)size, known);
        memset(out + to * (int64_t)size, 0x5a, size);
    }
    for (size_t i = 0; i <= places * size; i++)
        wrong += out[i] != 0x5a; /* no other place was written */
    EXPECT_THAT(
        wrong == 0, "%s of %s by %s, %d dimensions (%llu, %llu, %llu ...), reduced 0x%x: %llu results are wrong",
        dpr_op_name(s->op), dpr_dtype_name(s->dtype), s->options.strategy ? s->options.strategy : "auto",
        s->shape.axes.dimensions, (unsigned long long)s->shape.extents[0], (unsigned long long)s->shape.extents[1],
        (unsigned long long)s->shape.extents[2], s->shape.axes.reduced, (unsigned long long)wrong);
    free(out);
    free(copy);
}

static const char *const strategies[] = {"cpu.simd", "cpu.threads", NULL};

TEST(Axes, random_shapes) {
    static _Alignas(16) unsigned char in[MOST_ELEMENTS * 16];
    uint64_t seed = 20;
    scene s = {.ctx = cpu_ctx()};
    for (int i = 0; i < 800 && !test_failed(); i++) {
        const dpr_options options = DPR_OPTIONS_INIT;
        s.op = dpr_op_at(data_below(&seed, (uint32_t)dpr_op_count()));
        s.dtype = dpr_dtype_at(data_below(&seed, (uint32_t)dpr_dtype_count()));
        if (!dpr_supported(s.op, s.dtype) || s.op == DPR_PROD)
            continue;
        choose_shape(&s.shape, i % 10 == 0 ? MOST_ELEMENTS : 3000, &seed);
        (void)set_strides(&s.shape, 0, s.shape.strides);
        const int64_t results = set_strides(&s.shape, 1, s.shape.out_strides);
        int64_t first = 0;
        if (i % 4 == 1)
            transpose(&s.shape, s.shape.strides, 0, &seed);
        if (i % 2 == 1)
            first = twist(&s.shape, &seed);
        if (i % 4 == 3) {
            transpose(&s.shape, s.shape.out_strides, 1, &seed);
            s.shape.axes.out_strides = s.shape.out_strides;
        }
        s.options = options;
        s.options.nan = i / 3 % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        s.options.divisor = i / 6 % 2 ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
        s.options.strategy = strategies[i % 3];
        data_fill(in, s.op, s.dtype, i % 5 == 0 ? DATA_NAN_MIDDLE : DATA_RANDOM, MOST_ELEMENTS);
        s.in = in + first * (int64_t)dpr_dtype_size(s.dtype);
        expect_right(&s, 0, (size_t)results);
    }
    dpr_ctx_destroy(s.ctx);
}

/* Few results of very many elements, which are divided among threads; and the other way round. */
TEST(Axes, extreme_shapes) {
    static const struct {
        uint64_t extents[3];
        uint32_t reduced;
    } shapes[] = {{{1 << 20, 3, 1}, 1},       {{3, 1 << 20, 1}, 2},       {{1 << 20, 3, 1}, 2},
                  {{3, 1 << 20, 1}, 1},       {{1 << 10, 3, 1 << 10}, 5}, {{2, 1 << 18, 2}, 5},
                  {{1 << 10, 1 << 10, 1}, 0}, {{1 << 11, 1 << 10, 1}, 3}};
    enum { COUNT = 3 << 20 };
    int32_t *in = malloc(COUNT * sizeof *in);
    uint64_t seed = 1;
    scene s = {.ctx = cpu_ctx(), .dtype = DPR_I32, .in = (const unsigned char *)in};
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (int32_t)data_below(&seed, 1000);
    for (size_t i = 0; i < LENGTH(shapes) * 2 * 2; i++) {
        const dpr_axes init = DPR_AXES_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        s.op = i % 2 ? DPR_ARGMAX : DPR_SUM;
        s.shape.axes = init;
        s.shape.axes.dimensions = 3;
        s.shape.axes.extents = s.shape.extents;
        memcpy(s.shape.extents, shapes[i / 4].extents, sizeof shapes->extents);
        s.shape.axes.reduced = shapes[i / 4].reduced;
        s.options = options;
        s.options.strategy = strategies[i / 2 % 2];
        (void)set_strides(&s.shape, 0, s.shape.strides);
        expect_right(&s, 0, (size_t)set_strides(&s.shape, 1, s.shape.out_strides));
    }
    dpr_ctx_destroy(s.ctx);
    free(in);
}

/* Every pair along an axis that is not the last one, with specials, on arrays without room behind them: rows of one
 * vector and of several with and without a rest, rows of less than a vector, and runs of elements. */
TEST(Axes, columns_of_every_pair) {
    static const struct {
        uint64_t extents[3];
        uint32_t reduced;
    } shapes[] = {{{2, 7, 67}, 2},   {{1, 70, 16}, 2},  {{2, 1, 64}, 2}, {{1, 5, 300}, 2},
                  {{1, 3000, 3}, 2}, {{2, 300, 13}, 2}, {{3, 2, 270}, 5}};
    static const data_pattern patterns[] = {DATA_RANDOM, DATA_NAN_MIDDLE, DATA_ZEROS, DATA_INF_LAST, DATA_NAN_ALL};
    const size_t pairs = dpr_op_count() * dpr_dtype_count();
    scene s = {.ctx = cpu_ctx()};
    for (size_t i = 0; i < pairs * LENGTH(shapes) && !test_failed(); i++) {
        const dpr_axes init = DPR_AXES_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        const size_t shape = i / pairs;
        const data_pattern pattern = patterns[i % LENGTH(patterns)];
        s.op = dpr_op_at(i % pairs / dpr_dtype_count());
        s.dtype = dpr_dtype_at(i % dpr_dtype_count());
        if (!dpr_supported(s.op, s.dtype) || (s.op == DPR_PROD && pattern != DATA_RANDOM))
            continue;
        s.shape.axes = init;
        s.shape.axes.dimensions = 3;
        s.shape.axes.extents = s.shape.extents;
        memcpy(s.shape.extents, shapes[shape].extents, sizeof shapes[shape].extents);
        s.shape.axes.reduced = shapes[shape].reduced;
        s.options = options;
        s.options.nan = i / 2 % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        s.options.strategy = strategies[i % 2];
        const size_t count = (size_t)set_strides(&s.shape, 0, s.shape.strides);
        unsigned char *in = malloc(count * dpr_dtype_size(s.dtype));
        data_fill(in, s.op, s.dtype, data_pattern_applies(pattern, s.op, s.dtype) ? pattern : DATA_RANDOM, count);
        s.in = in;
        expect_right(&s, 0, (size_t)set_strides(&s.shape, 1, s.shape.out_strides));
        free(in);
    }
    dpr_ctx_destroy(s.ctx);
}

/* Makes the scene's array a matrix without gaps, which is reduced along some axes. */
static void set_matrix(scene *s, uint64_t rows, uint64_t columns, uint32_t reduced) {
    const dpr_axes init = DPR_AXES_INIT;
    s->shape.axes = init;
    s->shape.axes.dimensions = 2;
    s->shape.axes.extents = s->shape.extents;
    s->shape.axes.reduced = reduced;
    s->shape.extents[0] = rows;
    s->shape.extents[1] = columns;
    (void)set_strides(&s->shape, 0, s->shape.strides);
}

/* Ties go to the lowest index, and elements that are the greatest or the least of their type are found. */
TEST(Axes, ties_in_columns) {
    enum { ROWS = 11, COLUMNS = 67 };
    static const dpr_dtype types[] = {DPR_I32, DPR_U32, DPR_I64, DPR_U64, DPR_F32, DPR_F64, DPR_BOOL,
                                      DPR_I8,  DPR_U8,  DPR_I16, DPR_U16, DPR_F16, DPR_BF16};
    scene s = {.ctx = cpu_ctx()};
    for (size_t i = 0; i < LENGTH(types) * 2 * 3; i++) {
        const dpr_options options = DPR_OPTIONS_INIT;
        static _Alignas(16) unsigned char in[ROWS * COLUMNS * 8];
        const size_t size = dpr_dtype_size(types[i / 6]);
        memset(in, i % 3 == 0 ? 0 : i % 3 == 1 ? 0xff : 0x7f, sizeof in); /* the same element everywhere */
        s.in = in;
        s.op = i / 3 % 2 ? DPR_ARGMIN : DPR_ARGMAX;
        s.dtype = types[i / 6];
        set_matrix(&s, ROWS, COLUMNS, 1);
        s.options = options;
        s.options.strategy = "cpu.simd";
        expect_right(&s, 0, (size_t)set_strides(&s.shape, 1, s.shape.out_strides));
        memset(in + (size_t)3 * COLUMNS * size, 0x3f, (size_t)COLUMNS * size);
        memset(in + (size_t)5 * COLUMNS * size, 0x3f, (size_t)COLUMNS * size);
        expect_right(&s, 0, COLUMNS);
    }
    dpr_ctx_destroy(s.ctx);
}

/* Parts of few long results are merged, and an initial value is added once to each, also to short ones. */
TEST(Axes, initial_values_and_merged_parts) {
    static const dpr_op ops[] = {DPR_SUM, DPR_VAR, DPR_MEAN, DPR_NORM2, DPR_MINMAX, DPR_ARGMIN, DPR_COUNT};
    static const uint64_t shapes[][2] = {{1 << 18, 3}, {3, 1 << 18}, {5, 7}, {70, 5000}};
    enum { COUNT = 3 << 18 };
    double *in = malloc(COUNT * sizeof *in);
    const double init = 1000;
    const int64_t init_of_count = 1000;
    scene s = {.ctx = cpu_ctx(), .dtype = DPR_F64, .in = (const unsigned char *)in};
    data_fill(in, DPR_SUM, DPR_F64, DATA_RANDOM, COUNT);
    for (size_t i = 0; i < LENGTH(ops) * LENGTH(shapes) * 4; i++) {
        const dpr_axes init_axes = DPR_AXES_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        s.op = ops[i / 4 / LENGTH(shapes)];
        s.shape.axes = init_axes;
        s.shape.axes.dimensions = 2;
        s.shape.axes.extents = s.shape.extents;
        memcpy(s.shape.extents, shapes[i / 4 % LENGTH(shapes)], sizeof *shapes);
        s.shape.axes.reduced = 1 + (uint32_t)(i % 2);
        s.options = options;
        s.options.strategy = strategies[i / 2 % 2];
        s.options.init = s.op == DPR_SUM     ? (const void *)&init
                         : s.op == DPR_COUNT ? (const void *)&init_of_count
                                             : NULL;
        (void)set_strides(&s.shape, 0, s.shape.strides);
        expect_right(&s, 0, (size_t)set_strides(&s.shape, 1, s.shape.out_strides));
    }
    dpr_ctx_destroy(s.ctx);
    free(in);
}

/* Compares the results of a scene with the reference, which has no loops of the library. */
static void expect_reference(const scene *s) {
    const size_t size = ref_result_size(s->op, s->dtype), element = dpr_dtype_size(s->dtype);
    const uint64_t outputs = axes_product(&s->shape, 0), each = axes_product(&s->shape, 1);
    unsigned char *out = malloc((size_t)outputs * size), *copy = malloc((size_t)each * element);
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s->ctx, s->in, out, s->dtype, s->op, &s->shape.axes, &s->options));
    for (uint64_t o = 0; o < outputs && !test_failed(); o++) {
        ref_state state;
        char why[300] = "";
        for (uint64_t i = 0; i < each; i++)
            memcpy(copy + i * element,
                   s->in + (offset(s, 0, o, s->shape.strides) + offset(s, 1, i, s->shape.strides)) * (int64_t)element,
                   element);
        ref_reduce(&state, s->op, s->dtype, s->options.nan, copy, (size_t)each);
        if (s->options.init)
            ref_add_init(&state, s->options.init);
        EXPECT_THAT(ref_check(&state, out + o * size, why, sizeof why), "%s of %s by %s, reduced 0x%x, result %llu: %s",
                    dpr_op_name(s->op), dpr_dtype_name(s->dtype), s->options.strategy ? s->options.strategy : "auto",
                    s->shape.axes.reduced, (unsigned long long)o, why);
    }
    free(out);
    free(copy);
}

/* Columns that are folded in several calls, and, by cpu.threads, in parts. */
TEST(Axes, means_of_long_columns) {
    static const dpr_dtype types[] = {DPR_BOOL, DPR_I8, DPR_U16, DPR_I32, DPR_F16, DPR_F32, DPR_F64};
    enum { ROWS = 9000, COLUMNS = 40 };
    unsigned char *in = malloc((size_t)ROWS * COLUMNS * 8);
    scene s = {.ctx = cpu_ctx(), .op = DPR_MEAN, .in = in};
    for (size_t i = 0; i < 2 * LENGTH(types); i++) {
        const dpr_options options = DPR_OPTIONS_INIT;
        s.dtype = types[i / 2];
        data_fill(in, s.op, s.dtype, DATA_RANDOM, (size_t)ROWS * COLUMNS);
        set_matrix(&s, ROWS, COLUMNS, 1);
        s.options = options;
        s.options.strategy = strategies[i % 2];
        expect_reference(&s);
    }
    dpr_ctx_destroy(s.ctx);
    free(in);
}

TEST(Axes, initial_values_of_every_pair) {
    static const uint64_t extents[] = {5, 6, 40};
    enum { COUNT = 5 * 6 * 40, MASKS = 8 };
    static _Alignas(16) unsigned char in[COUNT * 16];
    _Alignas(RESULT_BYTES) unsigned char init[RESULT_BYTES];
    scene s = {.ctx = cpu_ctx(), .in = in};
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() * MASKS && !test_failed(); i++) {
        const dpr_axes axes = DPR_AXES_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        const data_pattern some = (data_pattern)(i / MASKS % DATA_PATTERNS);
        s.op = dpr_op_at(i / MASKS / dpr_dtype_count());
        s.dtype = dpr_dtype_at(i / MASKS % dpr_dtype_count());
        if (!dpr_supported(s.op, s.dtype) || !ref_takes_init(s.op))
            continue;
        const data_pattern pattern = data_pattern_applies(some, s.op, s.dtype) ? some : DATA_RANDOM;
        data_fill(in, s.op, s.dtype, pattern, COUNT);
        data_init(init, s.op, ref_result_dtype(s.op, s.dtype), pattern);
        s.shape.axes = axes;
        s.shape.axes.dimensions = 3;
        s.shape.axes.extents = s.shape.extents;
        s.shape.axes.reduced = (uint32_t)(i % MASKS);
        memcpy(s.shape.extents, extents, sizeof extents);
        (void)set_strides(&s.shape, 0, s.shape.strides);
        s.options = options;
        s.options.nan = i / 2 % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        s.options.init = init;
        for (size_t k = 0; k < LENGTH(strategies); k++) {
            s.options.strategy = strategies[k];
            expect_reference(&s);
        }
    }
    dpr_ctx_destroy(s.ctx);
}

TEST(Axes, results_with_gaps) {
    static const float in[] = {1, 2, 3, 4, 5, 6};
    scene s = {.ctx = cpu_ctx(), .op = DPR_SUM, .dtype = DPR_F32, .in = (const unsigned char *)in};
    const dpr_options options = DPR_OPTIONS_INIT;
    set_matrix(&s, 3, 2, 2);
    s.options = options;
    s.shape.axes.out_strides = s.shape.out_strides;
    s.shape.out_strides[0] = -3;
    expect_right(&s, 6, 7);
    dpr_ctx_destroy(s.ctx);
}

/* Every pair in a tile of columns that is as wide as tiles get, with gaps between results: all accumulators and results
 * have room. */
TEST(Axes, wide_tiles_with_gaps) {
    enum { ROWS = 5, COLUMNS = 4100 };
    static _Alignas(16) unsigned char in[ROWS * COLUMNS * 16];
    const dpr_options options = DPR_OPTIONS_INIT;
    scene s = {.ctx = cpu_ctx(), .in = in};
    s.options = options;
    s.options.strategy = "cpu.simd";
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() && !test_failed(); i++) {
        s.op = dpr_op_at(i / dpr_dtype_count());
        s.dtype = dpr_dtype_at(i % dpr_dtype_count());
        if (!dpr_supported(s.op, s.dtype))
            continue;
        set_matrix(&s, ROWS, COLUMNS, 1);
        s.shape.axes.out_strides = s.shape.out_strides;
        s.shape.out_strides[1] = 2;
        data_fill(in, s.op, s.dtype, DATA_RANDOM, ROWS * COLUMNS);
        expect_right(&s, 0, 2 * COLUMNS);
    }
    dpr_ctx_destroy(s.ctx);
}

TEST(Axes, strides_of_no_results_may_have_any_size) {
    static const uint64_t extents[] = {0, 5};
    static const int64_t out_strides[] = {1, INT64_MAX / 2};
    dpr_ctx *ctx = cpu_ctx();
    dpr_axes axes = DPR_AXES_INIT;
    float out = 7;
    axes.dimensions = 2;
    axes.extents = extents;
    axes.out_strides = out_strides;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, NULL, &out, DPR_F32, DPR_SUM, &axes, NULL));
    EXPECT_TRUE(out == 7);
    axes.reduced = 1;
    EXPECT_STATUS(DPR_ERR_SIZE, dpr_reduce_axes(ctx, NULL, &out, DPR_F32, DPR_SUM, &axes, NULL));
    dpr_ctx_destroy(ctx);
}

/* ---- What is read ---- */

/* A sum of rows whose last element is the last one before pages that nobody may read. `hole`: the page of that many
 * bytes from the first element on may not be read either; 0: all others may. */
typedef struct fence {
    dpr_dtype dtype;
    uint64_t extents[3];
    int64_t strides[3];
    size_t hole;
} fence;

/* The distance of the lowest and the highest element from the first one, in elements. */
static void find_span(const fence *f, int64_t *lowest, int64_t *highest) {
    *lowest = *highest = 0;
    for (int d = 0; d < 3; d++) {
        const int64_t steps = (int64_t)(f->extents[d] - 1) * f->strides[d];
        *(steps < 0 ? lowest : highest) += steps;
    }
}

static void reduce_at_fence(const fence *f, const char *strategy, dpr_ctx *ctx) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = dpr_dtype_size(f->dtype);
    int64_t lowest, highest;
    unsigned char out[4096 * 8];
    dpr_axes axes = DPR_AXES_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    find_span(f, &lowest, &highest);
    const size_t bytes = (size_t)(highest - lowest + 1) * size, pages = (bytes + page - 1) / page * page;
    unsigned char *map = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(map != MAP_FAILED);
    const unsigned char *in = map + pages - bytes - lowest * (int64_t)size;
    ASSERT_TRUE(mprotect(map + pages, page, PROT_NONE) == 0);
    if (f->hole)
        ASSERT_TRUE(mprotect(map + ((size_t)(in - map) + f->hole) / page * page, page, PROT_NONE) == 0);
    axes.dimensions = 3;
    axes.extents = f->extents;
    axes.strides = f->strides;
    axes.reduced = 4;
    options.strategy = strategy;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, in, out, f->dtype, DPR_SUM, &axes, &options));
    for (size_t i = 0; i < f->extents[0] * f->extents[1] * 4; i++)
        EXPECT_EQ_I64(0, out[i]);
    (void)munmap(map, pages + page);
}

/* Rows with short and long gaps: nothing is read where there are no elements, unless it is in their pages. */
TEST(Axes, nothing_behind_rows_is_read) {
    static const fence fences[] = {
        {DPR_F32, {1, 5, 3}, {0, 8, 1}, 0},        {DPR_F16, {1, 1, 1}, {0, 2, 1}, 0},
        {DPR_F32, {1, 512, 4}, {0, 8, 1}, 0},      {DPR_F32, {1, 5, 30}, {0, 32, 1}, 0},
        {DPR_U8, {1, 100, 10}, {0, 12, 1}, 0},     {DPR_F32, {1, 5, 3}, {0, -8, 1}, 0},
        {DPR_F64, {3, 4, 5}, {1000, 7, 1}, 0},     {DPR_F32, {2, 7, 5}, {9995, 0, 1}, 20000},
        {DPR_F32, {2, 7, 5}, {9995, 5, 1}, 20000}, {DPR_I16, {3, 2, 9}, {-40000, 20000, 1}, 20000},
        {DPR_F32, {1, 100, 17}, {0, 20, 1}, 0},
    };
    dpr_ctx *ctx = cpu_ctx();
    for (size_t i = 0; i < LENGTH(fences); i++)
        for (size_t k = 0; k < LENGTH(strategies); k++)
            reduce_at_fence(&fences[i], strategies[k], ctx);
    dpr_ctx_destroy(ctx);
}

/* ---- Nothing, and mistakes ---- */

/* Columns of F32 of a tile: as many as fit a page, unless many threads have few rows. */
TEST(Axes, columns_of_a_tile) {
    static const struct {
        uint64_t arrays, rows, columns, threads, wanted;
    } cases[] = {
        {1, 1 << 18, 256, 2, 256},      {1, 1 << 18, 256, 64, 256},  {1, 1 << 13, 1 << 13, 1, 1024},
        {1, 1 << 13, 1 << 13, 8, 1024}, {1, 1 << 13, 4096, 32, 256}, {1, 1 << 13, 4096, 192, 64},
        {1, 512, 4096, 1, 1024},        {1, 512, 4096, 16, 64},      {1, 3, 22369621, 16, 1024},
        {256, 512, 512, 32, 512},       {1, 0, 100, 2, 64},          {1, 1 << 20, 16, 8, 16},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const uint64_t columns = cases[i].columns, arrays = cases[i].arrays, rows = cases[i].rows;
        const dpr_axes_layout at = {.kept = 2,
                                    .reduced = 1,
                                    .keep = {{arrays, (int64_t)(rows * columns), (int64_t)columns}, {columns, 1, 1}},
                                    .reduce = {{rows, (int64_t)columns, 0}},
                                    .outputs = arrays * columns,
                                    .each = rows};
        EXPECT_THAT(dpr_cpu_tile_columns(&at, sizeof(float), cases[i].threads) == cases[i].wanted, "case %zu: %llu", i,
                    (unsigned long long)dpr_cpu_tile_columns(&at, sizeof(float), cases[i].threads));
    }
}

TEST(Axes, no_elements) {
    static const uint64_t extents[] = {2, 0}, none[] = {0, 5};
    dpr_ctx *ctx = cpu_ctx();
    dpr_axes axes = DPR_AXES_INIT;
    double sums[] = {7, 7};
    int64_t indices[] = {7, 7};
    axes.dimensions = 2;
    axes.extents = extents;
    axes.reduced = 2;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, NULL, sums, DPR_F64, DPR_SUM, &axes, NULL));
    EXPECT_TRUE(sums[0] == 0 && sums[1] == 0);
    EXPECT_STATUS(DPR_ERR_EMPTY, dpr_reduce_axes(ctx, NULL, indices, DPR_F64, DPR_ARGMIN, &axes, NULL));
    EXPECT_EQ_I64(7, indices[0]);
    axes.extents = none;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, NULL, NULL, DPR_F64, DPR_ARGMIN, &axes, NULL));
    static const uint64_t huge[] = {0, UINT64_C(1) << 40, UINT64_C(1) << 40};
    axes.dimensions = 3;
    axes.extents = huge;
    axes.reduced = 7;
    sums[0] = 7;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, NULL, sums, DPR_F64, DPR_SUM, &axes, NULL));
    EXPECT_TRUE(sums[0] == 0);
    static const int64_t far[] = {INT64_MAX, INT64_MAX, INT64_MAX};
    axes.strides = far;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, NULL, sums, DPR_F64, DPR_SUM, &axes, NULL));
    dpr_ctx_destroy(ctx);
}

/* Products with -0.0 as the initial value: it keeps its sign. */
TEST(Axes, sign_of_an_initial_value) {
    static const uint64_t extents[] = {1, 1};
    static const double in[] = {1}, init = -0.0;
    dpr_ctx *ctx = cpu_ctx();
    dpr_axes axes = DPR_AXES_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    double out = 7;
    axes.dimensions = 2;
    axes.extents = extents;
    axes.reduced = 2;
    options.init = &init;
    for (size_t k = 0; k < LENGTH(strategies); k++) {
        options.strategy = strategies[k];
        EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, in, &out, DPR_F64, DPR_PROD, &axes, &options));
        EXPECT_TRUE(out == 0 && signbit(out));
    }
    dpr_ctx_destroy(ctx);
}

/* Arrays without gaps overlap nothing. With strides, results may lie in gaps of the elements, so only the places whose
 * indices are all 0 are compared. */
TEST(Axes, arrays_that_overlap) {
    static const uint64_t extents[] = {3, 2};
    static const int64_t strides[] = {3, 1}, out_strides[] = {3, 0};
    dpr_ctx *ctx = cpu_ctx();
    dpr_axes axes = DPR_AXES_INIT;
    double x[9] = {1, 2, 0, 3, 4, 0, 5, 6, 0};
    axes.dimensions = 2;
    axes.extents = extents;
    axes.reduced = 2;
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_axes(ctx, x, x, DPR_F64, DPR_SUM, &axes, NULL));
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_axes(ctx, x, x + 5, DPR_F64, DPR_SUM, &axes, NULL));
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_axes_async(ctx, x + 2, x, DPR_F64, DPR_SUM, &axes, NULL, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, x, x + 6, DPR_F64, DPR_MAX, &axes, NULL));
    EXPECT_TRUE(x[6] == 2 && x[7] == 3 && x[8] == 4);
    axes.strides = strides;
    axes.out_strides = out_strides;
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_axes(ctx, x, x, DPR_F64, DPR_SUM, &axes, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, x, x + 2, DPR_F64, DPR_SUM, &axes, NULL));
    EXPECT_TRUE(x[2] == 3 && x[5] == 7 && x[8] == 5);
    dpr_ctx_destroy(ctx);
}

TEST(Axes, mistakes) {
    static const uint64_t extents[] = {2, 2}, many[] = {UINT64_MAX / 2, 3};
    static const int64_t far[] = {INT64_MAX, 1};
    static const double in[4] = {1};
    dpr_ctx *ctx = cpu_ctx();
    dpr_axes axes = DPR_AXES_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    double out[2] = {7, 7};
    axes.dimensions = 2;
    axes.extents = extents;
    axes.reduced = 1;
#define EXPECT_REFUSED(STATUS, SENTENCE, CTX, IN, OUT, OP, AXES)                                                       \
    EXPECT_STATUS(STATUS, dpr_reduce_axes(CTX, IN, OUT, DPR_F64, OP, AXES, &options));                                 \
    EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                       \
    EXPECT_TRUE(out[0] == 7 && out[1] == 7)
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "ctx is NULL", NULL, in, out, DPR_SUM, &axes);
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "axes is NULL", ctx, in, out, DPR_SUM, NULL);
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "in is NULL", ctx, NULL, out, DPR_SUM, &axes);
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "out is NULL", ctx, in, NULL, DPR_SUM, &axes);
    EXPECT_REFUSED(DPR_ERR_UNSUPPORTED_PAIR, "band", ctx, in, out, DPR_BAND, &axes);
    EXPECT_REFUSED(DPR_ERR_MISALIGNED, "in is", ctx, (const char *)in + 4, out, DPR_SUM, &axes);
    axes.strides = (const int64_t *)((const char *)far + 4);
    EXPECT_REFUSED(DPR_ERR_MISALIGNED, "axes->strides is", ctx, in, out, DPR_SUM, &axes);
    axes.strides = NULL;
    axes.extents = (const uint64_t *)((const char *)extents + 1);
    EXPECT_REFUSED(DPR_ERR_MISALIGNED, "axes->extents is", ctx, in, out, DPR_SUM, &axes);
    axes.extents = extents;
    axes.dimensions = 9;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "axes->dimensions is 9", ctx, in, out, DPR_SUM, &axes);
    axes.dimensions = 2;
    axes.reduced = 5;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "axes->reduced is 0x5", ctx, in, out, DPR_SUM, &axes);
    axes.reduced = 1;
    axes.extents = NULL;
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "axes->extents is NULL", ctx, in, out, DPR_SUM, &axes);
    axes.extents = many;
    EXPECT_REFUSED(DPR_ERR_SIZE, "axes->extents multiply", ctx, in, out, DPR_SUM, &axes);
    axes.extents = extents;
    axes.strides = far;
    EXPECT_REFUSED(DPR_ERR_SIZE, "axes->strides are so large", ctx, in, out, DPR_SUM, &axes);
    axes.strides = NULL;
    options.strategy = "cpu.serial";
    EXPECT_REFUSED(DPR_ERR_STRATEGY_UNABLE, "cpu.serial", ctx, in, out, DPR_SUM, &axes);
    options.strategy = NULL;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(ctx, in, out, DPR_F64, DPR_SUM, &axes, &options));
    EXPECT_TRUE(out[0] == 1 && out[1] == 0);
    dpr_ctx_destroy(ctx);
}
