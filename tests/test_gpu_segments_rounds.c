/* segments.small where there are more segments than threads, so that a thread has several. */
#include <stdlib.h>
#include <string.h>

#include "close.h"
#include "data.h"
#include "gpu_memory.h"
#include "reference.h"
#include "support.h"

enum { MOST_BYTES = 16, MOST_SEGMENTS = 1200001, MOST_ELEMENTS = 4 << 20, RUNS = 5 };

/* Lengths of segments, by their numbers. */
typedef size_t length_of(size_t i);

static size_t ones(size_t i) {
    (void)i;
    return 1;
}
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

static length_of *const shapes[] = {ones,     up_to_three, long_among_short, long_in_some_threads, nearly_all_in_one,
                                    up_to_ten};

typedef struct scene {
    dpr_ctx *gpu, *cpu;
    dpr_op op;
    dpr_dtype dtype;
    size_t count; /* elements */
    unsigned char *in, *known, *got;
    unsigned char *in_device, *out_device, *numbers, *numbers_device;
} scene;

static void open_scene(scene *s) {
    *s = (scene){0};
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->gpu));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
    s->in = malloc((size_t)MOST_ELEMENTS * MOST_BYTES);
    s->known = malloc((size_t)MOST_SEGMENTS * MOST_BYTES);
    s->got = malloc((size_t)MOST_SEGMENTS * MOST_BYTES);
    s->numbers = calloc(MOST_SEGMENTS + 1, dpr_dtype_size(DPR_I64));
    s->in_device = gpu_alloc(DPR_MEMORY_DEVICE, (size_t)MOST_ELEMENTS * MOST_BYTES);
    s->out_device = gpu_alloc(DPR_MEMORY_DEVICE, (size_t)MOST_SEGMENTS * MOST_BYTES);
    s->numbers_device = gpu_alloc(DPR_MEMORY_DEVICE, (MOST_SEGMENTS + 1) * sizeof(int64_t));
    EXPECT_TRUE(s->in && s->known && s->got && s->numbers && s->in_device && s->out_device && s->numbers_device);
}

static void close_scene(scene *s) {
    gpu_free(DPR_MEMORY_DEVICE, s->in_device);
    gpu_free(DPR_MEMORY_DEVICE, s->out_device);
    gpu_free(DPR_MEMORY_DEVICE, s->numbers_device);
    free(s->in);
    free(s->known);
    free(s->got);
    free(s->numbers);
    dpr_ctx_destroy(s->gpu);
    dpr_ctx_destroy(s->cpu);
}

/* Elements whose sums and products are exact in any order. */
static void fill(scene *s) {
    data_fill(s->in, s->op, s->dtype, DATA_RANDOM, MOST_ELEMENTS);
    if (s->dtype == DPR_C64)
        fill_with_units(s->dtype, s->in, MOST_ELEMENTS);
    for (size_t i = 0; i < MOST_ELEMENTS && s->op == DPR_SUM && s->dtype == DPR_F32; i++)
        ((float *)s->in)[i] = (float)(i * 40503U % 17) - 8;
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST_ELEMENTS * dpr_dtype_size(s->dtype)));
}

/* Makes offsets of `count` segments, or of as many as the elements suffice for. Returns how many. */
static size_t make_offsets(scene *s, length_of *length, size_t count, dpr_dtype type) {
    const size_t size = dpr_dtype_size(type);
    uint64_t at = 0;
    size_t n = 0;
    memcpy(s->numbers, &at, size); /* the lower bytes come first */
    while (n < count && at + length(n) <= MOST_ELEMENTS) {
        at += length(n++);
        memcpy(s->numbers + n * size, &at, size);
    }
    s->count = (size_t)at;
    EXPECT_TRUE(gpu_copy(s->numbers_device, s->numbers, (n + 1) * size));
    return n;
}

/* Compares runs, which follow each other without a pause, with the CPU's results. */
static void expect_right(scene *s, dpr_segments *segments, const dpr_options *options) {
    const dpr_dtype type = dpr_result_dtype(s->op, s->dtype);
    const size_t size = ref_result_size(s->op, s->dtype), n = (size_t)segments->count;
    dpr_options own = *options;
    own.strategy = NULL;
    segments->begins = s->numbers;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->cpu, s->in, s->known, s->count, s->dtype, s->op, segments, &own));
    segments->begins = s->numbers_device;
    for (int run = 0; run < RUNS && !test_failed(); run++) {
        size_t wrong = 0;
        memset(s->got, 0x5a, n * size);
        EXPECT_TRUE(gpu_copy(s->out_device, s->got, n * size));
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->gpu, s->in_device, s->out_device, s->count, s->dtype, s->op,
                                                  segments, options));
        EXPECT_TRUE(gpu_copy(s->got, s->out_device, n * size));
        for (size_t i = 0; i < n; i++)
            wrong += !results_are_close(s->op, type, s->got + i * size, s->known + i * size, size, s->count, 0);
        EXPECT_THAT(wrong == 0, "%s of %s, %zu segments of %zu elements, offsets of type %s, run %d: %zu are wrong",
                    dpr_op_name(s->op), dpr_dtype_name(s->dtype), n, s->count, dpr_dtype_name(segments->dtype), run,
                    wrong);
    }
}

TEST(GpuSegmentRounds, threads_have_several_segments) {
    NEED_GPU();
    static const struct {
        dpr_op op;
        dpr_dtype dtype;
    } pairs[] = {{DPR_SUM, DPR_F32},    {DPR_SUM, DPR_I16},  {DPR_MIN, DPR_I8},  {DPR_ARGMAX, DPR_F32},
                 {DPR_ARGMIN, DPR_F64}, {DPR_PROD, DPR_C64}, {DPR_BXOR, DPR_U64}};
    static const dpr_dtype types[] = {DPR_I32, DPR_I64, DPR_U32, DPR_U64};
    static const size_t counts[] = {140000, 600001, MOST_SEGMENTS};
    scene s;
    open_scene(&s);
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
            segments.count = make_offsets(&s, shapes[k % LENGTH(shapes)], counts[k / LENGTH(shapes)], segments.dtype);
            expect_right(&s, &segments, &options);
        }
    }
    close_scene(&s);
}
