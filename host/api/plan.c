#include <stdlib.h>
#include <string.h>

#include "by_key.h"
#include "ctx.h"
#include "error.h"
#include "measure.h"
#include "plan/registry.h"
#include "request.h"
#include "start.h"
#include "wisdom.h"

struct dpr_plan {
    dpr_ctx *ctx;
    dpr_request request;
    dpr_shape shape;
    const dpr_choice *choice;    /* in the context's cache */
    const dpr_choice_step *step; /* for request.count */
    dpr_run run;                 /* lacks its arrays and its stream */
};

/* Sets the key's field for runs in a stream. */
static dpr_status place_runs(int has_gpu, dpr_key *key) {
    if (key->f.in_memory == DPR_MEMORY_DEVICE && !has_gpu)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "problem->memory is DPR_MEMORY_DEVICE, and the context is the CPU's");
    key->f.gpu_only = has_gpu && key->f.in_memory != DPR_MEMORY_HOST ? 1 : 0;
    return DPR_OK;
}

/* Fails if the GPU or the CPU that runs the plan does not reach `at`. NULL passes. Sets *on_device, unless that is
 * NULL, to 0 if it is not in device memory. */
static dpr_status check_reach(const dpr_plan *plan, const void *at, const char *argument, int *on_device) {
    const int on_gpu = plan->step->strategy->side == DPR_ON_GPU;
    if (!at)
        return DPR_OK;
    dpr_place place;
    dpr_status status = dpr_device_place(at, argument, &place);
    if (status == DPR_OK && on_device && place.memory != DPR_MEMORY_DEVICE)
        *on_device = 0;
    if (status == DPR_OK && on_gpu)
        status = dpr_request_reaches_stream(argument, at, place);
    if (status == DPR_OK && !on_gpu && place.memory == DPR_MEMORY_DEVICE)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is in memory of device %d, and the plan runs on the CPU", argument,
                        place.device);
    return status == DPR_OK ? dpr_ctx_reaches(plan->ctx, argument, place) : status;
}

static dpr_status check_device_count(const dpr_plan *plan) {
    const uint64_t *at = plan->run.device_count;
    if ((uintptr_t)at % sizeof *at != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "problem->device_count is %p, which is not aligned to the %zu bytes of u64",
                        (const void *)at, sizeof *at);
    return check_reach(plan, at, "problem->device_count", NULL);
}

static dpr_status check_segments(const dpr_plan *plan, dpr_segment_list *list) {
    list->on_device = 1;
    dpr_status status = check_reach(plan, list->begins, "segments->begins", &list->on_device);
    if (status == DPR_OK && plan->shape.has_ends)
        status = check_reach(plan, list->ends, "segments->ends", &list->on_device);
    return status == DPR_OK ? check_reach(plan, list->device_count, "segments->device_count", NULL) : status;
}

/* Chooses for the plan's request, from the context's cache; or by measuring, and then the choice's key names the
 * strategy. */
static dpr_status choose(dpr_plan *plan) {
    const dpr_strategy *quickest = NULL;
    dpr_key key = plan->request.key;
    dpr_status status = DPR_OK;
    if (key.f.effort == DPR_MEASURE && dpr_shape_is_array(&plan->shape))
        status = dpr_measure(plan->ctx, &plan->request, &quickest);
    if (quickest)
        key.f.strategy = (uint8_t)(dpr_strategy_index(quickest) + 1);
    if (status == DPR_OK)
        status = dpr_ctx_choice(plan->ctx, key, &plan->choice);
    if (status != DPR_OK)
        return status;
    plan->step = dpr_choice_at(plan->choice, plan->request.count);
    plan->run.key = plan->request.key;
    plan->run.limits = plan->step->limits;
    return DPR_OK;
}

dpr_status dpr_plan_create(dpr_ctx *ctx, const dpr_problem *problem, dpr_plan **out) {
    if (!ctx || !problem || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", !ctx ? "ctx" : !problem ? "problem" : "out");
    dpr_problem p;
    dpr_plan plan = {.ctx = ctx};
    const int has_gpu = dpr_ctx_gpu(ctx) != NULL;
    dpr_status status = dpr_request_of_problem(problem, has_gpu, &p, &plan.request, &plan.shape);
    if (status == DPR_OK)
        status = place_runs(has_gpu, &plan.request.key);
    if (status != DPR_OK)
        return status;
    dpr_request_run(&plan.request, &plan.run);
    status = choose(&plan);
    if (status != DPR_OK)
        return status;
    plan.run.device_count = p.device_count;
    status = check_device_count(&plan);
    if (status == DPR_OK)
        status = check_reach(&plan, plan.request.launch_report, "options->launch->report", NULL);
    if (status == DPR_OK)
        status = check_segments(&plan, &plan.shape.segments);
    if (status != DPR_OK)
        return status;
    dpr_plan *made = malloc(sizeof *made);
    if (!made)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a plan");
    *made = plan;
    *out = made;
    return DPR_OK;
}

static dpr_status run_plan(const dpr_plan *plan, const void *in, void *const *outs, dpr_stream stream) {
    const dpr_status status = plan->shape.results > 0 ? dpr_request_check(&plan->request, in, outs) : DPR_OK;
    if (status != DPR_OK || plan->shape.results == 0)
        return status;
    dpr_run run = plan->run;
    const dpr_outputs fused = dpr_request_outputs(&plan->request, outs);
    run.in = in;
    run.out = outs[0];
    run.fused = fused.count > 0 ? &fused : NULL;
    run.stream = stream;
    dpr_shape_run(&plan->shape, &run);
    run.label = plan->request.label;
    run.first_index = plan->request.first_index;
    if (plan->step->strategy->side == DPR_ON_GPU)
        return dpr_ctx_run(plan->ctx, plan->choice, &run, NULL);
    if (stream)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "stream is %p, and the plan runs on the CPU", (void *)stream);
    if (run.device_count && *run.device_count < run.count)
        run.count = (size_t)*run.device_count;
    run.device_count = NULL;
    if (run.launch_report)
        memset(run.launch_report, 0, run.report_size);
    dpr_segment_list segments = plan->shape.segments;
    if (segments.device_count) {
        dpr_shape_take_number(&segments);
        run.segments = &segments;
        if (segments.count == 0)
            return DPR_OK;
    }
    dpr_start_on_cpu(plan->step->strategy, &run);
    return DPR_OK;
}

