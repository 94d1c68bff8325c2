#include "gpu_segments_scene.h"

#include <stdlib.h>
#include <string.h>

#include "close.h"
#include "data.h"
#include "gpu_memory.h"
#include "reference.h"

size_t length_ones(size_t i) {
    return i > 0;
}
size_t length_short(size_t i) {
    return i * 2654435761U % 17;
}
size_t length_mixed(size_t i) {
    return i % 7 == 0 ? i * 2654435761U % 3000 : i % 3 == 0 ? 0 : i % 40;
}
size_t length_long(size_t i) {
    return 9000 + i * 1000;
}
size_t length_one_long(size_t i) {
    return i == 5 ? 150000 : i % 9;
}

int is_measure(dpr_op op) {
    return op >= DPR_SUMSQ;
}

int is_divided_sum(dpr_op op, dpr_dtype dtype, dpr_nan nan) {
    return op == DPR_MEAN && (dtype >= DPR_F16 ? nan == DPR_NAN_PROPAGATE : dtype <= DPR_U16);
}

/* Makes numbers of the type from begins and ends, also on the device. */
void convert_numbers(scene *s, dpr_dtype type) {
    const size_t size = dpr_dtype_size(type);
    for (size_t i = 0; i < s->most_segments; i++) { /* the lower bytes come first */
        memcpy(s->numbers + i * size, &s->begins[i], size);
        memcpy(s->numbers + (s->most_segments + i) * size, &s->ends[i], size);
    }
    EXPECT_TRUE(gpu_copy(s->numbers_device, s->numbers, 2 * s->most_segments * size));
}

void use_numbers(const scene *s, dpr_segments *segments, const unsigned char *numbers, int has_ends) {
    segments->begins = numbers;
    segments->ends = has_ends ? numbers + s->most_segments * dpr_dtype_size(segments->dtype) : NULL;
}

/* Returns how many results of the device are not what the reference says. */
static size_t count_wrong_measures(const scene *s, size_t segments, int has_ends, const dpr_options *options) {
    const size_t size = ref_result_size(s->op, s->dtype), element = dpr_dtype_size(s->dtype);
    size_t wrong = 0;
    for (size_t i = 0; i < segments; i++) {
        const int64_t begin = s->begins[i], end = has_ends ? s->ends[i] : s->begins[i + 1];
        const size_t n = begin < end ? (size_t)(end - begin) : 0;
        char why[256] = "";
        ref_state state;
        ref_reduce(&state, s->op, s->dtype, options->nan, s->in + s->shift + (n > 0 ? (size_t)begin * element : 0), n);
        if (options->init)
            ref_add_init(&state, options->init);
        state.sample = options->divisor == DPR_DIVISOR_SAMPLE;
        const int is_right = ref_check(&state, s->got + GUARD + i * size, why, sizeof why);
        EXPECT_THAT(is_right || wrong > 0, "segment %zu of %zu elements: %s", i, n, why);
        wrong += !is_right;
    }
    return wrong;
}

/* Makes results of partial results that a call on the device writes. */
static void get_partials(const scene *s, const dpr_segments *segments, const dpr_options *options) {
    const size_t size = ref_result_size(s->op, s->dtype), bytes = dpr_partial_size(s->op, s->dtype),
                 n = (size_t)segments->count;
    unsigned char *partials = malloc(n * bytes + 2 * GUARD);
    dpr_options finish = DPR_OPTIONS_INIT;
    finish.nan = options->nan;
    finish.divisor = options->divisor;
    memset(partials, 0x5a, n * bytes + 2 * GUARD);
    EXPECT_TRUE(gpu_copy(s->out_device, partials, n * bytes + 2 * GUARD));
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments_partial(s->gpu, s->in_device + s->shift, s->out_device + GUARD, s->count,
                                                      s->dtype, s->op, segments, 0, options));
    EXPECT_TRUE(gpu_copy(partials, s->out_device, n * bytes + 2 * GUARD));
    for (size_t i = 0; i < n; i++) {
        const int64_t none = -1;
        const dpr_status status =
            dpr_partial_finish(partials + GUARD + i * bytes, 1, s->dtype, s->op, &finish, s->got + GUARD + i * size);
        if (status == DPR_ERR_EMPTY)
            memcpy(s->got + GUARD + i * size, &none, sizeof none);
        else
            EXPECT_STATUS(DPR_OK, status);
    }
    memcpy(s->got, partials, GUARD);
    memcpy(s->got + GUARD + n * size, partials + GUARD + n * bytes, GUARD);
    free(partials);
}

