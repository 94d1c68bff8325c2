/* Arrays past 2^32 elements, whose results have a closed form. */
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

typedef struct large_fixture {
    dpr_ctx *ctx;
    unsigned char *in; /* device memory */
    size_t bytes;
} large_fixture;

static void large_setup(void *state) {
    large_fixture *f = state;
    f->bytes = ((size_t)1 << 32) + 64;
    if (gpu_unavailable() || gpu_free_bytes() < f->bytes + ((size_t)1 << 30))
        return;
    f->in = gpu_alloc(DPR_MEMORY_DEVICE, f->bytes);
    ASSERT_THAT(f->in != NULL, "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &f->ctx));
}

static void large_teardown(void *state) {
    large_fixture *f = state;
    dpr_ctx_destroy(f->ctx);
    if (f->in)
        gpu_free(DPR_MEMORY_DEVICE, f->in);
}

#define LARGE_TEST(NAME) TEST_FIXTURE(GpuLarge, NAME, large_fixture, large_setup, large_teardown)

#define NEED_MEMORY()                                                                                                  \
    do {                                                                                                               \
        if (gpu_unavailable())                                                                                         \
            SKIP(gpu_unavailable());                                                                                   \
        if (!fixture->in)                                                                                              \
            SKIP("needs 5 GiB of free device memory");                                                                 \
    } while (0)

/* Strategies that do not run the pair are left out. flat.block reads 4 GiB with one SM: it is tried for some operations
 * only, as it takes a tenth of a second. */
static void expect_i64(const large_fixture *f, size_t s, int64_t expected, const void *in, size_t count,
                       dpr_dtype dtype, dpr_op op) {
    int64_t result = INT64_MIN;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = gpu_strategy(s);
    if (!gpu_strategy_runs(s, op, dtype))
        return;
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(f->ctx, in, &result, count, dtype, op, &options));
    EXPECT_THAT(result == expected, "%s %s %s: %lld, not %lld", options.strategy ? options.strategy : "auto",
                dpr_op_name(op), dpr_dtype_name(dtype), (long long)result, (long long)expected);
}

LARGE_TEST(bytes_past_2_to_32) {
    NEED_MEMORY();
    const size_t count = ((size_t)1 << 32) + 5;
    unsigned char pattern[256];
    for (int i = 0; i < 256; i++)
        pattern[i] = (unsigned char)i;
    ASSERT_THAT(gpu_repeat(fixture->in, fixture->bytes, pattern, sizeof pattern), "%s", gpu_error());
    /* 2^24 periods and 0 1 2 3 4 */
    const int64_t unsigned_sum = ((int64_t)1 << 24) * (255 * 128) + 10;
    const int64_t signed_sum = -((int64_t)1 << 24) * 128 + 10;
    const int64_t nonzero = ((int64_t)1 << 24) * 255 + 4;
    for (size_t s = 0; s <= gpu_strategy_count(); s++) {
        expect_i64(fixture, s, unsigned_sum, fixture->in, count, DPR_U8, DPR_SUM);
        expect_i64(fixture, s, signed_sum, fixture->in, count, DPR_I8, DPR_SUM);
        expect_i64(fixture, s, nonzero, fixture->in, count, DPR_BOOL, DPR_COUNT);
        expect_i64(fixture, s, nonzero, fixture->in, count, DPR_BOOL, DPR_SUM);
    }
}

LARGE_TEST(index_past_2_to_32) {
    NEED_MEMORY();
    const size_t count = ((size_t)1 << 32) + 5;
    const unsigned char seven = 7, nine = 9, two = 2;
    ASSERT_THAT(gpu_repeat(fixture->in, fixture->bytes, &seven, 1), "%s", gpu_error());
    ASSERT_TRUE(gpu_copy(fixture->in + count - 2, &nine, 1) && gpu_copy(fixture->in + count - 1, &nine, 1)
                && gpu_copy(fixture->in + count - 3, &two, 1));
    for (size_t s = 0; s <= gpu_strategy_count(); s++) {
        expect_i64(fixture, s, (int64_t)count - 2, fixture->in, count, DPR_U8, DPR_ARGMAX);
        expect_i64(fixture, s, (int64_t)count - 3, fixture->in, count, DPR_I8, DPR_ARGMIN);
        /* past the end of a shorter array nothing is read; at an odd address */
        expect_i64(fixture, s, 0, fixture->in + 1, count - 4, DPR_U8, DPR_ARGMAX);
    }
}

LARGE_TEST(logic_past_2_to_32) {
    NEED_MEMORY();
    const size_t count = ((size_t)1 << 32) + 5;
    const unsigned char zero = 0, one = 1;
    ASSERT_THAT(gpu_repeat(fixture->in, fixture->bytes, &zero, 1), "%s", gpu_error());
    for (size_t s = 0; s <= gpu_strategy_count(); s++) {
        unsigned char before = 9, after = 9, beyond = 9;
        if (!gpu_strategy_runs(s, DPR_ANY, DPR_BOOL))
            continue;
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        ASSERT_TRUE(gpu_copy(fixture->in + count - 1, &zero, 1) && gpu_copy(fixture->in + count, &one, 1));
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, fixture->in, &before, count, DPR_BOOL, DPR_ANY, &options));
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_ex(fixture->ctx, fixture->in, &beyond, count + 1, DPR_BOOL, DPR_ANY, &options));
        ASSERT_TRUE(gpu_copy(fixture->in + count - 1, &one, 1));
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, fixture->in, &after, count, DPR_BOOL, DPR_ANY, &options));
        EXPECT_EQ_I64(0, before);
        EXPECT_EQ_I64(1, beyond);
        EXPECT_EQ_I64(1, after);
    }
}

LARGE_TEST(floats_past_2_to_30) {
    NEED_MEMORY();
    const size_t count = ((size_t)1 << 30) + 3;
    /* Partial sums of any grouping are multiples of 1/4 below 2^31, so F64 holds them, and the result is exact in F32.
     */
    const float pattern[4] = {1.0F, -0.5F, 0.25F, 1.25F};
    const double exact = (double)((size_t)1 << 28) * 2.0 + 0.75;
    ASSERT_THAT(gpu_repeat(fixture->in, fixture->bytes, pattern, sizeof pattern), "%s", gpu_error());
    for (size_t s = 0; s <= gpu_strategy_count(); s++) {
        float sum = (float)exact, most = 1.25F;
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        if (gpu_strategy_runs(s, DPR_SUM, DPR_F32)) {
            sum = 0;
            EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, fixture->in, &sum, count, DPR_F32, DPR_SUM, &options));
        }
        EXPECT_EQ_I64((int64_t)(float)exact, (int64_t)sum);
        if (gpu_strategy_runs(s, DPR_MAX, DPR_F32)) {
            most = 0;
            EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, fixture->in, &most, count, DPR_F32, DPR_MAX, &options));
        }
        EXPECT_NEAR_F64(1.25, (double)most, 0.0);
        expect_i64(fixture, s, 1, fixture->in, count, DPR_F32, DPR_ARGMIN);
    }
}
