/* Arrays of 2^29 to 2^33 elements, whose results have a closed form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cycle.h"
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
        NEED_GPU();                                                                                                    \
        if (!fixture->in)                                                                                              \
            SKIP("needs 5 GiB of free device memory");                                                                 \
    } while (0)

/* Strategies that do not run the pair are left out. */
static void expect_i64(const large_fixture *f, size_t s, int64_t expected, const void *in, size_t count,
                       dpr_dtype dtype, dpr_op op) {
    int64_t result = INT64_MIN;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = gpu_strategy(s);
    if (!gpu_strategy_runs(s, op, dtype))
        return;
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(f->ctx, in, &result, count, dtype, op, &options));
    EXPECT_THAT(result == expected, "%s %s %s, %zu elements: %lld, not %lld",
                options.strategy ? options.strategy : "auto", dpr_op_name(op), dpr_dtype_name(dtype), count,
                (long long)result, (long long)expected);
}

static void expect_f32(const large_fixture *f, size_t s, float expected, const void *in, size_t count, dpr_op op) {
    float result = NAN;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = gpu_strategy(s);
    if (!gpu_strategy_runs(s, op, DPR_F32))
        return;
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(f->ctx, in, &result, count, DPR_F32, op, &options));
    EXPECT_THAT(result == expected, "%s %s f32, %zu elements: %.9g, not %.9g",
                options.strategy ? options.strategy : "auto", dpr_op_name(op), count, (double)result, (double)expected);
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
        expect_f32(fixture, s, (float)exact, fixture->in, count, DPR_SUM);
        expect_f32(fixture, s, 1.25F, fixture->in, count, DPR_MAX);
        expect_i64(fixture, s, 1, fixture->in, count, DPR_F32, DPR_ARGMIN);
    }
}

/* ---- On both sides of powers of two ---- */

enum { SLACK_BYTES = 64, MOST_SHIFT = 1 };

/* An array that repeats, with room for 2^power elements and a few more. 0 if it cannot be made, with the reason in
 * `why` if it is for want of memory. */
static int repeat_open(large_fixture *f, int power, dpr_dtype dtype, cycle c, char why[96]) {
    unsigned char period[CYCLE * sizeof(double)];
    const size_t period_bytes = cycle_period(c, dtype, period);
    f->bytes = (dpr_dtype_size(dtype) << power) + SLACK_BYTES;
    if (gpu_free_bytes() < f->bytes + ((size_t)1 << 30)) {
        snprintf(why, 96, "needs %zu GiB of free device memory", (f->bytes >> 30) + 1);
        return 0;
    }
    f->in = gpu_alloc(DPR_MEMORY_DEVICE, f->bytes);
    return EXPECT_THAT(f->in && gpu_repeat(f->in, f->bytes, period, period_bytes), "%s", gpu_error())
           && EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &f->ctx));
}

/* With a greatest element, `peak`, as the last of the array. Afterwards the array is as it was. */
static void expect_last(const large_fixture *f, size_t s, const unsigned char *in, size_t count, dpr_dtype dtype,
                        const void *peak) {
    const size_t size = dpr_dtype_size(dtype);
    unsigned char *last = f->in + (size_t)(in - f->in) + (count - 1) * size, before[16];
    if (!EXPECT_THAT(gpu_copy(before, last, size) && gpu_copy(last, peak, size), "%s", gpu_error()))
        return;
    expect_i64(f, s, (int64_t)count - 1, in, count, dtype, DPR_ARGMAX);
    EXPECT_THAT(gpu_copy(last, before, size), "%s", gpu_error());
}

/* How many of `count` numbers from `from` on are no multiples of the period. */
static int64_t nonzero(uint64_t from, uint64_t count) {
    const uint64_t before = (from + CYCLE - 1) / CYCLE, upto = (from + count + CYCLE - 1) / CYCLE;
    return (int64_t)(count - (upto - before));
}

