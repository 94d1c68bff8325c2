/* Segments of arrays, on the CPU: each result is compared with that of a call for the segment alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "reference.h"
#include "support.h"

enum { COUNT = 3000, SEGMENTS = 150, SHORT = 16, MANY_LONGEST = 64, RESULT_BYTES = 16 };

/* What is run. */
typedef struct scene {
    dpr_ctx *ctx;
    dpr_op op;
    dpr_dtype dtype;
    dpr_options options;
    dpr_segments segments;
    size_t count;
    const unsigned char *in;
    const int64_t *begins, *ends; /* the numbers, whatever type `segments` has them in */
} scene;

static int is_index(dpr_op op) {
    return op == DPR_ARGMIN || op == DPR_ARGMAX;
}

static int is_arithmetic(dpr_op op) {
    return op == DPR_SUM || op == DPR_PROD || op == DPR_SUMSQ || op == DPR_NORM1;
}

/* ---- One segment after another ---- */

/* Whether the segment's sum, product, mean, norm or variance is formed in F64 and rounded once, in an order of its own.
 */
static int is_formed_apart(const scene *s, size_t n) {
    const int is_real = ref_is_float(s->dtype), counts_all = s->options.nan == DPR_NAN_PROPAGATE;
    switch (s->op) {
    case DPR_VAR:
        return n <= (ref_is_complex(s->dtype) || (is_real && !counts_all) ? SHORT : MANY_LONGEST);
    case DPR_NORM2:
        return n <= MANY_LONGEST && !ref_is_complex(s->dtype);
    case DPR_MEAN:
        return n <= MANY_LONGEST && is_real && counts_all;
    default:
        return n <= MANY_LONGEST && is_real && is_arithmetic(s->op);
    }
}

/* The strategy whose partial result for the segment alone is the same: a plain loop runs short segments, and
 * cpu.threads has one thread for a segment of at most 2 MiB. */
static const char *same_partial(const scene *s, size_t n) {
    const size_t bytes = n * dpr_dtype_size(s->dtype);
    if (n <= SHORT || strcmp(s->options.strategy, "cpu.serial") == 0)
        return "cpu.serial";
    return bytes > 2 << 20 ? s->options.strategy : "cpu.simd";
}

/* The same for the result. */
static const char *same_result(const scene *s, size_t n) {
    return is_formed_apart(s, n) ? "cpu.serial" : same_partial(s, n);
}

static size_t length_of(const scene *s, uint64_t i) {
    return s->begins[i] < s->ends[i] ? (size_t)(s->ends[i] - s->begins[i]) : 0;
}

static const unsigned char *elements_of(const scene *s, uint64_t i) {
    return s->in + (length_of(s, i) > 0 ? (size_t)s->begins[i] : 0) * dpr_dtype_size(s->dtype);
}

/* Whether two results are the same: bit by bit, or to a few roundings if they are formed in another order. */
static int is_same(const scene *s, size_t n, const void *a, const void *b) {
    const dpr_dtype type = dpr_result_dtype(s->op, s->dtype);
    const double bound = type == DPR_F32 ? 0x1p-23 : 0x1p-48;
    float narrow[2];
    double x, y;
    if (memcmp(a, b, ref_result_size(s->op, s->dtype)) == 0)
        return 1;
    if (!is_formed_apart(s, n))
        return 0;
    memcpy(&narrow[0], a, sizeof narrow[0]);
    memcpy(&narrow[1], b, sizeof narrow[1]);
    x = (double)narrow[0];
    y = (double)narrow[1];
    if (type == DPR_F64) {
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
    }
    return x - y <= bound * (y < 0 ? -y : y) && y - x <= bound * (y < 0 ? -y : y);
}

/* What the segment's result should be. */
static void expected(const scene *s, uint64_t i, void *out) {
    const size_t n = length_of(s, i);
    dpr_options options = s->options;
    int64_t *index = out;
    options.strategy = same_result(s, n);
    if (is_index(s->op) && n == 0) {
        *index = -1;
        return;
    }
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, elements_of(s, i), out, n, s->dtype, s->op, &options));
    if (is_index(s->op) && s->segments.index == DPR_INDEX_IN_ARRAY && *index >= 0)
        *index += s->begins[i];
}

/* Expects a plan of the scene to write the same bytes as the call did. */
static void expect_plan(const scene *s, const unsigned char *known, size_t bytes) {
    unsigned char *out = malloc(bytes);
    dpr_segments segments = s->segments;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    memset(out, 0x5a, bytes);
    segments.check = 0;
    problem.op = s->op;
    problem.dtype = s->dtype;
    problem.count = s->count;
    problem.segments = &segments;
    problem.options = &s->options;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, out, NULL));
    EXPECT_THAT(memcmp(known, out, bytes) == 0, "%s of %s: a plan gives other results", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype));
    dpr_plan_destroy(plan);
    free(out);
}

