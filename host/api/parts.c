#include "parts.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "start.h"

dpr_status dpr_parts_make(const dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                          const dpr_options *options, dpr_parts *c) {
    memset(c, 0, sizeof *c);
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    const dpr_status status = dpr_request_make(op, dtype, count > 0 ? count : 1, options, &c->request);
    if (status != DPR_OK)
        return status;
    c->request.count = count;
    c->in = in;
    c->out = out;
    if (c->request.launch_report)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "options->launch->report is set; of calls with many results, only a plan of "
                        "segments writes a report");
    if (c->request.stream && !dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->stream is %p, and the context is the CPU's",
                        (void *)c->request.stream);
    return DPR_OK;
}

dpr_status dpr_parts_no_stream(const dpr_ctx *ctx, const dpr_parts *c, dpr_stream stream) {
    const dpr_status status = dpr_request_no_stream(&c->request, "options");
    if (status == DPR_OK && stream && !dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "stream is %p, and the context is the CPU's", (void *)stream);
    return status;
}

/* ---- Where the arrays lie ---- */

size_t dpr_parts_number_bytes(const dpr_parts *c) {
    const dpr_segment_list *list = &c->shape.segments;
    return (size_t)(list->count + !c->shape.has_ends) * dpr_dtypes[DPR_ROW(list->dtype)].size;
}

static int is_overlap(const dpr_parts_array *a, const dpr_parts_array *b) {
    const uintptr_t first = (uintptr_t)a->at, second = (uintptr_t)b->at;
    return a->at && b->at
           && (first < second ? second - first < a->bytes && b->bytes > 0 : first - second < b->bytes && a->bytes > 0);
}

/* Fails if an array that is written overlaps another one. */
static dpr_status check_apart(const dpr_parts *c) {
    for (const dpr_parts_array *a = c->array; a < c->array + DPR_PARTS_ARRAYS; a++)
        for (const dpr_parts_array *b = c->array; a->is_written && b < c->array + DPR_PARTS_ARRAYS; b++)
            if (a != b && is_overlap(a, b))
                return dpr_fail(DPR_ERR_OVERLAP, "%s is %p, and overlaps %s, which is %p", a->name, a->at, b->name,
                                b->at);
    return DPR_OK;
}

/* Lists the arrays. One with gaps has the place where all indices are 0 for certain; the rest may be between others. */
static void list_arrays(dpr_parts *c, const dpr_parts_array more[4]) {
    const dpr_request *r = &c->request;
    dpr_parts_array *in = &c->array[DPR_PARTS_IN], *out = &c->array[DPR_PARTS_OUT];
    *in = (dpr_parts_array){.name = "in", .at = r->count > 0 ? c->in : NULL};
    in->bytes = (c->shape.in_has_gaps ? 1 : r->count) * r->dtype->size;
    *out = (dpr_parts_array){.name = dpr_request_out(r, 0), .at = c->out, .is_written = 1};
    out->bytes = (c->shape.out_has_gaps ? 1 : (size_t)c->shape.results) * r->out_size;
    memcpy(&c->array[DPR_PARTS_MORE], more, (DPR_PARTS_ARRAYS - DPR_PARTS_MORE) * sizeof *more);
}

static dpr_status find_places(const dpr_ctx *ctx, dpr_parts *c) {
    for (dpr_parts_array *a = c->array; a < c->array + DPR_PARTS_ARRAYS; a++) {
        a->place = (dpr_place){DPR_MEMORY_HOST, -1, NULL};
        dpr_status status = a->at ? dpr_device_place(a->at, a->name, &a->place) : DPR_OK;
        if (status == DPR_OK)
            status = dpr_ctx_reaches(ctx, a->name, a->place);
        if (status != DPR_OK)
            return status;
    }
    return DPR_OK;
}

dpr_status dpr_parts_place(const dpr_ctx *ctx, dpr_parts *c, const dpr_parts_array more[4]) {
    list_arrays(c, more);
    const dpr_status status = check_apart(c);
    return status == DPR_OK ? find_places(ctx, c) : status;
}

int dpr_parts_on_device(const dpr_parts *c) {
    int on_device = c->array[DPR_PARTS_IN].place.memory == DPR_MEMORY_DEVICE;
    for (int i = 0; i < DPR_PARTS_ARRAYS && !c->array[DPR_PARTS_IN].at; i++)
        on_device |= c->array[i].place.memory == DPR_MEMORY_DEVICE;
    return on_device;
}

