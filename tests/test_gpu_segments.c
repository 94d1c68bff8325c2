/* Segments on a GPU: every pair, strategy and distribution of lengths against the CPU's results, or those of the
 * reference. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "gpu_memory.h"
#include "gpu_segments_scene.h"
#include "reference.h"

/* Around the least that all blocks share (segments_group.h), and around multiples of a slice. */
static size_t shared_ones(size_t i) {
    static const size_t of[] = {32769, 32767, 40960, 32768, 40961, 40959};
    return i % 3 ? i % 5 : of[i / 3 % LENGTH(of)];
}
/* Around one, two and three pieces of demonstrations (segments_pieces.h), and around what a thread and a warp of
 * segments.bins reduce. */
static size_t around_pieces(size_t i) {
    static const size_t of[] = {8191, 16, 8193, 17, 8192, 2048, 16384, 2049, 16385, 0, 24577, 16383};
    return of[i % LENGTH(of)];
}
static length_of *const lengths[] = {length_ones,     length_short, length_mixed, length_long,
                                     length_one_long, shared_ones,  around_pieces};

/* Fills begins and ends; ends[i] is begins[i + 1] unless `gap` is not 0. With gaps, some segments are empty whose
 * numbers are outside of the array. Returns the number of segments. */
static size_t make_segments(scene *s, length_of *length, size_t first, size_t gap) {
    size_t at = first, n = 0;
    while (n + 1 < MOST_SEGMENTS && at + length(n) + gap < MOST_ELEMENTS - 1) {
        const int is_outside = gap > 0 && n % 11 == 3;
        s->begins[n] = is_outside ? -1 : (int64_t)at;
        s->ends[n] = is_outside ? -1 : (int64_t)(at + length(n));
        at += length(n) + gap;
        n++;
    }
    s->begins[n] = (int64_t)at;
    return n;
}

/* The demonstrations, with block sizes that differ from call to call, and dp.segments. */
static const struct {
    const char *name;
    int block; /* 0: its own */
} demonstrations[] = {{"segments.thread", 0}, {"segments.thread", 64},  {"segments.warp", 32},  {"segments.warp", 0},
                      {"segments.block", 64}, {"segments.block", 1024}, {"segments.split", 32}, {"segments.split", 256},
                      {"segments.bins", 32},  {"segments.bins", 0},     {"dp.segments", 0}};

static int is_demonstrated(dpr_op op, dpr_dtype dtype) {
    return (op == DPR_SUM || op == DPR_MIN || op == DPR_MAX)
           && (dtype == DPR_I32 || dtype == DPR_I64 || dtype == DPR_F32 || dtype == DPR_F64);
}

/* Whether the device runs kernels that launch kernels. */
static int has_nested_launches(const scene *s) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_plan *plan = NULL;
    options.strategy = "dp.tree";
    problem.count = 1;
    problem.options = &options;
    const dpr_status status = dpr_plan_create(s->gpu, &problem, &plan);
    if (status == DPR_OK)
        dpr_plan_destroy(plan);
    return status != DPR_ERR_STRATEGY_UNABLE;
}

static int is_left_out(const scene *s, const char *strategy) {
    return strncmp(strategy, "dp.", 3) == 0 && !has_nested_launches(s);
}

/* The same call by each demonstration. */
static void expect_same_of_demonstrations(scene *s, dpr_segments *segments, int has_ends, const dpr_options *options) {
    for (size_t i = 0; i < LENGTH(demonstrations) && is_demonstrated(s->op, s->dtype); i++) {
        dpr_options own = *options;
        dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
        launch.block = demonstrations[i].block;
        own.strategy = demonstrations[i].name;
        own.launch = &launch;
        if (!is_left_out(s, own.strategy))
            expect_same(s, segments, has_ends, &own);
    }
}

