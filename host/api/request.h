/* A caller's request, checked once: the part that dpr_reduce() and plans share. */
#ifndef DPR_HOST_API_REQUEST_H
#define DPR_HOST_API_REQUEST_H

#include "cuda/device.h"
#include "lists.h"
#include "shape.h"
#include "strategy.h"

typedef struct dpr_request {
    const dpr_op_row *op;
    const dpr_dtype_row *dtype;
    const dpr_dtype_row *result;
    size_t count;
    dpr_key key; /* op, dtype, mode, nan, block, depth and strategy are set */
    dpr_init init;
    uint64_t label, first_index; /* of a partial result that takes the place of the result, as in dpr_run */
    size_t out_size, out_align;  /* of what is written, in bytes; not for several operations */
    dpr_outputs fused;           /* several operations, whose places are not set; its count is 0 for a single one */
    int max_pending;             /* limit of nested launches, as in dpr_launch_options */
    dpr_launch_report *launch_report; /* where the caller wants the counters of nested launches, or NULL */
    size_t report_size;               /* bytes there; 0 if there is none */
    dpr_stream stream;                /* of a blocking call; NULL: the legacy default stream */
} dpr_request;

/* Checks everything but pointers. `options` may be NULL. *out is unspecified after a failure. */
dpr_status dpr_request_make(dpr_op op, dpr_dtype dtype, size_t count, const dpr_options *options, dpr_request *out);

/* The same for 1 to DPR_FUSED_MOST operations. A single one makes a request like that of dpr_request_make(). `argument`
 * is what the caller's `n` is called. */
dpr_status dpr_request_fuse(const dpr_op *ops, size_t n, const char *argument, dpr_dtype dtype, size_t count,
                            const dpr_options *options, dpr_request *out);

/* The number of results. */
static inline int dpr_request_outs(const dpr_request *request) {
    return request->fused.count > 0 ? request->fused.count : 1;
}

/* The request's operations with the places of their results, or with a count of 0 if it has a single operation. */
static inline dpr_outputs dpr_request_outputs(const dpr_request *request, void *const *outs) {
    dpr_outputs outputs = request->fused;
    for (int i = 0; i < outputs.count; i++)
        outputs.out[i] = outs[i];
    return outputs;
}

/* Fails with DPR_ERR_INVALID_OPTION if the request has a stream. The sentence names `options`. */
dpr_status dpr_request_no_stream(const dpr_request *request, const char *options);

/* Makes the request one for a partial result of elements from `first_index` on. DPR_ERR_INVALID_OPTION if it has an
 * initial value, which belongs to dpr_partial_finish(). */
dpr_status dpr_request_partial(uint64_t first_index, dpr_request *request);

/* Copies the problem to *adopted, checks it, and makes a request and a shape of it. The request's key has the memory,
 * with DPR_MEMORY_AUTO resolved for a machine with or without a GPU. *adopted, *out and *shape are unspecified after a
 * failure. */
dpr_status dpr_request_of_problem(const dpr_problem *problem, int has_gpu, dpr_problem *adopted, dpr_request *out,
                                  dpr_shape *shape);

/* Makes *out a run of the request. The caller sets its arrays, its stream and the fields that depend on the choice. */
void dpr_request_run(const dpr_request *request, dpr_run *out);

/* The name that the call's argument has which points to result i. */
const char *dpr_request_out(const dpr_request *request, int i);

/* Bytes of result i. */
size_t dpr_request_out_size(const dpr_request *request, int i);

/* Checks `in` and the places of all results for NULL and alignment: DPR_ERR_NULL_POINTER, DPR_ERR_MISALIGNED. */
dpr_status dpr_request_check(const dpr_request *request, const void *in, void *const *outs);

/* Fails if a stream cannot reach `pointer`, which lies at `place`. The sentence names the argument. */
dpr_status dpr_request_reaches_stream(const char *argument, const void *pointer, dpr_place place);

/* Finds how many bytes a report has for which the caller gave this report_size. DPR_ERR_INVALID_OPTION, naming the
 * argument `what`, if no version's report has so many. */
dpr_status dpr_request_report_size(const char *what, size_t given, size_t *out);

#endif