static void bytes_around(int power) {
    const cycle c = {0, 0}; /* 0 to 30 */
    const uint8_t peak = 255;
    large_fixture f = {NULL, NULL, 0};
    char why[96] = "";
    NEED_GPU();
    if (repeat_open(&f, power, DPR_U8, c, why))
        for (size_t s = 0; s <= gpu_strategy_count() && !test_failed(); s++)
            for (size_t i = 0; i < 3 * (MOST_SHIFT + 1); i++) {
                const size_t count = ((size_t)1 << power) + i / 2 - 1, shift = i % 2;
                expect_i64(&f, s, cycle_sum(c, shift, count), f.in + shift, count, DPR_U8, DPR_SUM);
                expect_i64(&f, s, nonzero(shift, count), f.in + shift, count, DPR_U8, DPR_COUNT);
                expect_last(&f, s, f.in + shift, count, DPR_U8, &peak);
            }
    large_teardown(&f);
    if (why[0])
        SKIP(why);
}

/* From so many on, blocks read runs (launch.h). */
TEST(GpuLarge, bytes_around_2_to_29) {
    bytes_around(29);
}

TEST(GpuLarge, bytes_around_2_to_31) {
    bytes_around(31);
}

TEST(GpuLarge, bytes_around_2_to_32) {
    bytes_around(32);
}

TEST(GpuLarge, bytes_around_2_to_33) {
    bytes_around(33);
}

/* Periods add up to nothing, so that the sum is exact in F32 too. */
static void words_past(int power, dpr_dtype dtype) {
    const size_t count = ((size_t)1 << power) + 1;
    const int32_t i32 = 1000;
    const float f32 = 1000;
    large_fixture f = {NULL, NULL, 0};
    char why[96] = "";
    NEED_GPU();
    if (repeat_open(&f, power, dtype, cycle_with_zero, why))
        for (size_t s = 0; s <= gpu_strategy_count() && !test_failed(); s++)
            for (size_t shift = 0; shift <= MOST_SHIFT; shift++) {
                const unsigned char *in = f.in + shift * sizeof i32;
                const int64_t sum = cycle_sum(cycle_with_zero, shift, count);
                if (dtype == DPR_F32)
                    expect_f32(&f, s, (float)sum, in, count, DPR_SUM);
                else
                    expect_i64(&f, s, sum, in, count, dtype, DPR_SUM);
                expect_last(&f, s, in, count, dtype, dtype == DPR_F32 ? (const void *)&f32 : (const void *)&i32);
            }
    large_teardown(&f);
    if (why[0])
        SKIP(why);
}

TEST(GpuLarge, i32_past_2_to_31) {
    words_past(31, DPR_I32);
}

TEST(GpuLarge, f32_past_2_to_31) {
    words_past(31, DPR_F32);
}

TEST(GpuLarge, i32_past_2_to_32) {
    words_past(32, DPR_I32);
}

TEST(GpuLarge, f32_past_2_to_32) {
    words_past(32, DPR_F32);
}

/* The array holds the keys and the elements: 100 ones, a two, ones up to element 2^32, and four twos. */
LARGE_TEST(keys_past_2_to_32) {
    NEED_MEMORY();
    enum { RUNS = 4 };
    static const int64_t sums[RUNS] = {100, 2, ((int64_t)1 << 32) - 100, 8};
    static const unsigned char one = 1, twos[] = {2, 2, 2, 2}, keys[RUNS] = {1, 2, 1, 2};
    const size_t count = ((size_t)1 << 32) + 5;
    struct {
        int64_t sums[RUNS + 1];
        uint64_t runs;
        unsigned char keys[RUNS + 1];
    } got = {{0}, 0, {0}}, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *there);
    dpr_stream stream = gpu_stream_create();
    uint64_t runs = RUNS + 1;
    ASSERT_TRUE(there && stream && gpu_repeat(fixture->in, fixture->bytes, &one, 1));
    ASSERT_TRUE(gpu_copy(fixture->in + 100, twos, 1) && gpu_copy(fixture->in + count - 4, twos, sizeof twos));
    for (int in_stream = 0; in_stream < 2; in_stream++) {
        EXPECT_TRUE(gpu_copy(there, &(unsigned char[sizeof got]){0}, sizeof got));
        if (in_stream)
            EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(fixture->ctx, fixture->in, DPR_U8, fixture->in, there->keys,
                                                          there->sums, &there->runs, RUNS + 1, count, NULL, DPR_U8,
                                                          DPR_SUM, NULL, stream));
        else
            EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(fixture->ctx, fixture->in, DPR_U8, fixture->in, there->keys,
                                                    there->sums, &runs, count, DPR_U8, DPR_SUM, NULL));
        EXPECT_TRUE(gpu_stream_wait(stream) && gpu_copy(&got, there, sizeof got));
        EXPECT_EQ_U64(RUNS, in_stream ? got.runs : runs);
        EXPECT_TRUE(memcmp(got.sums, sums, sizeof sums) == 0 && memcmp(got.keys, keys, sizeof keys) == 0);
    }
    EXPECT_TRUE(gpu_stream_destroy(stream));
    gpu_free(DPR_MEMORY_DEVICE, there);
}

