/* Partial results without a GPU: arrays in pieces, and bytes that are no partial result. */
#include "partial_splits.h"

/* ---- Pieces ---- */

TEST(Partials, pieces_of_arrays_on_the_cpu) {
    static _Alignas(16) unsigned char in[SPLIT_ELEMENTS * 16];
    static split s;
    dpr_ctx *ctx = cpu_ctx();
    const split_place places[] = {{ctx, "cpu.serial", in}, {ctx, "cpu.simd", in}, {ctx, "cpu.threads", in}};
    uint64_t seed = 18;
    int good = 1;
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() * DATA_PATTERNS && good; i++) {
        s = (split){.op = dpr_op_at(i / DATA_PATTERNS / dpr_dtype_count()),
                    .dtype = dpr_dtype_at(i / DATA_PATTERNS % dpr_dtype_count()),
                    .pattern = (data_pattern)(i % DATA_PATTERNS),
                    .in = in,
                    .places = places,
                    .place_count = LENGTH(places),
                    .most_pieces = SPLIT_PIECES};
        if (!ref_supported(s.op, s.dtype) || !data_pattern_applies(s.pattern, s.op, s.dtype))
            continue;
        data_fill(in, s.op, s.dtype, s.pattern, SPLIT_ELEMENTS);
        for (int nan = 0; nan < 2 && good; nan++) {
            s.nan = (dpr_nan)nan;
            good = split_check_pair(&s, &seed);
        }
    }
    dpr_ctx_destroy(ctx);
}

TEST(Partials, indices_are_global) {
    static const float in[] = {3, 1, 2, 1, 5};
    dpr_ctx *ctx = cpu_ctx();
    uint64_t parts[2][4];
    int64_t index = 0;
    const uint64_t far = UINT64_C(1) << 40;
    EXPECT_EQ_U64(sizeof parts[0], dpr_partial_size(DPR_ARGMIN, DPR_F32));
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, parts[1], 3, DPR_F32, DPR_ARGMIN, far, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in + 3, parts[0], 2, DPR_F32, DPR_ARGMIN, far + 3, NULL));
    /* In the wrong order the lowest index still wins. */
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(parts, 2, DPR_F32, DPR_ARGMIN, NULL, &index));
    EXPECT_EQ_I64((int64_t)far + 1, index);
    dpr_ctx_destroy(ctx);
}

TEST(Partials, plans_write_them) {
    static const int32_t in[] = {1, 2, 3, 4};
    dpr_ctx *ctx = cpu_ctx();
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.op = DPR_ARGMAX;
    problem.dtype = DPR_I32;
    problem.count = 4;
    dpr_plan *plan = NULL;
    uint64_t partial[4] = {0};
    int64_t out = 0;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run_partial(plan, in, partial, 10, NULL));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(partial, 1, DPR_I32, DPR_ARGMAX, NULL, &out));
    EXPECT_EQ_I64(13, out);
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
    EXPECT_EQ_I64(3, out);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

TEST(Partials, nothing_and_initial_values) {
    dpr_ctx *ctx = cpu_ctx();
    uint64_t none[6] = {0}, some[6] = {0};
    double sum = 0, init = 0.5;
    int64_t index = 7;
    static const double in[] = {1, 2};
    dpr_options options = DPR_OPTIONS_INIT;
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, NULL, none, 0, DPR_F64, DPR_SUM, 0, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, some, 2, DPR_F64, DPR_SUM, 0, NULL));
    options.init = &init;
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(none, 1, DPR_F64, DPR_SUM, &options, &sum));
    EXPECT_TRUE(sum == 0.5);
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(some, 1, DPR_F64, DPR_SUM, &options, &sum));
    EXPECT_TRUE(sum == 3.5);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_reduce_partial(ctx, in, some, 2, DPR_F64, DPR_SUM, 0, &options));
    EXPECT_CONTAINS(dpr_last_error(), "dpr_partial_finish()");
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, NULL, none, 0, DPR_F64, DPR_ARGMAX, 5, NULL));
    EXPECT_STATUS(DPR_ERR_EMPTY, dpr_partial_finish(none, 1, DPR_F64, DPR_ARGMAX, NULL, &index));
    EXPECT_EQ_I64(7, index);
    dpr_ctx_destroy(ctx);
}

