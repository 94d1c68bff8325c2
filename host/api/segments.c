/* dpr_reduce_segments() and dpr_reduce_by_key(): check the call and its numbers or keys, and run it. */
#include "cpu/segments.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/runs.h"
#include "error.h"
#include "parts.h"

/* A call with its segments. */
typedef struct call {
    dpr_parts parts;
    dpr_segment_list list;
    int check; /* dpr_segments.check */
} call;

/* ---- Checks ---- */

static dpr_status check_numbers(const char *name, const void *numbers, dpr_dtype dtype) {
    const dpr_dtype_row *row = &dpr_dtypes[DPR_ROW(dtype)];
    if (!numbers)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", name);
    if ((uintptr_t)numbers % row->align != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "%s is %p, which is not aligned to the %d bytes of %s", name, numbers,
                        row->align, row->name);
    return DPR_OK;
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

/* Makes the list of what the caller gave. */
static dpr_status take_segments(const dpr_segments *given, call *c) {
    dpr_segments s = DPR_SEGMENTS_INIT;
    dpr_status status = given ? dpr_request_adopt("segments", "dpr_segments", given, &s, sizeof s)
                              : dpr_fail(DPR_ERR_NULL_POINTER, "segments is NULL");
    if (status == DPR_OK)
        status = check_options(&s);
    if (status == DPR_OK)
        status = check_count(&s);
    if (status == DPR_OK && s.count > 0)
        status = check_numbers("segments->begins", s.begins, s.dtype);
    if (status == DPR_OK && s.count > 0 && s.ends)
        status = check_numbers("segments->ends", s.ends, s.dtype);
    if (status != DPR_OK || s.count == 0)
        return status;
    const void *second = (const unsigned char *)s.begins + dpr_dtypes[DPR_ROW(s.dtype)].size;
    c->list = (dpr_segment_list){
        .count = s.count, .begins = s.begins, .ends = s.ends ? s.ends : second, .dtype = s.dtype, .index = s.index};
    c->parts.request.key.f.ranges = s.ends != NULL;
    c->check = s.check;
    return DPR_OK;
}

/* A segment that is not empty and not within the array ends the call. */
static dpr_status check_ranges(const call *c) {
    for (uint64_t i = 0; i < c->list.count; i++) {
        const dpr_range r = dpr_segment_range(&c->list, i);
        if (c->list.dtype != DPR_U64 && r.begin > INT64_MAX)
            return dpr_fail(DPR_ERR_SEGMENT, "segment %llu begins at %lld", (unsigned long long)i, (long long)r.begin);
        if (r.end > c->parts.request.count)
            return dpr_fail(DPR_ERR_SEGMENT, "segment %llu ends at %zu, and the array has %zu elements",
                            (unsigned long long)i, r.end, c->parts.request.count);
    }
    return DPR_OK;
}

/* ---- The run ---- */

/* The elements of all segments together: the choice of a strategy depends on it. If there are many segments, some of
 * them are asked, so that this takes little time. */
static size_t count_elements(const call *c) {
    enum { ASKED = 64 };
    const uint64_t count = c->list.count, asked = count < ASKED ? count : ASKED;
    double sum = 0;
    for (uint64_t i = 0; i < asked; i++) {
        const dpr_range r = dpr_segment_range(&c->list, count / asked * i);
        sum += (double)(r.end - r.begin);
    }
    sum *= (double)count / (double)asked;
    return sum < (double)PTRDIFF_MAX ? (size_t)sum : PTRDIFF_MAX;
}

/* The checks before `count` segments of a call are reduced. */
static dpr_status prepare(dpr_ctx *ctx, const dpr_segments *segments, call *c) {
    static const char *const names[] = {"segments->begins", "segments->ends"};
    dpr_status status = take_segments(segments, c);
    if (status != DPR_OK || c->list.count == 0)
        return status;
    c->parts.segments = &c->list;
    status = dpr_request_check(&c->parts.request, c->parts.in, &c->parts.out);
    if (status != DPR_OK)
        return status;
    const void *ends = c->parts.request.key.f.ranges ? c->list.ends : NULL;
    return dpr_parts_place(ctx, &c->parts, names, (const void *const[]){c->list.begins, ends});
}

/* Checks the segments of a call that the GPU runs: copies numbers to the host, after the work that writes them. */
static dpr_status check_on_device(const dpr_ctx *ctx, const call *c) {
    call copy = *c;
    const size_t size = dpr_dtypes[DPR_ROW(c->list.dtype)].size;
    const int lists = c->parts.request.key.f.ranges ? 2 : 1;
    const size_t bytes = (size_t)(c->list.count + (lists == 1)) * size;
    char *const numbers = malloc((size_t)lists * bytes);
    dpr_status status = DPR_OK;
    if (!numbers)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory to check segments in");
    if (c->parts.request.stream)
        status = dpr_device_wait_for_stream(dpr_ctx_gpu(ctx), c->parts.request.stream);
    for (int i = 0; i < lists && status == DPR_OK; i++) {
        const dpr_parts_array *a = &c->parts.array[DPR_PARTS_MORE + i];
        if (a->place.device >= 0)
            status = dpr_device_put(a->place, numbers + (size_t)i * bytes, a->at, bytes);
        else
            memcpy(numbers + (size_t)i * bytes, a->at, bytes);
    }
    copy.list.begins = numbers;
    copy.list.ends = numbers + (lists == 1 ? size : bytes);
    if (status == DPR_OK)
        status = check_ranges(&copy);
    free(numbers);
    return status;
}

dpr_status dpr_reduce_segments(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                               const dpr_segments *segments, const dpr_options *options) {
    call c = {.check = 0};
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c.parts);
    if (status == DPR_OK)
        status = prepare(ctx, segments, &c);
    if (status != DPR_OK || c.list.count == 0)
        return status;
    const int on_device = dpr_parts_on_device(&c.parts);
    if (!on_device)
        status = dpr_parts_reach(ctx, &c.parts);
    if (status == DPR_OK && c.check)
        status = on_device ? check_on_device(ctx, &c) : check_ranges(&c);
    if (status != DPR_OK)
        return status;
    return dpr_parts_run(ctx, &c.parts, c.list.count, on_device ? count : count_elements(&c));
}

