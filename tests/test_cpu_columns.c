/* Columns by the CPU strategies: narrow and wide rows, few and many, with special values. Run for each instruction set.
 */
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "reference.h"
#include "support.h"

enum { PLANES = 2, MOST = PLANES * 5000 };

static const struct shape {
    uint64_t rows, width;
} shapes[] = {{1, 16}, {2, 3},  {9, 2},   {1000, 1}, {1000, 3}, {300, 5}, {33, 8},  {16, 15}, {8, 16},
              {9, 17}, {7, 31}, {20, 33}, {300, 16}, {10, 64},  {70, 65}, {3, 130}, {4, 1030}};

typedef struct problem {
    dpr_op op;
    dpr_dtype dtype;
    dpr_options options;
    struct shape shape;
    const unsigned char *in;
    const void *init;
    int64_t step; /* places from one result to the next */
} problem;

/* What result w of a plane must give. */
static ref_state expected(const problem *p, size_t plane, size_t w) {
    static _Alignas(16) unsigned char column[MOST * 16];
    const size_t size = ref_size(p->dtype), width = (size_t)p->shape.width, rows = (size_t)p->shape.rows;
    ref_state state;
    for (size_t r = 0; r < rows; r++)
        memcpy(column + r * size, p->in + ((plane * rows + r) * width + w) * size, size);
    ref_reduce(&state, p->op, p->dtype, p->options.nan, column, rows);
    if (p->init)
        ref_add_init(&state, p->init);
    return state;
}

/* Reduces the middle of three dimensions. */
static void check(dpr_ctx *ctx, problem *p) {
    static _Alignas(16) unsigned char out[PLANES * 1030 * 3 * 16 + 1];
    const uint64_t extents[] = {PLANES, p->shape.rows, p->shape.width};
    const int64_t strides[] = {(int64_t)p->shape.width * p->step, 0, p->step};
    const size_t size = ref_result_size(p->op, p->dtype), results = PLANES * (size_t)p->shape.width;
    dpr_axes axes = DPR_AXES_INIT;
    char why[512];
    axes.dimensions = 3;
    axes.extents = extents;
    axes.reduced = 2;
    axes.out_strides = strides;
    p->options.init = p->init;
    memset(out, 0x5a, sizeof out);
    ASSERT_STATUS(DPR_OK, dpr_reduce_axes(ctx, p->in, out, p->dtype, p->op, &axes, &p->options));
    for (size_t i = 0; i < results; i++) {
        const ref_state state = expected(p, i / p->shape.width, i % p->shape.width);
        unsigned char *got = out + i * (size_t)p->step * size;
        if (!EXPECT_THAT(ref_check(&state, got, why, sizeof why),
                         "%s of %s, %llu rows of %llu, result %zu of step %d, NaN policy %d%s\n  %s",
                         dpr_op_name(p->op), dpr_dtype_name(p->dtype), (unsigned long long)p->shape.rows,
                         (unsigned long long)p->shape.width, i, (int)p->step, (int)p->options.nan,
                         p->init ? ", with init" : "", why))
            return;
        memset(got, 0x5a, size);
    }
    for (size_t i = 0; i < sizeof out; i++)
        ASSERT_TRUE(out[i] == 0x5a); /* no other place was written */
}

TEST(CpuColumns, all_pairs) {
    static const data_pattern patterns[] = {DATA_RANDOM,  DATA_EXTREMES,    DATA_NAN_MIDDLE, DATA_INF_MIDDLE,
                                            DATA_NAN_ALL, DATA_ALTERNATING, DATA_SPECIALS};
    static const char *const strategies[] = {"cpu.simd", "cpu.threads"};
    static _Alignas(16) unsigned char in[MOST * 16], init[16];
    const dpr_options options = DPR_OPTIONS_INIT;
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() * LENGTH(patterns) && !test_failed(); i++) {
        const data_pattern pattern = patterns[i % LENGTH(patterns)];
        problem p = {.op = dpr_op_at(i / LENGTH(patterns) / dpr_dtype_count()),
                     .dtype = dpr_dtype_at(i / LENGTH(patterns) % dpr_dtype_count()),
                     .options = options,
                     .in = in};
        if (!dpr_supported(p.op, p.dtype) || !data_pattern_applies(pattern, p.op, p.dtype))
            continue;
        data_init(init, p.op, ref_result_dtype(p.op, p.dtype), pattern);
        for (size_t k = 0; k < LENGTH(shapes) && !test_failed(); k++) {
            p.shape = shapes[k];
            p.options.nan = k % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
            p.options.strategy = strategies[(i + k) / 2 % 2];
            p.step = (i + k) % 3 == 0 ? 3 : 1;
            p.init = (i + k) % 4 == 0 && ref_takes_init(p.op) ? init : NULL;
            data_fill(in, p.op, p.dtype, pattern, PLANES * (size_t)(p.shape.rows * p.shape.width));
            check(ctx, &p);
        }
    }
    dpr_ctx_destroy(ctx);
}
