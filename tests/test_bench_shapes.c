/* Arrays with many results, as `dpr bench --segments` and `--axes` measure them: their shapes, and results to compare
 * with. */
#include <stdlib.h>
#include <string.h>

#include "bench_exact.h"
#include "bench_shaped.h"
#include "cli.h"
#include "lists.h"
#include "support.h"

/* ---- Shapes ----------------------------------------------------------------------------------------------------- */

/* The shape of that name. */
static bench_shape shape_of(int (*take)(const char *text, void *out), const char *text) {
    static bench_shapes shapes;
    EXPECT_THAT(take(text, &shapes) == CLI_OK && shapes.n == 1, "%s is not understood", text);
    return shapes.at[0];
}

static void check_lengths(const shape_array *a, uint64_t count) {
    EXPECT_EQ_U64(0, shape_offset(a, 0));
    EXPECT_EQ_U64(count, shape_offset(a, a->results));
    uint64_t longest = 0, empty = 0;
    for (uint64_t i = 0; i < a->results; i++) {
        ASSERT_TRUE(shape_offset(a, i) <= shape_offset(a, i + 1));
        const uint64_t length = shape_offset(a, i + 1) - shape_offset(a, i);
        longest = length > longest ? length : longest;
        empty += length == 0;
    }
    const shape_lengths lengths = a->shape->lengths;
    const int has_empty = lengths == SHAPE_UNIFORM || lengths == SHAPE_HUGE;
    EXPECT_EQ_U64(empty, a->empty);
    EXPECT_THAT(has_empty || empty == 0, "%s has empty segments", a->shape->name);
    if (lengths == SHAPE_HUGE)
        EXPECT_TRUE(longest >= count / 2);
    else if (lengths == SHAPE_THREE)
        EXPECT_TRUE(a->results <= 3);
    else if (lengths == SHAPE_ZIPF)
        EXPECT_TRUE(longest <= count / 64 + 1);
    else
        EXPECT_TRUE(longest <= (lengths == SHAPE_UNIFORM ? 2 : 1) * a->shape->average);
}

TEST(BenchShapes, distributions) {
    static const uint64_t counts[] = {1, 5, 1000, 70001, 3000000};
    for (size_t i = 0; shape_distribution_name(i); i++)
        for (size_t c = 0; c < LENGTH(counts); c++) {
            const bench_shape shape = shape_of(shapes_take_segments, shape_distribution_name(i));
            const shape_array about = shape_measures(&shape, counts[c], DPR_I64);
            shape_array a;
            const char *why;
            ASSERT_EQ_I64(0, shape_make(&shape, counts[c], c % 2 ? DPR_I32 : DPR_I64, &a, &why));
            EXPECT_EQ_U64(counts[c], a.elements);
            check_lengths(&a, counts[c]);
            EXPECT_THAT(about.results >= a.results && about.results <= 2 * a.results + 200,
                        "%s of %" PRIu64 ": %" PRIu64 " results, and about %" PRIu64 " were expected", shape.name,
                        counts[c], a.results, about.results);
            shape_free(&a);
        }
}

TEST(BenchShapes, offsets_that_are_too_small_for_the_array) {
    const bench_shape shape = shape_of(shapes_take_segments, "three");
    shape_array a;
    const char *why;
    EXPECT_EQ_I64(-1, shape_make(&shape, UINT64_C(1) << 31, DPR_I32, &a, &why));
    EXPECT_CONTAINS(why, "do not reach the end");
    shape_free(&a);
    EXPECT_EQ_I64(0, shape_make(&shape, UINT64_C(1) << 31, DPR_U32, &a, &why));
    EXPECT_EQ_U64(UINT64_C(1) << 31, shape_offset(&a, 3));
    shape_free(&a);
}

static void check_array(const char *text, uint64_t count, uint64_t elements, uint64_t span, uint64_t results) {
    const bench_shape shape = shape_of(shapes_take_axes, text);
    const shape_array a = shape_measures(&shape, count, DPR_I32);
    EXPECT_EQ_STR(text, shape.name);
    EXPECT_EQ_U64(elements, a.elements);
    EXPECT_EQ_U64(span, a.span);
    EXPECT_EQ_U64(results, a.results);
}

TEST(BenchShapes, arrays_of_several_dimensions) {
    check_array("100x200:1", 7, 20000, 20000, 100);
    check_array("Nx16:1", 1000, 992, 992, 62);
    check_array("NxN:0", 1 << 28, 1 << 28, 1 << 28, 1 << 14);
    check_array("256xNxN:0,2", 1 << 28, 1 << 28, 1 << 28, 1 << 10);
    check_array("Nx12/16:0,1", 100, 96, 128, 1);
    check_array("2x3/5x7:1", 0, 42, 70, 14);
    check_array("5:0", 0, 5, 5, 1);
    check_array("Nx4096:1", 4095, 0, 0, 0);
    check_array("2^40x2^40:0", 0, UINT64_MAX / 64, UINT64_MAX / 64, UINT64_C(1) << 40);
}

TEST(BenchShapes, lists) {
    static bench_shapes shapes;
    ASSERT_EQ_I64(CLI_OK, shapes_take_axes("2x3x4:0,2,5:0,NxN:1,5:0", &shapes));
    ASSERT_EQ_I64(3, shapes.n);
    EXPECT_EQ_STR("2x3x4:0,2", shapes.at[0].name);
    EXPECT_EQ_U64(5, shapes.at[0].reduced);
    EXPECT_EQ_STR("5:0", shapes.at[1].name);
    EXPECT_EQ_STR("NxN:1", shapes.at[2].name);
    EXPECT_TRUE(!shape_scales(&shapes.at[0]) && shape_scales(&shapes.at[2]));
    ASSERT_EQ_I64(CLI_OK, shapes_take_axes("all", &shapes));
    EXPECT_EQ_I64(12, shapes.n);
    ASSERT_EQ_I64(CLI_OK, shapes_take_segments("all", &shapes));
    EXPECT_EQ_I64(9, shapes.n);
    ASSERT_EQ_I64(CLI_OK, shapes_take_segments("zipf,ones,zipf", &shapes));
    EXPECT_EQ_I64(2, shapes.n);
}