/* Ones, and further numbers at the ends: of segments that overlap, two have more than 2^32 elements. */
LARGE_TEST(segments_past_2_to_32) {
    NEED_MEMORY();
    enum { SEGMENTS = 5 };
    static const unsigned char one = 1, first[] = {3, 0}, last[] = {0, 3};
    const int64_t count = ((int64_t)1 << 32) + 5;
    const int64_t numbers[2][SEGMENTS] = {{0, 1, 7, 100, count - 3},
                                          {count, count - 1, 7, ((int64_t)1 << 31) + 100, count}};
    static const struct {
        dpr_op op;
        int64_t results[SEGMENTS];
    } cases[] = {
        {DPR_SUM, {((int64_t)1 << 32) + 7, ((int64_t)1 << 32) + 1, 0, (int64_t)1 << 31, 4}},
        {DPR_SUMSQ, {((int64_t)1 << 32) + 19, ((int64_t)1 << 32) + 1, 0, (int64_t)1 << 31, 10}},
        {DPR_ARGMIN, {1, 0, -1, 0, 1}},
        {DPR_ARGMAX, {0, 1, -1, 0, 2}},
    };
    int64_t got[SEGMENTS], *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof numbers);
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    ASSERT_TRUE(there && gpu_repeat(fixture->in, fixture->bytes, &one, 1) && gpu_copy(there, numbers, sizeof numbers));
    ASSERT_TRUE(gpu_copy(fixture->in, first, 2) && gpu_copy(fixture->in + count - 2, last, 2));
    segments.begins = there;
    segments.ends = there + SEGMENTS;
    segments.count = SEGMENTS;
    options.strategy = "segments.group";
    for (size_t k = 0; k < LENGTH(cases); k++) {
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(fixture->ctx, fixture->in, got, (size_t)count, DPR_U8, cases[k].op,
                                                  &segments, &options));
        for (size_t i = 0; i < SEGMENTS; i++)
            EXPECT_THAT(got[i] == cases[k].results[i], "%s of segment %zu: %lld, not %lld", dpr_op_name(cases[k].op), i,
                        (long long)got[i], (long long)cases[k].results[i]);
    }
    gpu_free(DPR_MEMORY_DEVICE, there);
}

/* Sums of ones in segments of 0 to 4 elements, and of 2^31; `offsets` and `got` have room for all of them. */
static void expect_lengths(const large_fixture *f, int64_t *offsets, int64_t *got, int64_t count) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    size_t wrong = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++)
        offsets[i + 1] = offsets[i] + (i == count / 3 * 2 ? (int64_t)1 << 31 : i % 5);
    segments.begins = offsets;
    segments.count = (uint64_t)count;
    options.strategy = "segments.group";
    for (int k = 0; k < 2; k++) {
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(f->ctx, f->in, got, (size_t)offsets[count], DPR_U8,
                                                  k ? DPR_NORM1 : DPR_SUM, &segments, &options));
        for (int64_t i = 0; i < count; i++)
            wrong += got[i] != offsets[i + 1] - offsets[i];
    }
    EXPECT_EQ_U64(0, wrong);
}

LARGE_TEST(one_long_segment_among_many) {
    NEED_MEMORY();
    enum { SEGMENTS = 1 << 20 };
    static const unsigned char one = 1;
    int64_t *const offsets = malloc((SEGMENTS + 1) * sizeof *offsets), *const got = malloc(SEGMENTS * sizeof *got);
    if (EXPECT_TRUE(offsets && got && gpu_repeat(fixture->in, fixture->bytes, &one, 1)))
        expect_lengths(fixture, offsets, got, SEGMENTS);
    free(offsets);
    free(got);
}