static void run_pair(scene *s) {
    for (size_t l = 0; l < LENGTH(lengths); l++)
        for (int has_ends = 0; has_ends < 2; has_ends++) {
            unsigned char init[MOST_BYTES];
            dpr_segments segments = DPR_SEGMENTS_INIT;
            dpr_options options = DPR_OPTIONS_INIT;
            if (has_ends == 0)
                make_elements(s, l % 2 * dpr_dtype_alignment(s->dtype));
            segments.count = make_segments(s, lengths[l], l, (size_t)has_ends);
            segments.dtype = types[(l + (size_t)has_ends) % LENGTH(types)];
            segments.index = l % 2 ? DPR_INDEX_IN_ARRAY : DPR_INDEX_IN_SEGMENT;
            options.nan = l % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
            options.divisor = l % 3 == 1 ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
            convert_numbers(s, segments.dtype);
            options.strategy = "segments.group";
            expect_same(s, &segments, has_ends, &options);
            expect_same_of_demonstrations(s, &segments, has_ends, &options);
            if ((l == 2 || l == 5) && ref_takes_init(s->op)) {
                memcpy(init, s->known + 8 * ref_result_size(s->op, s->dtype), ref_result_size(s->op, s->dtype));
                options.init = init;
                expect_same(s, &segments, has_ends, &options);
                expect_same_of_demonstrations(s, &segments, has_ends, &options);
            }
            static const char *const by_offsets[] = {"segments.merge", "segments.small"};
            const int able = !is_measure(s->op) || is_divided_sum(s->op, s->dtype, options.nan);
            for (size_t k = 0; k < LENGTH(by_offsets) && !has_ends && able; k++) {
                options.strategy = by_offsets[k];
                expect_same(s, &segments, has_ends, &options);
            }
        }
}

TEST(GpuSegments, every_pair_and_distribution) {
    NEED_GPU();
    run_pairs(run_pair);
}

/* Offsets that decrease: the segments between are empty, and others overlap. */
TEST(GpuSegments, offsets_without_order) {
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    s.op = DPR_SUM;
    s.dtype = DPR_I32;
    make_elements(&s, 0);
    for (size_t t = 0; t < LENGTH(types); t++) {
        dpr_segments segments = DPR_SEGMENTS_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        segments.count = 3000;
        segments.dtype = types[t];
        for (size_t i = 0; i <= 3000; i++)
            s.begins[i] = (int64_t)(i * 2654435761U % s.count / (1 + i % 5));
        convert_numbers(&s, types[t]);
        options.strategy = "segments.merge";
        expect_same(&s, &segments, 0, &options);
        options.strategy = "segments.small";
        expect_same(&s, &segments, 0, &options);
    }
    close_scene(&s);
}

/* ---- Sums that round up ---- */

/* The elements of one thread, if `threads` read vectors of 16 bytes in turn, are such that each addition to a running
 * sum rounds up: the sum of the others is hardly more than half a unit in the last place of the first one. */
static void fill_to_round(float *x, size_t count, size_t threads) {
    memset(x, 0, count * sizeof *x);
    for (size_t first = 0; first + 4 <= count; first += 4 * threads)
        for (size_t e = 0; e < 4; e++)
            x[first + e] = 0x1p-24F * (1 + 0x1p-10F);
    x[0] = 1;
}

enum { MOST_EMPTY = 300 };

/* The error of a sum of F32 or BF16, which is `exact`, in one segment that `empty` ones follow, over what dpr.h allows.
 */
static double excess_of_sum(const scene *s, const void *x, dpr_dtype dtype, double exact, size_t first, size_t count,
                            size_t empty, const char *strategy) {
    uint32_t offsets[MOST_EMPTY + 2] = {(uint32_t)first};
    float got[MOST_EMPTY + 1] = {0};
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    for (size_t i = 1; i <= empty + 1; i++)
        offsets[i] = (uint32_t)(first + count);
    segments.count = empty + 1;
    segments.begins = offsets;
    segments.dtype = DPR_U32;
    options.strategy = strategy;
    EXPECT_TRUE(gpu_copy(s->in_device, x, (first + count) * dpr_dtype_size(dtype)));
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_segments(s->gpu, s->in_device, got, first + count, dtype, DPR_SUM, &segments, &options));
    return fabs((double)got[0] - exact) / ((log2((double)count) + 8) * 0x1p-24 * exact);
}

