#include "bench_shaped.h"

#include <stdio.h>
#include <stdlib.h>

#include "layout.h"

static const size_t most = SIZE_MAX / 4;

/* a * b, at most `most`. */
static size_t bytes_of(uint64_t a, size_t b) {
    return a > most / b ? most : (size_t)a * b;
}

static size_t sum_of(size_t a, size_t b) {
    return a > most - b ? most : a + b;
}

size_t shaped_touched(const bench_case *at, dpr_dtype offsets, size_t result_bytes) {
    const shape_array a = shape_measures(at->shape, at->count, offsets);
    const size_t elements = bytes_of(a.span, dpr_dtype_size(at->dtype)), results = bytes_of(a.results, result_bytes);
    const size_t offset_bytes = a.offset_bytes < most ? a.offset_bytes : most;
    return sum_of(sum_of(sum_of(elements, offset_bytes), results), 2 * BENCH_ALIGNMENT);
}

int shaped_data(bench_shaped *s, dpr_ctx *cpu, const bench_case *at, char why[BENCH_WHY]) {
    exact_free(&s->exact);
    const dpr_status status = exact_make(&s->exact, cpu, at->ops.at[0], at->dtype);
    if (status != DPR_OK)
        snprintf(why, BENCH_WHY, "%s", dpr_status_text(status));
    return status == DPR_OK ? 0 : -1;
}

size_t shaped_offsets_at(const shape_array *a, dpr_dtype dtype) {
    return bench_aligned((size_t)a->span * dpr_dtype_size(dtype));
}

static void forget(bench_shaped *s) {
    shape_free(&s->array);
    free(s->expected);
    s->expected = NULL;
}

int shaped_make(bench_shaped *s, const bench_case *at, dpr_dtype offsets, bench_point *point, char why[BENCH_WHY]) {
    const char *reason;
    shape_array *a = &s->array;
    forget(s);
    if (shape_make(at->shape, at->count, offsets, a, &reason) != 0) {
        snprintf(why, BENCH_WHY, "%s", reason);
        return -1;
    }
    point->array_bytes = (size_t)a->results * s->exact.result_bytes;
    s->expected = malloc(point->array_bytes);
    if (!s->expected) {
        snprintf(why, BENCH_WHY, "no host memory for %llu results", (unsigned long long)a->results);
        return -1;
    }
    exact_expect(&s->exact, a, s->expected);
    point->bytes = a->offset_bytes ? shaped_offsets_at(a, at->dtype) + a->offset_bytes
                                   : (size_t)a->span * dpr_dtype_size(at->dtype);
    point->mark = a->offsets;
    point->mark_bytes = a->offset_bytes;
    point->expected = s->expected;
    return 0;
}

void shaped_free(bench_shaped *s) {
    forget(s);
    exact_free(&s->exact);
}

uint64_t shaped_bytes(const bench_shaped *s) {
    const shape_array *a = &s->array;
    return a->elements * dpr_dtype_size(s->exact.dtype) + a->offset_bytes + a->results * s->exact.result_bytes;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* What the library's functions take. */
static dpr_segments segments_of(const shape_array *a, const void *in, dpr_dtype dtype) {
    dpr_segments s = DPR_SEGMENTS_INIT;
    s.count = a->results;
    s.begins = (const unsigned char *)in + shaped_offsets_at(a, dtype);
    s.dtype = a->offset_dtype;
    return s;
}

static dpr_axes axes_of(const shape_array *a) {
    dpr_axes axes = DPR_AXES_INIT;
    axes.dimensions = a->shape->dimensions;
    axes.reduced = a->shape->reduced;
    axes.extents = a->extents;
    axes.strides = a->strides;
    return axes;
}

dpr_status shaped_reduce(const shape_array *a, dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                         const dpr_options *options) {
    const dpr_axes axes = axes_of(a);
    if (a->shape->dimensions)
        return dpr_reduce_axes(ctx, in, out, dtype, op, &axes, options);
    const dpr_segments segments = segments_of(a, in, dtype);
    return dpr_reduce_segments(ctx, in, out, (size_t)a->elements, dtype, op, &segments, options);
}

dpr_status shaped_enqueue(const shape_array *a, dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                          const dpr_options *options, dpr_stream stream) {
    const dpr_axes axes = axes_of(a);
    if (a->shape->dimensions)
        return dpr_reduce_axes_async(ctx, in, out, dtype, op, &axes, options, stream);
    const dpr_segments segments = segments_of(a, in, dtype);
    return dpr_reduce_segments_async(ctx, in, out, (size_t)a->elements, dtype, op, &segments, options, stream);
}
