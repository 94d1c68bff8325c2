/* Calls along axes on a GPU: arrays of up to eight dimensions, with strides, initial values and places for results of
 * the caller's, by each form of call. Elements are small integers, so that results are exact: they are compared with
 * those of the CPU. */
#include <stdlib.h>
#include <string.h>

#include "axes_shapes.h"
#include "gpu_memory.h"
#include "reference.h"

enum { MOST_ELEMENTS = 1 << 16, MOST_BYTES = 16, ROOM = (MOST_ELEMENTS + 1) * MOST_BYTES };

typedef struct scene {
    dpr_ctx *gpu, *cpu;
    dpr_op op;
    dpr_dtype dtype;
    axes_shape shape;
    dpr_options options;
    int64_t first;  /* place of the element whose indices are all 0 */
    size_t results; /* places of results; one more has bytes that calls leave alone */
    unsigned char *in, *known, *got;
    unsigned char *in_device, *in_pinned, *in_managed, *out_device, *out_pinned;
    dpr_stream stream;
} scene;

static void open_scene(scene *s) {
    *s = (scene){.stream = gpu_stream_create()};
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->gpu));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
    s->in = malloc(ROOM);
    s->known = malloc(ROOM);
    s->got = malloc(ROOM);
    s->in_device = gpu_alloc(DPR_MEMORY_DEVICE, ROOM);
    s->in_pinned = gpu_alloc(DPR_MEMORY_PINNED, ROOM);
    s->in_managed = gpu_alloc(DPR_MEMORY_MANAGED, ROOM);
    s->out_device = gpu_alloc(DPR_MEMORY_DEVICE, ROOM);
    s->out_pinned = gpu_alloc(DPR_MEMORY_PINNED, ROOM);
    EXPECT_TRUE(s->in && s->known && s->got && s->in_device && s->in_pinned && s->in_managed && s->out_device
                && s->out_pinned);
}

static void close_scene(scene *s) {
    gpu_free(DPR_MEMORY_DEVICE, s->in_device);
    gpu_free(DPR_MEMORY_PINNED, s->in_pinned);
    gpu_free(DPR_MEMORY_MANAGED, s->in_managed);
    gpu_free(DPR_MEMORY_DEVICE, s->out_device);
    gpu_free(DPR_MEMORY_PINNED, s->out_pinned);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    free(s->in);
    free(s->known);
    free(s->got);
    dpr_ctx_destroy(s->gpu);
    dpr_ctx_destroy(s->cpu);
}

/* Writes a small number of the type, which is one of this test's or the type of its results. */
static void write_number(dpr_dtype dtype, int number, void *to) {
    const float f32 = (float)number;
    const double f64 = number;
    const int64_t whole = number; /* the lower bytes come first */
    memcpy(to,
           dtype == DPR_F32   ? (const void *)&f32
           : dtype == DPR_F64 ? (const void *)&f64
                              : &whole,
           dpr_dtype_size(dtype));
}

static void fill(scene *s, uint64_t *seed) {
    for (size_t i = 0; i < MOST_ELEMENTS; i++)
        write_number(s->dtype, (int)data_below(seed, 60) - 30, s->in + i * dpr_dtype_size(s->dtype));
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, ROOM) && gpu_copy(s->in_managed, s->in, ROOM));
    memcpy(s->in_pinned, s->in, ROOM);
}

static const unsigned char *element_0(const scene *s, const unsigned char *in) {
    return in + s->first * (int64_t)dpr_dtype_size(s->dtype);
}

static size_t bytes_of_results(const scene *s) {
    return (s->results + 1) * ref_result_size(s->op, s->dtype);
}

