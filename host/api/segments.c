/* dpr_reduce_segments(): checks the call and its numbers, and runs it. */
#include "cpu/segments.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "parts.h"

/* A segment that is not empty and not within the array ends the call. */
static dpr_status check_ranges(const dpr_segment_list *list, size_t elements) {
    for (uint64_t i = 0; i < list->count; i++) {
        const dpr_range r = dpr_segment_range(list, i);
        if (list->dtype != DPR_U64 && r.begin > INT64_MAX)
            return dpr_fail(DPR_ERR_SEGMENT, "segment %llu begins at %lld", (unsigned long long)i, (long long)r.begin);
        if (r.end > elements)
            return dpr_fail(DPR_ERR_SEGMENT, "segment %llu ends at %zu, and the array has %zu elements",
                            (unsigned long long)i, r.end, elements);
    }
    return DPR_OK;
}

/* ---- The run ---- */

/* The elements of all segments together: the choice of a strategy depends on it. More than 2^14 begins and ends are
 * estimated from 64 segments, so that this takes little time. With that many segments, their number alone decides the
 * choice. If the last
 * offset is greater than the first, the distance between them is taken, although offsets may decrease in between. */
static size_t count_elements(const dpr_parts *c) {
    enum { MOST = 1 << 14, ASKED = 64 };
    const dpr_segment_list *list = &c->shape.segments;
    const size_t from_first_to_last = c->shape.has_ends ? 0 : dpr_segment_elements(list, 0, list->count);
    const uint64_t asked = list->count <= MOST ? list->count : ASKED;
    double sum = 0;
    if (from_first_to_last > 0)
        return from_first_to_last;
    for (uint64_t i = 0; i < asked; i++)
        sum += (double)dpr_segment_elements(list, list->count / asked * i, list->count / asked * i + 1);
    sum *= (double)list->count / (double)asked;
    return sum < (double)PTRDIFF_MAX ? (size_t)sum : PTRDIFF_MAX;
}

/* The checks before segments are reduced. */
static dpr_status prepare(dpr_ctx *ctx, const dpr_segments *segments, dpr_parts *c) {
    dpr_status status = dpr_shape_of_segments(segments, &c->shape);
    if (status != DPR_OK || c->shape.results == 0)
        return status;
    status = dpr_request_check(&c->request, c->in, &c->out);
    if (status != DPR_OK)
        return status;
    const dpr_segment_list *list = &c->shape.segments;
    const size_t bytes = dpr_parts_number_bytes(c);
    const dpr_parts_array numbers[4] = {
        {.name = "segments->begins", .at = list->begins, .bytes = bytes},
        {.name = "segments->ends", .at = c->shape.has_ends ? list->ends : NULL, .bytes = bytes},
        {.name = "segments->device_count", .at = list->device_count, .bytes = sizeof *list->device_count}};
    return dpr_parts_place(ctx, c, numbers);
}

/* Reads the number of segments if it need not be read by the GPU: if the CPU runs the call, or if it is in pageable
 * memory. */
static void take_count(dpr_parts *c, int on_device) {
    dpr_segment_list *const list = &c->shape.segments;
    if (!list->device_count || (on_device && c->array[DPR_PARTS_NUMBER].place.memory != DPR_MEMORY_HOST))
        return;
    dpr_shape_take_number(list);
    c->shape.results = list->count;
}

