/* Sums and products of floats by the CPU strategies, where their arithmetic has borders: special values in arrays of
 * every short length, and lengths around those of vectors, trees, runs and parts. Run for each instruction set. */
#include <math.h>

#include "data.h"
#include "reference.h"
#include "support.h"

static const char *const strategies[] = {"cpu.serial", "cpu.simd", "cpu.threads"};

/* What is being reduced. */
typedef struct problem {
    dpr_op op;
    dpr_dtype dtype;
    const void *in, *init;
    size_t count;
} problem;

static int check_with(dpr_ctx *ctx, const problem *p, const char *strategy, const ref_state *expected) {
    _Alignas(16) unsigned char out[16];
    char why[512];
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.nan = expected->nan;
    options.init = p->init;
    options.divisor = expected->sample ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
    return EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, p->in, out, p->count, p->dtype, p->op, &options))
           && EXPECT_THAT(ref_check(expected, out, why, sizeof why),
                          "%s %s of %s, count %zu, at %p, NaN policy %d%s\n  %s", strategy, dpr_op_name(p->op),
                          dpr_dtype_name(p->dtype), p->count, p->in, (int)expected->nan, p->init ? ", with init" : "",
                          why);
}

/* By all strategies and with both NaN policies. */
static int check_all(dpr_ctx *ctx, const problem *p) {
    int good = 1;
    for (int nan = 0; nan < 2; nan++) {
        ref_state expected;
        ref_reduce(&expected, p->op, p->dtype, (dpr_nan)nan, p->in, p->count);
        if (p->init)
            ref_add_init(&expected, p->init);
        expected.sample = p->op == DPR_VAR && p->count % 3 == 0;
        for (size_t i = 0; i < LENGTH(strategies) && good; i++)
            good = check_with(ctx, p, strategies[i], &expected);
    }
    return good;
}

static int is_float(dpr_dtype dtype) {
    return ref_is_float(dtype) || ref_is_complex(dtype);
}

static void check_special_values(dpr_ctx *ctx, dpr_op op, dpr_dtype dtype) {
    enum { LONGEST = 300 };
    static _Alignas(64) unsigned char in[LONGEST * 16 + 64], inits[(LONGEST + 1) * 16];
    const dpr_dtype result = ref_result_dtype(op, dtype);
    const int takes_init = ref_takes_init(op) && is_float(result);
    int good = 1;
    for (size_t n = 1; n <= LONGEST && good; n++) {
        problem p = {op, dtype, in + n % 5 * dpr_dtype_alignment(dtype), NULL, n};
        if (takes_init && n % 2)
            p.init = inits + n / 2 * ref_size(result);
        data_fill(in + n % 5 * dpr_dtype_alignment(dtype), op, dtype, DATA_SPECIALS, n);
        data_fill(inits, op, result, DATA_SPECIALS, n + 1); /* a MINMAX takes two, also if n is 1 */
        good = check_all(ctx, &p);
    }
}

TEST(CpuFloats, special_values_in_arrays_of_every_length) {
    dpr_ctx *ctx;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (int op = DPR_SUM; dpr_op_name((dpr_op)op); op++)
        for (int dtype = DPR_BOOL; dpr_dtype_name((dpr_dtype)dtype); dtype++)
            if (is_float((dpr_dtype)dtype) && ref_supported((dpr_op)op, (dpr_dtype)dtype))
                check_special_values(ctx, (dpr_op)op, (dpr_dtype)dtype);
    dpr_ctx_destroy(ctx);
}

