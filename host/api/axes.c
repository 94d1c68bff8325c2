/* dpr_reduce_axes(): checks the call, and runs it. */
#include "error.h"
#include "parts.h"

/* The checks before results are made, of which there are none if shape.results is 0. */
static dpr_status prepare(dpr_ctx *ctx, const dpr_axes *axes, dpr_parts *c) {
    static const dpr_parts_array none[4];
    uint64_t elements = 0;
    dpr_status status = dpr_shape_of_axes(axes, c->request.op, &c->shape, &elements);
    if (status != DPR_OK || c->shape.results == 0)
        return status;
    c->request.count = (size_t)elements;
    status = dpr_request_check(&c->request, c->in, &c->out);
    return status == DPR_OK ? dpr_parts_place(ctx, c, none) : status;
}

dpr_status dpr_reduce_axes(dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op, const dpr_axes *axes,
                           const dpr_options *options) {
    dpr_parts c;
    dpr_status status = dpr_parts_make(ctx, in, out, 0, dtype, op, options, &c);
    if (status == DPR_OK)
        status = prepare(ctx, axes, &c);
    if (status != DPR_OK || c.shape.results == 0)
        return status;
    if (!dpr_parts_on_device(&c))
        status = dpr_parts_reach(ctx, &c);
    return status == DPR_OK ? dpr_parts_run(ctx, &c, c.request.count) : status;
}

dpr_status dpr_reduce_axes_async(dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                                 const dpr_axes *axes, const dpr_options *options, dpr_stream stream) {
    dpr_parts c;
    dpr_status status = dpr_parts_make(ctx, in, out, 0, dtype, op, options, &c);
    if (status == DPR_OK)
        status = dpr_parts_no_stream(ctx, &c, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return dpr_reduce_axes(ctx, in, out, dtype, op, axes, options);
    if (status == DPR_OK)
        status = prepare(ctx, axes, &c);
    if (status != DPR_OK || c.shape.results == 0)
        return status;
    status = dpr_parts_reach_stream(&c);
    return status == DPR_OK ? dpr_parts_enqueue(ctx, &c, stream) : status;
}
