/* Calls with many results, of parts of an array: what those of segments, of keys and of axes share. */
#ifndef DPR_HOST_API_PARTS_H
#define DPR_HOST_API_PARTS_H

#include "ctx.h"
#include "request.h"
#include "shape.h"

/* The arrays of a call: `in`, `out`, two more, the number of its parts, and the number of its elements; each may be
 * NULL. */
enum {
    DPR_PARTS_IN,
    DPR_PARTS_OUT,
    DPR_PARTS_MORE,
    DPR_PARTS_NUMBER = DPR_PARTS_MORE + 2,
    DPR_PARTS_COUNT,
    DPR_PARTS_ARRAYS
};

typedef struct dpr_parts_array {
    const char *name; /* of the call's argument */
    const void *at;
    size_t bytes;    /* from there on, that are surely read or written */
    int is_written;  /* 1: it must not overlap another array */
    dpr_place place; /* pageable memory if there is no array */
} dpr_parts_array;

/* A checked call. Its maker sets the shape. */
typedef struct dpr_parts {
    dpr_request request;
    dpr_shape shape;
    const void *in;
    void *out;
    dpr_parts_array array[DPR_PARTS_ARRAYS];
} dpr_parts;

/* Makes a call, and checks everything but `in` and `out`. There may be no elements, also for ARGMIN and ARGMAX. */
dpr_status dpr_parts_make(const dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                          const dpr_options *options, dpr_parts *call);

/* Fails if the options have a stream, or if the context is the CPU's and `stream` is not NULL. */
dpr_status dpr_parts_no_stream(const dpr_ctx *ctx, const dpr_parts *call, dpr_stream stream);

/* Finds out where the arrays lie, of which `more` are those from DPR_PARTS_MORE on, without their places. The shape has
 * the number of results. Fails if one of them is another device's, or overlaps one that is written. */
dpr_status dpr_parts_place(const dpr_ctx *ctx, dpr_parts *call, const dpr_parts_array more[4]);

/* Bytes of an array of numbers of segments: `count` of them, or one more for offsets. */
size_t dpr_parts_number_bytes(const dpr_parts *call);

/* Whether the elements are in device memory, so that the GPU runs the call. */
int dpr_parts_on_device(const dpr_parts *call);

/* Fails unless the host reaches all arrays. Then waits for earlier work on the stream or device. */
dpr_status dpr_parts_reach(const dpr_ctx *ctx, const dpr_parts *call);

/* Waits for the work that a call comes after which the GPU runs. */
dpr_status dpr_parts_wait(dpr_device *device, const dpr_parts *call);

/* Fails unless a stream reaches all arrays. */
dpr_status dpr_parts_reach_stream(const dpr_parts *call);

/* Fails if no strategy can run the call, in a stream or blocking. */
dpr_status dpr_parts_check(dpr_ctx *ctx, dpr_parts *call, int in_stream);

/* Chooses a strategy for at least one result of `elements` elements in total, and runs it; blocking. If the GPU runs
 * it, arrays in pageable memory other than `in` are copied to the device, and results from it. */
dpr_status dpr_parts_run(dpr_ctx *ctx, dpr_parts *call, size_t elements);

/* The same in a stream, which reaches all arrays, and returns at once. */
dpr_status dpr_parts_enqueue(dpr_ctx *ctx, dpr_parts *call, dpr_stream stream);

#endif