static double excess_of_floats(const scene *s, const float *x, size_t first, size_t count, const char *strategy) {
    double exact = 0;
    for (size_t i = first; i < first + count; i++)
        exact += (double)x[i];
    return excess_of_sum(s, x, DPR_F32, exact, first, count, 0, strategy);
}

TEST(GpuSegments, sums_of_what_rounds_up_keep_their_bound) {
    enum { MOST = 1 << 16 };
    static const size_t threads[] = {32, 256, 512, 1024}, counts[] = {1024, 2048, 8192, 1 << 15, MOST};
    static float x[MOST];
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t k = 0; k < LENGTH(threads) * LENGTH(counts); k++) {
        const size_t count = counts[k / LENGTH(threads)];
        fill_to_round(x, count, threads[k % LENGTH(threads)]);
        const double excess = excess_of_floats(&s, x, 0, count, "segments.small");
        EXPECT_THAT(excess <= 1, "%zu elements, %zu threads: %g times the error that is allowed", count,
                    threads[k % LENGTH(threads)], excess);
    }
    close_scene(&s);
}

/* Neighbouring elements of which each rounds the sum up, in segments that begin and end anywhere in a thread's chunk.
 */
TEST(GpuSegments, sums_of_neighbours_that_round_up_keep_their_bound) {
    enum { FIRST = 20, MOST = 700 };
    static float x[FIRST + MOST];
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t first = 0; first < FIRST; first += 3)
        for (size_t count = 2; count <= MOST; count += count < 60 ? 1 : 37) {
            for (size_t i = 0; i < FIRST + MOST; i++)
                x[i] = 0x1p-24F * (1 + 0x1p-10F);
            x[first] = 1;
            const double excess = excess_of_floats(&s, x, first, count, "segments.merge");
            EXPECT_THAT(excess <= 1, "%zu elements from number %zu on: %g times the error that is allowed", count,
                        first, excess);
        }
    close_scene(&s);
}

/* The same for elements of two bytes, which segments.merge reduces by vectors: by a warp, by fewer threads, or by one
 * if many other segments end in the tile. */
TEST(GpuSegments, sums_of_small_neighbours_that_round_up_keep_their_bound) {
    enum { FIRST = 10, MOST = 50000, ONE = 0x3f80, LITTLE = 0x3381 }; /* 1, and 2^-24 (1 + 2^-7) */
    static const size_t empty[] = {0, 10, 20, 40, 100, MOST_EMPTY};
    static uint16_t x[FIRST + MOST];
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t first = 0; first < FIRST; first += 3)
        for (size_t count = 2; count <= MOST; count += count < 40 ? 1 : count / 4) {
            const double exact = 1 + (double)(count - 1) * 0x1p-24 * (1 + 0x1p-7);
            for (size_t i = 0; i < FIRST + MOST; i++)
                x[i] = LITTLE;
            x[first] = ONE;
            for (size_t e = 0; e < LENGTH(empty); e++) {
                const double excess = excess_of_sum(&s, x, DPR_BF16, exact, first, count, empty[e], "segments.merge");
                EXPECT_THAT(excess <= 1,
                            "%zu elements from number %zu on, %zu empty: %g times the error that is allowed", count,
                            first, empty[e], excess);
            }
        }
    close_scene(&s);
}

/* ---- Segments that all blocks share ---- */

enum { FEW_RUNS = 8 };

static const struct {
    dpr_op op;
    dpr_dtype dtype;
} shared_pairs[] = {{DPR_SUM, DPR_F32},    {DPR_ARGMIN, DPR_I8}, {DPR_VAR, DPR_F32},   {DPR_MINMAX, DPR_I8},
                    {DPR_SUM, DPR_F64},    {DPR_SUM, DPR_U64},   {DPR_MIN, DPR_F64},   {DPR_ARGMAX, DPR_F32},
                    {DPR_BXOR, DPR_U64},   {DPR_COUNT, DPR_I8},  {DPR_NORM2, DPR_F64}, {DPR_MEAN, DPR_F64},
                    {DPR_SUMSQ, DPR_U64},  {DPR_NORM1, DPR_I8},  {DPR_MEAN, DPR_U64},  {DPR_VAR, DPR_C128},
                    {DPR_MINMAX, DPR_F32}, {DPR_PROD, DPR_C64}};