/* Runs the scene, and compares every result. */
static void expect_right(const scene *s) {
    const size_t size = ref_result_size(s->op, s->dtype), bytes = (size_t)s->segments.count * size;
    unsigned char *out = malloc(bytes + 1);
    uint64_t wrong = 0;
    _Alignas(RESULT_BYTES) unsigned char one[RESULT_BYTES];
    memset(out, 0x5a, bytes + 1);
    ASSERT_STATUS(DPR_OK,
                  dpr_reduce_segments(s->ctx, s->in, out, s->count, s->dtype, s->op, &s->segments, &s->options));
    expect_plan(s, out, bytes + 1);
    for (uint64_t i = 0; i < s->segments.count; i++) {
        expected(s, i, one);
        wrong += !is_same(s, length_of(s, i), out + i * size, one);
    }
    EXPECT_THAT(wrong == 0, "%s of %s by %s: %llu segments are wrong", dpr_op_name(s->op), dpr_dtype_name(s->dtype),
                s->options.strategy, (unsigned long long)wrong);
    EXPECT_EQ_U64(0x5a, out[bytes]);
    free(out);
}

/* Expects the partial result of each segment to be that of its elements alone. */
static void expect_partials(const scene *s) {
    enum { FIRST = 1000 };
    const size_t words = dpr_partial_size(s->op, s->dtype) / sizeof(uint64_t), count = (size_t)s->segments.count;
    uint64_t *partials = malloc((count + 1) * words * sizeof *partials), *one = partials + count * words, wrong = 0;
    dpr_options options = s->options;
    ASSERT_STATUS(DPR_OK, dpr_reduce_segments_partial(s->ctx, s->in, partials, s->count, s->dtype, s->op, &s->segments,
                                                      FIRST, &options));
    for (uint64_t i = 0; i < count; i++) {
        const size_t n = length_of(s, i);
        options.strategy = same_partial(s, n);
        EXPECT_STATUS(DPR_OK, dpr_reduce_partial(s->ctx, elements_of(s, i), one, n, s->dtype, s->op,
                                                 FIRST + (n > 0 ? (uint64_t)s->begins[i] : 0), &options));
        wrong += memcmp(partials + i * words, one, words * sizeof *one) != 0;
    }
    EXPECT_THAT(wrong == 0, "%s of %s by %s: partial results of %llu segments are wrong", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype), s->options.strategy, (unsigned long long)wrong);
    free(partials);
}

/* ---- Segments ---- */

/* Segments of all lengths, some empty, with gaps and overlaps. */
static void choose_ranges(int64_t *begins, int64_t *ends, uint64_t *seed) {
    for (int i = 0; i < SEGMENTS; i++) {
        const uint32_t longest = i % 3 == 0 ? 4 : i % 3 == 1 ? 40 : COUNT;
        begins[i] = data_below(seed, COUNT);
        const int64_t n = data_below(seed, longest), room = COUNT - begins[i];
        ends[i] = i % 10 == 0 ? begins[i] - n : begins[i] + (n < room ? n : room);
    }
    begins[7] = 0;
    ends[7] = COUNT;
    begins[8] = INT32_MAX; /* empty, wherever it is */
    ends[8] = -5;
}

static const char *const strategies[] = {"cpu.serial", "cpu.simd", "cpu.threads"};

TEST(Segments, every_pair) {
    static _Alignas(16) unsigned char in[COUNT * 16];
    int64_t begins[SEGMENTS], ends[SEGMENTS];
    uint64_t seed = 20;
    scene s = {.ctx = cpu_ctx(), .count = COUNT, .in = in, .begins = begins, .ends = ends};
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() * 2 && !test_failed(); i++) {
        const dpr_segments segments = DPR_SEGMENTS_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        const data_pattern pattern = (data_pattern)(i % DATA_PATTERNS);
        s.op = dpr_op_at(i / 2 / dpr_dtype_count());
        s.dtype = dpr_dtype_at(i / 2 % dpr_dtype_count());
        if (!dpr_supported(s.op, s.dtype))
            continue;
        s.segments = segments;
        s.segments.count = SEGMENTS;
        s.segments.begins = begins;
        s.segments.ends = ends;
        s.segments.index = i / 2 % 2 ? DPR_INDEX_IN_ARRAY : DPR_INDEX_IN_SEGMENT;
        s.segments.check = 1;
        s.options = options;
        s.options.nan = i % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        choose_ranges(begins, ends, &seed);
        data_fill(in, s.op, s.dtype, data_pattern_applies(pattern, s.op, s.dtype) ? pattern : DATA_RANDOM, COUNT);
        for (size_t k = 0; k < LENGTH(strategies); k++) {
            s.options.strategy = strategies[k];
            expect_right(&s);
            expect_partials(&s);
        }
    }
    dpr_ctx_destroy(s.ctx);
}

/* Segments of each length up to LONGEST, twice, the second time growing, so that the array ends with the longest. */
enum { LONGEST = 70, LENGTHS = 2 * (LONGEST + 1), ELEMENTS = LONGEST * (LONGEST + 1) + 3 };

