/* dpr_reduce_segments() and dpr_reduce_by_key(): check the call and its numbers or keys, and run it. */
#include "cpu/segments.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/runs.h"
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

/* The elements of all segments together: the choice of a strategy depends on it. If there are many segments, some of
 * them are asked, so that this takes little time. */
static size_t count_elements(const dpr_segment_list *list) {
    enum { ASKED = 64 };
    const uint64_t count = list->count, asked = count < ASKED ? count : ASKED;
    double sum = 0;
    for (uint64_t i = 0; i < asked; i++) {
        const dpr_range r = dpr_segment_range(list, count / asked * i);
        sum += (double)(r.end - r.begin);
    }
    sum *= (double)count / (double)asked;
    return sum < (double)PTRDIFF_MAX ? (size_t)sum : PTRDIFF_MAX;
}

/* The checks before segments are reduced. */
static dpr_status prepare(dpr_ctx *ctx, const dpr_segments *segments, dpr_parts *c) {
    static const char *const names[] = {"segments->begins", "segments->ends"};
    dpr_status status = dpr_shape_of_segments(segments, &c->shape);
    if (status != DPR_OK || c->shape.results == 0)
        return status;
    status = dpr_request_check(&c->request, c->in, &c->out);
    if (status != DPR_OK)
        return status;
    const dpr_segment_list *list = &c->shape.segments;
    return dpr_parts_place(ctx, c, names, (const void *const[]){list->begins, c->shape.has_ends ? list->ends : NULL});
}

/* Checks the segments of a call that the GPU runs: copies numbers to the host, after the work that writes them. */
static dpr_status check_on_device(const dpr_ctx *ctx, const dpr_parts *c) {
    dpr_segment_list copy = c->shape.segments;
    const size_t size = dpr_dtypes[DPR_ROW(copy.dtype)].size;
    const int lists = c->shape.has_ends ? 2 : 1;
    const size_t bytes = (size_t)(copy.count + (lists == 1)) * size;
    char *const numbers = malloc((size_t)lists * bytes);
    dpr_status status = DPR_OK;
    if (!numbers)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory to check segments in");
    if (c->request.stream)
        status = dpr_device_wait_for_stream(dpr_ctx_gpu(ctx), c->request.stream);
    for (int i = 0; i < lists && status == DPR_OK; i++) {
        const dpr_parts_array *a = &c->array[DPR_PARTS_MORE + i];
        if (a->place.device >= 0)
            status = dpr_device_put(a->place, numbers + (size_t)i * bytes, a->at, bytes);
        else
            memcpy(numbers + (size_t)i * bytes, a->at, bytes);
    }
    copy.begins = numbers;
    copy.ends = numbers + (lists == 1 ? size : bytes);
    if (status == DPR_OK)
        status = check_ranges(&copy, c->request.count);
    free(numbers);
    return status;
}

dpr_status dpr_reduce_segments(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                               const dpr_segments *segments, const dpr_options *options) {
    dpr_parts c;
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c);
    if (status == DPR_OK)
        status = prepare(ctx, segments, &c);
    if (status != DPR_OK || c.shape.results == 0)
        return status;
    const int on_device = dpr_parts_on_device(&c);
    if (!on_device)
        status = dpr_parts_reach(ctx, &c);
    if (status == DPR_OK && c.shape.check)
        status = on_device ? check_on_device(ctx, &c) : check_ranges(&c.shape.segments, count);
    if (status != DPR_OK)
        return status;
    return dpr_parts_run(ctx, &c, on_device ? count : count_elements(&c.shape.segments));
}

dpr_status dpr_reduce_segments_async(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                                     const dpr_segments *segments, const dpr_options *options, dpr_stream stream) {
    dpr_parts c;
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c);
    if (status == DPR_OK)
        status = dpr_parts_no_stream(ctx, &c, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return dpr_reduce_segments(ctx, in, out, count, dtype, op, segments, options);
    if (status == DPR_OK)
        status = prepare(ctx, segments, &c);
    if (status != DPR_OK || c.shape.results == 0)
        return status;
    if (c.shape.check)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->check is 1, and a call in a stream does not check segments");
    status = dpr_parts_reach_stream(&c);
    return status == DPR_OK ? dpr_parts_enqueue(ctx, &c, stream) : status;
}

/* ---- Runs of equal keys ---- */

static dpr_status check_keys(const char *name, const void *keys, dpr_dtype dtype) {
    if ((unsigned)dtype - DPR_FIRST_DTYPE >= DPR_DTYPE_COUNT || !(dpr_dtypes[DPR_ROW(dtype)].kind & DPR_DOMAIN_BITS))
        return dpr_fail(DPR_ERR_INVALID_DTYPE, "key_dtype is %d; it should be DPR_BOOL or a type of integers",
                        (int)dtype);
    return dpr_shape_check_pointer(name, keys, dtype);
}

/* Reduces the runs; `out` has room for all of them. */
static dpr_status reduce_runs(dpr_ctx *ctx, dpr_parts *c, const int64_t *begins, uint64_t runs) {
    const dpr_segment_list list = {.count = runs, .begins = begins, .ends = begins + 1, .dtype = DPR_I64};
    c->shape = (dpr_shape){.kind = DPR_SHAPE_SEGMENTS, .results = runs, .segments = list};
    return dpr_parts_run(ctx, c, count_elements(&list));
}

static dpr_status by_key(dpr_ctx *ctx, dpr_parts *c, const void *keys, size_t key_bytes, void *unique_keys,
                         uint64_t *runs) {
    uint64_t found;
    int64_t *begins = dpr_runs_find(keys, key_bytes, c->request.count, &found);
    dpr_status status;
    if (!begins)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for the beginnings of %llu runs",
                        (unsigned long long)found);
    if (found > *runs) {
        status = dpr_fail(DPR_ERR_BUFFER_TOO_SMALL, "*runs is %llu, and keys has %llu runs", (unsigned long long)*runs,
                          (unsigned long long)found);
        *runs = found;
    } else {
        status = reduce_runs(ctx, c, begins, found);
        if (status == DPR_OK && unique_keys)
            dpr_runs_keys(keys, key_bytes, begins, found, unique_keys);
        if (status == DPR_OK)
            *runs = found;
    }
    free(begins);
    return status;
}

dpr_status dpr_reduce_by_key(dpr_ctx *ctx, const void *keys, dpr_dtype key_dtype, const void *in, void *unique_keys,
                             void *out, uint64_t *runs, size_t count, dpr_dtype dtype, dpr_op op,
                             const dpr_options *options) {
    static const char *const names[] = {"keys", "unique_keys"};
    dpr_parts c;
    if (!runs)
        return dpr_fail(DPR_ERR_NULL_POINTER, "runs is NULL");
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c);
    if (status == DPR_OK && count > 0)
        status = check_keys("keys", keys, key_dtype);
    if (status == DPR_OK && count > 0 && unique_keys)
        status = check_keys("unique_keys", unique_keys, key_dtype);
    if (status == DPR_OK && count > 0 && *runs > 0)
        status = dpr_request_check(&c.request, in, &out);
    if (status == DPR_OK && count > 0)
        status = dpr_parts_place(ctx, &c, names, (const void *const[]){keys, unique_keys});
    if (status == DPR_OK && count > 0)
        status = dpr_parts_reach(ctx, &c);
    if (status == DPR_OK && count > 0)
        return by_key(ctx, &c, keys, dpr_dtype_size(key_dtype), unique_keys, runs);
    if (status == DPR_OK)
        *runs = 0;
    return status;
}
