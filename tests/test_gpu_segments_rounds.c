/* segments.small where there are more segments than threads, so that a thread has several. */
#include <string.h>

#include "close.h"
#include "data.h"
#include "gpu_memory.h"
#include "gpu_segments_scene.h"
#include "reference.h"

enum { MANY_SEGMENTS = 1200001, MANY_ELEMENTS = 4 << 20, RUNS = 5 };

static size_t up_to_three(size_t i) {
    return i * 2654435761U % 4;
}
/* Long enough that a thread has one after another. */
static size_t up_to_ten(size_t i) {
    return i * 2654435761U % 11;
}
/* Around the longest of a thread (32), of a warp (1024) and of a block (16384, and more in a list of slices). */
static size_t long_among_short(size_t i) {
    static const size_t of[] = {31, 32, 33, 34, 1023, 1024, 1025, 2048, 33, 40};
    if (i % 50021 == 17)
        return 16380 + i % 7;
    return i % 701 == 5 ? of[i / 701 % LENGTH(of)] : i % 3;
}
/* All segments of some threads of a warp are long, and those of others are empty. */
static size_t long_in_some_threads(size_t i) {
    return i % 1024 < 2 ? 100 + i % 90 : i % 32 == 7;
}
static size_t nearly_all_in_one(size_t i) {
    return i == 300000 ? 1 << 20 : i % 2;
}

static length_of *const shapes[] = {length_ones,          up_to_three,       long_among_short,
                                    long_in_some_threads, nearly_all_in_one, up_to_ten};

/* Elements whose sums and products are exact in any order. */
static void fill(scene *s) {
    data_fill(s->in, s->op, s->dtype, DATA_RANDOM, MANY_ELEMENTS);
    if (s->dtype == DPR_C64)
        fill_with_units(s->dtype, s->in, MANY_ELEMENTS);
    for (size_t i = 0; i < MANY_ELEMENTS && s->op == DPR_SUM && s->dtype == DPR_F32; i++)
        ((float *)s->in)[i] = (float)(i * 40503U % 17) - 8;
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MANY_ELEMENTS * dpr_dtype_size(s->dtype)));
}

/* Makes offsets of `count` segments, or of as many as the elements suffice for. Returns how many. */
static size_t make_offsets(scene *s, length_of *length, size_t count, dpr_dtype type) {
    const size_t size = dpr_dtype_size(type);
    uint64_t at = 0;
    size_t n = 0;
    memcpy(s->numbers, &at, size); /* the lower bytes come first */
    while (n < count && at + length(n) <= MANY_ELEMENTS) {
        at += length(n++);
        memcpy(s->numbers + n * size, &at, size);
    }
    s->count = (size_t)at;
    EXPECT_TRUE(gpu_copy(s->numbers_device, s->numbers, (n + 1) * size));
    return n;
}

/* Makes begins, and behind them ends, of segments anywhere in the array. Every third ends before it begins, and so is
 * empty: from the greatest numbers of the type to the array, from there to negative numbers, or within the array. */
static void make_ranges(scene *s, length_of *length, size_t count, dpr_dtype type) {
    const size_t size = dpr_dtype_size(type);
    const uint64_t greatest = type == DPR_I32 ? INT32_MAX : type == DPR_I64 ? INT64_MAX : UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const uint64_t elements = length(i), first = i * 2654435761U % (MANY_ELEMENTS - elements + 1);
        uint64_t begin = first, end = first + elements;
        if (i % 9 == 2)
            begin = greatest - i % 5;
        else if (i % 9 == 5 && (type == DPR_I32 || type == DPR_I64))
            end = UINT64_MAX - i % 5;
        else if (i % 3 == 2)
            begin = end + 1;
        memcpy(s->numbers + i * size, &begin, size);
        memcpy(s->numbers + (s->most_segments + i) * size, &end, size);
    }
    s->count = MANY_ELEMENTS;
    EXPECT_TRUE(gpu_copy(s->numbers_device, s->numbers, (s->most_segments + count) * size));
}

