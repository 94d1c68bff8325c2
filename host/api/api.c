/* dpr_reduce(), dpr_reduce_ex() and dpr_reduce_async(): check once, find out where the memory lies, choose, run. */
#include <string.h>

#include "cpu/cores.h"
#include "cpu/pool.h"
#include "ctx.h"
#include "error.h"
#include "log.h"
#include "partial.h"
#include "request.h"
#include "start.h"
#include "wisdom.h"

/* A request with its arrays. */
typedef struct call {
    dpr_request request;
    const void *in;
    void *out[DPR_FUSED_MOST]; /* the first; of several operations all */
    dpr_place in_place, out_place[DPR_FUSED_MOST];
    dpr_place nested_place; /* where the report goes; host memory if none is wanted */
} call;

/* The place of an empty array, whose pointer may be NULL or invalid. An array without a place counts as memory of the
 * context's device, or without a context as memory where the result lies. */
static dpr_place place_of_nothing(const dpr_ctx *ctx, const void *in, dpr_place out) {
    dpr_place place;
    if (in && dpr_device_place(in, "in", &place) == DPR_OK)
        return place;
    if (!ctx)
        return out;
    if (dpr_ctx_gpu(ctx))
        return (dpr_place){DPR_MEMORY_DEVICE, dpr_ctx_device(ctx), NULL};
    return (dpr_place){DPR_MEMORY_HOST, -1, NULL};
}

/* Checks the arrays of a call whose request is made, and finds out where they lie. `ctx` is NULL if the context will
 * depend on where they lie. */
static dpr_status place_arrays(const dpr_ctx *ctx, const void *in, void *const *outs, call *c) {
    const size_t count = c->request.count;
    dpr_status status = dpr_request_check(&c->request, in, outs);
    for (int i = 0; i < dpr_request_outs(&c->request) && status == DPR_OK; i++) {
        c->out[i] = outs[i];
        status = dpr_device_place(outs[i], dpr_request_out(&c->request, i), &c->out_place[i]);
    }
    if (status == DPR_OK && count > 0)
        status = dpr_device_place(in, "in", &c->in_place);
    c->nested_place = (dpr_place){DPR_MEMORY_HOST, -1, NULL};
    if (status == DPR_OK && c->request.launch_report)
        status = dpr_device_place(c->request.launch_report, "options->launch->report", &c->nested_place);
    if (status != DPR_OK)
        return status;
    if (count == 0)
        c->in_place = place_of_nothing(ctx, in, c->out_place[0]);
    c->in = in;
    c->request.key.f.in_memory = (uint8_t)c->in_place.memory;
    return DPR_OK;
}

static int on_device(dpr_place place) {
    return place.memory == DPR_MEMORY_DEVICE;
}

/* Finds the choice for the call, and makes a run that lacks only its destination and the fields that depend on the
 * choice. */
static dpr_status prepare(dpr_ctx *ctx, const call *c, const dpr_choice **choice, dpr_run *run) {
    dpr_status status = dpr_ctx_reaches(ctx, "in", c->in_place);
    for (int i = 0; i < dpr_request_outs(&c->request) && status == DPR_OK; i++)
        status = dpr_ctx_reaches(ctx, dpr_request_out(&c->request, i), c->out_place[i]);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(ctx, "options->launch->report", c->nested_place);
    if (status == DPR_OK)
        status = dpr_ctx_choice(ctx, c->request.key, choice);
    if (status != DPR_OK)
        return status;
    dpr_request_run(&c->request, run);
    run->in = c->in;
    return DPR_OK;
}

/* Copies the result or the report from host memory to where the caller wants it, in the call's stream. */
static dpr_status put(const dpr_ctx *ctx, const call *c, dpr_place place, void *to, const void *from, size_t bytes) {
    if (place.memory == DPR_MEMORY_DEVICE || place.memory == DPR_MEMORY_MANAGED)
        return c->request.stream ? dpr_device_put_in_stream(dpr_ctx_gpu(ctx), c->request.stream, to, from, bytes)
                                 : dpr_device_put(place, to, from, bytes);
    memcpy(to, from, bytes);
    return DPR_OK;
}

