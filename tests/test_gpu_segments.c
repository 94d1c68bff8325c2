/* Segments on a GPU: every pair, strategy and distribution of lengths against the CPU's results. */
#include <stdlib.h>
#include <string.h>

#include "close.h"
#include "data.h"
#include "gpu_memory.h"
#include "reference.h"
#include "support.h"

enum { MOST_BYTES = 16, MOST_ELEMENTS = 1 << 18, MOST_SEGMENTS = 1 << 15, GUARD = 64 };

/* Lengths of segments: the next one is made of the number of the segment. */
typedef size_t length_of(size_t i);
static size_t ones(size_t i) {
    return i > 0;
}
static size_t short_ones(size_t i) {
    return i * 2654435761U % 17;
}
static size_t mixed(size_t i) {
    return i % 7 == 0 ? i * 2654435761U % 3000 : i % 3 == 0 ? 0 : i % 40;
}
static size_t long_ones(size_t i) {
    return 9000 + i * 1000;
}
static size_t one_long(size_t i) {
    return i == 5 ? 150000 : i % 9;
}
static length_of *const lengths[] = {ones, short_ones, mixed, long_ones, one_long};

typedef struct scene {
    dpr_ctx *gpu, *cpu;
    dpr_op op;
    dpr_dtype dtype;
    unsigned char *in, *known, *got, *magnitudes;
    int64_t *begins, *ends;
    unsigned char *in_device, *out_device, *numbers_device;
} scene;

/* Fills begins and ends; ends[i] is begins[i + 1] unless `gap` is not 0. Returns the number of segments. */
static size_t make_segments(scene *s, length_of *length, size_t first, size_t gap) {
    size_t at = first, n = 0;
    while (n + 1 < MOST_SEGMENTS && at + length(n) + gap < MOST_ELEMENTS) {
        s->begins[n] = (int64_t)at;
        s->ends[n] = (int64_t)(at + length(n));
        at += length(n) + gap;
        n++;
    }
    s->begins[n] = (int64_t)at;
    return n;
}

/* Compares a call on the device with the same call on the CPU, and looks at what lies around the results. */
static void expect_same(scene *s, dpr_segments *segments, const dpr_options *options, const char *what) {
    const size_t size = ref_result_size(s->op, s->dtype), n = (size_t)segments->count;
    size_t wrong = 0;
    dpr_options own = *options;
    own.strategy = NULL;
    segments->begins = s->begins;
    segments->ends = segments->ends ? s->ends : NULL;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->cpu, s->in, s->known, MOST_ELEMENTS, s->dtype, s->op, segments, &own));
    EXPECT_STATUS(
        DPR_OK, dpr_reduce_segments(s->cpu, s->in, s->magnitudes, MOST_ELEMENTS, s->dtype, DPR_NORM1, segments, &own));
    segments->begins = s->numbers_device;
    segments->ends = segments->ends ? s->numbers_device + MOST_SEGMENTS * sizeof(int64_t) : NULL;
    memset(s->got, 0x5a, n * size + 2 * GUARD);
    EXPECT_TRUE(gpu_copy(s->out_device, s->got, n * size + 2 * GUARD));
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->gpu, s->in_device, s->out_device + GUARD, MOST_ELEMENTS, s->dtype,
                                              s->op, segments, options));
    EXPECT_TRUE(gpu_copy(s->got, s->out_device, n * size + 2 * GUARD));
    for (size_t i = 0; i < n; i++)
        wrong += !results_are_close(dpr_result_dtype(s->op, s->dtype), s->got + GUARD + i * size, s->known + i * size,
                                    size, s->op == DPR_SUM ? magnitude_at(s->dtype, s->magnitudes, i) : 0);
    for (size_t i = 0; i < GUARD; i++)
        wrong += s->got[i] != 0x5a || s->got[GUARD + n * size + i] != 0x5a;
    EXPECT_THAT(wrong == 0, "%s of %s, %s, %s: %zu of %zu results are wrong", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype), what, options->strategy, wrong, n);
}

static void run_pair(scene *s) {
    data_fill(s->in, s->op, s->dtype, DATA_RANDOM, MOST_ELEMENTS);
    if (data_pattern_applies(DATA_SPECIALS, s->op, s->dtype))
        data_fill(s->in, s->op, s->dtype, DATA_SPECIALS, MOST_ELEMENTS / 16);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST_ELEMENTS * dpr_dtype_size(s->dtype)));
    for (size_t l = 0; l < LENGTH(lengths); l++)
        for (size_t gap = 0; gap < 2; gap++) {
            dpr_segments segments = DPR_SEGMENTS_INIT;
            dpr_options options = DPR_OPTIONS_INIT;
            segments.count = make_segments(s, lengths[l], l, gap);
            segments.ends = gap ? s->ends : NULL;
            segments.index = l % 2 ? DPR_INDEX_IN_ARRAY : DPR_INDEX_IN_SEGMENT;
            options.nan = l % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
            EXPECT_TRUE(gpu_copy(s->numbers_device, s->begins, MOST_SEGMENTS * sizeof(int64_t)));
            EXPECT_TRUE(gpu_copy(s->numbers_device + MOST_SEGMENTS * sizeof(int64_t), s->ends,
                                 MOST_SEGMENTS * sizeof(int64_t)));
            options.strategy = "segments.group";
            expect_same(s, &segments, &options, gap ? "begins and ends" : "offsets");
            segments.ends = gap ? s->ends : NULL;
            options.strategy = "segments.merge";
            if (!gap)
                expect_same(s, &segments, &options, "offsets");
        }
}

