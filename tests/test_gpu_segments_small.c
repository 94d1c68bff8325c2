/* segments.small on a GPU: short arrays, and long segments that it cuts into slices, against the CPU's results. */
#include <stdlib.h>

#include "data.h"
#include "gpu_memory.h"
#include "gpu_segments_scene.h"

/* ---- Short arrays ---- */

static size_t a_long_one(size_t i) {
    return i == 1 ? 12000 : i % 2;
}
static size_t mostly_empty(size_t i) {
    return i % 100 == 99 ? i / 100 : 0;
}

/* Around what a lane and a few lanes read (segments_alone.cuh). */
static size_t around_lanes(size_t i) {
    static const size_t of[] = {4, 5, 0, 8, 9, 16, 31, 17, 32, 33, 63, 1, 64, 65, 2, 127, 128, 129};
    return of[i % LENGTH(of)];
}
/* Around a piece of a warp, and around one for each warp of a block. */
static size_t around_warps(size_t i) {
    static const size_t of[] = {511, 0, 512, 513, 1, 1023, 1024, 1025, 3, 4096, 4097, 7, 8191, 8192, 8193};
    return of[i % LENGTH(of)];
}
static size_t warps_among_short(size_t i) {
    return i % 190 == 77 ? around_warps(i / 190) : i % 5;
}
static size_t one_among_short(size_t i) {
    return i == 900 ? 30000 : i % 12;
}

/* With up to 2^18 elements of at most 1 MiB, and sizes around those of warps and blocks: segments by groups of lanes,
 * by a warp and by a block. */
static void run_short_arrays(scene *s) {
    static length_of *const shapes[] = {length_ones,  length_short, length_mixed,      a_long_one,     mostly_empty,
                                        around_lanes, around_warps, warps_among_short, one_among_short};
    const size_t element = dpr_dtype_size(s->dtype), most = element <= 4 ? 1 << 18 : (1 << 20) / element;
    const size_t sizes[] = {1, 2, 255, 256, 257, 1023, 1025, 4096, 5000, 8193, 1 << 16, most - 1, most, most + 1};
    make_elements(s, (size_t)s->op % 2 * dpr_dtype_alignment(s->dtype));
    for (size_t k = 0; k < LENGTH(sizes) * LENGTH(shapes); k++) {
        dpr_segments segments = DPR_SEGMENTS_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        s->count = sizes[k / LENGTH(shapes)];
        segments.count = make_short(s, shapes[k % LENGTH(shapes)], k % 3 < s->count ? k % 3 : 0, s->count - k % 2);
        segments.dtype = types[k % LENGTH(types)];
        segments.index = k % 4 < 2 ? DPR_INDEX_IN_ARRAY : DPR_INDEX_IN_SEGMENT;
        options.nan = k % 5 == 0 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        options.strategy = "segments.small";
        convert_numbers(s, segments.dtype);
        if (segments.count > 0 && (!is_measure(s->op) || is_divided_sum(s->op, s->dtype, options.nan)))
            expect_same(s, &segments, 0, &options);
    }
}

TEST(GpuSegmentsSmall, short_arrays) {
    NEED_GPU();
    run_pairs(run_short_arrays);
}

/* ---- Segments that segments.small cuts into slices ---- */

enum { MANY_RUNS = 50 };

/* A block reads up to 64 KB alone, or up to 128 KB if there are few segments, and at least two slices
 * (segments_small.cu). */
static size_t some_long(size_t i) {
    static const size_t of[] = {16383, 0,     16384, 1, 16385, 1023, 20480, 1024, 20481, 32768,
                                0,     32769, 2049,  0, 8191,  0,    8192,  8193, 10240, 10241};
    return of[i % LENGTH(of)];
}
static size_t long_among_short(size_t i) {
    return i % 40 == 3 ? some_long(i / 40) : i % 13;
}
static size_t long_among_ones(size_t i) {
    return i % 1500 == 700 ? (i % 2 ? 8192 : 16384) + i % 3 : 1;
}
/* One has half of 2^20 elements; others are few or many. */
static size_t half_among_few(size_t i) {
    return i == 7 ? 1 << 19 : i * 2654435761U % 9000;
}
static size_t half_among_many(size_t i) {
    return i == 7 ? 1 << 19 : i % 34;
}
/* One has all elements of arrays up to this size. */
static size_t all_in_one(size_t i) {
    return i == 1 ? 1 << 20 : i == 0;
}

/* Gives the scene an array of so many elements. */
static void enlarge(scene *s, size_t count) {
    const size_t bytes = count * dpr_dtype_size(s->dtype);
    free(s->in);
    gpu_free(DPR_MEMORY_DEVICE, s->in_device);
    s->in = malloc(bytes);
    s->in_device = gpu_alloc(DPR_MEMORY_DEVICE, bytes);
    EXPECT_TRUE(s->in && s->in_device);
    s->shift = 0;
    s->count = count;
    data_fill(s->in, s->op, s->dtype, DATA_RANDOM, count);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, bytes));
}

/* Reduces the segments by segments.small between strategies that find scratch memory as it has left it. */
static void expect_same_and_zeros(scene *s, dpr_segments *segments, int has_ends) {
    static const char *const names[] = {"segments.small", "segments.group", "segments.small", "segments.small",
                                        "segments.merge"};
    for (size_t i = 0; i < LENGTH(names) - (size_t)has_ends && !test_failed(); i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = names[i];
        expect_same(s, segments, has_ends, &options);
    }
}