/* Checks the segments of a call that the GPU runs: copies numbers to the host, after the work that writes them. */
static dpr_status check_on_device(const dpr_ctx *ctx, const dpr_parts *c) {
    dpr_segment_list copy = c->shape.segments;
    const size_t size = dpr_dtypes[DPR_ROW(copy.dtype)].size;
    const int lists = c->shape.has_ends ? 2 : 1;
    const size_t bytes = dpr_parts_number_bytes(c);
    char *const numbers = malloc((size_t)lists * bytes);
    dpr_status status = DPR_OK;
    if (!numbers)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory to check segments in");
    status = dpr_parts_wait(dpr_ctx_gpu(ctx), c);
    for (int i = 0; i < lists && status == DPR_OK; i++) {
        const dpr_parts_array *a = &c->array[DPR_PARTS_MORE + i];
        char *const to = numbers + (size_t)i * bytes;
        if (a->place.device < 0)
            memcpy(to, a->at, bytes);
        else if (c->request.stream)
            status = dpr_device_put_in_stream(dpr_ctx_gpu(ctx), c->request.stream, to, a->at, bytes);
        else
            status = dpr_device_put(a->place, to, a->at, bytes);
    }
    copy.begins = numbers;
    copy.ends = numbers + (lists == 1 ? size : bytes);
    if (status == DPR_OK)
        status = check_ranges(&copy, c->request.count);
    free(numbers);
    return status;
}

/* Runs a blocking call, which is complete except for the segments. */
static dpr_status reduce_blocking(dpr_ctx *ctx, const dpr_segments *segments, dpr_parts *c) {
    dpr_status status = prepare(ctx, segments, c);
    if (status != DPR_OK || c->shape.results == 0)
        return status;
    const int on_device = dpr_parts_on_device(c);
    if (!on_device)
        status = dpr_parts_reach(ctx, c);
    if (status == DPR_OK && c->shape.check)
        status = on_device ? check_on_device(ctx, c) : check_ranges(&c->shape.segments, c->request.count);
    if (status == DPR_OK)
        take_count(c, on_device);
    if (status != DPR_OK || c->shape.results == 0)
        return status;
    return dpr_parts_run(ctx, c, on_device ? c->request.count : count_elements(c));
}

/* The same in a stream of the context's GPU. Without a GPU, runs on the CPU. */
static dpr_status reduce_in_stream(dpr_ctx *ctx, const dpr_segments *segments, dpr_parts *c, dpr_stream stream) {
    dpr_status status = dpr_parts_no_stream(ctx, c, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return reduce_blocking(ctx, segments, c);
    if (status == DPR_OK)
        status = prepare(ctx, segments, c);
    if (status == DPR_OK && c->shape.check)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->check is 1, and a call in a stream does not check segments");
    if (status != DPR_OK || c->shape.results == 0)
        return status;
    status = dpr_parts_reach_stream(c);
    return status == DPR_OK ? dpr_parts_enqueue(ctx, c, stream) : status;
}

/* Makes a call for partial results. */
static dpr_status make_partial(const dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype,
                               dpr_op op, uint64_t first_index, const dpr_options *options, dpr_parts *c) {
    const dpr_status status = dpr_parts_make(ctx, in, partial, count, dtype, op, options, c);
    return status == DPR_OK ? dpr_request_partial(first_index, &c->request) : status;
}

/* ---- The calls ---- */

dpr_status dpr_reduce_segments(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                               const dpr_segments *segments, const dpr_options *options) {
    dpr_parts c;
    const dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c);
    return status == DPR_OK ? reduce_blocking(ctx, segments, &c) : status;
}

dpr_status dpr_reduce_segments_async(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                                     const dpr_segments *segments, const dpr_options *options, dpr_stream stream) {
    dpr_parts c;
    const dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c);
    return status == DPR_OK ? reduce_in_stream(ctx, segments, &c, stream) : status;
}

dpr_status dpr_reduce_segments_partial(dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype,
                                       dpr_op op, const dpr_segments *segments, uint64_t first_index,
                                       const dpr_options *options) {
    dpr_parts c;
    const dpr_status status = make_partial(ctx, in, partial, count, dtype, op, first_index, options, &c);
    return status == DPR_OK ? reduce_blocking(ctx, segments, &c) : status;
}

dpr_status dpr_reduce_segments_partial_async(dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype,
                                             dpr_op op, const dpr_segments *segments, uint64_t first_index,
                                             const dpr_options *options, dpr_stream stream) {
    dpr_parts c;
    const dpr_status status = make_partial(ctx, in, partial, count, dtype, op, first_index, options, &c);
    return status == DPR_OK ? reduce_in_stream(ctx, segments, &c, stream) : status;
}