/* Compares what a call has written to `out` with what is known. */
static void expect_known(scene *s, const unsigned char *out, const char *call) {
    EXPECT_TRUE(gpu_copy(s->got, out, bytes_of_results(s)));
    EXPECT_THAT(memcmp(s->known, s->got, bytes_of_results(s)) == 0,
                "%s of %s, %d dimensions (%llu, %llu, %llu ...), reduced 0x%x, %s: results differ from the CPU's",
                dpr_op_name(s->op), dpr_dtype_name(s->dtype), s->shape.axes.dimensions,
                (unsigned long long)s->shape.extents[0], (unsigned long long)s->shape.extents[1],
                (unsigned long long)s->shape.extents[2], s->shape.axes.reduced, call);
}

/* Fills a place for results with bytes that no call leaves there. */
static unsigned char *emptied(const scene *s, unsigned char *out) {
    memset(s->got, 0x5a, bytes_of_results(s));
    EXPECT_TRUE(gpu_copy(out, s->got, bytes_of_results(s)));
    return out;
}

/* ---- Forms of calls ---- */

static void expect_call(scene *s, const unsigned char *in, unsigned char *out, const char *strategy, const char *call) {
    dpr_options options = s->options;
    options.strategy = strategy;
    EXPECT_STATUS(
        DPR_OK, dpr_reduce_axes(s->gpu, element_0(s, in), emptied(s, out), s->dtype, s->op, &s->shape.axes, &options));
    expect_known(s, out, call);
}

static void expect_pageable(scene *s) {
    unsigned char *out = malloc(bytes_of_results(s));
    if (!s->shape.axes.out_strides) {
        expect_call(s, s->in_device, out, NULL, "results in pageable memory");
    } else {
        memset(out, 0x5a, bytes_of_results(s));
        EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce_axes(s->gpu, element_0(s, s->in_device), out, s->dtype, s->op,
                                                           &s->shape.axes, &s->options));
        EXPECT_CONTAINS(dpr_last_error(), "pageable host memory, which the GPU does not reach with axes->out_strides");
        for (size_t i = 0; i < bytes_of_results(s) && !test_failed(); i++)
            EXPECT_EQ_U64(0x5a, out[i]);
    }
    free(out);
}

static void expect_in_stream(scene *s) {
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes_async(s->gpu, element_0(s, s->in_device), emptied(s, s->out_device), s->dtype,
                                                s->op, &s->shape.axes, &s->options, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    expect_known(s, s->out_device, "in a stream");
    EXPECT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes_async(s->gpu, element_0(s, s->in_device), s->out_device, s->dtype, s->op,
                                                &s->shape.axes, &s->options, s->stream));
    gpu_graph *graph = gpu_capture_end(s->stream);
    for (int i = 0; i < 2; i++) {
        (void)emptied(s, s->out_device);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        expect_known(s, s->out_device, "in a graph");
    }
    gpu_graph_destroy(graph);
}

static void expect_plan(scene *s) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    problem.op = s->op;
    problem.dtype = s->dtype;
    problem.axes = &s->shape.axes;
    problem.options = &s->options;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->gpu, &problem, &plan));
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, element_0(s, s->in_device), emptied(s, s->out_device), s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        expect_known(s, s->out_device, "by a plan");
    }
    dpr_plan_destroy(plan);
}

static void expect_every_form(scene *s) {
    memset(s->known, 0x5a, bytes_of_results(s));
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_axes(s->cpu, element_0(s, s->in), s->known, s->dtype, s->op, &s->shape.axes, &s->options));
    expect_call(s, s->in_device, s->out_device, NULL, "device memory");
    expect_call(s, s->in_device, s->out_pinned, NULL, "results in pinned memory");
    expect_call(s, s->in_pinned, s->out_pinned, "axes.tiles", "pinned memory by axes.tiles");
    expect_call(s, s->in_managed, s->out_pinned, "axes.tiles", "managed memory by axes.tiles");
    expect_pageable(s);
    expect_in_stream(s);
    expect_plan(s);
}

/* ---- Tests ---- */

