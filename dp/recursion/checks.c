/* Checks of the arguments of dpr_recursion_run() and dpr_recursion_enqueue(). */
#include <math.h>
#include <string.h>

#include "api/request.h"
#include "engines.h"

enum { FIRST_MAX_DEPTH = 1 << 22, MOST_NESTING = 24 };
static const double FIRST_MAX_SECONDS = 86400, MOST_SECONDS = 1e9;
static const size_t MOST_ROOTS = (size_t)1 << 30;

dpr_status dpr_call_recursion(const dpr_recursion *recursion) {
    if (!recursion)
        return dpr_fail(DPR_ERR_NULL_POINTER, "recursion is NULL");
    if (recursion->version != DPR_RECURSION_VERSION || recursion->size != sizeof *recursion)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "the recursion was compiled with dpr_recursion.cuh of version %u, and this library has %d",
                        recursion->version, DPR_RECURSION_VERSION);
    return DPR_OK;
}

dpr_status dpr_call_pointer(const char *name, const void *pointer, size_t align) {
    if (!pointer)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", name);
    if ((uintptr_t)pointer % align != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "%s is %p, which is not aligned to %zu bytes", name, pointer, align);
    return DPR_OK;
}

static dpr_status check_options(const dpr_recursion_options *o, const dpr_recursion *r, size_t n) {
    if (o->threads < 0 || o->threads > DPR_THREADS_MAX)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->threads is %d; it should be from 0 to %d", o->threads,
                        DPR_THREADS_MAX);
    if (o->max_pending < DPR_NO_LAUNCHES)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->max_pending is %d; it should be at least %d", o->max_pending,
                        DPR_NO_LAUNCHES);
    if (o->max_depth > FIRST_MAX_DEPTH * UINT64_C(256))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->max_depth is %llu, and at most %llu is possible",
                        (unsigned long long)o->max_depth, FIRST_MAX_DEPTH * 256ULL);
    if (o->arena_tasks != 0 && o->arena_tasks < n)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->arena_tasks is %llu, and there are %zu roots",
                        (unsigned long long)o->arena_tasks, n);
    if (o->cutoff != 0 && o->cutoff != DPR_NO_CUTOFF && !r->serial)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->cutoff is %llu, and recursion \"%s\" has no serial()",
                        (unsigned long long)o->cutoff, r->name);
    if (!(o->max_seconds >= 0)) /* a NaN may have a sign, which says nothing */
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->max_seconds is %g, and must be at least 0",
                        isnan(o->max_seconds) ? (double)NAN : o->max_seconds);
    if (o->allow_nested != 0 && o->allow_nested != 1)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->allow_nested is %d; it should be 0 or 1", o->allow_nested);
    if (o->max_nesting < 0 || o->max_nesting > MOST_NESTING)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->max_nesting is %d; it should be from 0 to %d", o->max_nesting,
                        MOST_NESTING);
    if (o->arena_tasks > MOST_ROOTS)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->arena_tasks is %llu, and at most %zu is possible",
                        (unsigned long long)o->arena_tasks, MOST_ROOTS);
    return DPR_OK;
}

static dpr_status adopt(const dpr_recursion_options *options, dpr_recursion_call *call) {
    const dpr_recursion_options init = DPR_RECURSION_OPTIONS_INIT;
    dpr_recursion_options *out = &call->options;
    dpr_status status = DPR_OK;
    *out = init;
    if (options)
        status = dpr_adopt("options", "dpr_recursion_options", options, out, sizeof *out);
    if (status == DPR_OK)
        status = check_options(out, call->recursion, call->n);
    if (status == DPR_OK && out->max_depth == 0)
        out->max_depth = FIRST_MAX_DEPTH;
    call->is_limited = out->max_seconds > 0;
    call->max_seconds = !call->is_limited                 ? FIRST_MAX_SECONDS
                        : out->max_seconds < MOST_SECONDS ? out->max_seconds
                                                          : MOST_SECONDS;
    call->cutoff = out->cutoff == 0 ? call->recursion->cutoff : out->cutoff == DPR_NO_CUTOFF ? 0 : out->cutoff;
    return status;
}

dpr_status dpr_call_check(dpr_recursion_call *call, const dpr_recursion_options *options) {
    static const long long no_data = 0;
    dpr_status status = dpr_call_recursion(call->recursion);
    if (status != DPR_OK)
        return status;
    if (!call->ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    if (call->n > MOST_ROOTS)
        return dpr_fail(DPR_ERR_SIZE, "n is %zu, and at most %zu roots are possible", call->n, MOST_ROOTS);
    if (call->n > 0)
        status = dpr_call_pointer("roots", call->roots, call->recursion->task_align);
    if (status == DPR_OK && call->n > 0)
        status = dpr_call_pointer("out", call->out, call->recursion->result_align);
    if (status == DPR_OK && call->n > 0 && call->recursion->data_bytes > 0)
        status = dpr_call_pointer("data", call->data, call->recursion->data_align);
    if (!call->data)
        call->data = &no_data; /* the policy has none */
    return status == DPR_OK ? adopt(options, call) : status;
}

/* ---- Engines that are asked for ---- */

dpr_status dpr_call_engine(const char *name, const dpr_engine **out) {
    size_t i = 0;
    while (dpr_engines[i] && strcmp(dpr_engines[i]->name, name) != 0)
        i++;
    *out = dpr_engines[i];
    return *out
               ? DPR_OK
               : dpr_fail(
                   DPR_ERR_UNKNOWN_ENGINE,
                   "options->engine is \"%s\", and no engine of this build has this name; NULL lets the library choose",
                   name);
}

dpr_status dpr_call_able(const dpr_recursion_call *call, const dpr_engine *engine) {
    const char *refusal = engine->refusal(call);
    return !refusal ? DPR_OK
                    : dpr_fail(DPR_ERR_STRATEGY_UNABLE, "engine \"%s\" cannot run recursion \"%s\" here: it %s",
                               engine->name, call->recursion->name, refusal);
}