/* Makes elements for pair number i. */
static void make_shared_pair(scene *s, size_t i) {
    s->op = shared_pairs[i].op;
    s->dtype = shared_pairs[i].dtype;
    make_elements(s, 0);
}

/* The bytes have ties in several slices. */
TEST(GpuSegments, long_ones_that_overlap) {
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t k = 0; k < 2 * LENGTH(shared_pairs) && !test_failed(); k++) {
        dpr_segments segments = DPR_SEGMENTS_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        const int is_many = k / 2 < 4 && k % 2; /* of a few pairs, because the reference takes long */
        make_shared_pair(&s, k / 2);
        overlap(&s, &segments, is_many ? MANY : FEW, types[k % LENGTH(types)]);
        segments.index = k % 3 ? DPR_INDEX_IN_ARRAY : DPR_INDEX_IN_SEGMENT;
        options.nan = k % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        options.strategy = "segments.group";
        expect_same(&s, &segments, 1, &options);
        expect_same_of_demonstrations(&s, &segments, 1, &options);
    }
    close_scene(&s);
}

/* Without a second launch, and with one. */
TEST(GpuSegments, arrays_around_the_least_that_is_shared) {
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t k = 0; k < LENGTH(shared_pairs) * 4 && !test_failed(); k++) {
        dpr_segments segments = DPR_SEGMENTS_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        make_shared_pair(&s, k / 4);
        s.count = 32767 + k % 4;
        s.begins[0] = 0;
        s.begins[1] = s.begins[2] = (int64_t)s.count;
        segments.count = 2;
        convert_numbers(&s, segments.dtype);
        options.strategy = "segments.group";
        expect_same(&s, &segments, 0, &options);
    }
    close_scene(&s);
}

/* The order in which segments find places for their pieces differs, too, and many find none. */
static void expect_same_bits_of_demonstrations(scene *s, const dpr_segments *segments) {
    static const char *const names[] = {"segments.split", "segments.bins", "dp.segments"};
    for (size_t i = 0; i < LENGTH(names) && is_demonstrated(s->op, s->dtype); i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = names[i];
        const int others = is_left_out(s, names[i]) ? 0 : count_other_bits(s, segments, &options, FEW_RUNS);
        EXPECT_THAT(others == 0, "%s of %s by %s, %zu segments: %d runs differ from the first", dpr_op_name(s->op),
                    dpr_dtype_name(s->dtype), names[i], (size_t)segments->count, others);
    }
}

/* Blocks list long segments, and finish their slices, in another order in each run. */
TEST(GpuSegments, long_ones_have_the_same_bits_in_each_run) {
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t k = 0; k < 2 * LENGTH(shared_pairs) && !test_failed(); k++) {
        dpr_segments segments = DPR_SEGMENTS_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        if (k / 2 >= 4 && k % 2)
            continue;
        make_shared_pair(&s, k / 2);
        data_fill(s.in, s.op, s.dtype, DATA_RANDOM, MOST_ELEMENTS);
        EXPECT_TRUE(gpu_copy(s.in_device, s.in, MOST_ELEMENTS * dpr_dtype_size(s.dtype)));
        overlap(&s, &segments, k % 2 ? MANY : FEW, DPR_I64);
        use_numbers(&s, &segments, s.numbers_device, 1);
        options.strategy = "segments.group";
        const int others = count_other_bits(&s, &segments, &options, FEW_RUNS);
        EXPECT_THAT(others == 0, "%s of %s, %zu segments: %d runs differ from the first", dpr_op_name(s.op),
                    dpr_dtype_name(s.dtype), (size_t)segments.count, others);
        expect_same_bits_of_demonstrations(&s, &segments);
    }
    close_scene(&s);
}