/* Chooses the array's shape and strides, and those of the results. Returns how many results there are. */
static size_t choose_strides(scene *s, int i, uint64_t *seed) {
    axes_shape *const shape = &s->shape;
    choose_shape(shape, i % 6 == 0 ? MOST_ELEMENTS : 3000, seed);
    (void)set_strides(shape, 0, shape->strides);
    const int64_t results = set_strides(shape, 1, shape->out_strides);
    if (i % 4 == 1)
        transpose(shape, shape->strides, 0, seed);
    s->first = i % 2 ? twist(shape, seed) : 0;
    if (i % 4 >= 2) {
        transpose(shape, shape->out_strides, 1, seed);
        shape->axes.out_strides = shape->out_strides;
    }
    return (size_t)results;
}

TEST(GpuAxesCalls, every_form_gives_the_same) {
    static const dpr_op ops[] = {DPR_SUM, DPR_MAX, DPR_ARGMIN, DPR_MINMAX, DPR_ANY};
    static const dpr_dtype dtypes[] = {DPR_I32, DPR_F32, DPR_F64, DPR_U8};
    unsigned char init[MOST_BYTES];
    NEED_GPU();
    scene s;
    uint64_t seed = 11;
    open_scene(&s);
    for (int i = 0; i < 240 && !test_failed(); i++) {
        const dpr_options options = DPR_OPTIONS_INIT;
        s.op = ops[i % (int)LENGTH(ops)];
        s.dtype = dtypes[i / (int)LENGTH(ops) % (int)LENGTH(dtypes)];
        s.options = options;
        write_number(dpr_result_dtype(s.op, s.dtype), 1, init);
        write_number(dpr_result_dtype(s.op, s.dtype), 1, init + dpr_dtype_size(dpr_result_dtype(s.op, s.dtype)));
        s.options.init = i % 3 == 0 && s.op != DPR_ARGMIN ? init : NULL;
        s.results = choose_strides(&s, i, &seed);
        fill(&s, &seed);
        expect_every_form(&s);
    }
    close_scene(&s);
}

/* Results that several blocks share, and that many blocks have: sums of doubles, whose bits depend on their order. */
TEST(GpuAxesCalls, sums_have_the_same_bits_in_each_run) {
    static const uint64_t extents[][2] = {{1, MOST_ELEMENTS}, {3, MOST_ELEMENTS / 4}, {MOST_ELEMENTS / 4, 3}};
    enum { RUNS = 20 };
    NEED_GPU();
    scene s;
    open_scene(&s);
    s.op = DPR_SUM;
    s.dtype = DPR_F64;
    data_fill(s.in, s.op, s.dtype, DATA_RANDOM, MOST_ELEMENTS);
    EXPECT_TRUE(gpu_copy(s.in_device, s.in, MOST_ELEMENTS * sizeof(double)));
    for (size_t k = 0; k < 2 * LENGTH(extents) && !test_failed(); k++) {
        const dpr_axes init = DPR_AXES_INIT;
        const dpr_options options = DPR_OPTIONS_INIT;
        s.options = options;
        s.shape.axes = init;
        s.shape.axes.dimensions = 2;
        s.shape.axes.extents = extents[k / 2];
        s.shape.axes.reduced = 1 + k % 2;
        s.results = (size_t)extents[k / 2][1 - k % 2];
        for (int i = 0; i < RUNS; i++) {
            EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s.gpu, s.in_device, emptied(&s, s.out_device), s.dtype, s.op,
                                                  &s.shape.axes, &s.options));
            if (i == 0)
                EXPECT_TRUE(gpu_copy(s.known, s.out_device, bytes_of_results(&s)));
            else
                expect_known(&s, s.out_device, "run again");
        }
    }
    close_scene(&s);
}

