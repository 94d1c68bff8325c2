/* The planner's table for a problem on a machine, for callers to look at. */
#include <stdlib.h>

#include "error.h"
#include "plan/planner.h"
#include "plan/registry.h"
#include "plan/wisdom.h"
#include "request.h"

struct dpr_decision {
    dpr_choice choice;
    dpr_machine machine; /* as it was known when the choice was made; without functions that ask a device */
    dpr_shape shape;
    dpr_run run; /* lacks its arrays, and the shape's fields */
};

/* Decides for out->shape. */
static dpr_status decide(const dpr_machine *machine, const dpr_request *request, dpr_decision *out) {
    dpr_status status = dpr_choose(&request->key, machine, &out->choice);
    if (status == DPR_OK)
        status = dpr_machine_known(machine, 0, &out->machine);
    out->machine.resident = NULL;
    out->machine.nested_costs = NULL;
    dpr_request_run(request, &out->run);
    return status;
}

dpr_status dpr_decision_create(const dpr_machine *machine, const dpr_problem *problem, dpr_decision **out) {
    dpr_problem adopted;
    dpr_request request;
    dpr_shape shape;
    if (!machine || !problem || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", !machine ? "machine" : !problem ? "problem" : "out");
    dpr_status status = dpr_request_of_problem(problem, machine->caps.has_gpu, &adopted, &request, &shape);
    if (status != DPR_OK)
        return status;
    dpr_decision *made = malloc(sizeof *made);
    if (!made)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a decision");
    made->shape = shape;
    status = decide(machine, &request, made);
    if (status != DPR_OK) {
        free(made);
        return status;
    }
    if (made->machine.wisdom)
        dpr_wisdom_hold(made->machine.wisdom);
    *out = made;
    return status;
}

void dpr_decision_destroy(dpr_decision *decision) {
    if (decision)
        dpr_wisdom_release(decision->machine.wisdom);
    free(decision);
}

dpr_status dpr_decision_step(const dpr_decision *decision, size_t count, dpr_step *out) {
    if (!decision)
        return dpr_fail(DPR_ERR_NULL_POINTER, "decision is NULL");
    const dpr_status status = dpr_check_out("out", out, "DPR_STEP_INIT");
    if (status != DPR_OK)
        return status;
    const dpr_choice_step *step = dpr_choice_at(&decision->choice, count);
    const dpr_launch_limits *limits = &step->limits;
    const dpr_step found = {
        .from = step == decision->choice.step ? 0 : step[-1].upto + 1,
        .upto = step->upto,
        .strategy = dpr_strategy_index(step->strategy),
        .threads = limits->threads,
        .max_blocks = limits->max_blocks,
        .max_depth = limits->max_depth,
        .launch_measured = limits->measured,
        .launch_seconds = limits->max_depth > 0 ? limits->launch_seconds : 0,
    };
    return dpr_fill_out(out, &found, sizeof found);
}

dpr_status dpr_decision_predict(const dpr_decision *decision, size_t i, size_t count, dpr_prediction *out) {
    if (!decision)
        return dpr_fail(DPR_ERR_NULL_POINTER, "decision is NULL");
    dpr_status status = dpr_check_out("out", out, "DPR_PREDICTION_INIT");
    if (status == DPR_OK)
        status = dpr_strategy_check(i);
    if (status != DPR_OK)
        return status;
    const dpr_key *key = &decision->choice.key;
    const dpr_size size = {count, decision->shape.results};
    dpr_prediction found = {.refusal = dpr_refusal(dpr_strategies[i], key, &decision->machine.caps)};
    dpr_basis basis = DPR_BASIS_PREDICTED;
    if (!found.refusal)
        found.seconds = dpr_expect(dpr_strategies[i], key, &decision->machine, size, &basis);
    found.measured = basis == DPR_BASIS_MEASURED;
    return dpr_fill_out(out, &found, sizeof found);
}

dpr_status dpr_decision_one_pass(const dpr_decision *decision, size_t count, const char **refusal) {
    if (!decision || !refusal)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", decision ? "refusal" : "decision");
    const dpr_keys *keys = &decision->shape.keys;
    if (keys->dtype == DPR_DTYPE_NONE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "decision is of a problem without problem->key_dtype");
    *refusal = dpr_refuse_one_pass(keys, &decision->choice.key, &decision->machine.caps, count);
    return DPR_OK;
}

dpr_status dpr_decision_explain(const dpr_decision *decision, size_t count, char *text, size_t *len) {
    if (!decision || !len)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", decision ? "len" : "decision");
    dpr_run run = decision->run;
    run.count = count;
    dpr_shape_run(&decision->shape, &run);
    return dpr_explain(&decision->choice, &decision->machine, &run, &decision->shape.keys, text, len);
}
