#include "choice_log.h"

#include <inttypes.h>
#include <string.h>

#include "registry.h"

void dpr_log_add_ops(dpr_log_line *line, const dpr_key *key) {
    dpr_log_add(line, "%s", dpr_ops[key->f.op].name);
    for (uint32_t others = key->f.ops & ~(UINT32_C(1) << key->f.op); others != 0; others &= others - 1)
        dpr_log_add(line, ", %s", dpr_ops[__builtin_ctz(others)].name);
}

static void add_key(dpr_log_line *line, const dpr_key *key, const dpr_machine *machine) {
    dpr_log_add_ops(line, key);
    dpr_log_add(line, " of %s in %s memory%s%s%s", dpr_dtypes[key->f.dtype].name,
                dpr_memory_name((dpr_memory)key->f.in_memory), key->f.nan == DPR_NAN_IGNORE ? ", NaN ignored" : "",
                key->f.partial ? ", to a partial result" : "", key->f.gpu_only ? ", in a stream" : "");
    if (key->f.segments)
        dpr_log_add(line, ", %" PRIu64 " %s or more", dpr_key_segments(key),
                    key->f.strided ? "results along axes" : "segments");
    if (key->f.block)
        dpr_log_add(line, ", in blocks of %d threads", 1 << key->f.block);
    if (key->f.depth)
        dpr_log_add(line, ", at most %d launches deep", key->f.depth);
    if (machine->device >= 0)
        dpr_log_add(line, ", on device %d with %lld SMs", machine->device, (long long)machine->caps.gpu.sm_count);
}

static void add_sizes(dpr_log_line *line, const dpr_choice *choice) {
    for (int i = 0; i < choice->steps; i++) {
        const dpr_choice_step *step = &choice->step[i];
        dpr_log_add(line, "%s %s", i > 0 ? "," : ":", step->strategy->name);
        if (i < choice->steps - 1)
            dpr_log_add(line, " up to %zu", step->upto);
        else
            dpr_log_add(line, "%s", choice->key.f.strategy ? " by name" : i > 0 ? " beyond" : " for every size");
    }
}

/* Why strategy i was not considered; NULL if it was, or if it is none of those that the planner chooses. */
static const char *why_not(size_t i, const dpr_key *key, const dpr_machine *machine) {
    const dpr_strategy *strategy = dpr_strategies[i];
    if (strategy->role != DPR_ROLE_CANDIDATE && !key->f.block)
        return NULL;
    if (machine->barred >> i & 1)
        return "its blocks have no room on these SMs";
    return dpr_refusal(strategy, key, &machine->caps);
}

/* Whether strategies i and j were refused for one reason. */
static int is_alike(const char *reason, size_t j, const dpr_key *key, const dpr_machine *machine) {
    const char *other = why_not(j, key, machine);
    return other && strcmp(other, reason) == 0;
}

/* Adds the names of the strategies that were refused for a reason: some of them, and the number of the others. */
static void add_refused(dpr_log_line *line, size_t first, const char *reason, const dpr_key *key,
                        const dpr_machine *machine) {
    enum { NAMED = 3 };
    int count = 0;
    for (size_t i = first; i < DPR_STRATEGY_COUNT; i++)
        if (is_alike(reason, i, key, machine) && count++ < NAMED)
            dpr_log_add(line, "%s%s", count > 1 ? ", " : "", dpr_strategies[i]->name);
    if (count > NAMED)
        dpr_log_add(line, " and %d more", count - NAMED);
    dpr_log_add(line, " (%s)", reason);
}

static void add_refusals(dpr_log_line *line, const dpr_key *key, const dpr_machine *machine) {
    const char *between = "; refused: ";
    for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++) {
        const char *reason = why_not(i, key, machine);
        int is_first = reason != NULL;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = !is_alike(reason, j, key, machine);
        if (!is_first)
            continue;
        dpr_log_add(line, "%s", between);
        add_refused(line, i, reason, key, machine);
        between = ", ";
    }
}

void dpr_log_choice(dpr_status status, const dpr_key *key, const dpr_choice *choice, const dpr_machine *machine) {
    dpr_log_line line;
    dpr_log_begin(&line, DPR_LOG_PLAN);
    add_key(&line, key, machine);
    if (status != DPR_OK) {
        dpr_log_add(&line, ": no choice, because %s", dpr_last_error());
    } else {
        add_sizes(&line, choice);
        if (!key->f.strategy)
            add_refusals(&line, key, machine);
    }
    dpr_log_end(&line);
}