static void expect_every_length(scene *s, dpr_nan nan, data_pattern pattern) {
    static const char *const by_vectors[] = {"cpu.simd", "cpu.threads"};
    const size_t size = dpr_dtype_size(s->dtype);
    const dpr_segments segments = DPR_SEGMENTS_INIT;
    const dpr_options options = DPR_OPTIONS_INIT;
    unsigned char *in = malloc(ELEMENTS * size); /* without room behind it */
    int64_t offsets[LENGTHS + 1] = {3};
    for (int i = 0; i < LENGTHS; i++)
        offsets[i + 1] = offsets[i] + (i <= LONGEST ? LONGEST - i : i - LONGEST - 1);
    ASSERT_EQ_I64(ELEMENTS, offsets[LENGTHS]);
    for (int place = 0; place < 3; place++) {
        data_fill(in, s->op, s->dtype, DATA_RANDOM, ELEMENTS);
        for (int i = 0; i < LENGTHS; i++) /* specials at the beginning, in the middle and at the end */
            if (offsets[i + 1] > offsets[i])
                data_fill(in + (size_t)(offsets[i] + (offsets[i + 1] - offsets[i] - 1) * place / 2) * size, s->op,
                          s->dtype, i % 3 == 2 ? DATA_RANDOM : pattern, 1);
        s->in = in;
        s->count = ELEMENTS;
        s->begins = offsets;
        s->ends = offsets + 1;
        s->segments = segments;
        s->segments.count = LENGTHS;
        s->segments.begins = offsets;
        s->segments.index = place == 1 ? DPR_INDEX_IN_ARRAY : DPR_INDEX_IN_SEGMENT;
        s->options = options;
        s->options.nan = nan;
        s->options.strategy = by_vectors[place % 2];
        expect_right(s);
    }
    free(in);
}

TEST(Segments, every_length) {
    static const data_pattern patterns[] = {DATA_NAN_ALL, DATA_INF_FIRST, DATA_ZEROS, DATA_EXTREMES};
    scene s = {.ctx = cpu_ctx()};
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() && !test_failed(); i++) {
        s.op = dpr_op_at(i / dpr_dtype_count());
        s.dtype = dpr_dtype_at(i % dpr_dtype_count());
        for (size_t p = 0; p < 2 * LENGTH(patterns) && dpr_supported(s.op, s.dtype); p++)
            if (data_pattern_applies(patterns[p / 2], s.op, s.dtype))
                expect_every_length(&s, p % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE, patterns[p / 2]);
    }
    dpr_ctx_destroy(s.ctx);
}

/* A segment's bits depend on its elements alone, not on the segments before and after it. */
TEST(Segments, bits_do_not_depend_on_neighbours) {
    static float in[COUNT];
    int64_t begins[SEGMENTS], ends[SEGMENTS];
    float sums[SEGMENTS], alone;
    uint64_t seed = 22;
    dpr_ctx *ctx = cpu_ctx();
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_segments segments = DPR_SEGMENTS_INIT;
    data_fill(in, DPR_SUM, DPR_F32, DATA_RANDOM, COUNT);
    choose_ranges(begins, ends, &seed);
    begins[8] = ends[8] = 0;
    options.strategy = "cpu.simd";
    segments.count = SEGMENTS;
    segments.begins = begins;
    segments.ends = ends;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, sums, COUNT, DPR_F32, DPR_SUM, &segments, &options));
    segments.count = 1;
    for (int i = 0; i < SEGMENTS; i++) {
        segments.begins = &begins[i];
        segments.ends = &ends[i];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, &alone, COUNT, DPR_F32, DPR_SUM, &segments, &options));
        EXPECT_TRUE(alone == sums[i]);
    }
    dpr_ctx_destroy(ctx);
}

/* Writes number i of a type. */
static void put(void *numbers, dpr_dtype dtype, int i, int64_t value) {
    if (dpr_dtype_size(dtype) == 4)
        ((int32_t *)numbers)[i] = (int32_t)value;
    else
        ((int64_t *)numbers)[i] = value;
}

TEST(Segments, offsets_of_every_type) {
    static const dpr_dtype types[] = {DPR_I32, DPR_U32, DPR_I64, DPR_U64};
    static int16_t in[COUNT];
    int64_t offsets[SEGMENTS + 1], numbers[SEGMENTS + 1];
    uint64_t seed = 21;
    const dpr_options options = DPR_OPTIONS_INIT;
    scene s = {.ctx = cpu_ctx(), .op = DPR_SUM, .dtype = DPR_I16, .count = COUNT, .in = (const unsigned char *)in};
    data_fill(in, s.op, s.dtype, DATA_RANDOM, COUNT);
    for (size_t t = 0; t < LENGTH(types); t++) {
        const dpr_segments segments = DPR_SEGMENTS_INIT;
        offsets[0] = 0;
        for (int i = 0; i < SEGMENTS; i++)
            offsets[i + 1] = offsets[i] + (i % 4 == 0 ? 0 : data_below(&seed, COUNT / SEGMENTS + 1));
        for (int i = 0; i <= SEGMENTS; i++)
            put(numbers, types[t], i, offsets[i]);
        s.begins = offsets;
        s.ends = offsets + 1;
        s.segments = segments;
        s.segments.count = SEGMENTS;
        s.segments.begins = numbers;
        s.segments.dtype = types[t];
        s.options = options;
        s.options.strategy = "cpu.threads";
        expect_right(&s);
    }
    dpr_ctx_destroy(s.ctx);
}