/* The lengths' bytes: vectors, trees of 16 vectors, borders and least lengths of parts, and runs, of 16 to 64 bytes. */
static void check_lengths(dpr_ctx *ctx, dpr_dtype dtype, data_pattern pattern, unsigned char *in) {
    static const size_t bytes[] = {16, 32, 64, 128, 256, 512, 1024, 4096, 65536, 131072, 262144};
    unsigned char init[16];
    data_init(init, DPR_SUM, ref_result_dtype(DPR_SUM, dtype), pattern);
    for (size_t i = 0; i < LENGTH(bytes) && !test_failed(); i++) {
        const size_t n = bytes[i] / ref_size(dtype), counts[] = {n - 1, n, n + 1, 2 * n - 1, 2 * n + 1, 3 * n + 7};
        for (size_t k = 0; k < 2 * LENGTH(counts) && !test_failed(); k++) {
            data_fill(in, DPR_SUM, dtype, pattern, counts[k / 2]);
            check_all(ctx, &(problem){DPR_SUM, dtype, in, k % 2 ? init : NULL, counts[k / 2]});
        }
    }
}

TEST(CpuFloats, sums_of_lengths_around_borders) {
    static _Alignas(64) unsigned char in[3 * 262144 + 7 * 16];
    dpr_ctx *ctx;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (int dtype = DPR_BOOL; dpr_dtype_name((dpr_dtype)dtype); dtype++)
        for (int pattern = DATA_POWERS; pattern <= DATA_HALVES && is_float((dpr_dtype)dtype); pattern++)
            check_lengths(ctx, (dpr_dtype)dtype, (data_pattern)pattern, in);
    dpr_ctx_destroy(ctx);
}

/* Neighbours whose product is out of F32's range, or too small to be precise there, and two numbers that bring the
 * whole product back. */
TEST(CpuFloats, products_of_bf16_leave_the_range_of_f32_and_come_back) {
    enum { N = 640, ONE = 0x3f80, BITS = 7 };
    static _Alignas(64) uint16_t in[N];
    dpr_ctx *ctx;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (int power = -126; power <= 126 && !test_failed(); power++) {
        for (int i = 0; i < N; i++)
            in[i] = ONE;
        in[2 * (power + 127)] = in[2 * (power + 127) + 1] = (uint16_t)(((127 + power) << BITS) + 1);
        in[N - 1] = in[N - 33] = (uint16_t)((127 - power) << BITS);
        check_all(ctx, &(problem){DPR_PROD, DPR_BF16, in, NULL, N});
    }
    dpr_ctx_destroy(ctx);
}

TEST(CpuFloats, the_product_of_one_complex_number_is_that_number) {
    static const double parts[] = {0.0, -0.0, 1, -2, INFINITY, -INFINITY, NAN};
    dpr_ctx *ctx;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (size_t i = 0; i < LENGTH(parts) * LENGTH(parts) && !test_failed(); i++) {
        const dpr_c128 wide = {parts[i / LENGTH(parts)], parts[i % LENGTH(parts)]}, one = {1, 0};
        const dpr_c64 narrow = {(float)wide.re, (float)wide.im};
        check_all(ctx, &(problem){DPR_PROD, DPR_C128, &wide, NULL, 1});
        check_all(ctx, &(problem){DPR_PROD, DPR_C64, &narrow, NULL, 1});
        check_all(ctx, &(problem){DPR_PROD, DPR_C128, &wide, &wide, 0});
        check_all(ctx, &(problem){DPR_PROD, DPR_C128, &wide, &one, 1});
    }
    dpr_ctx_destroy(ctx);
}

static void expect_sum(float expected, const float *in, size_t count) {
    float got = 0;
    if (EXPECT_STATUS(DPR_OK, dpr_reduce(in, &got, count, DPR_F32, DPR_SUM)))
        EXPECT_THAT(got == expected, "got %g, expected %g", (double)got, (double)expected);
}

TEST(CpuFloats, only_the_result_of_a_sum_overflows) {
    static const float in[] = {3e38F, -3e38F, 3e38F, -3e38F, 3e38F, 3e38F, -3e38F, -3e38F, 3e38F, 3e38F};
    expect_sum(0, in, 4);
    expect_sum(0, in + 4, 4);
    expect_sum(3e38F, in + 3, 3);
    expect_sum(INFINITY, in + 8, 2);
}