/* Waits for the work that the call comes after. */
static dpr_status wait_before_cpu(const dpr_ctx *ctx, const call *c) {
    if (c->request.stream)
        return dpr_device_wait_for_stream(dpr_ctx_gpu(ctx), c->request.stream);
    return c->in_place.device >= 0 ? dpr_device_wait(c->in_place) : DPR_OK;
}

static int reached_by_host(dpr_place place) {
    return place.memory == DPR_MEMORY_HOST || place.memory == DPR_MEMORY_PINNED;
}

/* The results of several operations in host memory. */
typedef struct results {
    _Alignas(DPR_RESULT_BYTES) unsigned char bytes[DPR_FUSED_MOST][DPR_RESULT_BYTES];
} results;

/* The request's operations, with places in `r` for their results. */
static dpr_outputs outputs_of(const call *c, results *r) {
    dpr_outputs outputs = c->request.fused;
    for (int i = 0; i < outputs.count; i++)
        outputs.out[i] = r->bytes[i];
    return outputs;
}

/* Copies to host memory, which cannot fail, come last. */
static dpr_status put_results(const dpr_ctx *ctx, const call *c, const results *r) {
    dpr_status status = DPR_OK;
    for (int i = 0; i < 2 * c->request.fused.count && status == DPR_OK; i++) {
        const int at = i % c->request.fused.count, hosts_turn = i >= c->request.fused.count;
        if (reached_by_host(c->out_place[at]) == hosts_turn)
            status = put(ctx, c, c->out_place[at], c->out[at], r->bytes[at], dpr_request_out_size(&c->request, at));
    }
    return status;
}

static dpr_status run_fused_on_cpu(const dpr_ctx *ctx, const dpr_choice_step *step, dpr_run *run, const call *c) {
    results r;
    const dpr_outputs outputs = outputs_of(c, &r);
    run->fused = &outputs;
    dpr_start_on_cpu(step->strategy, run);
    return put_results(ctx, c, &r);
}

/* All checks come before a result is written. The strategy cannot fail; only the copy of a result to device or managed
 * memory can. */
static dpr_status run_on_cpu(const dpr_ctx *ctx, const dpr_choice_step *step, dpr_run *run, const call *c) {
    uint64_t result[DPR_PARTIAL_WORDS];
    static const unsigned char none[DPR_MOST_REPORT_BYTES];
    dpr_status status = wait_before_cpu(ctx, c);
    if (status == DPR_OK && run->launch_report)
        status = put(ctx, c, c->nested_place, run->launch_report, none, run->report_size);
    if (status != DPR_OK)
        return status;
    const int reaches_out = reached_by_host(c->out_place[0]);
    run->out = reaches_out ? c->out[0] : result;
    run->limits = step->limits;
    if (c->request.fused.count > 0)
        return run_fused_on_cpu(ctx, step, run, c);
    dpr_start_on_cpu(step->strategy, run);
    return reaches_out ? DPR_OK : put(ctx, c, c->out_place[0], c->out[0], result, c->request.out_size);
}

/* Runs several operations on the GPU. Their results go to host memory first, because the places may be of several
 * kinds. */
static dpr_status run_fused_on_gpu(dpr_ctx *ctx, const dpr_choice *choice, dpr_run *run, const call *c) {
    results r;
    const dpr_outputs outputs = outputs_of(c, &r);
    run->fused = &outputs;
    const size_t bytes = DPR_RESULT_BYTES * (size_t)outputs.count;
    const dpr_status status = dpr_ctx_run(ctx, choice, run, &(dpr_host_result){r.bytes, bytes});
    return status == DPR_OK ? put_results(ctx, c, &r) : status;
}

/* Does what prepare() does, but chooses a CPU strategy if the last byte of the array is not pinned, because a GPU
 * cannot read an array of which only a part is registered. A GPU strategy that the caller names stays. */