TEST(Segments, long_ones_among_many_short_ones) {
    enum { MANY = 20000, LONG = 3 << 20, LENGTH_OF_SHORT = 7 };
    const dpr_segments segments = DPR_SEGMENTS_INIT;
    const dpr_options options = DPR_OPTIONS_INIT;
    const size_t count = (size_t)MANY * LENGTH_OF_SHORT + 2 * (size_t)LONG;
    float *in = malloc(count * sizeof *in);
    int64_t *offsets = malloc((MANY + 1) * sizeof *offsets);
    scene s = {.ctx = cpu_ctx(), .dtype = DPR_F32, .count = count, .in = (const unsigned char *)in, .begins = offsets};
    data_fill(in, DPR_SUM, DPR_F32, DATA_RANDOM, count);
    offsets[0] = 0;
    for (int i = 0; i < MANY; i++)
        offsets[i + 1] = offsets[i] + (i == 300 || i == MANY - 1 ? LONG : LENGTH_OF_SHORT);
    s.ends = offsets + 1;
    s.segments = segments;
    s.segments.count = MANY;
    s.segments.begins = offsets;
    s.segments.index = DPR_INDEX_IN_ARRAY;
    s.options = options;
    for (int i = 0; i < 2; i++) {
        s.op = i == 0 ? DPR_SUM : DPR_ARGMAX;
        s.options.strategy = "cpu.threads";
        expect_right(&s);
        expect_partials(&s);
    }
    dpr_ctx_destroy(s.ctx);
    free(in);
    free(offsets);
}

/* More long segments than threads note: windows of one array, with short ones between them. */
TEST(Segments, many_long_ones) {
    enum { MANY = 1100, WHOLE = (2 << 20) + MANY };
    static int64_t begins[MANY], ends[MANY], sums[MANY];
    static int8_t in[WHOLE];
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    int64_t wrong = 0;
    memset(in, 1, sizeof in);
    for (int i = 0; i < MANY; i++) {
        begins[i] = i;
        ends[i] = i % 2 ? i + 3 : WHOLE;
    }
    segments.count = MANY;
    segments.begins = begins;
    segments.ends = ends;
    options.strategy = "cpu.threads";
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, sums, WHOLE, DPR_I8, DPR_SUM, &segments, &options));
    for (int i = 0; i < MANY; i++)
        wrong += sums[i] != ends[i] - begins[i];
    EXPECT_EQ_I64(0, wrong);
    dpr_ctx_destroy(ctx);
}

/* Rows of an array in two pieces: the last row of the first piece goes on in the second one, and the row between has no
 * elements. */
TEST(Segments, rows_that_go_on) {
    static const int16_t pieces[][5] = {{3, 1, 4, 1, 5}, {9, 2, 6, 5, 3}};
    static const int32_t offsets[][4] = {{0, 2, 2, 5}, {0, 3, 5, 5}};
    enum { WORDS = 8 };
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    uint64_t partials[2][3][WORDS];
    const size_t bytes = dpr_partial_size(DPR_ARGMAX, DPR_I16);
    int64_t index = 0;
    ASSERT_TRUE(bytes <= sizeof partials[0][0]);
    segments.count = 3;
    segments.dtype = DPR_I32;
    for (uint64_t i = 0; i < 2; i++) {
        segments.begins = offsets[i];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments_partial_async(ctx, pieces[i], partials[i], 5, DPR_I16, DPR_ARGMAX,
                                                                &segments, 5 * i, NULL, NULL));
    }
    const char *first = (const char *)partials[0], *second = (const char *)partials[1];
    uint64_t both[2 * WORDS];
    memcpy(both, first + 2 * bytes, bytes);
    memcpy((char *)both + bytes, second, bytes);
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(both, 2, DPR_I16, DPR_ARGMAX, NULL, &index));
    EXPECT_EQ_I64(5, index); /* of 4, 1, 5 and 9, 2, 6 */
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(first, 1, DPR_I16, DPR_ARGMAX, NULL, &index));
    EXPECT_EQ_I64(0, index);
    EXPECT_STATUS(DPR_ERR_EMPTY, dpr_partial_finish(first + bytes, 1, DPR_I16, DPR_ARGMAX, NULL, &index));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(second + bytes, 1, DPR_I16, DPR_ARGMAX, NULL, &index));
    EXPECT_EQ_I64(8, index);
    dpr_ctx_destroy(ctx);
}

/* ---- Against the reference, which has no loops of the library ---- */

