/* Partial results: what they say of themselves, and how they are merged and finished. Reducing to one is in api.c. */
#include "partial.h"

#include "cpu/float_mode.h"
#include "ctx.h"
#include "error.h"
#include "plan/registry.h"
#include "request.h"
#include "start.h"

size_t dpr_partial_size(dpr_op op, dpr_dtype dtype) {
    return dpr_supported(op, dtype) ? sizeof(uint64_t) * (size_t)dpr_partial_words(op, dtype) : 0;
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

/* Whether the first word of a partial result is one that this version writes. */
static int is_label(uint64_t label) {
    const dpr_op op = dpr_partial_op(label);
    const dpr_dtype dtype = dpr_partial_dtype(label);
    const dpr_nan nan = dpr_partial_nan(label);
    return (nan == DPR_NAN_PROPAGATE || nan == DPR_NAN_IGNORE) && dpr_supported(op, dtype)
           && label == dpr_partial_label(op, dtype, nan);
}

static dpr_status check_pointer(const char *argument, const void *pointer) {
    if (!pointer)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", argument);
    if ((uintptr_t)pointer % sizeof(uint64_t) != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "%s is %p, which is not aligned to the %zu bytes of a partial result",
                        argument, pointer, sizeof(uint64_t));
    return DPR_OK;
}

/* Fails unless partial result i, which begins with `label`, is one of the pair. */
static dpr_status check_label(uint64_t label, size_t i, dpr_dtype dtype, dpr_op op) {
    const dpr_op its_op = dpr_partial_op(label);
    const dpr_dtype its_dtype = dpr_partial_dtype(label);
    if (!is_label(label))
        return dpr_fail(DPR_ERR_INVALID_PARTIAL,
                        "partial result %zu begins with 0x%016llx, which no partial result of this version does", i,
                        (unsigned long long)label);
    if (its_op != op || its_dtype != dtype)
        return dpr_fail(DPR_ERR_INVALID_PARTIAL, "partial result %zu is one of %s of %s, not of %s of %s", i,
                        dpr_op_name(its_op), dpr_dtype_name(its_dtype), dpr_op_name(op), dpr_dtype_name(dtype));
    return DPR_OK;
}

/* Checks partial results in host memory, and merges them. */
static dpr_status merge(const uint64_t *from, size_t n, const dpr_request *request, dpr_merged *out) {
    const dpr_op op = dpr_key_op(&request->key);
    const dpr_dtype dtype = dpr_key_dtype(&request->key);
    const size_t words = dpr_partial_size(op, dtype) / sizeof *from;
    *out = (dpr_merged){0};
    for (size_t i = 0; i < n; i++, from += words) {
        const dpr_status status = check_label(from[0], i, dtype, op);
        if (status != DPR_OK)
            return status;
        if (dpr_partial_nan(from[0]) != (dpr_nan)request->key.f.nan)
            return dpr_fail(DPR_ERR_INVALID_PARTIAL, "partial result %zu has NaN policy %d, and options->nan is %d", i,
                            (int)dpr_partial_nan(from[0]), request->key.f.nan);
        dpr_partial_add(out, from);
    }
    return DPR_OK;
}

/* The request of a merge: its pair and options. A merge reports no launches. */
static dpr_status make_request(size_t n, dpr_dtype dtype, dpr_op op, const dpr_options *options, dpr_request *out) {
    size_t bytes;
    dpr_status status = dpr_request_make(op, dtype, 1, options, out);
    if (status == DPR_OK)
        status = dpr_request_no_stream(out, "options");
    if (status != DPR_OK)
        return status;
    if (n == 0)
        return dpr_fail(DPR_ERR_EMPTY, "n is 0; there is nothing to merge");
    if (__builtin_mul_overflow(n, dpr_partial_size(op, dtype), &bytes) || bytes > PTRDIFF_MAX)
        return dpr_fail(DPR_ERR_SIZE, "n is %zu; partial results have at most %td bytes together", n,
                        (ptrdiff_t)PTRDIFF_MAX);
    out->count = n;
    out->launch_report = NULL;
    out->report_size = 0;
    return DPR_OK;
}

/* ---- In host memory --------------------------------------------------------------------------------------------- */

dpr_status dpr_partial_describe(const void *partial, dpr_partial_info *out) {
    dpr_status status = check_pointer("partial", partial);
    if (status == DPR_OK)
        status = dpr_check_out("out", out, "DPR_PARTIAL_INFO_INIT");
    if (status != DPR_OK)
        return status;
    const uint64_t *words = partial;
    const dpr_op op = dpr_partial_op(words[0]);
    const dpr_dtype dtype = dpr_partial_dtype(words[0]);
    status = check_label(words[0], 0, dtype, op);
    if (status != DPR_OK)
        return status;
    const dpr_partial_info found = {0, op, dtype, dpr_partial_nan(words[0]), 0, words[1]};
    return dpr_fill_out(out, &found, sizeof found);
}

static dpr_status merge_all(const void *partials, size_t n, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                            void *out) {
    dpr_request request;
    dpr_merged merged;
    dpr_status status = make_request(n, dtype, op, options, &request);
    if (status == DPR_OK)
        status = dpr_request_partial(0, &request);
    if (status == DPR_OK)
        status = check_pointer("partials", partials);
    if (status == DPR_OK)
        status = check_pointer("out", out);
    if (status == DPR_OK)
        status = merge(partials, n, &request, &merged);
    if (status == DPR_OK)
        dpr_partial_store(request.label, merged.count, &merged.acc, out);
    return status;
}

static dpr_status finish_all(const void *partials, size_t n, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                             void *out) {
    dpr_request request;
    dpr_merged merged;
    dpr_status status = make_request(n, dtype, op, options, &request);
    if (status == DPR_OK)
        status = check_pointer("partials", partials);
    if (status == DPR_OK)
        status = dpr_request_check(&request, partials, &out);
    if (status == DPR_OK)
        status = merge(partials, n, &request, &merged);
    if (status == DPR_OK && merged.count == 0 && request.op->result == DPR_RESULT_INDEX)
        return dpr_fail(DPR_ERR_EMPTY, "the partial results are of no elements; %s has no result for zero elements",
                        request.op->name);
    if (status != DPR_OK)
        return status;
    dpr_acc_add_init(op, dtype, (dpr_nan)request.key.f.nan, &merged.acc, &request.init);
    dpr_acc_write(op, dtype, &merged.acc, &request.init, out);
    return DPR_OK;
}

/* Does either of the above in the floating-point mode of all runs. */
static dpr_status in_our_mode(dpr_status (*what)(const void *, size_t, dpr_dtype, dpr_op, const dpr_options *, void *),
                              const void *partials, size_t n, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                              void *out) {
    const uint64_t mode = dpr_float_mode_enter();
    const dpr_status status = what(partials, n, dtype, op, options, out);
    dpr_float_mode_leave(mode);
    return status;
}

dpr_status dpr_partial_merge(const void *partials, size_t n, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                             void *out) {
    return in_our_mode(merge_all, partials, n, dtype, op, options, out);
}

dpr_status dpr_partial_finish(const void *partials, size_t n, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                              void *out) {
    return in_our_mode(finish_all, partials, n, dtype, op, options, out);
}

/* ---- In a stream ------------------------------------------------------------------------------------------------ */

/* Fails if the context does not reach the memory, or if it has a GPU, whose streams do not. */
static dpr_status check_reach(const dpr_ctx *ctx, const char *argument, const void *pointer) {
    dpr_place place;
    dpr_status status = dpr_device_place(pointer, argument, &place);
    if (status == DPR_OK && dpr_ctx_gpu(ctx))
        status = dpr_request_reaches_stream(argument, pointer, place);
    return status == DPR_OK ? dpr_ctx_reaches(ctx, argument, place) : status;
}

/* Merges on the context's GPU. The request says what is written. */
static dpr_status enqueue(dpr_ctx *ctx, const dpr_request *request, const void *partials, void *out,
                          dpr_stream stream) {
    dpr_misfit misfit = {0, 0};
    dpr_run run;
    dpr_request_run(request, &run);
    run.in = partials;
    run.out = out;
    run.stream = stream;
    return dpr_start_on_gpu(dpr_ctx_gpu(ctx), dpr_this_build.partials, &run, NULL, &misfit);
}

/* What both functions check. */
static dpr_status check_call(const dpr_ctx *ctx, const void *partials, const void *out, dpr_stream stream) {
    if (!ctx || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", ctx ? "out" : "ctx");
    if (stream && !dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "stream is %p, and the context is the CPU's", (void *)stream);
    dpr_status status = check_pointer("partials", partials);
    if (status == DPR_OK)
        status = check_reach(ctx, "partials", partials);
    return status == DPR_OK ? check_reach(ctx, "out", out) : status;
}

dpr_status dpr_partial_merge_async(dpr_ctx *ctx, const void *partials, size_t n, dpr_dtype dtype, dpr_op op,
                                   const dpr_options *options, void *out, dpr_stream stream) {
    dpr_request request;
    dpr_status status = check_call(ctx, partials, out, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return dpr_partial_merge(partials, n, dtype, op, options, out);
    if (status == DPR_OK)
        status = make_request(n, dtype, op, options, &request);
    if (status == DPR_OK)
        status = dpr_request_partial(0, &request);
    if (status == DPR_OK)
        status = check_pointer("out", out);
    return status == DPR_OK ? enqueue(ctx, &request, partials, out, stream) : status;
}

dpr_status dpr_partial_finish_async(dpr_ctx *ctx, const void *partials, size_t n, dpr_dtype dtype, dpr_op op,
                                    const dpr_options *options, void *out, dpr_stream stream) {
    dpr_request request;
    dpr_status status = check_call(ctx, partials, out, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return dpr_partial_finish(partials, n, dtype, op, options, out);
    if (status == DPR_OK)
        status = make_request(n, dtype, op, options, &request);
    if (status == DPR_OK)
        status = dpr_request_check(&request, partials, &out);
    return status == DPR_OK ? enqueue(ctx, &request, partials, out, stream) : status;
}