static dpr_status reach(const dpr_ctx *ctx, const dpr_parts_array *a) {
    const dpr_caps *caps = &dpr_ctx_machine(ctx)->caps;
    if (a->place.memory == DPR_MEMORY_DEVICE)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is in memory of device %d, and the CPU runs this call", a->name,
                        a->place.device);
    if (a->place.memory == DPR_MEMORY_MANAGED && caps->has_gpu && !caps->gpu.concurrent_managed)
        return dpr_fail(DPR_ERR_MEMORY_KIND,
                        "%s is in managed memory, which the CPU may not touch here while a kernel runs", a->name);
    return DPR_OK;
}

dpr_status dpr_parts_reach(const dpr_ctx *ctx, const dpr_parts *c) {
    const dpr_place *of_device = NULL;
    for (int i = DPR_PARTS_ARRAYS - 1; i >= 0; i--) {
        const dpr_status status = reach(ctx, &c->array[i]);
        if (status != DPR_OK)
            return status;
        if (c->array[i].place.device >= 0)
            of_device = &c->array[i].place;
    }
    if (c->request.stream)
        return dpr_device_wait_for_stream(dpr_ctx_gpu(ctx), c->request.stream);
    return of_device ? dpr_device_wait(*of_device) : DPR_OK;
}

dpr_status dpr_parts_reach_stream(const dpr_parts *c) {
    dpr_status status = DPR_OK;
    for (int i = 0; i < DPR_PARTS_ARRAYS && status == DPR_OK; i++)
        if (c->array[i].at)
            status = dpr_request_reaches_stream(c->array[i].name, c->array[i].at, c->array[i].place);
    return status;
}

/* ---- Copies on the device ---- */

/* What the GPU uses instead of arrays in pageable memory: numbers of segments, and the results. Without such arrays all
 * memory is NULL. */
typedef struct staged {
    int has_pools;     /* 0: the GPU has no memory pools, so that copies are not lent */
    dpr_stream stream; /* the device's own, in which copies are made, so that they wait for no work in other streams */
    dpr_loan more[2], out;
    size_t out_bytes;
    dpr_segment_list segments;
} staged;

static int is_pageable(const dpr_parts_array *a) {
    return a->at && a->place.memory == DPR_MEMORY_HOST;
}

/* Whether all numbers of segments are in device memory, where pageable arrays are copied to before a run (stage()). */
static int has_numbers_on_device(const dpr_parts *c, int are_copied) {
    for (int i = 0; i < 2; i++) {
        const dpr_parts_array *a = &c->array[DPR_PARTS_MORE + i];
        if (a->at && a->place.memory != DPR_MEMORY_DEVICE && !(are_copied && is_pageable(a)))
            return 0;
    }
    return 1;
}

static void unstage(dpr_device *device, const staged *s) {
    const dpr_loan loans[] = {s->more[0], s->more[1], s->out};
    for (int i = 0; i < 3; i++)
        if (loans[i].memory && s->has_pools)
            dpr_device_take_back(device, loans[i], s->stream);
        else if (loans[i].memory)
            dpr_device_free(device, loans[i].memory);
}

dpr_status dpr_parts_wait(dpr_device *device, const dpr_parts *c) {
    const dpr_parts_array *a = c->array;
    if (c->request.stream)
        return dpr_device_wait_for_stream(device, c->request.stream);
    while (a->place.device < 0)
        a++;
    return dpr_device_wait(a->place);
}

/* Makes the copy of an array of `room` bytes, whose first `bytes` bytes are needed, after the work that the call comes
 * after. All streams may use it. */
static dpr_status stage_array(dpr_device *device, const dpr_parts *c, staged *s, const void *array, size_t bytes,
                              size_t room, dpr_loan *copy) {
    dpr_status status = s->stream ? DPR_OK : dpr_parts_wait(device, c);
    if (status == DPR_OK)
        status = dpr_device_own_stream(device, &s->stream);
    if (status == DPR_OK && !s->has_pools)
        return dpr_device_upload(device, array, bytes, room, &copy->memory);
    if (status == DPR_OK)
        status = dpr_device_lend(device, room, s->stream, copy);
    if (status != DPR_OK)
        return status;
    return dpr_device_put_in_stream(device, s->stream, bytes > 0 ? copy->memory : NULL, array, bytes);
}