static int has_keys(const dpr_plan *plan) {
    return plan->shape.keys.dtype != DPR_DTYPE_NONE;
}

/* Fails if the plan is of keys. */
static dpr_status check_no_keys(const dpr_plan *plan) {
    return has_keys(plan) ? dpr_fail(DPR_ERR_INVALID_OPTION, "plan is of keys, for dpr_plan_run_by_key()") : DPR_OK;
}

/* Fails unless the plan is of one operation, and has no keys. */
static dpr_status check_single(const dpr_plan *plan) {
    if (!plan)
        return dpr_fail(DPR_ERR_NULL_POINTER, "plan is NULL");
    if (plan->request.fused.count == 0)
        return check_no_keys(plan);
    return dpr_fail(DPR_ERR_INVALID_OPTION, "plan is of %d operations, for dpr_plan_run_fused()",
                    plan->request.fused.count);
}

dpr_status dpr_plan_run(dpr_plan *plan, const void *in, void *out, dpr_stream stream) {
    const dpr_status status = check_single(plan);
    return status == DPR_OK ? run_plan(plan, in, &out, stream) : status;
}

dpr_status dpr_plan_run_fused(dpr_plan *plan, const void *in, void *const *outs, dpr_stream stream) {
    if (!plan || !outs)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", plan ? "outs" : "plan");
    const dpr_status status = check_no_keys(plan);
    return status == DPR_OK ? run_plan(plan, in, outs, stream) : status;
}

dpr_status dpr_plan_run_by_key(dpr_plan *plan, const void *keys, const void *in, void *unique_keys, void *out,
                               uint64_t *runs, dpr_stream stream) {
    if (!plan)
        return dpr_fail(DPR_ERR_NULL_POINTER, "plan is NULL");
    if (!has_keys(plan))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "plan is of a problem without problem->key_dtype");
    const int on_cpu = plan->step->strategy->side == DPR_ON_CPU;
    if (stream && on_cpu)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "stream is %p, and the plan runs on the CPU", (void *)stream);
    dpr_keyed call = {.parts = {.request = plan->request, .in = in, .out = out},
                      .keys = keys,
                      .unique = unique_keys,
                      .known = plan->shape.keys};
    return dpr_keyed_enqueue(plan->ctx, &call, on_cpu, runs, stream);
}

dpr_status dpr_plan_run_partial(dpr_plan *plan, const void *in, void *partial, uint64_t first_index,
                                dpr_stream stream) {
    dpr_status status = check_single(plan);
    if (status != DPR_OK)
        return status;
    if (!dpr_shape_is_array(&plan->shape))
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "plan is of an array with segments, axes or gaps, and partial results are of one without");
    dpr_plan other = *plan;
    if (other.request.key.f.effort != DPR_ESTIMATE) /* what was measured are results */
        other.request.key.f.effort = DPR_EFFORT_DEFAULT;
    status = dpr_request_partial(first_index, &other.request);
    if (status == DPR_OK)
        status = choose(&other);
    return status == DPR_OK ? run_plan(&other, in, &partial, stream) : status;
}

dpr_status dpr_plan_explain(const dpr_plan *plan, char *text, size_t *len) {
    if (!plan || !len)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", plan ? "len" : "plan");
    dpr_run run = plan->run;
    dpr_machine machine = *dpr_ctx_machine(plan->ctx);
    const int was_measured = plan->request.key.f.effort == DPR_MEASURE;
    const dpr_wisdom *wisdom = was_measured ? dpr_wisdom_current() : NULL; /* the context's is older */
    if (wisdom)
        dpr_wisdom_attach(wisdom, &machine);
    dpr_shape_run(&plan->shape, &run);
    const dpr_status status = dpr_explain(plan->choice, &machine, &run, &plan->shape.keys, text, len);
    dpr_wisdom_release(wisdom);
    return status;
}

const char *dpr_plan_strategy(const dpr_plan *plan) {
    if (!plan)
        return NULL;
    const dpr_caps *caps = &dpr_ctx_machine(plan->ctx)->caps;
    const int in_one_pass =
        has_keys(plan) && !dpr_refuse_one_pass(&plan->shape.keys, &plan->choice->key, caps, plan->request.count);
    return in_one_pass ? dpr_this_build.key_reduce->name : plan->step->strategy->name;
}

void dpr_plan_destroy(dpr_plan *plan) {
    free(plan);
}
