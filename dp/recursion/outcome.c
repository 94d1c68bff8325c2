/* How runs on the GPU ended, as statuses and sentences. */
#include <stdio.h>

#include "engines.h"

typedef struct clause {
    char text[40];
} clause;

/* The value of a limit, as a clause with a comma before it and `end` behind it; nothing if it is 0 or not known. */
static clause which(const dpr_recursion_call *call, uint64_t value, const char *end) {
    clause c = {""};
    if (call && value > 0)
        (void)snprintf(c.text, sizeof c.text, ", which is %llu%s", (unsigned long long)value, end);
    return c;
}

static dpr_status too_many_tasks(const dpr_recursion *r, const dpr_recursion_call *call) {
    return dpr_fail(DPR_ERR_LIMIT, "recursion \"%s\" has more tasks than options->max_tasks%s", r->name,
                    which(call, call ? call->options.max_tasks : 0, "").text);
}

static dpr_status too_deep(const dpr_recursion *r, const dpr_recursion_call *call) {
    return dpr_fail(DPR_ERR_LIMIT, "recursion \"%s\" has a task that is deeper than options->max_depth%s", r->name,
                    which(call, call ? call->options.max_depth : 0, "").text);
}

static dpr_status took_too_long(const dpr_recursion *r, const dpr_recursion_call *call) {
    return call ? dpr_engine_took_too_long(call)
                : dpr_fail(DPR_ERR_LIMIT, "recursion \"%s\" takes longer than its limit (options->max_seconds)",
                           r->name);
}

static dpr_status reached_limit(const dpr_recursion *r, int limit, const dpr_recursion_call *call) {
    return limit == DPR_LIMIT_OF_TIME    ? took_too_long(r, call)
           : limit == DPR_LIMIT_OF_DEPTH ? too_deep(r, call)
                                         : too_many_tasks(r, call);
}

static dpr_status out_of_memory(const dpr_recursion *r, const dpr_recursion_call *call) {
    const clause arena = which(call, call ? call->options.arena_tasks : 0, ",");
    return dpr_fail(DPR_ERR_OUT_OF_MEMORY,
                    "the stacks of recursion \"%s\" need more memory than there is for them, because "
                    "options->arena_tasks%s is too small",
                    r->name, arena.text);
}

dpr_status dpr_outcome_status(const dpr_recursion *recursion, const dpr_recursion_outcome *outcome,
                              const dpr_recursion_call *call) {
    switch (outcome->status) {
    case DPR_OK:
        return DPR_OK;
    case DPR_ERR_DIVIDE:
        return dpr_fail(DPR_ERR_DIVIDE, "divide() of recursion \"%s\" returned %d, and must return 0 to %d",
                        recursion->name, outcome->wrong, recursion->most_children);
    case DPR_ERR_LIMIT:
        return reached_limit(recursion, outcome->wrong, call);
    case DPR_ERR_OUT_OF_MEMORY:
        return out_of_memory(recursion, call);
    case DPR_ERR_CUDA:
        return dpr_fail(DPR_ERR_CUDA, "the GPU lost tasks of recursion \"%s\"", recursion->name);
    default:
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "outcome->status is %u, which no run of recursion \"%s\" has written: perhaps the run is not "
                        "done",
                        outcome->status, recursion->name);
    }
}
