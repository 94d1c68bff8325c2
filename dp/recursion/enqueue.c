/* dpr_recursion_enqueue(): checks the call, and has the engine enqueue the run. And dpr_recursion_check(). */
#include "api/ctx.h"
#include "cuda/range.h"
#include "engines.h"
#include "log.h"
#include "uncancelled.h"

/* ---- Checks ---- */

/* Kernels run when the call is over, so that nothing can be copied for them. */
static dpr_status check_reached(const dpr_recursion_call *call, const char *name, const void *at) {
    dpr_place place;
    dpr_status status = dpr_device_place(at, name, &place);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(call->ctx, name, place);
    if (status == DPR_OK && place.memory == DPR_MEMORY_HOST)
        status = dpr_fail(DPR_ERR_MEMORY_KIND,
                          "%s is %p, in pageable memory, and a run that is enqueued needs device, pinned or managed "
                          "memory",
                          name, at);
    return status;
}

static dpr_status check_memory(const dpr_recursion_call *call, const dpr_recursion_outcome *outcome) {
    dpr_status status = check_reached(call, "outcome", outcome);
    if (status == DPR_OK && call->n > 0)
        status = check_reached(call, "roots", call->roots);
    return status == DPR_OK && call->n > 0 ? check_reached(call, "out", call->out) : status;
}

static dpr_status check(dpr_recursion_call *call, const dpr_recursion_options *options,
                        const dpr_recursion_outcome *outcome) {
    dpr_status status = dpr_call_check(call, options);
    if (status == DPR_OK)
        status = dpr_call_pointer("outcome", outcome, _Alignof(dpr_recursion_outcome));
    if (status == DPR_OK && call->options.trace)
        status = dpr_fail(DPR_ERR_INVALID_OPTION,
                          "options->trace is not NULL, and nobody can call it for a run that is enqueued");
    return status;
}

/* ---- The engine ---- */

/* NULL in a build without engines of the GPU. */
static const dpr_engine *first_engine(void) {
    size_t i = 0;
    while (dpr_engines[i] && !dpr_engines[i]->enqueue)
        i++;
    return dpr_engines[i];
}

static dpr_status find_engine(const dpr_recursion_call *call, const dpr_engine **out) {
    dpr_status status = DPR_OK;
    *out = first_engine();
    if (call->options.engine)
        status = dpr_call_engine(call->options.engine, out);
    if (status != DPR_OK)
        return status;
    if (!*out)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "no engine can enqueue a run: %s", dpr_device_absent());
    if (!(*out)->enqueue)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                        "engine \"%s\" cannot enqueue a run, because it %s: use engine \"persistent\"", (*out)->name,
                        (*out)->why_not_enqueued);
    return dpr_call_able(call, *out);
}

/* ---- The call ---- */

/* Profilers show a range with the engine's name in one with the recursion's. */
static dpr_status enqueue(const dpr_recursion_call *call, const dpr_engine *engine, dpr_recursion_outcome *outcome) {
    dpr_range_begin(call->recursion->name);
    dpr_range_begin(engine->name);
    const dpr_status status = engine->enqueue(call, outcome);
    dpr_range_end();
    dpr_range_end();
    if (DPR_LOGS(RECURSION) && status == DPR_OK)
        dpr_log(DPR_LOG_RECURSION, "%s of %zu roots: engine %s is enqueued in stream %p", call->recursion->name,
                call->n, engine->name, (void *)call->stream);
    return status;
}

static dpr_status check_and_enqueue(dpr_recursion_call call, const dpr_recursion_options *options,
                                    dpr_recursion_outcome *outcome) {
    const dpr_engine *engine = NULL;
    dpr_status status = check(&call, options, outcome);
    if (status == DPR_OK)
        status = find_engine(&call, &engine);
    if (status == DPR_OK)
        status = check_memory(&call, outcome);
    return status == DPR_OK ? enqueue(&call, engine, outcome) : status;
}

/* What the roots cost stays unknown, because they may change until the run reads them. */
dpr_status dpr_recursion_enqueue(dpr_ctx *ctx, const dpr_recursion *recursion, const void *roots, size_t n,
                                 const void *data, void *out, const dpr_recursion_options *options,
                                 dpr_recursion_outcome *outcome, dpr_stream stream) {
    const dpr_recursion_call call = {
        .ctx = ctx, .recursion = recursion, .roots = roots, .data = data, .out = out, .n = n, .stream = stream};
    const int held = dpr_cancel_hold();
    const dpr_status status = check_and_enqueue(call, options, outcome);
    dpr_cancel_release(held);
    return status;
}

/* ---- The outcome ---- */

static dpr_status check_readable(const dpr_recursion_outcome *outcome) {
    dpr_place place;
    dpr_status status = dpr_call_pointer("outcome", outcome, _Alignof(dpr_recursion_outcome));
    if (status == DPR_OK)
        status = dpr_device_place(outcome, "outcome", &place);
    if (status == DPR_OK && place.memory == DPR_MEMORY_DEVICE)
        status = dpr_fail(DPR_ERR_MEMORY_KIND,
                          "outcome is %p, in memory of device %d, which the host does not read: copy it first",
                          (const void *)outcome, place.device);
    return status;
}

dpr_status dpr_recursion_check(const dpr_recursion *recursion, const dpr_recursion_outcome *outcome) {
    dpr_status status = dpr_call_recursion(recursion);
    if (status == DPR_OK)
        status = check_readable(outcome);
    return status == DPR_OK ? dpr_outcome_status(recursion, outcome, NULL) : status;
}