static dpr_status prepare_blocking(dpr_ctx *ctx, call *c, const dpr_choice **choice, dpr_run *run) {
    dpr_status status = prepare(ctx, c, choice, run);
    if (status != DPR_OK || c->in_place.memory != DPR_MEMORY_PINNED || c->request.count == 0
        || c->request.key.f.strategy || dpr_choice_at(*choice, c->request.count)->strategy->side == DPR_ON_CPU)
        return status;
    const size_t bytes = c->request.count * dpr_dtypes[c->request.key.f.dtype].size;
    dpr_place end;
    status = dpr_device_place((const unsigned char *)c->in + bytes - 1, "in", &end);
    if (status != DPR_OK || end.memory == DPR_MEMORY_PINNED)
        return status;
    c->request.key.f.in_memory = DPR_MEMORY_HOST;
    return prepare(ctx, c, choice, run);
}

/* Waits for the default stream of the GPU in whose context `in` was pinned, if the call runs on another GPU: the call's
 * stream does not wait for work there. */
static dpr_status wait_before_gpu(const dpr_ctx *ctx, const call *c) {
    const int device = c->in_place.device; /* below 0: pinned for no device */
    const int elsewhere = c->in_place.memory == DPR_MEMORY_PINNED && device >= 0 && device != dpr_ctx_device(ctx);
    return elsewhere && !c->request.stream ? dpr_device_wait(c->in_place) : DPR_OK;
}

static dpr_status run_blocking(dpr_ctx *ctx, call *c) {
    const dpr_choice *choice = NULL;
    dpr_run run;
    dpr_status status = prepare_blocking(ctx, c, &choice, &run);
    if (status != DPR_OK)
        return status;
    const dpr_choice_step *step = dpr_choice_at(choice, c->request.count);
    if (step->strategy->side == DPR_ON_CPU)
        return run_on_cpu(ctx, step, &run, c);
    status = wait_before_gpu(ctx, c);
    if (status != DPR_OK)
        return status;
    run.out = c->out[0];
    run.stream = c->request.stream;
    if (c->nested_place.memory == DPR_MEMORY_HOST)
        run.report = NULL;
    if (c->request.fused.count > 0)
        return run_fused_on_gpu(ctx, choice, &run, c);
    void *host_out = reached_by_host(c->out_place[0]) ? c->out[0] : NULL;
    return dpr_ctx_run(ctx, choice, &run, &(dpr_host_result){host_out, c->request.out_size});
}

dpr_status dpr_reduce(const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op) {
    call c;
    dpr_status status = dpr_request_make(op, dtype, count, NULL, &c.request);
    if (status == DPR_OK)
        status = place_arrays(NULL, in, &out, &c);
    if (status != DPR_OK)
        return status;
    /* Pinned memory needs no GPU, unless the result goes to one. */
    static const dpr_place on_cpu = {DPR_MEMORY_HOST, -1, NULL};
    const int on_gpu = c.in_place.memory == DPR_MEMORY_DEVICE || c.in_place.memory == DPR_MEMORY_MANAGED;
    dpr_ctx *ctx;
    status = dpr_ctx_default(on_gpu ? &c.in_place : on_device(c.out_place[0]) ? &c.out_place[0] : &on_cpu, &ctx);
    return status == DPR_OK ? run_blocking(ctx, &c) : status;
}

static dpr_status reduce_blocking(dpr_ctx *ctx, const void *in, void *const *outs, call *c) {
    const dpr_status status = place_arrays(ctx, in, outs, c);
    if (status == DPR_OK && c->request.stream && !dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->stream is %p, and the context is the CPU's",
                        (void *)c->request.stream);
    return status == DPR_OK ? run_blocking(ctx, c) : status;
}

/* Makes a request for a partial result, of which there is also one of no elements. */
static dpr_status make_partial(size_t count, dpr_dtype dtype, dpr_op op, uint64_t first_index,
                               const dpr_options *options, dpr_request *out) {
    const dpr_status status = dpr_request_make(op, dtype, count > 0 ? count : 1, options, out);
    out->count = count;
    return status == DPR_OK ? dpr_request_partial(first_index, out) : status;
}

dpr_status dpr_reduce_ex(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                         const dpr_options *options) {
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    call c;
    const dpr_status status = dpr_request_make(op, dtype, count, options, &c.request);
    return status == DPR_OK ? reduce_blocking(ctx, in, &out, &c) : status;
}