/* Segments of all lengths, some of which are shared by many blocks of segments.merge and segments.small. */
TEST(GpuSegments, offsets_have_the_same_bits_in_each_run) {
    static const char *const names[] = {"segments.merge", "segments.small", "segments.thread", "segments.warp",
                                        "segments.block"};
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    s.op = DPR_SUM;
    for (int is_double = 0; is_double < 2; is_double++) {
        s.dtype = is_double ? DPR_F64 : DPR_F32;
        make_elements(&s, 0);
        data_fill(s.in, s.op, s.dtype, DATA_RANDOM, MOST_ELEMENTS);
        EXPECT_TRUE(gpu_copy(s.in_device, s.in, MOST_ELEMENTS * dpr_dtype_size(s.dtype)));
        for (size_t k = 0; k < LENGTH(lengths) * LENGTH(names) && !test_failed(); k++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            dpr_options options = DPR_OPTIONS_INIT;
            segments.count = make_short(&s, lengths[k / LENGTH(names)], 0, s.count);
            convert_numbers(&s, DPR_I64);
            use_numbers(&s, &segments, s.numbers_device, 0);
            options.strategy = names[k % LENGTH(names)];
            const int others = count_other_bits(&s, &segments, &options, FEW_RUNS);
            EXPECT_THAT(others == 0, "%s by %s, %zu segments: %d runs differ from the first", dpr_dtype_name(s.dtype),
                        options.strategy, (size_t)segments.count, others);
        }
    }
    close_scene(&s);
}

/* The array goes on where another one has ended. */
TEST(GpuSegments, partial_results_count_from_a_first_index) {
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (int is_max = 0; is_max < 2; is_max++) {
        const uint64_t first = UINT64_C(3) << 33;
        const size_t bytes = dpr_partial_size(is_max ? DPR_ARGMAX : DPR_ARGMIN, DPR_I32);
        dpr_segments segments = DPR_SEGMENTS_INIT;
        s.op = is_max ? DPR_ARGMAX : DPR_ARGMIN;
        s.dtype = DPR_I32;
        make_elements(&s, 0);
        segments.count = make_short(&s, length_one_long, 0, s.count);
        convert_numbers(&s, DPR_I64);
        use_numbers(&s, &segments, s.numbers_device, 0);
        unsigned char *partials = malloc((size_t)segments.count * bytes);
        int64_t *known = (int64_t *)s.known, got = 0;
        segments.index = DPR_INDEX_IN_ARRAY;
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s.gpu, s.in_device, known, s.count, s.dtype, s.op, &segments, NULL));
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments_partial(s.gpu, s.in_device, partials, s.count, s.dtype, s.op,
                                                          &segments, first, NULL));
        for (size_t i = 0; i < segments.count && !test_failed(); i++) {
            if (s.begins[i] == s.begins[i + 1])
                continue;
            EXPECT_STATUS(DPR_OK, dpr_partial_finish(partials + i * bytes, 1, s.dtype, s.op, NULL, &got));
            EXPECT_EQ_I64(known[i] + (int64_t)first, got);
        }
        free(partials);
    }
    close_scene(&s);
}

/* Runs a plan of dp.segments, and writes what its kernels launched to *report. */
static void run_nested(scene *s, const dpr_segments *segments, int max_pending, dpr_launch_report *report) {
    const size_t bytes = (size_t)segments->count * ref_result_size(s->op, s->dtype);
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    dpr_launch_report *const pinned = gpu_alloc(DPR_MEMORY_PINNED, sizeof *pinned);
    dpr_stream stream = gpu_stream_create();
    launch.max_pending = max_pending;
    launch.report = pinned;
    launch.report_size = sizeof *pinned;
    options.strategy = "dp.segments";
    options.launch = &launch;
    problem.op = s->op;
    problem.dtype = s->dtype;
    problem.count = s->count;
    problem.segments = segments;
    problem.options = &options;
    memset(s->got, 0x5a, bytes);
    EXPECT_TRUE(pinned && gpu_copy(s->out_device, s->got, bytes));
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->gpu, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in_device, s->out_device, stream));
    EXPECT_TRUE(gpu_stream_wait(stream) && gpu_copy(s->got, s->out_device, bytes));
    *report = *pinned;
    dpr_plan_destroy(plan);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    gpu_free(DPR_MEMORY_PINNED, pinned);
}