/* Whatever lanes lie where, the sum of negative zeros is zero. */
TEST(GpuAxesCalls, sums_of_negative_zeros) {
    static const dpr_dtype types[] = {DPR_F32, DPR_F64, DPR_F16, DPR_C64};
    static const uint64_t shapes[][2] = {{64, 4}, {64, 16}, {64, 19}, {64, 64}, {4, 256}, {4, 4096}, {1, 16384}};
    NEED_GPU();
    scene s;
    open_scene(&s);
    for (size_t k = 0; k < LENGTH(types) * LENGTH(shapes) * 2; k++) {
        const dpr_dtype dtype = types[k % LENGTH(types)];
        const size_t size = dpr_dtype_size(dtype), part = dtype == DPR_C64 ? size / 2 : size;
        const uint64_t *extents = shapes[k / 2 / LENGTH(types)];
        const size_t elements = (size_t)(extents[0] * extents[1]);
        const size_t reduced = k / LENGTH(types) % 2, results = (size_t)extents[1 - reduced];
        dpr_axes axes = DPR_AXES_INIT;
        memset(s.in, 0, elements * size);
        for (size_t i = part - 1; i < elements * size; i += part)
            s.in[i] = 0x80;
        memset(s.known, 0, results * 2 * size);
        axes.dimensions = 2;
        axes.extents = extents;
        axes.reduced = UINT32_C(1) << reduced;
        EXPECT_TRUE(gpu_copy(s.in_device, s.in, elements * size));
        EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s.gpu, s.in_device, s.got, dtype, DPR_SUM, &axes, NULL));
        EXPECT_EQ_BYTES(s.known, s.got, results * ref_result_size(DPR_SUM, dtype));
    }
    close_scene(&s);
}

/* The first launch of each kernel is in a capture. As each test runs in a process of its own, no other has loaded it.
 */
TEST(GpuAxesCalls, plans_are_captured_before_they_run) {
    static const struct {
        uint64_t extents[2];
        uint32_t reduced;
    } shapes[] = {{{40000, 16}, 2}, {{80000, 7}, 2}, {{1200, 512}, 1}, {{5, 100001}, 2}};
    enum { MOST = 640000 };
    NEED_GPU();
    dpr_ctx *ctx = NULL;
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    int32_t *ones = malloc(MOST * sizeof *ones);
    int64_t *got = malloc(MOST * sizeof *got);
    for (int i = 0; i < MOST; i++)
        ones[i] = 1;
    void *in = gpu_alloc(DPR_MEMORY_DEVICE, MOST * sizeof *ones),
         *out = gpu_alloc(DPR_MEMORY_DEVICE, MOST * sizeof *got);
    EXPECT_TRUE(gpu_copy(in, ones, MOST * sizeof *ones));
    const dpr_stream stream = gpu_stream_create();
    for (size_t k = 0; k < LENGTH(shapes) && !test_failed(); k++) {
        const size_t reduced = shapes[k].reduced / 2, results = shapes[k].extents[1 - reduced];
        dpr_axes axes = DPR_AXES_INIT;
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_plan *plan = NULL;
        axes.dimensions = 2;
        axes.extents = shapes[k].extents;
        axes.reduced = shapes[k].reduced;
        problem.op = DPR_SUM;
        problem.dtype = DPR_I32;
        problem.axes = &axes;
        EXPECT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
        EXPECT_TRUE(gpu_capture_begin(stream));
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, out, stream));
        gpu_graph *graph = gpu_capture_end(stream);
        EXPECT_TRUE(gpu_graph_launch(graph, stream) && gpu_stream_wait(stream));
        EXPECT_TRUE(gpu_copy(got, out, results * sizeof *got));
        for (size_t i = 0; i < results && !test_failed(); i++)
            EXPECT_EQ_I64((int64_t)shapes[k].extents[reduced], got[i]);
        gpu_graph_destroy(graph);
        dpr_plan_destroy(plan);
    }
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_DEVICE, out);
    EXPECT_TRUE(gpu_stream_destroy(stream));
    free(ones);
    free(got);
    dpr_ctx_destroy(ctx);
}
