/* Captured machines: text that is accepted gives a machine whose own text reads back as the same machine, and for which
 * the planner has a sensible answer to every problem. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* ---- Text ------------------------------------------------------------------------------------------------------- */

static char *text_of(const dpr_machine *machine) {
    size_t size = 0;
    FUZZ_CHECK(dpr_machine_format(machine, NULL, &size) == DPR_OK, "%s", dpr_last_error());
    char *text = malloc(size);
    FUZZ_CHECK(text && dpr_machine_format(machine, text, &size) == DPR_OK, "%s", dpr_last_error());
    return text;
}

static void check_text(const dpr_machine *machine) {
    char *text = text_of(machine);
    dpr_machine *again = NULL;
    FUZZ_CHECK(dpr_machine_parse(text, &again) == DPR_OK, "%s in:\n%s", dpr_last_error(), text);
    char *same = text_of(again);
    FUZZ_CHECK(strcmp(text, same) == 0, "%s\nbecomes\n%s", text, same);
    dpr_machine_destroy(again);
    free(text);
    free(same);
}

/* ---- Decisions -------------------------------------------------------------------------------------------------- */

static void check_predictions(const dpr_decision *decision, size_t count) {
    dpr_prediction p = DPR_PREDICTION_INIT;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        FUZZ_CHECK(dpr_decision_predict(decision, i, count, &p) == DPR_OK, "%s", dpr_last_error());
        FUZZ_CHECK(p.refusal || (isfinite(p.seconds) && p.seconds > 0), "%s takes %g s for %zu elements",
                   dpr_strategy_name(i), p.seconds, count);
    }
}

static void check_decision(const dpr_decision *decision) {
    dpr_step step = {.size = sizeof step, .upto = SIZE_MAX};
    do {
        const size_t from = step.upto + 1;
        FUZZ_CHECK(dpr_decision_step(decision, from, &step) == DPR_OK, "%s", dpr_last_error());
        FUZZ_CHECK(step.from == from && step.upto >= from, "%zu to %zu after %zu", step.from, step.upto, from);
        FUZZ_CHECK(step.threads > 0 && step.max_blocks > 0, "%d blocks of %d", step.max_blocks, step.threads);
    } while (step.upto < SIZE_MAX);
    for (size_t count = 0; count < SIZE_MAX / 1024; count = 1000 * count + 1) {
        size_t size = 0;
        check_predictions(decision, count);
        FUZZ_CHECK(dpr_decision_explain(decision, count, NULL, &size) == DPR_OK && size > 1, "%zu bytes", size);
    }
}

static void check_plans(const dpr_machine *machine) {
    static const struct {
        dpr_op op;
        dpr_dtype dtype;
        dpr_memory memory;
    } problems[] = {{DPR_SUM, DPR_F32, DPR_MEMORY_HOST}, {DPR_ARGMAX, DPR_F64, DPR_MEMORY_DEVICE}};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_decision *decision = NULL;
        problem.op = problems[i].op;
        problem.dtype = problems[i].dtype;
        problem.memory = problems[i].memory;
        problem.count = 1;
        const dpr_status status = dpr_decision_create(machine, &problem, &decision);
        if (status == DPR_OK)
            check_decision(decision);
        else
            fuzz_check_refusal(status);
        dpr_decision_destroy(decision);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = fuzz_text(bytes, size);
    dpr_machine *machine = NULL;
    const dpr_status status = dpr_machine_parse(text, &machine);
    if (status == DPR_OK) {
        check_text(machine);
        check_plans(machine);
        dpr_machine_destroy(machine);
    } else {
        FUZZ_CHECK(machine == NULL, "a machine after %s", dpr_last_error());
        fuzz_check_refusal(status);
    }
    free(text);
    return 0;
}