dpr_status dpr_reduce_segments_async(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                                     const dpr_segments *segments, const dpr_options *options, dpr_stream stream) {
    call c = {.check = 0};
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c.parts);
    if (status == DPR_OK)
        status = dpr_parts_no_stream(ctx, &c.parts, stream);
    if (status == DPR_OK && !dpr_ctx_gpu(ctx))
        return dpr_reduce_segments(ctx, in, out, count, dtype, op, segments, options);
    if (status == DPR_OK)
        status = prepare(ctx, segments, &c);
    if (status != DPR_OK || c.list.count == 0)
        return status;
    if (c.check)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->check is 1, and a call in a stream does not check segments");
    status = dpr_parts_reach_stream(&c.parts);
    return status == DPR_OK ? dpr_parts_enqueue(ctx, &c.parts, c.list.count, stream) : status;
}

/* ---- Runs of equal keys ---- */

static dpr_status check_keys(const char *name, const void *keys, dpr_dtype dtype) {
    if ((unsigned)dtype - DPR_FIRST_DTYPE >= DPR_DTYPE_COUNT || !(dpr_dtypes[DPR_ROW(dtype)].kind & DPR_DOMAIN_BITS))
        return dpr_fail(DPR_ERR_INVALID_DTYPE, "key_dtype is %d; it should be DPR_BOOL or a type of integers",
                        (int)dtype);
    return check_numbers(name, keys, dtype);
}

/* Reduces the runs; `out` has room for all of them. */
static dpr_status reduce_runs(dpr_ctx *ctx, call *c, const int64_t *begins, uint64_t runs) {
    c->list = (dpr_segment_list){.count = runs, .begins = begins, .ends = begins + 1, .dtype = DPR_I64};
    c->parts.segments = &c->list;
    return dpr_parts_run(ctx, &c->parts, runs, count_elements(c));
}

static dpr_status by_key(dpr_ctx *ctx, call *c, const void *keys, size_t key_bytes, void *unique_keys, uint64_t *runs) {
    uint64_t found;
    int64_t *begins = dpr_runs_find(keys, key_bytes, c->parts.request.count, &found);
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
    call c = {.check = 0};
    if (!runs)
        return dpr_fail(DPR_ERR_NULL_POINTER, "runs is NULL");
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &c.parts);
    if (status == DPR_OK && count > 0)
        status = check_keys("keys", keys, key_dtype);
    if (status == DPR_OK && count > 0 && unique_keys)
        status = check_keys("unique_keys", unique_keys, key_dtype);
    if (status == DPR_OK && count > 0 && *runs > 0)
        status = dpr_request_check(&c.parts.request, in, &out);
    if (status == DPR_OK && count > 0)
        status = dpr_parts_place(ctx, &c.parts, names, (const void *const[]){keys, unique_keys});
    if (status == DPR_OK && count > 0)
        status = dpr_parts_reach(ctx, &c.parts);
    if (status == DPR_OK && count > 0)
        return by_key(ctx, &c, keys, dpr_dtype_size(key_dtype), unique_keys, runs);
    if (status == DPR_OK)
        *runs = 0;
    return status;
}