/* Makes `check` of every pair, NaN policy and strategy, the planner's choice among them. */
static void for_every_pair(scene *s, void (*check)(const scene *s, data_pattern pattern)) {
    static const char *const names[] = {"cpu.serial", "cpu.simd", "cpu.threads", NULL};
    static _Alignas(16) unsigned char in[COUNT * 16];
    static int64_t offsets[SEGMENTS + 1];
    uint64_t seed = 31;
    s->in = in;
    s->count = COUNT;
    s->begins = offsets;
    s->ends = offsets + 1;
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() * 2 && !test_failed(); i++) {
        const dpr_segments segments = DPR_SEGMENTS_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        const data_pattern some = (data_pattern)(i % DATA_PATTERNS);
        s->op = dpr_op_at(i / 2 / dpr_dtype_count());
        s->dtype = dpr_dtype_at(i / 2 % dpr_dtype_count());
        if (!dpr_supported(s->op, s->dtype))
            continue;
        const data_pattern pattern = data_pattern_applies(some, s->op, s->dtype) ? some : DATA_RANDOM;
        data_fill(in, s->op, s->dtype, pattern, COUNT);
        for (int k = 0; k < SEGMENTS; k++) {
            const int64_t end = offsets[k] + data_below(&seed, k % 10 == 3 ? 200 : k % 3 ? 18 : 3);
            offsets[k + 1] = end < COUNT && k + 1 < SEGMENTS ? end : COUNT;
        }
        s->segments = segments;
        s->segments.count = SEGMENTS;
        s->segments.begins = offsets;
        s->options = options;
        s->options.nan = i % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        for (size_t k = 0; k < LENGTH(names); k++) {
            s->options.strategy = names[k];
            check(s, pattern);
        }
    }
}

static void expect_reference(const scene *s, const ref_state *state, const void *got, const char *what, uint64_t i) {
    char why[300] = "";
    EXPECT_THAT(ref_check(state, got, why, sizeof why), "%s of %s by %s, %s %llu: %s", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype), s->options.strategy ? s->options.strategy : "auto", what,
                (unsigned long long)i, why);
}

static void expect_initial_values(const scene *s, data_pattern pattern) {
    _Alignas(RESULT_BYTES) unsigned char out[SEGMENTS * RESULT_BYTES], init[RESULT_BYTES];
    dpr_options options = s->options;
    if (!ref_takes_init(s->op))
        return;
    data_init(init, s->op, ref_result_dtype(s->op, s->dtype), pattern);
    options.init = init;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->ctx, s->in, out, s->count, s->dtype, s->op, &s->segments, &options));
    for (uint64_t i = 0; i < SEGMENTS && !test_failed(); i++) {
        ref_state state;
        ref_reduce(&state, s->op, s->dtype, options.nan, elements_of(s, i), length_of(s, i));
        ref_add_init(&state, init);
        expect_reference(s, &state, out + i * ref_result_size(s->op, s->dtype), "segment", i);
    }
}

TEST(Segments, initial_values_of_every_pair) {
    scene s = {.ctx = cpu_ctx()};
    for_every_pair(&s, expect_initial_values);
    dpr_ctx_destroy(s.ctx);
}

static void expect_whole(const scene *s, data_pattern pattern) {
    unsigned char *partials = malloc(SEGMENTS * dpr_partial_size(s->op, s->dtype));
    _Alignas(RESULT_BYTES) unsigned char one[RESULT_BYTES];
    ref_state state;
    (void)pattern;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments_partial(s->ctx, s->in, partials, s->count, s->dtype, s->op, &s->segments,
                                                      0, &s->options));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(partials, SEGMENTS, s->dtype, s->op, &s->options, one));
    ref_reduce(&state, s->op, s->dtype, s->options.nan, s->in, s->count);
    expect_reference(s, &state, one, "partial results of segments", SEGMENTS);
    free(partials);
}

/* Segments that follow each other make the array. */
TEST(Segments, partial_results_make_the_array) {
    scene s = {.ctx = cpu_ctx()};
    for_every_pair(&s, expect_whole);
    dpr_ctx_destroy(s.ctx);
}

/* Variances of up to 16 elements have loops of their own. Here they are compared with the reference, also where the
 * mean is much greater than the distances from it. */
