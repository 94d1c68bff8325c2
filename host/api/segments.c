/* dpr_reduce_segments(): checks the numbers of segments and the call, and runs it. */
#include "cpu/segments.h"

#include <string.h>

#include "ctx.h"
#include "error.h"
#include "request.h"

/* A checked call. */
typedef struct call {
    dpr_request request;
    dpr_segment_list list;
    const void *in;
    void *out;
    dpr_place in_place;
    int check;
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

/* The most segments whose numbers and results fit the address space. */
static dpr_status check_count(const dpr_segments *s, size_t result_bytes) {
    const size_t number = dpr_dtypes[DPR_ROW(s->dtype)].size, each = number > result_bytes ? number : result_bytes;
    if (s->count < PTRDIFF_MAX / each)
        return DPR_OK;
    return dpr_fail(DPR_ERR_SIZE,
                    "segments->count is %llu, and the results or the numbers of so many segments do not "
                    "fit the address space",
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
        status = check_count(&s, c->request.out_size);
    if (status == DPR_OK && s.count > 0)
        status = check_numbers("segments->begins", s.begins, s.dtype);
    if (status == DPR_OK && s.count > 0 && s.ends)
        status = check_numbers("segments->ends", s.ends, s.dtype);
    if (status != DPR_OK || s.count == 0)
        return status;
    const void *second = (const unsigned char *)s.begins + dpr_dtypes[DPR_ROW(s.dtype)].size;
    c->list = (dpr_segment_list){s.count, s.begins, s.ends ? s.ends : second, s.dtype, s.index};
    c->check = s.check;
    return DPR_OK;
}

/* Fails if the host does not reach the memory, and waits for the work that writes to it. */
static dpr_status reach(const dpr_ctx *ctx, const char *name, const void *at, dpr_place *place) {
    dpr_status status = dpr_device_place(at, name, place);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(ctx, name, *place);
    if (status == DPR_OK && place->memory == DPR_MEMORY_DEVICE)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is in memory of device %d, and only the CPU runs segments", name,
                        place->device);
    return status == DPR_OK && place->device >= 0 ? dpr_device_wait(*place) : status;
}

static dpr_status reach_all(const dpr_ctx *ctx, call *c) {
    dpr_place place;
    dpr_status status = reach(ctx, "segments->begins", c->list.begins, &place);
    if (status == DPR_OK)
        status = reach(ctx, "segments->ends", c->list.ends, &place);
    if (status == DPR_OK)
        status = reach(ctx, "out", c->out, &place);
    c->in_place = (dpr_place){DPR_MEMORY_HOST, -1, NULL};
    return status == DPR_OK && c->in ? reach(ctx, "in", c->in, &c->in_place) : status;
}

/* A segment that is not empty and not within the array ends the call. */
static dpr_status check_ranges(const call *c) {
    for (uint64_t i = 0; i < c->list.count; i++) {
        const dpr_range r = dpr_segment_range(&c->list, i);
        if (r.end > c->request.count || r.begin > r.end) /* begins below 0 are great numbers here */
            return dpr_fail(DPR_ERR_SEGMENT, "segment %llu has the elements %lld to %lld, and count is %zu",
                            (unsigned long long)i, (long long)r.begin, (long long)r.end - 1, c->request.count);
    }
    return DPR_OK;
}

static dpr_status make_call(const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                            const dpr_segments *segments, const dpr_options *options, call *c) {
    /* There may be no elements, also for ARGMIN and ARGMAX. */
    dpr_status status = dpr_request_make(op, dtype, count > 0 ? count : 1, options, &c->request);
    if (status != DPR_OK)
        return status;
    c->request.count = count;
    c->in = in;
    c->out = out;
    if (options && options->launch)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->launch is set; it should be NULL for segments");
    status = take_segments(segments, c);
    return status == DPR_OK && c->list.count > 0 ? dpr_request_check(&c->request, in, &out) : status;
}

/* ---- The run ---- */

static uint8_t logarithm(uint64_t n) {
    return (uint8_t)(63 - __builtin_clzll(n));
}

static dpr_status run(dpr_ctx *ctx, call *c) {
    const dpr_choice *choice = NULL;
    dpr_run run;
    c->request.key.f.in_memory = (uint8_t)c->in_place.memory;
    c->request.key.f.segments = (uint8_t)(1 + logarithm(c->list.count));
    const dpr_status status = dpr_ctx_choice(ctx, c->request.key, &choice);
    if (status != DPR_OK)
        return status;
    const dpr_choice_step *step = dpr_choice_at(choice, c->request.count);
    dpr_request_run(&c->request, &run);
    run.in = c->in;
    run.out = c->out;
    run.segments = &c->list;
    run.limits = step->limits;
    (void)step->strategy->launch(&run);
    return DPR_OK;
}

dpr_status dpr_reduce_segments(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                               const dpr_segments *segments, const dpr_options *options) {
    call c = {.check = 0};
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    dpr_status status = make_call(in, out, count, dtype, op, segments, options, &c);
    if (status == DPR_OK && c.request.stream && !dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->stream is %p, and the context is the CPU's",
                        (void *)c.request.stream);
    if (status != DPR_OK || c.list.count == 0)
        return status;
    if (c.request.stream)
        status = dpr_device_wait_for_stream(dpr_ctx_gpu(ctx), c.request.stream);
    if (status == DPR_OK)
        status = reach_all(ctx, &c);
    if (status == DPR_OK && c.check)
        status = check_ranges(&c);
    return status == DPR_OK ? run(ctx, &c) : status;
}