static void open_scene(scene *s) {
    const size_t results = MOST_SEGMENTS * MOST_BYTES + 2 * GUARD;
    memset(s, 0, sizeof *s);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->gpu));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
    s->in = malloc(MOST_ELEMENTS * MOST_BYTES);
    s->known = malloc(results);
    s->got = malloc(results);
    s->magnitudes = malloc(results);
    s->begins = calloc(MOST_SEGMENTS, sizeof *s->begins);
    s->ends = calloc(MOST_SEGMENTS, sizeof *s->ends);
    s->in_device = gpu_alloc(DPR_MEMORY_DEVICE, MOST_ELEMENTS * MOST_BYTES);
    s->out_device = gpu_alloc(DPR_MEMORY_DEVICE, results);
    s->numbers_device = gpu_alloc(DPR_MEMORY_DEVICE, 2 * MOST_SEGMENTS * sizeof(int64_t));
    EXPECT_TRUE(s->in_device && s->out_device && s->numbers_device);
}

static void close_scene(scene *s) {
    gpu_free(DPR_MEMORY_DEVICE, s->in_device);
    gpu_free(DPR_MEMORY_DEVICE, s->out_device);
    gpu_free(DPR_MEMORY_DEVICE, s->numbers_device);
    free(s->in);
    free(s->known);
    free(s->got);
    free(s->magnitudes);
    free(s->begins);
    free(s->ends);
    dpr_ctx_destroy(s->gpu);
    dpr_ctx_destroy(s->cpu);
}

TEST(GpuSegments, every_pair_and_distribution) {
    NEED_GPU();
    scene s;
    open_scene(&s);
    for (size_t o = 0; o < dpr_op_count() && !test_failed(); o++)
        for (size_t t = 0; t < dpr_dtype_count() && !test_failed(); t++) {
            s.op = dpr_op_at(o);
            s.dtype = dpr_dtype_at(t);
            const int is_complex = s.dtype == DPR_C64 || s.dtype == DPR_C128;
            /* A product of complex numbers may overflow in one order and not in another. */
            if (s.op < DPR_SUMSQ && dpr_supported(s.op, s.dtype) && !(s.op == DPR_PROD && is_complex))
                run_pair(&s);
        }
    close_scene(&s);
}

/* Offsets that decrease: the segments between are empty, and others overlap. */
TEST(GpuSegments, offsets_without_order) {
    NEED_GPU();
    scene s;
    open_scene(&s);
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    s.op = DPR_SUM;
    s.dtype = DPR_I32;
    data_fill(s.in, s.op, s.dtype, DATA_RANDOM, MOST_ELEMENTS);
    EXPECT_TRUE(gpu_copy(s.in_device, s.in, MOST_ELEMENTS * sizeof(int32_t)));
    segments.count = 3000;
    for (size_t i = 0; i <= 3000; i++)
        s.begins[i] = (int64_t)(i * 2654435761U % MOST_ELEMENTS / (1 + i % 5));
    EXPECT_TRUE(gpu_copy(s.numbers_device, s.begins, MOST_SEGMENTS * sizeof(int64_t)));
    options.strategy = "segments.merge";
    expect_same(&s, &segments, &options, "offsets without order");
    close_scene(&s);
}

/* Results, offsets or both in pageable memory; a segment outside of the array; a call in a captured graph. */
TEST(GpuSegments, memory_checks_and_graphs) {
    NEED_GPU();
    scene s;
    open_scene(&s);
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
        EXPECT_TRUE(memcmp(got, known, sizeof known) == 0);
        EXPECT_STATUS(DPR_ERR_SEGMENT, dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS - 1, DPR_F32, DPR_SUM,
                                                           &segments, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "segment 3 ends at");
    }
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE,
                  dpr_reduce_segments(s.gpu, s.in_device, got, MOST_ELEMENTS, DPR_F32, DPR_MEAN, &segments, NULL));
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
        EXPECT_TRUE(memcmp(got, known, sizeof known) == 0);
    }
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    close_scene(&s);
}