TEST(Segments, variances_of_short_segments) {
    enum { EACH = 20 };
    static _Alignas(16) unsigned char in[EACH * SHORT * 16];
    unsigned char results[EACH][sizeof(double)];
    int64_t offsets[EACH + 1];
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.simd";
    segments.count = EACH;
    segments.begins = offsets;
    for (size_t t = 0; t < dpr_dtype_count(); t++)
        for (int n = 1; n <= SHORT; n++) {
            const dpr_dtype dtype = dpr_dtype_at(t);
            const size_t size = dpr_dtype_size(dtype);
            for (int i = 0; i <= EACH; i++)
                offsets[i] = (int64_t)i * n;
            data_fill(in, DPR_VAR, dtype, DATA_RANDOM, (size_t)EACH * (size_t)n);
            for (int i = 0; i < EACH * n && dtype == DPR_F64 && n % 2; i++)
                ((double *)(void *)in)[i] = 1e9 + 1e-3 * (i * i % 7);
            options.nan = n % 3 ? DPR_NAN_PROPAGATE : DPR_NAN_IGNORE;
            EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, results, (size_t)EACH * (size_t)n, dtype, DPR_VAR,
                                                      &segments, &options));
            for (int i = 0; i < EACH; i++) {
                ref_state state;
                char why[200] = "";
                ref_reduce(&state, DPR_VAR, dtype, options.nan, in + (size_t)offsets[i] * size, (size_t)n);
                EXPECT_THAT(ref_check(&state, (unsigned char *)results + (size_t)i * ref_result_size(DPR_VAR, dtype),
                                      why, sizeof why),
                            "%d of %s: %s", n, dpr_dtype_name(dtype), why);
            }
        }
    dpr_ctx_destroy(ctx);
}

/* Whatever the strategy, the sums of all segments add up to that of the array. */
TEST(Segments, sums_add_up) {
    enum { MANY = 100000, MOST = 9 };
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    int32_t *in = malloc(sizeof *in * MANY * MOST);
    uint32_t *offsets = malloc(sizeof *offsets * (MANY + 1));
    int64_t *sums = malloc(sizeof *sums * MANY), sum = 0, whole;
    uint64_t seed = 5;
    offsets[0] = 0;
    for (int i = 0; i < MANY; i++)
        offsets[i + 1] = offsets[i] + data_below(&seed, MOST + 1);
    data_fill(in, DPR_SUM, DPR_I32, DATA_EXTREMES, offsets[MANY]);
    segments.count = MANY;
    segments.begins = offsets;
    segments.dtype = DPR_U32;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, sums, offsets[MANY], DPR_I32, DPR_SUM, &segments, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, &whole, offsets[MANY], DPR_I32, DPR_SUM, NULL));
    for (int i = 0; i < MANY; i++)
        sum += sums[i];
    EXPECT_EQ_I64(whole, sum);
    dpr_ctx_destroy(ctx);
    free(in);
    free(offsets);
    free(sums);
}

TEST(Segments, initial_values) {
    static const uint8_t in[] = {1, 2, 3, 4};
    static const int64_t offsets[] = {0, 3, 3, 4};
    const uint64_t init = 100;
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    uint64_t sums[3] = {0};
    segments.count = 3;
    segments.begins = offsets;
    options.init = &init;
    for (size_t k = 0; k < LENGTH(strategies); k++) {
        options.strategy = strategies[k];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, sums, 4, DPR_U8, DPR_SUM, &segments, &options));
        EXPECT_EQ_U64(106, sums[0]);
        EXPECT_EQ_U64(100, sums[1]);
        EXPECT_EQ_U64(104, sums[2]);
    }
    dpr_ctx_destroy(ctx);
}

/* Products with -0.0 as the initial value: as though it were one more element. */
TEST(Segments, sign_of_an_initial_value) {
    static const float in[] = {1, -1}, init = -0.0F;
    static const int64_t offsets[] = {0, 1, 2, 2};
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    float products[3];
    segments.count = 3;
    segments.begins = offsets;
    options.init = &init;
    for (size_t k = 0; k < LENGTH(strategies); k++) {
        options.strategy = strategies[k];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, products, 2, DPR_F32, DPR_PROD, &segments, &options));
        for (int i = 0; i < 3; i++)
            EXPECT_THAT(products[i] == 0 && !signbit(products[i]) == (i == 1), "%d: %g", i, (double)products[i]);
    }
    dpr_ctx_destroy(ctx);
}

TEST(Segments, none_of_them_and_none_of_elements) {
    static const int64_t offsets[] = {0, 0, 0};
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    int64_t out[2] = {5, 5};
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, NULL, NULL, 0, DPR_F32, DPR_SUM, &segments, NULL));
    segments.count = 2;
    segments.begins = offsets;
    segments.check = 1;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, NULL, out, 0, DPR_F32, DPR_ARGMAX, &segments, NULL));
    EXPECT_EQ_I64(-1, out[0]);
    EXPECT_EQ_I64(-1, out[1]);
    dpr_ctx_destroy(ctx);
}