/* Counts results that are wrong: of `n` that are known, and of others, which nobody writes. */
static size_t count_wrong(const scene *s, size_t n, size_t others) {
    const size_t size = ref_result_size(s->op, s->dtype);
    const dpr_dtype type = dpr_result_dtype(s->op, s->dtype);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += !results_are_close(s->op, type, s->got + i * size, s->known + i * size, size, s->count, 0);
    for (size_t i = n * size; i < (n + others) * size; i++)
        wrong += s->got[i] != 0x5a;
    return wrong;
}

/* Compares runs, which follow each other without a pause, with the CPU's results. In the last run, the device tells
 * that there are fewer segments, at `number`. */
static void expect_right(scene *s, uint64_t *number, dpr_segments *segments, int has_ends, const dpr_options *options) {
    const size_t size = ref_result_size(s->op, s->dtype), n = (size_t)segments->count;
    const uint64_t fewer = n / 2 + 3;
    dpr_options own = *options;
    own.strategy = NULL;
    use_numbers(s, segments, s->numbers, has_ends);
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->cpu, s->in, s->known, s->count, s->dtype, s->op, segments, &own));
    use_numbers(s, segments, s->numbers_device, has_ends);
    EXPECT_TRUE(gpu_copy(number, &fewer, sizeof fewer));
    for (int run = 0; run < RUNS && !test_failed(); run++) {
        const size_t there = run < RUNS - 1 ? n : (size_t)fewer;
        segments->device_count = run < RUNS - 1 ? NULL : number;
        memset(s->got, 0x5a, n * size);
        EXPECT_TRUE(gpu_copy(s->out_device, s->got, n * size));
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->gpu, s->in_device, s->out_device, s->count, s->dtype, s->op,
                                                  segments, options));
        EXPECT_TRUE(gpu_copy(s->got, s->out_device, n * size));
        const size_t wrong = count_wrong(s, there, n - there);
        EXPECT_THAT(wrong == 0, "%s of %s, %zu segments of %zu elements, %s of type %s, run %d: %zu are wrong",
                    dpr_op_name(s->op), dpr_dtype_name(s->dtype), there, s->count, has_ends ? "ranges" : "offsets",
                    dpr_dtype_name(segments->dtype), run, wrong);
    }
}

/* One array after another, of each pair. */
static void run_rounds(int has_ends) {
    static const struct {
        dpr_op op;
        dpr_dtype dtype;
    } pairs[] = {{DPR_SUM, DPR_F32},    {DPR_SUM, DPR_I16},  {DPR_MIN, DPR_I8},  {DPR_ARGMAX, DPR_F32},
                 {DPR_ARGMIN, DPR_F64}, {DPR_PROD, DPR_C64}, {DPR_BXOR, DPR_U64}};
    static const size_t counts[] = {140000, 600001, MANY_SEGMENTS};
    scene s;
    open_scene(&s, MANY_ELEMENTS, MANY_SEGMENTS);
    uint64_t *const number = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *number);
    for (size_t p = 0; p < LENGTH(pairs) && !test_failed(); p++) {
        s.op = pairs[p].op;
        s.dtype = pairs[p].dtype;
        fill(&s);
        for (size_t k = 0; k < LENGTH(shapes) * LENGTH(counts) && !test_failed(); k++) {
            dpr_options options = DPR_OPTIONS_INIT;
            dpr_segments segments = DPR_SEGMENTS_INIT;
            options.strategy = "segments.small";
            segments.dtype = types[(p + k) % LENGTH(types)];
            segments.index = k % 2 ? DPR_INDEX_IN_SEGMENT : DPR_INDEX_IN_ARRAY;
            segments.count = counts[k / LENGTH(shapes)];
            if (has_ends)
                make_ranges(&s, shapes[k % LENGTH(shapes)], segments.count, segments.dtype);
            else
                segments.count = make_offsets(&s, shapes[k % LENGTH(shapes)], segments.count, segments.dtype);
            expect_right(&s, number, &segments, has_ends, &options);
        }
    }
    gpu_free(DPR_MEMORY_DEVICE, number);
    close_scene(&s);
}

TEST(GpuSegmentRounds, threads_have_several_segments) {
    NEED_GPU();
    run_rounds(0);
}

/* Ranges overlap, leave gaps, and have no order. */
TEST(GpuSegmentRounds, ranges_in_any_order) {
    NEED_GPU();
    run_rounds(1);
}