TEST(Partials, windows_of_floats_lose_nothing) {
    /* Each window's sum leaves the range of F32 or is lost in rounding when the next is added; the sum of all is 1. */
    static const float in[] = {3e38F, 3e38F, 1, -3e38F, -3e38F};
    dpr_ctx *ctx = cpu_ctx();
    uint64_t parts[5][4];
    float sum = 0;
    for (uint64_t i = 0; i < 5; i++)
        EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, &in[i], parts[i], 1, DPR_F32, DPR_SUM, i, NULL));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(parts, 5, DPR_F32, DPR_SUM, NULL, &sum));
    EXPECT_TRUE(sum == 1);
    dpr_ctx_destroy(ctx);
}

/* ---- Refusals ---- */

TEST(Partials, sizes) {
    EXPECT_EQ_U64(24, dpr_partial_size(DPR_SUM, DPR_I8));
    EXPECT_EQ_U64(32, dpr_partial_size(DPR_SUM, DPR_F16));
    EXPECT_EQ_U64(48, dpr_partial_size(DPR_SUM, DPR_C64));
    EXPECT_EQ_U64(64, dpr_partial_size(DPR_NORM2, DPR_F64));
    EXPECT_EQ_U64(64, dpr_partial_size(DPR_NORM2, DPR_C128));
    EXPECT_EQ_U64(72, dpr_partial_size(DPR_VAR, DPR_C64));
    EXPECT_EQ_U64(72, dpr_partial_size(DPR_VAR, DPR_C128));
    EXPECT_EQ_U64(0, dpr_partial_size(DPR_MIN, DPR_C64));
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count(); i++) /* the tools have room for so many bytes */
        EXPECT_TRUE(dpr_partial_size(dpr_op_at(i / dpr_dtype_count()), dpr_dtype_at(i % dpr_dtype_count())) <= 256);
    EXPECT_EQ_U64(0, dpr_partial_size((dpr_op)DPR_F32, (dpr_dtype)DPR_SUM));
}

TEST(Partials, layout) {
    static const int8_t in[] = {-1, -2, 3};
    dpr_ctx *ctx = cpu_ctx();
    unsigned char bytes[24], expected[24] = {0x64, 0x70, 1, 0, 0, 1, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0};
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, bytes, 3, DPR_I8, DPR_SUM, 0, NULL));
    EXPECT_TRUE(memcmp(expected, bytes, sizeof bytes) == 0);
    dpr_ctx_destroy(ctx);
}

TEST(Partials, what_is_refused) {
    static const float in[] = {1, 2};
    dpr_ctx *ctx = cpu_ctx();
    uint64_t partial[6] = {0}, other[6] = {0};
    float out = 5;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_partial_info info = DPR_PARTIAL_INFO_INIT;
    ASSERT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, partial, 2, DPR_F32, DPR_SUM, 0, NULL));
    EXPECT_STATUS(DPR_OK, dpr_partial_describe(partial, &info));
    EXPECT_TRUE(info.op == DPR_SUM && info.dtype == DPR_F32 && info.count == 2 && info.nan == DPR_NAN_PROPAGATE);
    EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, dpr_partial_finish(partial, 1, DPR_F16, DPR_SUM, NULL, &out));
    EXPECT_CONTAINS(dpr_last_error(), "partial result 0 is one of sum of f32, not of sum of f16");
    EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, dpr_partial_finish(partial, 1, DPR_F32, DPR_PROD, NULL, &out));
    EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, dpr_partial_finish(other, 1, DPR_F32, DPR_SUM, NULL, &out));
    EXPECT_CONTAINS(dpr_last_error(), "begins with 0x0000000000000000");
    EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, dpr_partial_describe(other, &info));
    options.nan = DPR_NAN_IGNORE;
    EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, dpr_partial_merge(partial, 1, DPR_F32, DPR_SUM, &options, other));
    EXPECT_CONTAINS(dpr_last_error(), "NaN policy 0, and options->nan is 1");
    EXPECT_STATUS(DPR_ERR_EMPTY, dpr_partial_merge(partial, 0, DPR_F32, DPR_SUM, NULL, other));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_partial_merge(NULL, 1, DPR_F32, DPR_SUM, NULL, other));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_partial_merge(partial, 1, DPR_F32, DPR_SUM, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_MISALIGNED, dpr_partial_merge((const char *)partial + 4, 1, DPR_F32, DPR_SUM, NULL, other));
    EXPECT_STATUS(DPR_ERR_MISALIGNED, dpr_reduce_partial(ctx, in, (char *)partial + 4, 2, DPR_F32, DPR_SUM, 0, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "not aligned to the 8 bytes of a partial result");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_partial_merge_async(NULL, partial, 1, DPR_F32, DPR_SUM, NULL, other, NULL));
    EXPECT_TRUE(out == 5 && other[0] == 0);
    dpr_ctx_destroy(ctx);
}

