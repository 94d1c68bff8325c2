/* dpr_reduce_axes(): checks the shape and the call, and runs it. */
#include <math.h>
#include <stdlib.h>

#include "error.h"
#include "parts.h"

/* ---- The shape ---- */

static dpr_status check_axes(const dpr_axes *axes) {
    if (axes->dimensions < 1 || axes->dimensions > DPR_MOST_DIMENSIONS)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "axes->dimensions is %d; it should be from 1 to %d", axes->dimensions,
                        DPR_MOST_DIMENSIONS);
    if (axes->reduced >> axes->dimensions != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "axes->reduced is 0x%x, which has a bit for more than %d dimensions",
                        axes->reduced, axes->dimensions);
    if (!axes->extents)
        return dpr_fail(DPR_ERR_NULL_POINTER, "axes->extents is NULL");
    return DPR_OK;
}

static int is_reduced(const dpr_axes *axes, int d) {
    return (int)(axes->reduced >> d & 1);
}

/* The product of the extents of all dimensions, or of those that are kept. It is 0 if one of them is. */
static dpr_status multiply(const dpr_axes *axes, int kept_only, uint64_t *out) {
    uint64_t product = 1;
    int overflow = 0, empty = 0;
    for (int d = 0; d < axes->dimensions; d++) {
        if (kept_only && is_reduced(axes, d))
            continue;
        empty |= axes->extents[d] == 0;
        overflow |= __builtin_mul_overflow(product, axes->extents[d], &product);
    }
    *out = empty ? 0 : product;
    if (!empty && (overflow || product > PTRDIFF_MAX / DPR_RESULT_BYTES))
        return dpr_fail(DPR_ERR_SIZE, "axes->extents multiply to more than %td elements or results",
                        (ptrdiff_t)(PTRDIFF_MAX / DPR_RESULT_BYTES));
    return DPR_OK;
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
static dpr_status check_reach(const dpr_axes *axes) {
    double in = 0, out = 0;
    for (int d = 0; d < axes->dimensions; d++) {
        const double steps = axes->extents[d] > 0 ? (double)(axes->extents[d] - 1) : 0;
        in += axes->strides ? steps * fabs((double)axes->strides[d]) : 0;
        out += axes->out_strides && !is_reduced(axes, d) ? steps * fabs((double)axes->out_strides[d]) : 0;
    }
    if (in < 0x1p58 && out < 0x1p58)
        return DPR_OK;
    return dpr_fail(DPR_ERR_SIZE, "axes->%s are so large that elements do not fit the address space",
                    in < 0x1p58 ? "out_strides" : "strides");
}

/* Adds an axis inside of those in a list, and joins it with the innermost of them if that is possible. */
static void add_axis(dpr_axis axis, dpr_axis *list, int *n) {
    dpr_axis *last = list + *n - 1;
    int64_t in, out; /* from one beginning of the axis to the next */
    const int overflow =
        __builtin_mul_overflow(axis.in, axis.extent, &in) | __builtin_mul_overflow(axis.out, axis.extent, &out);
    if (*n > 0 && !overflow && last->in == in && last->out == out)
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

/* A copy whose strides in the array are 0: there are no elements, and products of other extents may overflow. */
static const dpr_axes *without_strides(const dpr_axes *axes, dpr_axes *copy) {
    static const int64_t zeros[DPR_MOST_DIMENSIONS];
    *copy = *axes;
    copy->strides = zeros;
    return copy;
}

static dpr_status make_layout(const dpr_axes *axes, int keeps_order, dpr_axes_layout *at) {
    dpr_axes still;
    uint64_t elements = 0;
    dpr_status status = check_axes(axes);
    if (status == DPR_OK)
        status = multiply(axes, 0, &elements);
    if (status == DPR_OK)
        status = multiply(axes, 1, &at->outputs);
    if (status == DPR_OK)
        status = check_reach(axes);
    if (status != DPR_OK || at->outputs == 0)
        return status;
    at->each = elements / at->outputs;
    if (at->each == 0)
        axes = without_strides(axes, &still);
    /* With an index as the result, the axes that are reduced keep their order. */
    at->kept = list_axes(axes, 0, 1, at->keep);
    at->reduced = list_axes(axes, 1, !keeps_order, at->reduce);
    if (at->reduced == 0)
        at->reduce[at->reduced++] = (dpr_axis){1, 1, 0};
    return DPR_OK;
}

/* ---- The calls ---- */

/* A call with its shape. */
typedef struct call {
    dpr_parts parts;
    dpr_axes_layout at;
} call;

/* The checks before results are made, of which there are none if at.outputs is 0. */
static dpr_status prepare(dpr_ctx *ctx, const dpr_axes *given, call *c) {
    static const char *const names[2] = {NULL, NULL};
    dpr_axes axes = DPR_AXES_INIT;
    const int is_index = c->parts.request.op->result == DPR_RESULT_INDEX;
    dpr_status status = given ? dpr_request_adopt("axes", "dpr_axes", given, &axes, sizeof axes)
                              : dpr_fail(DPR_ERR_NULL_POINTER, "axes is NULL");
    if (status == DPR_OK)
        status = make_layout(&axes, is_index, &c->at);
    if (status != DPR_OK || c->at.outputs == 0)
        return status;
    if (is_index && c->at.each == 0)
        return dpr_fail(DPR_ERR_EMPTY, "the reduced dimensions have no elements; %s has no result for zero elements",
                        c->parts.request.op->name);
    c->parts.request.count = (size_t)(c->at.outputs * c->at.each);
    c->parts.axes = &c->at;
    c->parts.out_has_gaps = axes.out_strides != NULL;
    status = dpr_request_check(&c->parts.request, c->parts.in, &c->parts.out);
    return status == DPR_OK ? dpr_parts_place(ctx, &c->parts, names, (const void *const[]){NULL, NULL}) : status;
}

dpr_status dpr_reduce_axes(dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op, const dpr_axes *axes,
                           const dpr_options *options) {
    call c = {.at = {0}};
    dpr_status status = dpr_parts_make(ctx, in, out, 0, dtype, op, options, &c.parts);
    if (status == DPR_OK)
        status = prepare(ctx, axes, &c);
    if (status != DPR_OK || c.at.outputs == 0)
        return status;
    if (!dpr_parts_on_device(&c.parts))
        status = dpr_parts_reach(ctx, &c.parts);
    return status == DPR_OK ? dpr_parts_run(ctx, &c.parts, c.at.outputs, c.parts.request.count) : status;
}

dpr_status dpr_reduce_axes_async(dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                                 const dpr_axes *axes, const dpr_options *options, dpr_stream stream) {
    call c = {.at = {0}};
    dpr_status status = dpr_parts_make(ctx, in, out, 0, dtype, op, options, &c.parts);
    if (status == DPR_OK)
        status = dpr_parts_no_stream(ctx, &c.parts, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return dpr_reduce_axes(ctx, in, out, dtype, op, axes, options);
    if (status == DPR_OK)
        status = prepare(ctx, axes, &c);
    if (status != DPR_OK || c.at.outputs == 0)
        return status;
    status = dpr_parts_reach_stream(&c.parts);
    return status == DPR_OK ? dpr_parts_enqueue(ctx, &c.parts, c.at.outputs, stream) : status;
}