static void get_results(const scene *s, const dpr_segments *segments, const dpr_options *options) {
    const size_t bytes = (size_t)segments->count * ref_result_size(s->op, s->dtype) + 2 * GUARD;
    memset(s->got, 0x5a, bytes);
    EXPECT_TRUE(gpu_copy(s->out_device, s->got, bytes));
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->gpu, s->in_device + s->shift, s->out_device + GUARD, s->count,
                                              s->dtype, s->op, segments, options));
    EXPECT_TRUE(gpu_copy(s->got, s->out_device, bytes));
}

/* Compares what was got with what is known, and looks at what lies around the results. */
static void compare(const scene *s, const dpr_segments *segments, int has_ends, const dpr_options *options,
                    const char *what) {
    const size_t size = ref_result_size(s->op, s->dtype), n = (size_t)segments->count;
    size_t wrong = 0;
    if (is_measure(s->op))
        wrong = count_wrong_measures(s, n, has_ends, options);
    for (size_t i = 0; i < n && !is_measure(s->op); i++)
        wrong += !results_are_close(s->op, dpr_result_dtype(s->op, s->dtype), s->got + GUARD + i * size,
                                    s->known + i * size, size, s->count, magnitude_at(s->dtype, s->magnitudes, i));
    for (size_t i = 0; i < GUARD; i++)
        wrong += s->got[i] != 0x5a || s->got[GUARD + n * size + i] != 0x5a;
    EXPECT_THAT(wrong == 0, "%s of %s, %zu segments of numbers of type %s%s, %s: %zu %s are wrong", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype), n, dpr_dtype_name(segments->dtype), has_ends ? " with ends" : "",
                options->strategy, wrong, what);
}

/* Indices of partial results are those in the array. */
static int has_partials(const scene *s, const dpr_segments *segments, const dpr_options *options) {
    const int is_local = (s->op == DPR_ARGMIN || s->op == DPR_ARGMAX) && segments->index == DPR_INDEX_IN_SEGMENT;
    return !options->init && !is_local && strcmp(options->strategy, "segments.group") == 0;
}

/* Compares a call on the device with the same call on the CPU. */
void expect_same(scene *s, dpr_segments *segments, int has_ends, const dpr_options *options) {
    dpr_options own = *options;
    own.strategy = NULL;
    own.launch = NULL;
    use_numbers(s, segments, s->numbers, has_ends);
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_segments(s->cpu, s->in + s->shift, s->known, s->count, s->dtype, s->op, segments, &own));
    own.init = NULL;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->cpu, s->in + s->shift, s->magnitudes, s->count, s->dtype, DPR_NORM1,
                                              segments, &own));
    use_numbers(s, segments, s->numbers_device, has_ends);
    get_results(s, segments, options);
    compare(s, segments, has_ends, options, "results");
    if (!has_partials(s, segments, options))
        return;
    get_partials(s, segments, options);
    compare(s, segments, has_ends, options, "partial results");
}

/* Fills the array, which begins `shift` bytes behind a boundary of 16. */
void make_elements(scene *s, size_t shift) {
    s->shift = shift;
    s->count = s->most_elements - 1;
    data_fill(s->in, s->op, s->dtype, DATA_RANDOM, s->most_elements);
    if (data_pattern_applies(DATA_SPECIALS, s->op, s->dtype))
        data_fill(s->in, s->op, s->dtype, DATA_SPECIALS, s->most_elements / 16);
    if (s->op == DPR_PROD && (s->dtype == DPR_C64 || s->dtype == DPR_C128))
        fill_with_units(s->dtype, s->in, s->most_elements);
    memmove(s->in + shift, s->in, s->count * dpr_dtype_size(s->dtype));
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, s->most_elements * dpr_dtype_size(s->dtype)));
}