/* The number of segments is read when the run begins, by calls and by plans. */
TEST(Segments, number_in_memory) {
    static const int32_t in[] = {1, 2, 3, 4};
    static const int64_t offsets[] = {0, 1, 2, 4};
    static const uint64_t numbers[] = {2, 0, 3, 1000, 1};
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    uint64_t number = 0;
    segments.count = 3;
    segments.begins = offsets;
    segments.device_count = &number;
    problem.dtype = DPR_I32;
    problem.segments = &segments;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    for (size_t k = 0; k < 3 * LENGTH(numbers); k++) {
        static const int64_t sums[] = {1, 2, 7};
        int64_t out[3] = {-1, -1, -1};
        number = numbers[k / 3];
        EXPECT_STATUS(DPR_OK, k % 3 == 0 ? dpr_reduce_segments(ctx, in, out, 4, DPR_I32, DPR_SUM, &segments, NULL)
                              : k % 3 == 1
                                  ? dpr_reduce_segments_async(ctx, in, out, 4, DPR_I32, DPR_SUM, &segments, NULL, NULL)
                                  : dpr_plan_run(plan, in, out, NULL));
        for (size_t i = 0; i < LENGTH(sums); i++)
            EXPECT_EQ_I64(i < number ? sums[i] : -1, out[i]);
    }
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

/* ---- Mistakes ---- */

TEST(Segments, mistakes_with_partial_results) {
    static const float in[4] = {1};
    static const int64_t offsets[] = {0, 2, 4};
    static const float init = 1;
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    uint64_t out[16] = {7};
    segments.count = 2;
    segments.begins = offsets;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER,
                  dpr_reduce_segments_partial(ctx, in, NULL, 4, DPR_F32, DPR_MAX, &segments, 0, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "partial is NULL");
    EXPECT_STATUS(DPR_ERR_SIZE, dpr_reduce_segments_partial(ctx, in, out, 4, DPR_F32, DPR_ARGMAX, &segments,
                                                            (uint64_t)INT64_MAX - 3, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "first_index is");
    EXPECT_STATUS(DPR_ERR_MISALIGNED,
                  dpr_reduce_segments_partial(ctx, in, (char *)out + 4, 4, DPR_F32, DPR_MAX, &segments, 0, NULL));
    options.init = &init;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_reduce_segments_partial(ctx, in, out, 4, DPR_F32, DPR_MAX, &segments, 0, &options));
    EXPECT_CONTAINS(dpr_last_error(), "options->init is set");
    EXPECT_EQ_U64(7, out[0]);
    dpr_ctx_destroy(ctx);
}

TEST(Segments, outside_of_the_array) {
    static const float in[10] = {1};
    static const struct {
        int32_t begins[3], ends[3];
        const char *sentence;
    } cases[] = {{{0, 4, 9}, {1, 11, 10}, "segment 1 ends at 11, and the array has 10 elements"},
                 {{0, -3, 9}, {1, 2, 10}, "segment 1 begins at -3"},
                 {{0, 1, -9}, {1, 2, -8}, "segment 2 begins at -9"}};
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    float out[3] = {7, 7, 7};
    segments.count = 3;
    segments.dtype = DPR_I32;
    segments.check = 1;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        segments.begins = cases[i].begins;
        segments.ends = cases[i].ends;
        EXPECT_STATUS(DPR_ERR_SEGMENT, dpr_reduce_segments(ctx, in, out, 10, DPR_F32, DPR_SUM, &segments, NULL));
        EXPECT_EQ_STR(cases[i].sentence, dpr_last_error());
        EXPECT_TRUE(out[0] == 7 && out[1] == 7 && out[2] == 7);
    }
    static const int32_t begins[] = {10, 20, -5}, ends[] = {10, 11, -5}; /* empty ones may be anywhere */
    segments.begins = begins;
    segments.ends = ends;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, out, 10, DPR_F32, DPR_SUM, &segments, NULL));
    EXPECT_TRUE(out[0] == 0 && out[1] == 0 && out[2] == 0);
    static const uint64_t far_begins[] = {UINT64_MAX, 3, 0}, far_ends[] = {UINT64_MAX - 1, 2, UINT64_C(1) << 63};
    segments.begins = far_begins;
    segments.ends = far_ends;
    segments.dtype = DPR_U64;
    EXPECT_STATUS(DPR_ERR_SEGMENT, dpr_reduce_segments(ctx, in, out, 10, DPR_F32, DPR_SUM, &segments, NULL));
    EXPECT_EQ_STR("segment 2 ends at 9223372036854775808, and the array has 10 elements", dpr_last_error());
    segments.count = 2; /* those that are left are empty */
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, out, 10, DPR_F32, DPR_SUM, &segments, NULL));
    dpr_ctx_destroy(ctx);
}