static void expect_same_bits_of_small(scene *s, dpr_segments *segments, int has_ends) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "segments.small";
    use_numbers(s, segments, s->numbers_device, has_ends);
    const int others = count_other_bits(s, segments, &options, MANY_RUNS);
    EXPECT_THAT(others == 0, "%s of %s, %zu segments of %zu elements: %d runs differ from the first",
                dpr_op_name(s->op), dpr_dtype_name(s->dtype), (size_t)segments->count, s->count, others);
}

static const struct {
    dpr_op op;
    dpr_dtype dtype;
} cut_pairs[] = {{DPR_SUM, DPR_F32}, {DPR_SUM, DPR_F64},    {DPR_ARGMAX, DPR_F32}, {DPR_MIN, DPR_I8},
                 {DPR_SUM, DPR_I16}, {DPR_ARGMIN, DPR_F64}, {DPR_PROD, DPR_C64},   {DPR_BXOR, DPR_U64}};

static void take_pair(scene *s, size_t pair) {
    s->op = cut_pairs[pair].op;
    s->dtype = cut_pairs[pair].dtype;
    make_elements(s, 0);
}

/* Arrays of up to 2^20 + 1 elements. */
TEST(GpuSegmentsSmall, cuts_long_ones) {
    NEED_GPU();
    static length_of *const shapes[] = {some_long,       long_among_short, long_among_ones, half_among_few,
                                        half_among_many, all_in_one,       length_one_long, length_long};
    static const size_t sizes[] = {8191,          8192,          8193,    20000,         1 << 16,
                                   (1 << 16) + 1, (1 << 18) - 1, 1 << 19, (1 << 20) - 1, (1 << 20) + 1};
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t p = 0; p < LENGTH(cut_pairs) && !test_failed(); p++)
        for (size_t k = 0; k < LENGTH(sizes) * LENGTH(shapes) && !test_failed(); k++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            s.op = cut_pairs[p].op;
            s.dtype = cut_pairs[p].dtype;
            if (k % LENGTH(shapes) == 0)
                enlarge(&s, sizes[k / LENGTH(shapes)]);
            segments.count = make_short(&s, shapes[k % LENGTH(shapes)], k % 3, s.count);
            if (segments.count + 1 < MOST_SEGMENTS)
                s.begins[++segments.count] = (int64_t)s.count; /* the last one has the rest */
            segments.dtype = types[k % LENGTH(types)];
            segments.index = k % 5 ? DPR_INDEX_IN_SEGMENT : DPR_INDEX_IN_ARRAY;
            convert_numbers(&s, segments.dtype);
            if (segments.count > 0) {
                expect_same_and_zeros(&s, &segments, 0);
                expect_same_bits_of_small(&s, &segments, 0);
            }
        }
    close_scene(&s);
}

/* Segments that overlap have more slices than there are places: few of them get longer slices, and many are reduced by
 * the block that meets them. */
TEST(GpuSegmentsSmall, cuts_long_ones_that_overlap) {
    NEED_GPU();
    static const size_t counts[] = {3, FEW, 250, 256, 257, 265, 600, MANY};
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t p = 0; p < LENGTH(cut_pairs) && !test_failed(); p++)
        for (size_t k = 0; k < LENGTH(counts) && !test_failed(); k++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            if (p >= 3 && counts[k] >= 600) /* because the reference takes long */
                continue;
            take_pair(&s, p);
            overlap(&s, &segments, counts[k], types[k % LENGTH(types)]);
            expect_same_and_zeros(&s, &segments, 1);
            expect_same_bits_of_small(&s, &segments, 1);
        }
    close_scene(&s);
}

/* Short arrays, where segments have more pieces than a block has places for. */
TEST(GpuSegmentsSmall, has_no_room_for_pieces) {
    NEED_GPU();
    static const size_t counts[] = {20, 300, 3000, 9000};
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t p = 0; p < LENGTH(cut_pairs) && !test_failed(); p++)
        for (size_t k = 0; k < LENGTH(counts) && !test_failed(); k++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            take_pair(&s, p);
            s.count = 30000;
            for (size_t i = 0; i < counts[k]; i++) {
                const size_t length = i % 3 == 2 ? i % 70 : i * 2654435761U % 16000;
                s.begins[i] = (int64_t)(i * 40503U % (s.count - length));
                s.ends[i] = s.begins[i] + (int64_t)length;
            }
            segments.count = counts[k];
            segments.dtype = types[(p + k) % LENGTH(types)];
            convert_numbers(&s, segments.dtype);
            expect_same_and_zeros(&s, &segments, 1);
            expect_same_bits_of_small(&s, &segments, 1);
        }
    close_scene(&s);
}

/* Short arrays of so many segments that each has one thread or two (on an H200), with a long one here and there. */
TEST(GpuSegmentsSmall, one_or_two_threads_for_each) {
    NEED_GPU();
    static const size_t counts[] = {40000, 67584, 67600, 135000};
    scene s;
    open_scene(&s, MOST_ELEMENTS, counts[LENGTH(counts) - 1] + 1);
    for (size_t p = 0; p < LENGTH(cut_pairs) && !test_failed(); p++)
        for (size_t k = 0; k < LENGTH(counts) && !test_failed(); k++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            take_pair(&s, p);
            segments.count = counts[k];
            segments.dtype = types[(p + k) % LENGTH(types)];
            s.begins[0] = 0;
            for (size_t i = 0; i < counts[k]; i++)
                s.begins[i + 1] = s.begins[i] + (int64_t)(i % 2000 == 77 ? 700 : i % 4);
            s.count = (size_t)s.begins[counts[k]];
            EXPECT_TRUE(s.count <= MOST_ELEMENTS);
            convert_numbers(&s, segments.dtype);
            expect_same_and_zeros(&s, &segments, 0);
            expect_same_bits_of_small(&s, &segments, 0);
        }
    close_scene(&s);
}