void open_scene(scene *s, size_t elements, size_t segments) {
    enum { MOST_PARTIAL_BYTES = 80 };
    const size_t results = segments * MOST_BYTES + 2 * GUARD, partials = segments * MOST_PARTIAL_BYTES + 2 * GUARD;
    *s = (scene){.most_elements = elements, .most_segments = segments};
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->gpu));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
    s->in = malloc(elements * MOST_BYTES);
    s->known = malloc(results);
    s->got = malloc(results);
    s->magnitudes = malloc(results);
    s->begins = calloc(segments, sizeof *s->begins);
    s->ends = calloc(segments, sizeof *s->ends);
    s->numbers = calloc(2 * segments, dpr_dtype_size(DPR_I64));
    s->in_device = gpu_alloc(DPR_MEMORY_DEVICE, elements * MOST_BYTES);
    s->out_device = gpu_alloc(DPR_MEMORY_DEVICE, partials);
    s->numbers_device = gpu_alloc(DPR_MEMORY_DEVICE, 2 * segments * sizeof(int64_t));
    EXPECT_TRUE(s->in && s->known && s->got && s->magnitudes && s->begins && s->ends && s->numbers);
    EXPECT_TRUE(s->in_device && s->out_device && s->numbers_device);
}

void close_scene(scene *s) {
    gpu_free(DPR_MEMORY_DEVICE, s->in_device);
    gpu_free(DPR_MEMORY_DEVICE, s->out_device);
    gpu_free(DPR_MEMORY_DEVICE, s->numbers_device);
    free(s->in);
    free(s->known);
    free(s->got);
    free(s->magnitudes);
    free(s->begins);
    free(s->ends);
    free(s->numbers);
    dpr_ctx_destroy(s->gpu);
    dpr_ctx_destroy(s->cpu);
}

void run_pairs(void (*run)(scene *)) {
    scene s;
    open_scene(&s, MOST_ELEMENTS, MOST_SEGMENTS);
    for (size_t o = 0; o < dpr_op_count() && !test_failed(); o++)
        for (size_t t = 0; t < dpr_dtype_count() && !test_failed(); t++) {
            s.op = dpr_op_at(o);
            s.dtype = dpr_dtype_at(t);
            if (dpr_supported(s.op, s.dtype))
                run(&s);
        }
    close_scene(&s);
}

/* Makes as many segments as fit `elements` elements, from number `first` on. Returns how many these are. */
size_t make_short(scene *s, length_of *length, size_t first, size_t elements) {
    size_t at = first, n = 0;
    for (; n + 1 < s->most_segments && at + length(n) <= elements; n++) {
        s->begins[n] = (int64_t)at;
        at += length(n);
    }
    s->begins[n] = (int64_t)at;
    return n;
}

/* Makes `count` segments that overlap: long ones, and short ones between them. */
void overlap(scene *s, dpr_segments *segments, size_t count, dpr_dtype type) {
    for (size_t i = 0; i < count; i++) {
        const size_t length = i % 3 == 2 ? i % 50 : 32769 + i * 2654435761U % 9000;
        s->begins[i] = (int64_t)(i * 40503U % (s->count - length));
        s->ends[i] = s->begins[i] + (int64_t)length;
    }
    segments->count = count;
    segments->dtype = type;
    convert_numbers(s, type);
}

/* Launches a captured call so many times, and returns how many of them gave other bits than the first. */
int count_other_bits(scene *s, const dpr_segments *segments, const dpr_options *options, int times) {
    const size_t bytes = (size_t)segments->count * ref_result_size(s->op, s->dtype);
    dpr_stream stream = gpu_stream_create();
    int others = 0;
    EXPECT_TRUE(gpu_capture_begin(stream));
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments_async(s->gpu, s->in_device, s->out_device, s->count, s->dtype, s->op,
                                                    segments, options, stream));
    gpu_graph *graph = gpu_capture_end(stream);
    for (int i = 0; i < times; i++) {
        unsigned char *to = i == 0 ? s->known : s->got;
        memset(to, 0x5a, bytes);
        EXPECT_TRUE(gpu_copy(s->out_device, to, bytes));
        EXPECT_TRUE(gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
        EXPECT_TRUE(gpu_copy(to, s->out_device, bytes));
        others += i > 0 && memcmp(s->known, s->got, bytes) != 0;
    }
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    return others;
}
