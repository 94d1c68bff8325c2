/* The planner: from a key and a machine's capabilities to thresholds of size. A pure function, so that tests and
 * `dpr plan --machine` drive it without the hardware. */
#ifndef DPR_HOST_PLAN_PLANNER_H
#define DPR_HOST_PLAN_PLANNER_H

#include "strategy.h"

/* What the machine's GPU holds of the kernel at a time, in *out; 0 blocks if that cannot be told. A status other than
 * DPR_OK, with its sentence, becomes the planner's. */
typedef dpr_status (*dpr_resident)(void *user, const dpr_kernel *kernel, dpr_residency *out);

/* Puts what nested launches cost on the machine's GPU (DPR_NESTED_CAPS_LIST) into its capabilities, as far as that was
 * measured; with `measure` it is measured now, if it can be. A status as above. */
typedef dpr_status (*dpr_nested_measure)(void *user, int measure, dpr_gpu_caps *gpu);

typedef struct dpr_machine {
    dpr_caps caps;
    dpr_resident resident;     /* NULL: from what the kernels declare (dpr_kernel) and dpr_occupancy_of() */
    dpr_nested_measure nested; /* NULL: `caps` has it */
    void *user;                /* for both */
    uint64_t barred; /* bit i: strategy i of the registry is not to be chosen unless it is asked for by name */
} dpr_machine;

/* A run of sizes that one strategy has. */
typedef struct dpr_choice_step {
    size_t upto; /* greatest count of the step; the last step's is SIZE_MAX */
    const dpr_strategy *strategy;
    dpr_shape shape;
} dpr_choice_step;

enum { DPR_CHOICE_STEPS = 48 };

/* Immutable once made. */
typedef struct dpr_choice {
    dpr_key key;
    int sms;         /* of the machine's GPU */
    uint64_t barred; /* the machine's */
    int steps;       /* at least 1 */
    dpr_choice_step step[DPR_CHOICE_STEPS];
} dpr_choice;

/* Chooses for every count at once. What nested launches cost is measured if a strategy that makes them is asked for by
 * name: the others are not to pay for that. DPR_ERR_STRATEGY_UNABLE with the reason if a strategy asked for by name
 * cannot run the key here, or if the cheapest changes with the size more often than a choice has steps;
 * DPR_ERR_MEMORY_KIND if no strategy reaches the memory; what machine->resident and machine->nested fail with. The
 * caller has checked the key's enums. */
dpr_status dpr_choose(const dpr_key *key, const dpr_machine *machine, dpr_choice *out);

/* The machine with what is known of its nested launches by now, or with `measure` once they were measured: dpr_choose()
 * and dpr_explain() go by it. */
dpr_status dpr_machine_known(const dpr_machine *machine, int measure, dpr_machine *out);

/* The step for `count` elements. */
const dpr_choice_step *dpr_choice_at(const dpr_choice *choice, size_t count);

/* Why the strategy cannot run the key there, or NULL if it can. */
const char *dpr_refusal(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps);

/* "host", "pinned", ... */
const char *dpr_memory_name(dpr_memory memory);

/* The text of dpr_plan_explain() for `count` elements and `max_pending` nested launches (dpr_options), by the same
 * protocol. */
dpr_status dpr_explain(const dpr_choice *choice, const dpr_machine *machine, size_t count, int max_pending, char *text,
                       size_t *len);

#endif