TEST(Segments, mistakes) {
    static const float in[4] = {1};
    static const int64_t offsets[] = {0, 2, 4};
    static const uint64_t number = 2;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_launch_report report;
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    double out[2] = {7, 7};
    segments.count = 2;
    segments.begins = offsets;
#define EXPECT_REFUSED(STATUS, SENTENCE, CTX, IN, OUT, DTYPE, OP, SEGMENTS)                                            \
    EXPECT_STATUS(STATUS, dpr_reduce_segments(CTX, IN, OUT, 4, DTYPE, OP, SEGMENTS, &options));                        \
    EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                       \
    EXPECT_TRUE(out[0] == 7 && out[1] == 7)
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "ctx is NULL", NULL, in, out, DPR_F32, DPR_SUM, &segments);
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "segments is NULL", ctx, in, out, DPR_F32, DPR_SUM, NULL);
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "in is NULL", ctx, NULL, out, DPR_F32, DPR_SUM, &segments);
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "out is NULL", ctx, in, NULL, DPR_F32, DPR_SUM, &segments);
    EXPECT_REFUSED(DPR_ERR_UNSUPPORTED_PAIR, "band", ctx, in, out, DPR_F32, DPR_BAND, &segments);
    EXPECT_REFUSED(DPR_ERR_MISALIGNED, "out is", ctx, in, (char *)out + 2, DPR_F32, DPR_SUM, &segments);
    segments.begins = (const char *)offsets + 4;
    EXPECT_REFUSED(DPR_ERR_MISALIGNED, "segments->begins is", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.begins = NULL;
    EXPECT_REFUSED(DPR_ERR_NULL_POINTER, "segments->begins is NULL", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.begins = offsets;
    segments.dtype = DPR_I16;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "segments->dtype is", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.dtype = DPR_I64;
    segments.index = (dpr_index)2;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "segments->index is 2", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.index = DPR_INDEX_IN_SEGMENT;
    segments.check = 2;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "segments->check is 2", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.check = 1;
    segments.device_count = &number;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "segments->check is 1", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.check = 0;
    segments.device_count = (const uint64_t *)((const char *)&number + 4);
    EXPECT_REFUSED(DPR_ERR_MISALIGNED, "segments->device_count is", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.device_count = NULL;
    segments.count = UINT64_MAX;
    EXPECT_REFUSED(DPR_ERR_SIZE, "segments->count is 18446744073709551615", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.count = 2;
    segments.size = 12;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "segments->size is 12", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    segments.size = sizeof segments;
    options.launch = &launch;
    launch.report = &report;
    EXPECT_REFUSED(DPR_ERR_INVALID_OPTION, "options->launch->report is set", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    launch.report = NULL;
    launch.block = 64;
    EXPECT_REFUSED(DPR_ERR_STRATEGY_UNABLE, "options->launch->block is 64", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    options.launch = NULL;
    options.strategy = "no.such";
    EXPECT_REFUSED(DPR_ERR_UNKNOWN_STRATEGY, "no.such", ctx, in, out, DPR_F32, DPR_SUM, &segments);
    options.strategy = NULL;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, out, 4, DPR_F32, DPR_SUM, &segments, &options));
    dpr_ctx_destroy(ctx);
}

/* What is written overlaps nothing, and what lies next to it, is empty, or is only read, is no overlap. */
TEST(Segments, arrays_that_overlap) {
    static const int64_t offsets[] = {0, 2, 5, 10};
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments segments = DPR_SEGMENTS_INIT;
    float x[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    int64_t numbers[12] = {0, 2, 5, 10, [6] = 2, 5, 10};
    segments.count = 3;
    segments.begins = offsets;
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_segments(ctx, x, x, 10, DPR_F32, DPR_SUM, &segments, NULL));
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_segments(ctx, x, x + 9, 10, DPR_F32, DPR_SUM, &segments, NULL));
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_segments(ctx, x + 2, x, 10, DPR_F32, DPR_SUM, &segments, NULL));
    EXPECT_OVERLAP("overlaps in,", dpr_reduce_segments_async(ctx, x, x, 10, DPR_F32, DPR_SUM, &segments, NULL, NULL));
    EXPECT_OVERLAP("partial is ",
                   dpr_reduce_segments_partial(ctx, numbers, numbers, 10, DPR_F32, DPR_SUM, &segments, 0, NULL));
    EXPECT_TRUE(x[0] == 1 && x[9] == 10);
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, x, x + 10, 10, DPR_F32, DPR_SUM, &segments, NULL));
    EXPECT_TRUE(x[10] == 3 && x[11] == 12 && x[12] == 40);
    segments.begins = numbers;
    EXPECT_OVERLAP("overlaps segments->begins,",
                   dpr_reduce_segments(ctx, x, numbers + 3, 10, DPR_F32, DPR_ARGMAX, &segments, NULL));
    segments.ends = numbers + 6;
    EXPECT_OVERLAP("overlaps segments->ends,",
                   dpr_reduce_segments(ctx, x, numbers + 8, 10, DPR_F32, DPR_ARGMAX, &segments, NULL));
    segments.device_count = (const uint64_t *)(numbers + 11);
    EXPECT_OVERLAP("overlaps segments->device_count,",
                   dpr_reduce_segments(ctx, x, numbers + 9, 10, DPR_F32, DPR_ARGMAX, &segments, NULL));
    segments.device_count = NULL;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, x, numbers + 9, 10, DPR_F32, DPR_ARGMAX, &segments, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, x, numbers + 3, 10, DPR_F32, DPR_ARGMAX, &segments, NULL));
    segments.ends = segments.begins;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, x, x, 0, DPR_F32, DPR_SUM, &segments, NULL));
    segments.count = 0;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, x, x, 10, DPR_F32, DPR_SUM, &segments, NULL));
    dpr_ctx_destroy(ctx);
}