static dpr_status stage(dpr_device *device, const dpr_parts *c, staged *s) {
    const size_t bytes = dpr_parts_number_bytes(c);
    dpr_status status = DPR_OK;
    if (c->shape.out_has_gaps && is_pageable(&c->array[DPR_PARTS_OUT]))
        return dpr_fail(DPR_ERR_MEMORY_KIND,
                        "out is %p in pageable host memory, which the GPU does not reach with axes->out_strides",
                        c->out);
    for (int i = 0; i < 2 && status == DPR_OK; i++)
        if (is_pageable(&c->array[DPR_PARTS_MORE + i]))
            status = stage_array(device, c, s, c->array[DPR_PARTS_MORE + i].at, bytes, bytes, &s->more[i]);
    s->out_bytes = (size_t)c->shape.results * c->request.out_size;
    s->segments = c->shape.segments;
    s->segments.on_device = has_numbers_on_device(c, 1);
    /* Results beyond the number of segments keep their values, so these come along. */
    if (status == DPR_OK && is_pageable(&c->array[DPR_PARTS_OUT]))
        status = stage_array(device, c, s, c->out, s->segments.device_count ? s->out_bytes : 0, s->out_bytes, &s->out);
    if (status != DPR_OK || !s->segments.begins)
        return status;
    if (s->more[0].memory) {
        s->segments.begins = s->more[0].memory;
        s->segments.ends = (const char *)s->segments.begins + dpr_dtypes[DPR_ROW(s->segments.dtype)].size;
    }
    if (c->shape.has_ends)
        s->segments.ends = s->more[1].memory ? s->more[1].memory : c->shape.segments.ends;
    return DPR_OK;
}

/* Copies the results to where the caller wants them, which change only if the copy from the device succeeds. */
static dpr_status bring_results(dpr_device *device, const dpr_parts *c, const staged *s) {
    void *results = malloc(s->out_bytes);
    if (!results)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu bytes of results", s->out_bytes);
    const dpr_status status = dpr_device_put_in_stream(device, s->stream, results, s->out.memory, s->out_bytes);
    if (status == DPR_OK)
        memcpy(c->out, results, s->out_bytes);
    free(results);
    return status;
}

/* ---- Runs ---- */

/* Finds the choice, and makes a run that lacks its stream and its launch limits. */
static dpr_status choose(dpr_ctx *ctx, dpr_parts *c, const dpr_choice **choice, dpr_run *run) {
    const dpr_parts_array *in = &c->array[DPR_PARTS_IN];
    const int on_device = dpr_parts_on_device(c) || (!in->at && c->request.key.f.gpu_only);
    c->request.key.f.in_memory = (uint8_t)(on_device ? DPR_MEMORY_DEVICE : in->place.memory);
    dpr_shape_key(&c->shape, &c->request.key);
    c->shape.segments.on_device = has_numbers_on_device(c, 0);
    const dpr_status status = dpr_ctx_choice(ctx, c->request.key, choice);
    dpr_request_run(&c->request, run);
    run->in = c->in;
    run->out = c->out;
    dpr_shape_run(&c->shape, run);
    return status;
}

static dpr_status run_on_gpu(dpr_ctx *ctx, const dpr_parts *c, const dpr_choice *choice, dpr_run run) {
    dpr_device *const device = dpr_ctx_gpu(ctx);
    staged s = {.has_pools = (int)dpr_ctx_machine(ctx)->caps.gpu.memory_pools};
    dpr_status status = stage(device, c, &s);
    if (run.segments)
        run.segments = &s.segments;
    if (s.out.memory)
        run.out = s.out.memory;
    run.stream = c->request.stream;
    if (status == DPR_OK) {
        status = dpr_ctx_run(ctx, choice, &run, &(dpr_host_result){NULL, 0});
        /* A launch may have failed after another one of the same run, which uses the copies. */
        if (status != DPR_OK && s.stream)
            dpr_device_drain(device, c->request.stream);
    }
    if (status == DPR_OK && s.out.memory)
        status = bring_results(device, c, &s);
    unstage(device, &s);
    return status;
}

dpr_status dpr_parts_check(dpr_ctx *ctx, dpr_parts *c, int in_stream) {
    const dpr_choice *choice = NULL;
    dpr_run run;
    c->request.key.f.gpu_only = in_stream ? 1 : 0;
    return choose(ctx, c, &choice, &run);
}

dpr_status dpr_parts_run(dpr_ctx *ctx, dpr_parts *c, size_t elements) {
    const dpr_choice *choice = NULL;
    dpr_run run;
    dpr_status status = choose(ctx, c, &choice, &run);
    if (status != DPR_OK)
        return status;
    const dpr_choice_step *step = dpr_choice_at(choice, elements);
    if (step->strategy->side == DPR_ON_GPU)
        return run_on_gpu(ctx, c, choice, run);
    run.limits = step->limits;
    dpr_start_on_cpu(step->strategy, &run);
    return DPR_OK;
}

dpr_status dpr_parts_enqueue(dpr_ctx *ctx, dpr_parts *c, dpr_stream stream) {
    const dpr_choice *choice = NULL;
    dpr_run run;
    c->request.key.f.gpu_only = 1;
    const dpr_status status = choose(ctx, c, &choice, &run);
    run.stream = stream;
    return status == DPR_OK ? dpr_ctx_run(ctx, choice, &run, NULL) : status;
}