/* A warp whose launch is refused reduces its segment in the same order as a launched grid. */
TEST(GpuSegments, refused_launches_give_the_same_bits) {
    NEED_GPU();
    static const int most[] = {0, 1, 7, DPR_NO_LAUNCHES};
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    if (!has_nested_launches(&s)) {
        close_scene(&s);
        SKIP("kernels cannot launch kernels here");
    }
    s.op = DPR_SUM;
    s.dtype = DPR_F32;
    make_elements(&s, 0);
    data_fill(s.in, s.op, s.dtype, DATA_RANDOM, MOST_ELEMENTS);
    EXPECT_TRUE(gpu_copy(s.in_device, s.in, MOST_ELEMENTS * sizeof(float)));
    for (int is_many = 0; is_many < 2; is_many++)
        for (size_t i = 0; i < LENGTH(most); i++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            dpr_launch_report report;
            overlap(&s, &segments, is_many ? MANY : FEW, DPR_I64);
            use_numbers(&s, &segments, s.numbers_device, 1);
            run_nested(&s, &segments, most[i], &report);
            const size_t bytes = (size_t)segments.count * sizeof(float), of_long = (size_t)segments.count / 3 * 2;
            if (i == 0)
                memcpy(s.known, s.got, bytes);
            EXPECT_TRUE(memcmp(s.known, s.got, bytes) == 0);
            EXPECT_EQ_U64(of_long, report.launched + report.in_line);
            EXPECT_EQ_U64(0, report.failed);
            EXPECT_TRUE(report.launched <= (most[i] > 0 ? (unsigned)most[i] : most[i] < 0 ? 0 : of_long));
            EXPECT_TRUE(i > 0 || report.launched > 0);
        }
    close_scene(&s);
}

static void expect_floats(const float *known, const float *got, size_t n) {
    for (size_t i = 0; i < n; i++)
        EXPECT_THAT(known[i] == got[i], "result %zu is %g, not %g", i, got[i], known[i]);
}

/* Results, offsets or both in pageable memory; a segment outside of the array; a call in a captured graph. */
TEST(GpuSegments, memory_checks_and_graphs) {
    NEED_GPU();
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    dpr_segments segments = DPR_SEGMENTS_INIT;
    const int32_t offsets[] = {0, 10, 10, 1000, MOST_ELEMENTS};
    const float one = 1;
    float got[4], known[] = {10, 0, 990, MOST_ELEMENTS - 1000};
    EXPECT_TRUE(gpu_repeat(s.in_device, MOST_ELEMENTS * sizeof one, &one, sizeof one));
    EXPECT_TRUE(gpu_copy(s.numbers_device, offsets, sizeof offsets));
    segments.dtype = DPR_I32;
    segments.count = 4;
    segments.check = 1;
    for (int on_device = 0; on_device < 2; on_device++) {
        segments.begins = on_device ? (const void *)s.numbers_device : offsets;
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS, DPR_F32, DPR_SUM, &segments, NULL));
        expect_floats(known, got, LENGTH(known));
        EXPECT_STATUS(DPR_ERR_SEGMENT, dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS - 1, DPR_F32, DPR_SUM,
                                                           &segments, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "segment 3 ends at");
    }
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "segments.merge";
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE,
                  dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS, DPR_F32, DPR_VAR, &segments, &options));
    EXPECT_CONTAINS(dpr_last_error(), "has no kernels for this operation");
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS, DPR_F32, DPR_MEAN, &segments, NULL));
    EXPECT_TRUE(got[0] == 1 && got[2] == 1 && got[3] == 1);
    const float of_nothing = NAN; /* with the same bits by every strategy */
    EXPECT_EQ_BYTES(&of_nothing, &got[1], sizeof of_nothing);
    segments.check = 0;
    dpr_stream stream = gpu_stream_create();
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments_async(s.gpu, s.in_device, s.out_device, MOST_ELEMENTS, DPR_F32, DPR_SUM,
                                                    &segments, NULL, stream));
    EXPECT_TRUE(gpu_stream_wait(stream));
    EXPECT_TRUE(gpu_capture_begin(stream));
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments_async(s.gpu, s.in_device, s.out_device, MOST_ELEMENTS, DPR_F32, DPR_SUM,
                                                    &segments, NULL, stream));
    gpu_graph *graph = gpu_capture_end(stream);
    for (int i = 0; i < 3; i++) {
        memset(got, 0, sizeof got);
        EXPECT_TRUE(gpu_copy(s.out_device, got, sizeof got));
        EXPECT_TRUE(gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
        EXPECT_TRUE(gpu_copy(got, s.out_device, sizeof got));
        expect_floats(known, got, LENGTH(known));
    }
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    close_scene(&s);
}

