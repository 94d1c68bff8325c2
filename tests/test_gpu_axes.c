/* Reductions along axes on a GPU: every pair and shape against the CPU's results, or those of the reference. */
#include <stdlib.h>
#include <string.h>

#include "close.h"
#include "data.h"
#include "gpu_memory.h"
#include "reference.h"
#include "support.h"

enum { MOST_BYTES = 16, MOST_ELEMENTS = 1 << 20 };

/* Shapes for each form of axes.tiles (core/axes.h), and for several blocks a result. Strides of 0 dimensions mean none
 * are given. */
typedef struct shape {
    int dimensions;
    uint32_t reduced;
    uint64_t extents[4];
    int64_t strides[4];
    size_t first; /* place of the element with all indices 0 */
} shape;

static const shape shapes[] = {
    {2, 2, {3000, 16}, {0}, 0},      {2, 2, {3000, 16}, {0}, 1},       {2, 2, {5000, 3}, {0}, 0},
    {2, 2, {700, 256}, {0}, 0},      {2, 2, {37, 4097}, {0}, 3},       {2, 2, {3, 65536}, {0}, 0},
    {2, 1, {65536, 3}, {0}, 0},      {2, 1, {10000, 16}, {0}, 0},      {2, 1, {2000, 256}, {0}, 0},
    {2, 1, {2, 30000}, {0}, 0},      {2, 1, {16, 3000}, {0}, 1},       {3, 2, {64, 50, 64}, {0}, 0},
    {3, 2, {3000, 8, 8}, {0}, 0},    {3, 2, {300, 64, 3}, {0}, 0},     {3, 5, {32, 60, 128}, {0}, 0},
    {3, 5, {30, 70, 6}, {0}, 0},     {4, 10, {8, 16, 32, 64}, {0}, 0}, {1, 1, {200000}, {0}, 1},
    {2, 3, {400, 300}, {512, 1}, 0}, {2, 2, {400, 300}, {512, 1}, 0},  {2, 2, {300, 200}, {-200, -1}, 59999},
    {2, 1, {300, 200}, {0, 1}, 0},   {2, 2, {128, 300}, {1, 128}, 0},  {2, 0, {100, 300}, {0}, 0},
    {2, 2, {700, 129}, {0}, 0},      {2, 2, {2000, 99}, {0}, 1},       {2, 2, {5, 65537}, {0}, 0},
    {2, 1, {33, 3001}, {0}, 0},      {2, 1, {1200, 512}, {0}, 0},      {2, 1, {48, 12800}, {0}, 0},
    {3, 2, {64, 48, 200}, {0}, 0},   {3, 2, {60000, 7, 2}, {0}, 0},    {2, 2, {9000, 7}, {-11, 1}, 98989},
    {2, 2, {3000, 4}, {1, 1}, 0},    {2, 2, {200000, 9}, {1, 1}, 0},   {2, 1, {300, 128}, {1, 1}, 0},
};

typedef struct scene {
    dpr_ctx *gpu, *cpu;
    dpr_op op;
    dpr_dtype dtype;
    unsigned char *in, *known, *got, *magnitudes; /* host */
    void *in_device, *out_device;
} scene;

/* Copies the elements of result `i` one behind the other. Returns how many they are. */
static size_t gather(const scene *s, const shape *at, size_t i, unsigned char *to) {
    const size_t element = dpr_dtype_size(s->dtype);
    const int has_strides = at->strides[0] || at->strides[1];
    int64_t step = 1, first = (int64_t)at->first, strides[4];
    size_t n = 1;
    for (int d = at->dimensions - 1; d >= 0; d--) {
        strides[d] = has_strides ? at->strides[d] : step;
        step *= (int64_t)at->extents[d];
        if (at->reduced >> d & 1) {
            n *= (size_t)at->extents[d];
        } else {
            first += (int64_t)(i % at->extents[d]) * strides[d];
            i /= at->extents[d];
        }
    }
    for (size_t k = 0; k < n; k++) {
        int64_t place = first;
        size_t rest = k;
        for (int d = at->dimensions - 1; d >= 0; d--)
            if (at->reduced >> d & 1) {
                place += (int64_t)(rest % at->extents[d]) * strides[d];
                rest /= at->extents[d];
            }
        memcpy(to + k * element, s->in + place * (int64_t)element, element);
    }
    return n;
}

/* The shape's axes; sets how many results it has. */
static dpr_axes axes_of(const shape *at, size_t *results) {
    dpr_axes axes = DPR_AXES_INIT;
    *results = 1;
    for (int d = 0; d < at->dimensions; d++)
        *results *= at->reduced >> d & 1 ? 1 : (size_t)at->extents[d];
    axes.dimensions = at->dimensions;
    axes.reduced = at->reduced;
    axes.extents = at->extents;
    axes.strides = at->strides[0] || at->strides[1] ? at->strides : NULL;
    return axes;
}

