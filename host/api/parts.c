#include "parts.h"

#include <string.h>

#include "error.h"

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
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->launch->report is set; this call makes no nested launches");
    if (c->request.stream && !dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->stream is %p, and the context is the CPU's",
                        (void *)c->request.stream);
    return DPR_OK;
}

/* Fails if the host does not reach the memory. */
static dpr_status reach(const dpr_ctx *ctx, const char *name, const void *at, dpr_place *place) {
    const dpr_caps *caps = &dpr_ctx_machine(ctx)->caps;
    dpr_status status = dpr_device_place(at, name, place);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(ctx, name, *place);
    if (status == DPR_OK && place->memory == DPR_MEMORY_DEVICE)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is in memory of device %d, and only the CPU runs segments and axes",
                        name, place->device);
    if (status == DPR_OK && place->memory == DPR_MEMORY_MANAGED && caps->has_gpu && !caps->gpu.concurrent_managed)
        return dpr_fail(DPR_ERR_MEMORY_KIND,
                        "%s is in managed memory, which the CPU may not touch here while a kernel runs", name);
    return status;
}

dpr_status dpr_parts_reach(const dpr_ctx *ctx, dpr_parts *c, const char *const names[2], const void *const more[2]) {
    dpr_place place, of_device = {DPR_MEMORY_HOST, -1, NULL};
    dpr_status status = DPR_OK;
    for (int i = 0; i < 2 && status == DPR_OK; i++) {
        if (more[i])
            status = reach(ctx, names[i], more[i], &place);
        if (more[i] && status == DPR_OK && place.device >= 0)
            of_device = place;
    }
    if (status == DPR_OK && c->out)
        status = reach(ctx, "out", c->out, &place);
    c->in_place = (dpr_place){DPR_MEMORY_HOST, -1, NULL};
    if (status == DPR_OK && c->request.count > 0)
        status = reach(ctx, "in", c->in, &c->in_place);
    if (status != DPR_OK)
        return status;
    if (c->request.stream)
        return dpr_device_wait_for_stream(dpr_ctx_gpu(ctx), c->request.stream);
    if (c->in_place.device >= 0)
        of_device = c->in_place;
    return of_device.device >= 0 ? dpr_device_wait(of_device) : DPR_OK;
}

static uint8_t logarithm(uint64_t n) {
    return (uint8_t)(63 - __builtin_clzll(n));
}

dpr_status dpr_parts_run(dpr_ctx *ctx, dpr_parts *c, uint64_t results, size_t elements) {
    const dpr_choice *choice = NULL;
    dpr_run run;
    c->request.key.f.in_memory = (uint8_t)c->in_place.memory;
    c->request.key.f.segments = (uint8_t)(1 + logarithm(results));
    c->request.key.f.strided = c->axes != NULL;
    const dpr_status status = dpr_ctx_choice(ctx, c->request.key, &choice);
    if (status != DPR_OK)
        return status;
    const dpr_choice_step *step = dpr_choice_at(choice, elements);
    dpr_request_run(&c->request, &run);
    run.in = c->in;
    run.out = c->out;
    run.segments = c->segments;
    run.axes = c->axes;
    run.limits = step->limits;
    (void)step->strategy->launch(&run);
    return DPR_OK;
}