/* Kernels, and the copy engine, read offsets where they are. Pages of managed memory are the host's before each call.
 */
TEST(GpuSegments, offsets_in_pinned_and_managed_memory) {
    NEED_GPU();
    static const char *const strategies[] = {"segments.merge", "segments.group", "segments.small"};
    static const dpr_memory memories[] = {DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
    const int32_t one = 1;
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    dpr_segments segments = DPR_SEGMENTS_INIT;
    int64_t *const got = (int64_t *)(void *)s.got;
    segments.count = make_segments(&s, length_short, 0, 0);
    EXPECT_TRUE(gpu_repeat(s.in_device, MOST_ELEMENTS * sizeof one, &one, sizeof one));
    for (size_t k = 0; k < LENGTH(strategies) * LENGTH(memories); k++) {
        const dpr_memory memory = memories[k % LENGTH(memories)];
        const size_t bytes = (segments.count + 1) * sizeof *s.begins;
        dpr_options options = DPR_OPTIONS_INIT;
        int64_t *const offsets = gpu_alloc(memory, bytes);
        size_t wrong = 0;
        memcpy(offsets, s.begins, bytes);
        memset(got, 0x5a, segments.count * sizeof *got);
        segments.begins = offsets;
        options.strategy = strategies[k / LENGTH(memories)];
        EXPECT_STATUS(
            DPR_OK, dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS, DPR_I32, DPR_SUM, &segments, &options));
        for (size_t i = 0; i < segments.count; i++)
            wrong += got[i] != s.ends[i] - s.begins[i];
        EXPECT_THAT(wrong == 0, "%s, offsets in memory %d: %zu results are wrong", options.strategy, (int)memory,
                    wrong);
        gpu_free(memory, offsets);
    }
    close_scene(&s);
}

/* Where a number of segments lies, and the calls that read it there. */
typedef struct counted {
    scene *scene;
    dpr_op op; /* sums, whose results are those of SUM */
    dpr_segments segments;
    dpr_options options;
    dpr_memory memory; /* of `number` */
    uint64_t *number;
    gpu_graph *graph;
    dpr_stream stream;
} counted;

static void set_number(const counted *c, uint64_t number) {
    if (c->memory == DPR_MEMORY_DEVICE)
        EXPECT_TRUE(gpu_copy(c->number, &number, sizeof number));
    else
        *c->number = number;
}

/* Sums of ones in `out`, which is in memory that the host reaches, or in device memory: `number` of them. */
static void expect_sums(const counted *c, const int64_t *out, uint64_t number) {
    const scene *s = c->scene;
    int64_t *const got = (int64_t *)(void *)s->got;
    size_t wrong = 0;
    EXPECT_TRUE(gpu_copy(got, out, MOST_SEGMENTS * sizeof *got));
    for (size_t i = 0; i < MOST_SEGMENTS; i++)
        wrong += got[i] != (i < number && i < c->segments.count ? s->ends[i] - s->begins[i] : 0x5a5a5a5a5a5a5a5a);
    EXPECT_THAT(wrong == 0, "%s, %llu of %llu segments: %zu results are wrong", c->options.strategy,
                (unsigned long long)number, (unsigned long long)c->segments.count, wrong);
}