/* The same by offsets, which do not overlap. */
LARGE_TEST(offsets_past_2_to_32) {
    NEED_MEMORY();
    enum { SEGMENTS = 4 };
    static const char *const names[] = {"segments.merge", "segments.group", NULL};
    static const unsigned char one = 1;
    const int64_t count = ((int64_t)1 << 32) + 5, offsets[SEGMENTS + 1] = {0, 3, count - 2, count - 2, count};
    int64_t got[SEGMENTS];
    dpr_segments segments = DPR_SEGMENTS_INIT;
    segments.begins = offsets;
    segments.count = SEGMENTS;
    ASSERT_TRUE(gpu_repeat(fixture->in, fixture->bytes, &one, 1));
    for (size_t k = 0; k < LENGTH(names); k++) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = names[k];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(fixture->ctx, fixture->in, got, (size_t)count, DPR_U8, DPR_SUM,
                                                  &segments, &options));
        for (size_t i = 0; i < SEGMENTS; i++)
            EXPECT_EQ_I64(offsets[i + 1] - offsets[i], got[i]);
    }
}

/* All but the last ones are empty. */
LARGE_TEST(more_segments_than_2_to_32) {
    NEED_MEMORY();
    enum { SOME = 4 };
    static const char *const names[] = {"segments.merge", "segments.group", NULL};
    static const unsigned char five = 5;
    static const uint32_t zero = 0, last[SOME + 1] = {0, 1, 3, 6, 10};
    const uint64_t count = ((uint64_t)1 << 32) + SOME;
    const size_t bytes = (size_t)(count + 1) * sizeof zero;
    dpr_segments segments = DPR_SEGMENTS_INIT;
    if (gpu_free_bytes() < bytes + (size_t)count + ((size_t)1 << 30))
        SKIP("needs 23 GiB of free device memory");
    unsigned char *const offsets = gpu_alloc(DPR_MEMORY_DEVICE, bytes), *const out =
                                                                            gpu_alloc(DPR_MEMORY_DEVICE, count);
    ASSERT_TRUE(offsets && out && gpu_repeat(fixture->in, 64, &five, 1) && gpu_repeat(offsets, bytes, &zero, 4));
    ASSERT_TRUE(gpu_copy(offsets + bytes - sizeof last, last, sizeof last));
    segments.begins = offsets;
    segments.dtype = DPR_U32;
    segments.count = count;
    for (size_t k = 0; k < LENGTH(names); k++) {
        dpr_options options = DPR_OPTIONS_INIT;
        uint8_t got[SOME] = {0};
        int64_t others = 0;
        options.strategy = names[k];
        EXPECT_TRUE(gpu_repeat(out, count, &five, 1));
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_segments(fixture->ctx, fixture->in, out, 10, DPR_U8, DPR_MAX, &segments, &options));
        EXPECT_TRUE(gpu_copy(got, out + count - SOME, SOME));
        for (size_t i = 0; i < SOME; i++)
            EXPECT_EQ_U64(5, got[i]);
        EXPECT_STATUS(DPR_OK, dpr_reduce(out, &others, count, DPR_U8, DPR_COUNT));
        EXPECT_EQ_I64(SOME, others); /* all others are 0, the least number of the type */
    }
    gpu_free(DPR_MEMORY_DEVICE, offsets);
    gpu_free(DPR_MEMORY_DEVICE, out);
}

LARGE_TEST(axes_past_2_to_32) {
    NEED_MEMORY();
    static const unsigned char one = 1;
    const uint64_t third = (((uint64_t)1 << 32) + 5) / 3 + 1, extents[][2] = {{3, third}, {third, 3}};
    ASSERT_TRUE(gpu_repeat(fixture->in, fixture->bytes, &one, 1));
    for (uint32_t k = 0; k < 2; k++) {
        dpr_axes axes = DPR_AXES_INIT;
        int64_t got[3] = {0, 0, 0};
        axes.dimensions = 2;
        axes.extents = extents[k];
        axes.reduced = k == 0 ? 2 : 1;
        EXPECT_STATUS(DPR_OK, dpr_reduce_axes(fixture->ctx, fixture->in, got, DPR_U8, DPR_SUM, &axes, NULL));
        for (size_t i = 0; i < LENGTH(got); i++)
            EXPECT_EQ_U64(third, got[i]);
    }
}