TEST(Partials, indices_fit_64_bits) {
    static const float in[] = {1, 3, 2};
    const uint64_t last = (uint64_t)INT64_MAX - 3;
    dpr_ctx *ctx = cpu_ctx();
    uint64_t partial[4] = {0};
    int64_t index = 0;
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, partial, 3, DPR_F32, DPR_ARGMAX, last, NULL));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(partial, 1, DPR_F32, DPR_ARGMAX, NULL, &index));
    EXPECT_EQ_I64(INT64_MAX - 2, index);
    EXPECT_STATUS(DPR_ERR_SIZE, dpr_reduce_partial(ctx, in, partial, 3, DPR_F32, DPR_ARGMAX, last + 1, NULL));
    EXPECT_CONTAINS(dpr_last_error(),
                    "first_index is 9223372036854775805; it should be at most 2^63 - 1 - count, and count is 3");
    EXPECT_STATUS(DPR_ERR_SIZE, dpr_reduce_partial(ctx, in, partial, 3, DPR_F32, DPR_ARGMAX, UINT64_MAX, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, partial, 3, DPR_F32, DPR_MAX, UINT64_MAX, NULL));
    dpr_ctx_destroy(ctx);
}

/* An index below 0 is that of no elements, whatever it is, also if the partial result is not merged first. */
TEST(Partials, changed_indices) {
    static const float in[] = {1, 3, 2};
    dpr_ctx *ctx = cpu_ctx();
    uint64_t partial[4] = {0}, merged[4] = {0};
    int64_t index = 0, after_merging = 0;
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, partial, 3, DPR_F32, DPR_ARGMAX, 0, NULL));
    partial[3] = UINT64_MAX - 4;
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(partial, 1, DPR_F32, DPR_ARGMAX, NULL, &index));
    EXPECT_STATUS(DPR_OK, dpr_partial_merge(partial, 1, DPR_F32, DPR_ARGMAX, NULL, merged));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(merged, 1, DPR_F32, DPR_ARGMAX, NULL, &after_merging));
    EXPECT_EQ_I64(-1, index);
    EXPECT_EQ_I64(-1, after_merging);
    dpr_ctx_destroy(ctx);
}

/* Every change of one byte of a partial result is refused or makes another one, which merges and finishes. */
static void change_every_byte(dpr_op op, dpr_dtype dtype) {
    _Alignas(16) unsigned char in[64] = {0}, good[PARTIAL_MOST], bad[2 * PARTIAL_MOST], out[16];
    const size_t bytes = dpr_partial_size(op, dtype);
    dpr_ctx *ctx = cpu_ctx();
    memset(in, 1, sizeof in);
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, good, 2, dtype, op, 0, NULL));
    for (size_t at = 0; at < bytes; at++)
        for (int change = 1; change < 256; change++) {
            memcpy(bad, good, bytes);
            memcpy(bad + bytes, good, bytes);
            bad[at] ^= (unsigned char)change;
            const dpr_status status = dpr_partial_finish(bad, 2, dtype, op, NULL, out);
            if (at < sizeof(uint64_t))
                EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, status);
            else
                EXPECT_STATUS(DPR_OK, status);
        }
    dpr_ctx_destroy(ctx);
}

TEST(Partials, changed_bytes) {
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() && !test_failed(); i++) {
        const dpr_op op = dpr_op_at(i / dpr_dtype_count());
        const dpr_dtype dtype = dpr_dtype_at(i % dpr_dtype_count());
        if (dpr_supported(op, dtype))
            change_every_byte(op, dtype);
    }
}

/* Sums of 128 bits that no array has wrap, and harm nothing. */
TEST(Partials, sums_that_leave_128_bits) {
    static const int64_t in[] = {1, 2, 4};
    enum { UPPER = 3 }; /* behind the label, the number of elements and the lower word */
    dpr_ctx *ctx = cpu_ctx();
    uint64_t parts[2][5];
    double mean = 0;
    EXPECT_EQ_U64(sizeof parts[0], dpr_partial_size(DPR_MEAN, DPR_I64));
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(DPR_OK, dpr_reduce_partial(ctx, in, parts[i], 3, DPR_I64, DPR_MEAN, 0, NULL));
        parts[i][UPPER] = INT64_MAX;
    }
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(parts, 2, DPR_I64, DPR_MEAN, NULL, &mean));
    EXPECT_NEAR_F64(-2 * 0x1p64 / 6, mean, 0x1p14);
    dpr_ctx_destroy(ctx);
}