/* Leaves no zero bytes in the part of the stack that the next function takes. */
static __attribute__((noinline)) void fill_stack(void) {
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 'x';
}

TEST(BenchShapes, long_words_are_refused) {
    static bench_shapes shapes;
    char text[200];
    memset(text, '1', sizeof text);
    for (size_t i = 0; i < 2; i++) {
        text[i ? 70 : sizeof text - 1] = 0; /* longer than a word, and than a name */
        fill_stack();
        EXPECT_EQ_I64(CLI_USAGE, shapes_take_axes(text, &shapes));
        EXPECT_EQ_I64(CLI_USAGE, shapes_take_segments(text, &shapes));
    }
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* The array in memory. */
static unsigned char *repeated(const bench_exact *e, uint64_t span) {
    const size_t bytes = (size_t)span * dpr_dtype_size(e->dtype);
    unsigned char *array = malloc(bytes + EXACT_BLOCK);
    for (size_t done = 0; array && done < bytes; done += EXACT_BLOCK)
        memcpy(array + done, e->block, EXACT_BLOCK);
    return array;
}

/* Compares what a call for all results gives with what it should be. */
static void compare(dpr_ctx *cpu, const bench_exact *e, const shape_array *a, unsigned char *in,
                    unsigned char *expected, unsigned char *got) {
    if (a->offsets)
        memcpy(in + shaped_offsets_at(a, e->dtype), a->offsets, a->offset_bytes);
    exact_expect(e, a, expected);
    EXPECT_EQ_I64(DPR_OK, shaped_reduce(a, cpu, in, got, e->dtype, e->op, NULL));
    EXPECT_THAT(memcmp(expected, got, (size_t)a->results * e->result_bytes) == 0,
                "%s of %s, %s, %" PRIu64 " elements: other results", dpr_op_name(e->op), dpr_dtype_name(e->dtype),
                a->shape->name, a->elements);
}

static void check_results(dpr_ctx *cpu, const bench_shape *shape, uint64_t count, dpr_op op, dpr_dtype dtype) {
    bench_exact e;
    shape_array a;
    const char *why;
    ASSERT_EQ_I64(DPR_OK, exact_make(&e, cpu, op, dtype));
    ASSERT_EQ_I64(0, shape_make(shape, count, DPR_I64, &a, &why));
    const size_t bytes = (size_t)a.results * e.result_bytes;
    unsigned char *in = repeated(&e, shaped_offsets_at(&a, dtype) / dpr_dtype_size(dtype) + a.offset_bytes);
    unsigned char *expected = malloc(bytes), *got = malloc(bytes);
    if (EXPECT_TRUE(in && expected && got))
        compare(cpu, &e, &a, in, expected, got);
    free(in);
    free(expected);
    free(got);
    shape_free(&a);
    exact_free(&e);
}

static void check_pairs(const bench_shape *shape, uint64_t count) {
    dpr_ctx *cpu;
    ASSERT_EQ_I64(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    for (size_t o = 0; o < dpr_op_count(); o++)
        for (size_t d = 0; d < dpr_dtype_count(); d++)
            if (exact_can(dpr_op_at(o), dpr_dtype_at(d)))
                check_results(cpu, shape, count, dpr_op_at(o), dpr_dtype_at(d));
    dpr_ctx_destroy(cpu);
}

TEST(BenchExact, segments_of_every_pair) {
    for (size_t i = 0; shape_distribution_name(i); i++) {
        const bench_shape shape = shape_of(shapes_take_segments, shape_distribution_name(i));
        check_pairs(&shape, 200000);
    }
}

TEST(BenchExact, axes_of_every_pair) {
    static const char *const more[] = {"7x11x13x5:1,3", "3x5:0,1", "2x9x4/7x3:0,2", NULL};
    for (size_t i = 0; shape_axes_name(i); i++) {
        const bench_shape shape = shape_of(shapes_take_axes, shape_axes_name(i));
        check_pairs(&shape, 40000);
    }
    for (const char *const *text = more; *text; text++) {
        const bench_shape shape = shape_of(shapes_take_axes, *text);
        check_pairs(&shape, 1);
    }
}

/* The sums of a block's halves are opposite, and its elements take both signs. */
TEST(BenchExact, sums_stay_small) {
    dpr_ctx *cpu;
    bench_exact e;
    int64_t sum = 0, negative = 0;
    ASSERT_EQ_I64(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    ASSERT_EQ_I64(DPR_OK, exact_make(&e, cpu, DPR_SUM, DPR_F32));
    for (size_t i = 0; i < e.period; i++) {
        sum += e.re[i];
        negative += e.re[i] < 0;
    }
    EXPECT_EQ_I64(0, sum);
    EXPECT_TRUE(negative > (int64_t)e.period / 4);
    exact_free(&e);
    dpr_ctx_destroy(cpu);
}

TEST(BenchExact, operations_with_rounded_results_are_none) {
    EXPECT_TRUE(exact_can(DPR_SUM, DPR_C128) && exact_can(DPR_BXOR, DPR_U16));
    EXPECT_TRUE(!exact_can(DPR_BXOR, DPR_F32) && !exact_can(DPR_PROD, DPR_I32) && !exact_can(DPR_VAR, DPR_F32)
                && !exact_can(DPR_SUMSQ, DPR_F32));
}