/* SUMSQ and the operations after it, whose errors the reference has bounds for. */
static void expect_measures(const scene *s, const shape *at, dpr_nan nan) {
    const size_t size = ref_result_size(s->op, s->dtype);
    size_t results;
    const dpr_axes axes = axes_of(at, &results);
    dpr_options options = DPR_OPTIONS_INIT;
    options.nan = nan;
    options.divisor = nan == DPR_NAN_IGNORE ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s->gpu, (char *)s->in_device + at->first * dpr_dtype_size(s->dtype),
                                          s->out_device, s->dtype, s->op, &axes, &options));
    EXPECT_TRUE(gpu_copy(s->got, s->out_device, results * size));
    for (size_t i = 0; i < results && !test_failed(); i++) {
        char why[256] = "";
        ref_state state;
        ref_reduce(&state, s->op, s->dtype, nan, s->known, gather(s, at, i, s->known));
        state.sample = options.divisor == DPR_DIVISOR_SAMPLE;
        EXPECT_THAT(ref_check(&state, s->got + i * size, why, sizeof why),
                    "%s of %s, shape %td, NaN policy %d, result %zu: %s", dpr_op_name(s->op), dpr_dtype_name(s->dtype),
                    at - shapes, (int)nan, i, why);
    }
}

static void expect_same(const scene *s, const shape *at, dpr_nan nan) {
    const size_t element = dpr_dtype_size(s->dtype), size = ref_result_size(s->op, s->dtype);
    size_t results, wrong = 0;
    const dpr_axes axes = axes_of(at, &results);
    dpr_options options = DPR_OPTIONS_INIT;
    options.nan = nan;
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_axes(s->cpu, s->in + at->first * element, s->known, s->dtype, s->op, &axes, &options));
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s->cpu, s->in + at->first * element, s->magnitudes, s->dtype, DPR_NORM1,
                                          &axes, &options));
    options.strategy = "axes.tiles";
    EXPECT_STATUS(DPR_OK, dpr_reduce_axes(s->gpu, (char *)s->in_device + at->first * element, s->out_device, s->dtype,
                                          s->op, &axes, &options));
    EXPECT_TRUE(gpu_copy(s->got, s->out_device, results * size));
    for (size_t i = 0; i < results; i++)
        wrong += !results_are_close(s->op, dpr_result_dtype(s->op, s->dtype), s->got + i * size, s->known + i * size,
                                    size, MOST_ELEMENTS / results, magnitude_at(s->dtype, s->magnitudes, i));
    EXPECT_THAT(wrong == 0, "%s of %s, shape %td, NaN policy %d: %zu of %zu results are wrong", dpr_op_name(s->op),
                dpr_dtype_name(s->dtype), at - shapes, (int)nan, wrong, results);
}

static void run_pair(scene *s) {
    data_fill(s->in, s->op, s->dtype, DATA_SPECIALS, MOST_ELEMENTS / 2);
    data_fill(s->in + MOST_ELEMENTS / 2 * dpr_dtype_size(s->dtype), s->op, s->dtype, DATA_RANDOM, MOST_ELEMENTS / 2);
    if (!data_pattern_applies(DATA_SPECIALS, s->op, s->dtype))
        data_fill(s->in, s->op, s->dtype, DATA_RANDOM, MOST_ELEMENTS);
    if (s->op == DPR_PROD && (s->dtype == DPR_C64 || s->dtype == DPR_C128))
        fill_with_units(s->dtype, s->in, MOST_ELEMENTS);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST_ELEMENTS * dpr_dtype_size(s->dtype)));
    for (size_t i = 0; i < LENGTH(shapes) && s->op >= DPR_SUMSQ; i++) { /* the reference takes time for one policy */
        expect_measures(s, &shapes[i], i % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE);
        if (s->op == DPR_MEAN && i % 2) /* of which SUM has the kernels */
            expect_measures(s, &shapes[i], DPR_NAN_PROPAGATE);
    }
    for (size_t i = 0; i < LENGTH(shapes) && s->op < DPR_SUMSQ; i++)
        for (int nan = DPR_NAN_PROPAGATE; nan <= DPR_NAN_IGNORE; nan++)
            expect_same(s, &shapes[i], (dpr_nan)nan);
}

TEST(GpuAxes, every_pair_in_every_form) {
    NEED_GPU();
    scene s = {0};
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s.gpu));
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s.cpu));
    s.in = malloc(MOST_ELEMENTS * MOST_BYTES);
    s.known = malloc(MOST_ELEMENTS * MOST_BYTES);
    s.got = malloc(MOST_ELEMENTS * MOST_BYTES);
    s.magnitudes = malloc(MOST_ELEMENTS * MOST_BYTES);
    s.in_device = gpu_alloc(DPR_MEMORY_DEVICE, MOST_ELEMENTS * MOST_BYTES);
    s.out_device = gpu_alloc(DPR_MEMORY_DEVICE, MOST_ELEMENTS * MOST_BYTES);
    for (size_t o = 0; o < dpr_op_count() && s.in_device && s.out_device; o++)
        for (size_t t = 0; t < dpr_dtype_count(); t++) {
            s.op = dpr_op_at(o);
            s.dtype = dpr_dtype_at(t);
            if (dpr_supported(s.op, s.dtype))
                run_pair(&s);
        }
    EXPECT_TRUE(s.in_device && s.out_device);
    gpu_free(DPR_MEMORY_DEVICE, s.in_device);
    gpu_free(DPR_MEMORY_DEVICE, s.out_device);
    free(s.in);
    free(s.known);
    free(s.got);
    free(s.magnitudes);
    dpr_ctx_destroy(s.gpu);
    dpr_ctx_destroy(s.cpu);
}
