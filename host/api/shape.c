#include "shape.h"

#include <math.h>
#include <stdlib.h>

#include "error.h"
#include "key_runs.h"

/* ---- Segments ---- */

dpr_status dpr_shape_check_pointer(const char *name, const void *at, dpr_dtype dtype) {
    const dpr_dtype_row *row = &dpr_dtypes[DPR_ROW(dtype)];
    if (!at)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", name);
    if ((uintptr_t)at % row->align != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "%s is %p, which is not aligned to the %d bytes of %s", name, at,
                        row->align, row->name);
    return DPR_OK;
}

void dpr_shape_take_number(dpr_segment_list *list) {
    list->count = dpr_segment_count(list);
    list->device_count = NULL;
}

static dpr_status check_options(const dpr_segments *s) {
    if (s->dtype != DPR_I32 && s->dtype != DPR_U32 && s->dtype != DPR_I64 && s->dtype != DPR_U64)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "segments->dtype is %d; it should be DPR_I32, DPR_U32, DPR_I64 or "
                        "DPR_U64",
                        (int)s->dtype);
    if (s->index != DPR_INDEX_IN_SEGMENT && s->index != DPR_INDEX_IN_ARRAY)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->index is %d, which is no dpr_index", (int)s->index);
    if (s->check != 0 && s->check != 1)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->check is %d; it should be 0 or 1", s->check);
    if (s->reserved != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->reserved is %d; it should be 0", s->reserved);
    if (s->device_count && s->check)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->check is 1; it should be 0 with segments->device_count");
    if ((uintptr_t)s->device_count % sizeof *s->device_count != 0)
        return dpr_fail(DPR_ERR_MISALIGNED,
                        "segments->device_count is %p, which is not aligned to the %zu bytes of u64",
                        (const void *)s->device_count, sizeof *s->device_count);
    return DPR_OK;
}

/* Fails if the numbers or the results may not fit the address space. */
static dpr_status check_count(const dpr_segments *s) {
    if (s->count < PTRDIFF_MAX / DPR_RESULT_BYTES)
        return DPR_OK;
    return dpr_fail(DPR_ERR_SIZE,
                    "segments->count is %llu, and the results or the numbers of so many segments do not fit the "
                    "address space",
                    (unsigned long long)s->count);
}

dpr_status dpr_shape_of_segments(const dpr_segments *given, dpr_shape *out) {
    dpr_segments s = DPR_SEGMENTS_INIT;
    dpr_status status = dpr_adopt("segments", "dpr_segments", given, &s, sizeof s);
    if (status == DPR_OK)
        status = check_options(&s);
    if (status == DPR_OK)
        status = check_count(&s);
    if (status == DPR_OK && s.count > 0)
        status = dpr_shape_check_pointer("segments->begins", s.begins, s.dtype);
    if (status == DPR_OK && s.count > 0 && s.ends)
        status = dpr_shape_check_pointer("segments->ends", s.ends, s.dtype);
    if (status != DPR_OK)
        return status;
    *out = (dpr_shape){.kind = DPR_SHAPE_SEGMENTS, .results = s.count, .check = s.check};
    if (s.count == 0)
        return DPR_OK;
    const void *second = (const unsigned char *)s.begins + dpr_dtypes[DPR_ROW(s.dtype)].size;
    out->segments = (dpr_segment_list){.count = s.count,
                                       .begins = s.begins,
                                       .ends = s.ends ? s.ends : second,
                                       .dtype = s.dtype,
                                       .index = s.index,
                                       .device_count = s.device_count};
    out->has_ends = s.ends && s.ends != second; /* ends one behind begins are one array of offsets */
    return DPR_OK;
}

/* ---- Axes ---- */

static int is_reduced(const dpr_axes *axes, int d) {
    return (int)(axes->reduced >> d & 1);
}

/* The product of the extents of all dimensions, or of those that are kept. It is 0 if one of them is, however large the
 * others are. Returns whether it is more than `most`. */