/* Launches the graph, and calls that wait with results in device and in pageable memory. */
static void run_counted(const counted *c, uint64_t number) {
    scene *s = c->scene;
    int64_t *const on_device = (int64_t *)(void *)s->out_device, *const pageable = (int64_t *)(void *)s->known;
    set_number(c, number);
    for (int way = 0; way < 3; way++) {
        int64_t *const out = way == 2 ? pageable : on_device;
        memset(pageable, 0x5a, MOST_SEGMENTS * sizeof *pageable);
        EXPECT_TRUE(gpu_copy(on_device, pageable, MOST_SEGMENTS * sizeof *pageable));
        if (way == 0)
            EXPECT_TRUE(gpu_graph_launch(c->graph, c->stream) && gpu_stream_wait(c->stream));
        else
            EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->gpu, s->in_device, out, s->count, DPR_I32, c->op, &c->segments,
                                                      &c->options));
        expect_sums(c, out, number);
    }
}

/* The number of segments is in device or pinned memory, and changes between launches of one graph. */
TEST(GpuSegments, offsets_whose_number_the_device_has) {
    NEED_GPU();
    static const struct {
        const char *strategy;
        dpr_op op;
    } ways[] = {{"segments.merge", DPR_SUM}, {"segments.group", DPR_SUM},  {"segments.group", DPR_NORM1},
                {"segments.small", DPR_SUM}, {"segments.thread", DPR_SUM}, {"segments.warp", DPR_SUM},
                {"segments.block", DPR_SUM}, {"segments.split", DPR_SUM},  {"segments.bins", DPR_SUM},
                {"dp.segments", DPR_SUM}};
    static const dpr_memory memories[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED};
    const int32_t one = 1;
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    s.count = MOST_ELEMENTS - 1;
    EXPECT_TRUE(gpu_repeat(s.in_device, MOST_ELEMENTS * sizeof one, &one, sizeof one));
    for (size_t k = 0; k < LENGTH(ways) * LENGTH(memories) * LENGTH(lengths) && !test_failed(); k++) {
        counted c = {.scene = &s, .segments = DPR_SEGMENTS_INIT, .options = DPR_OPTIONS_INIT};
        if (is_left_out(&s, ways[k % LENGTH(ways)].strategy))
            continue;
        c.op = ways[k % LENGTH(ways)].op;
        c.memory = memories[k / LENGTH(ways) % LENGTH(memories)];
        c.number = gpu_alloc(c.memory, sizeof *c.number);
        c.options.strategy = ways[k % LENGTH(ways)].strategy;
        c.segments.count = make_segments(&s, lengths[k / LENGTH(ways) / LENGTH(memories)], 0, 0);
        c.segments.begins = s.numbers_device;
        c.segments.device_count = c.number;
        convert_numbers(&s, c.segments.dtype);
        c.stream = gpu_stream_create();
        EXPECT_TRUE(gpu_capture_begin(c.stream));
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments_async(s.gpu, s.in_device, s.out_device, s.count, DPR_I32, c.op,
                                                        &c.segments, &c.options, c.stream));
        c.graph = gpu_capture_end(c.stream);
        const uint64_t most = c.segments.count, numbers[] = {most, 0, 1, most / 2, most - 1, most + 1, UINT64_MAX, 0};
        for (size_t i = 0; i < LENGTH(numbers); i++)
            run_counted(&c, numbers[i]);
        gpu_graph_destroy(c.graph);
        EXPECT_TRUE(gpu_stream_destroy(c.stream));
        gpu_free(c.memory, c.number);
    }
    close_scene(&s);
}