dpr_status dpr_reduce_partial(dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype, dpr_op op,
                              uint64_t first_index, const dpr_options *options) {
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    call c;
    const dpr_status status = make_partial(count, dtype, op, first_index, options, &c.request);
    return status == DPR_OK ? reduce_blocking(ctx, in, &partial, &c) : status;
}

static dpr_status reduce_in_stream(dpr_ctx *ctx, const void *in, void *const *outs, call *c, dpr_stream stream) {
    dpr_status status = dpr_request_no_stream(&c->request, "options");
    if (status == DPR_OK)
        status = place_arrays(ctx, in, outs, c);
    if (status != DPR_OK)
        return status;
    if (!dpr_ctx_gpu(ctx)) {
        if (stream)
            return dpr_fail(DPR_ERR_INVALID_OPTION, "stream is %p, and the context is the CPU's", (void *)stream);
        return run_blocking(ctx, c);
    }
    if (c->request.count == 0)
        c->in_place = (dpr_place){DPR_MEMORY_DEVICE, dpr_ctx_device(ctx), NULL};
    status = dpr_request_reaches_stream("in", in, c->in_place);
    for (int i = 0; i < dpr_request_outs(&c->request) && status == DPR_OK; i++)
        status = dpr_request_reaches_stream(dpr_request_out(&c->request, i), outs[i], c->out_place[i]);
    if (status == DPR_OK && c->request.launch_report)
        status = dpr_request_reaches_stream("options->launch->report", c->request.launch_report, c->nested_place);
    if (status != DPR_OK)
        return status;
    c->request.key.f.in_memory = (uint8_t)c->in_place.memory;
    c->request.key.f.gpu_only = 1;
    const dpr_choice *choice = NULL;
    dpr_run run;
    status = prepare(ctx, c, &choice, &run);
    if (status != DPR_OK)
        return status;
    const dpr_outputs fused = dpr_request_outputs(&c->request, c->out);
    run.out = c->out[0];
    run.fused = fused.count > 0 ? &fused : NULL;
    run.stream = stream;
    return dpr_ctx_run(ctx, choice, &run, NULL);
}

dpr_status dpr_reduce_async(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                            const dpr_options *options, dpr_stream stream) {
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    call c;
    const dpr_status status = dpr_request_make(op, dtype, count, options, &c.request);
    return status == DPR_OK ? reduce_in_stream(ctx, in, &out, &c, stream) : status;
}

dpr_status dpr_reduce_partial_async(dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype,
                                    dpr_op op, uint64_t first_index, const dpr_options *options, dpr_stream stream) {
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    call c;
    const dpr_status status = make_partial(count, dtype, op, first_index, options, &c.request);
    return status == DPR_OK ? reduce_in_stream(ctx, in, &partial, &c, stream) : status;
}

static dpr_status check_fused(const dpr_ctx *ctx, void *const *outs) {
    return ctx && outs ? DPR_OK : dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", ctx ? "outs" : "ctx");
}

dpr_status dpr_reduce_fused(dpr_ctx *ctx, const void *in, void *const *outs, size_t count, dpr_dtype dtype,
                            const dpr_op *ops, size_t n, const dpr_options *options) {
    call c;
    dpr_status status = check_fused(ctx, outs);
    if (status == DPR_OK)
        status = dpr_request_fuse(ops, n, "n", dtype, count, options, &c.request);
    return status == DPR_OK ? reduce_blocking(ctx, in, outs, &c) : status;
}

dpr_status dpr_reduce_fused_async(dpr_ctx *ctx, const void *in, void *const *outs, size_t count, dpr_dtype dtype,
                                  const dpr_op *ops, size_t n, const dpr_options *options, dpr_stream stream) {
    call c;
    dpr_status status = check_fused(ctx, outs);
    if (status == DPR_OK)
        status = dpr_request_fuse(ops, n, "n", dtype, count, options, &c.request);
    return status == DPR_OK ? reduce_in_stream(ctx, in, outs, &c, stream) : status;
}

void dpr_shutdown(void) {
    dpr_ctx_drop_defaults();
    dpr_wisdom_drop();
    if (dpr_pool_shutdown())
        dpr_cores_shutdown();
    dpr_log_shutdown();
}