static int multiply(const dpr_axes *axes, int kept_only, uint64_t most, uint64_t *out) {
    uint64_t product = 1;
    int overflow = 0, empty = 0;
    for (int d = 0; d < axes->dimensions; d++) {
        if (kept_only && is_reduced(axes, d))
            continue;
        empty |= axes->extents[d] == 0;
        overflow |= __builtin_mul_overflow(product, axes->extents[d], &product);
    }
    *out = empty ? 0 : product;
    return !empty && (overflow || product > most);
}

/* Whether axis a should be outside of b: its stride is greater, or 0, so that neighbours of b are read together. */
static int is_outside(const dpr_axis *a, const dpr_axis *b) {
    return b->in != 0 && (a->in == 0 || llabs(a->in) > llabs(b->in));
}

/* Orders axes by their strides in the array: results may be computed in any order. */
static void sort_axes(dpr_axis *list, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && is_outside(&list[k], &list[k - 1]); k--) {
            const dpr_axis swapped = list[k];
            list[k] = list[k - 1];
            list[k - 1] = swapped;
        }
}

/* Fails if the elements or results are further apart than the address space is large. */
static dpr_status check_reach(const char *name, const dpr_axes *axes, uint64_t elements, uint64_t results) {
    double in = 0, out = 0;
    for (int d = 0; d < axes->dimensions; d++) {
        const double steps = axes->extents[d] > 0 ? (double)(axes->extents[d] - 1) : 0;
        in += axes->strides && elements > 0 ? steps * fabs((double)axes->strides[d]) : 0;
        out +=
            axes->out_strides && results > 0 && !is_reduced(axes, d) ? steps * fabs((double)axes->out_strides[d]) : 0;
    }
    if (in < 0x1p58 && out < 0x1p58)
        return DPR_OK;
    return dpr_fail(DPR_ERR_SIZE, "%s->%s are so large that elements do not fit the address space", name,
                    in < 0x1p58 ? "out_strides" : "strides");
}

/* Adds an axis inside of those in a list, and joins it with the innermost of them if that is possible. */
static void add_axis(dpr_axis axis, dpr_axis *list, int *n) {
    dpr_axis *last = list + *n - 1;
    int64_t in, out; /* from one beginning of the axis to the next */
    const int in_overflows = __builtin_mul_overflow(axis.in, axis.extent, &in);
    const int out_overflows = __builtin_mul_overflow(axis.out, axis.extent, &out);
    if (*n > 0 && !in_overflows && !out_overflows && last->in == in && last->out == out)
        *last = (dpr_axis){last->extent * axis.extent, axis.in, axis.out};
    else
        list[(*n)++] = axis;
}

/* Lists the axes that are reduced, or those that are kept, without extents of 1. Returns how many there are. */
static int list_axes(const dpr_axes *axes, int reduced, int sorted, dpr_axis *list) {
    dpr_axis all[DPR_MOST_DIMENSIONS];
    int64_t in = 1, out = 1;
    int count = 0, joined = 0, first = DPR_MOST_DIMENSIONS;
    for (int d = axes->dimensions - 1; d >= 0; d--) {
        const uint64_t extent = axes->extents[d];
        const int is_out = !is_reduced(axes, d);
        if (is_reduced(axes, d) == reduced && extent != 1)
            all[--first] = (dpr_axis){axes->extents[d], axes->strides ? axes->strides[d] : in,
                                      !is_out             ? 0
                                      : axes->out_strides ? axes->out_strides[d]
                                                          : out};
        /* They overflow only if they are not used. */
        (void)__builtin_mul_overflow(in, extent, &in);
        (void)__builtin_mul_overflow(out, is_out ? extent : 1, &out);
    }
    count = DPR_MOST_DIMENSIONS - first;
    if (sorted)
        sort_axes(all + first, count);
    for (int i = 0; i < count; i++)
        add_axis(all[first + i], list, &joined);
    return joined;
}

/* Makes the layout of `elements` elements with `outputs` results, at least 1. If results are indices, the axes that are
 * reduced keep their order. */
static void make_layout(const dpr_axes *axes, uint64_t elements, uint64_t outputs, int keeps_order,
                        dpr_axes_layout *at) {
    static const int64_t zeros[DPR_MOST_DIMENSIONS];
    dpr_axes here = *axes;
    if (elements == 0) /* products of the other extents may overflow */
        here.strides = zeros;
    at->outputs = outputs;
    at->each = elements / outputs;
    at->kept = list_axes(&here, 0, 1, at->keep);
    at->reduced = list_axes(&here, 1, !keeps_order, at->reduce);
    if (at->reduced == 0)
        at->reduce[at->reduced++] = (dpr_axis){1, 1, 0};
}

static dpr_status check_axes(const dpr_axes *axes) {
    if (axes->dimensions < 1 || axes->dimensions > DPR_MOST_DIMENSIONS)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "axes->dimensions is %d; it should be from 1 to %d", axes->dimensions,
                        DPR_MOST_DIMENSIONS);
    if (axes->reduced >> axes->dimensions != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "axes->reduced is 0x%x, which has a bit for more than %d dimensions",
                        axes->reduced, axes->dimensions);
    const void *const numbers[] = {axes->extents, axes->strides, axes->out_strides};
    static const char *const names[] = {"axes->extents", "axes->strides", "axes->out_strides"};
    dpr_status status = DPR_OK;
    for (int i = 0; i < 3 && status == DPR_OK; i++)
        if (numbers[i] || i == 0)
            status = dpr_shape_check_pointer(names[i], numbers[i], i == 0 ? DPR_U64 : DPR_I64);
    return status;
}

dpr_status dpr_shape_of_axes(const dpr_axes *given, const dpr_op_row *op, dpr_shape *out, uint64_t *elements) {
    const uint64_t most = PTRDIFF_MAX / DPR_RESULT_BYTES;
    const int is_index = op->result == DPR_RESULT_INDEX;
    dpr_axes axes = DPR_AXES_INIT;
    *out = (dpr_shape){.kind = DPR_SHAPE_AXES};
    dpr_status status = dpr_adopt("axes", "dpr_axes", given, &axes, sizeof axes);
    if (status == DPR_OK)
        status = check_axes(&axes);
    if (status == DPR_OK && (multiply(&axes, 0, most, elements) || multiply(&axes, 1, most, &out->results)))
        status = dpr_fail(DPR_ERR_SIZE, "axes->extents multiply to more than %llu elements or results",
                          (unsigned long long)most);
    if (status == DPR_OK)
        status = check_reach("axes", &axes, *elements, out->results);
    if (status != DPR_OK || out->results == 0)
        return status;
    if (is_index && *elements == 0)
        return dpr_fail(DPR_ERR_EMPTY, "the reduced dimensions have no elements; %s has no result for zero elements",
                        op->name);
    make_layout(&axes, *elements, out->results, is_index, &out->axes);
    out->in_has_gaps = axes.strides != NULL;
    out->out_has_gaps = axes.out_strides != NULL;
    return DPR_OK;
}

/* ---- Dimensions of a problem ---- */

static dpr_status check_dimensions(const dpr_problem *problem) {
    if (problem->dimensions < 0 || problem->dimensions > DPR_MOST_DIMENSIONS)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->dimensions is %d; it should be from 0 to %d",
                        problem->dimensions, DPR_MOST_DIMENSIONS);
    if (!problem->extents)
        return dpr_fail(DPR_ERR_NULL_POINTER, "problem->extents is NULL, and problem->dimensions is %d",
                        problem->dimensions);
    dpr_status status = dpr_shape_check_pointer("problem->extents", problem->extents, DPR_U64);
    if (status == DPR_OK && problem->strides)
        status = dpr_shape_check_pointer("problem->strides", problem->strides, DPR_I64);
    if (status != DPR_OK)
        return status;
    if (problem->device_count)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->device_count is set; it should be NULL, because problem->dimensions is %d",
                        problem->dimensions);
    return DPR_OK;
}

static dpr_status count_elements(const dpr_problem *problem, const dpr_axes *axes, uint64_t *elements) {
    if (multiply(axes, 0, PTRDIFF_MAX, elements))
        return dpr_fail(DPR_ERR_SIZE,
                        "problem->extents multiply to more than %td elements; an array has at most %td bytes",
                        PTRDIFF_MAX, PTRDIFF_MAX);
    if (problem->count != 0 && problem->count != *elements)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->count is %zu; it should be 0 or %llu, the product of problem->extents",
                        problem->count, (unsigned long long)*elements);
    return *elements > 0 ? check_reach("problem", axes, *elements, 1) : DPR_OK;
}

dpr_status dpr_shape_of_dimensions(const dpr_problem *problem, dpr_shape *out, uint64_t *elements) {
    dpr_axes axes = DPR_AXES_INIT;
    dpr_axes_layout at = {.outputs = 0};
    dpr_status status = check_dimensions(problem);
    if (status != DPR_OK)
        return status;
    axes.dimensions = problem->dimensions;
    axes.reduced = (1U << problem->dimensions) - 1;
    axes.extents = problem->extents;
    axes.strides = problem->strides;
    status = count_elements(problem, &axes, elements);
    if (status != DPR_OK)
        return status;
    make_layout(&axes, *elements, 1, 1, &at);
    *out = dpr_shape_of_array();
    if (*elements > 0 && !(at.reduced == 1 && at.reduce[0].in == 1))
        *out = (dpr_shape){.kind = DPR_SHAPE_AXES, .results = 1, .axes = at};
    return DPR_OK;
}

/* ---- Runs of keys ---- */

dpr_status dpr_shape_check_keys(const char *what, dpr_dtype dtype, uint64_t count) {
    const int is_known = (unsigned)dtype - DPR_FIRST_DTYPE < DPR_DTYPE_COUNT;
    if (!is_known || !(dpr_dtypes[DPR_ROW(dtype)].kind & DPR_DOMAIN_BITS))
        return dpr_fail(DPR_ERR_INVALID_DTYPE, "%s is %d; it should be DPR_BOOL or a type of integers", what,
                        (int)dtype);
    if (count >= PTRDIFF_MAX / DPR_RESULT_BYTES)
        return dpr_fail(DPR_ERR_SIZE,
                        "count is %llu, and the keys or the results of so many runs do not fit the address space",
                        (unsigned long long)count);
    return DPR_OK;
}

dpr_shape dpr_shape_of_keys(const dpr_keys *keys, uint64_t count) {
    const uint64_t most = dpr_most_runs(keys, count);
    dpr_shape shape = {.kind = DPR_SHAPE_SEGMENTS, .results = most > 0 ? most : 1, .keys = *keys};
    shape.segments = (dpr_segment_list){.count = shape.results, .dtype = dpr_key_runs_type(count)};
    return shape;
}

/* ---- The fields of the planner's keys and of runs ---- */

static uint8_t logarithm(uint64_t n) {
    return (uint8_t)(63 - __builtin_clzll(n));
}

void dpr_shape_key(const dpr_shape *shape, dpr_key *key) {
    if (dpr_shape_is_array(shape))
        return;
    key->f.segments = (uint8_t)(1 + logarithm(shape->results > 0 ? shape->results : 1));
    key->f.strided = shape->kind == DPR_SHAPE_AXES;
    key->f.ranges = shape->has_ends ? 1 : 0;
}

void dpr_shape_run(const dpr_shape *shape, dpr_run *run) {
    run->segments = shape->kind == DPR_SHAPE_SEGMENTS ? &shape->segments : NULL;
    run->axes = shape->kind == DPR_SHAPE_AXES ? &shape->axes : NULL;
}
