/* The planner makes thresholds of size from a key and a machine's capabilities. It is a pure function, so that tests
 * and `dpr plan --machine` can call it without the hardware. */
#ifndef DPR_HOST_PLAN_PLANNER_H
#define DPR_HOST_PLAN_PLANNER_H

#include "keys.h"
#include "strategy.h"

/* Sets *out to how many blocks of the kernel the machine's GPU holds at a time; 0 blocks if that is unknown. If it
 * fails, the planner fails with its status and sentence. */
typedef dpr_status (*dpr_resident)(void *user, const dpr_kernel *kernel, dpr_residency *out);

/* Puts the costs of nested launches on the machine's GPU (DPR_NESTED_CAPS_LIST) into its capabilities, as far as they
 * have been measured. If `measure` is not 0, measures them first, if possible. If it fails, the planner fails with its
 * status and sentence. */
typedef dpr_status (*dpr_nested_measure)(void *user, int measure, dpr_gpu_caps *gpu);

typedef struct dpr_wisdom dpr_wisdom; /* wisdom.h */

struct dpr_machine {
    dpr_caps caps;
    dpr_resident resident;           /* NULL: from what the kernels declare (dpr_kernel) and dpr_occupancy_of() */
    dpr_nested_measure nested_costs; /* NULL: `caps` has the costs */
    void *user;                      /* for both functions */
    const dpr_wisdom *wisdom;        /* times that were measured; NULL: none */
    int rates_measured;              /* 1: the CPU's rates in `caps` come from `wisdom`; 0: they are assumed */
    int wake_measured;               /* the same of cpu.wake_ns */
    double launch_seconds;           /* of a sum of few I32 on the GPU in a call that blocks, by `wisdom`; 0: unknown */
    int wise[2];                     /* by dpr_side: the number of the processor in `wisdom`; below 0: it has none */
    int driver;                      /* version of the CUDA driver; 0 if there is no GPU, or the machine is captured */
    uint64_t barred;                 /* bit i: strategy i of the registry is chosen only if it is asked for by name */
    int device;                      /* CUDA ordinal of the GPU; below 0 if there is none, or the machine is captured */
};

/* A range of counts for which one strategy is chosen. */
typedef struct dpr_choice_step {
    size_t upto; /* greatest count of the step; the last step's is SIZE_MAX */
    const dpr_strategy *strategy;
    dpr_launch_limits limits;
} dpr_choice_step;

enum { DPR_CHOICE_STEPS = 48 };

/* Immutable once made. */
typedef struct dpr_choice {
    dpr_key key;
    int sms;         /* of the machine's GPU */
    uint64_t barred; /* the machine's */
    int estimated;   /* 1: it is by prediction, although the machine has wisdom */
    int steps;       /* at least 1 */
    dpr_choice_step step[DPR_CHOICE_STEPS];
} dpr_choice;

/* Chooses a strategy for every count at once. The costs of nested launches are measured only if a strategy that makes
 * them is asked for by name, so that other calls do not wait for that. The caller has checked the key's enums.
 *
 * Errors: DPR_ERR_STRATEGY_UNABLE with the reason if a strategy asked for by name cannot run the key here, if no
 * strategy takes the key's block size, or if the cheapest strategy changes with the size more often than a choice has
 * steps; DPR_ERR_MEMORY_KIND if no strategy reaches the memory; those of machine->resident and machine->nested_costs.
 */
dpr_status dpr_choose(const dpr_key *key, const dpr_machine *machine, dpr_choice *out);

/* Copies the machine, with the costs of nested launches that have been measured so far; if `measure` is not 0, measures
 * them first. dpr_choose() and dpr_explain() use this copy. */
dpr_status dpr_machine_known(const dpr_machine *machine, int measure, dpr_machine *out);

/* The step for `count` elements. */
const dpr_choice_step *dpr_choice_at(const dpr_choice *choice, size_t count);

/* Why the strategy cannot run the key on the machine, or NULL if it can. */
const char *dpr_refusal(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps);

/* Lists the strategies that the planner may choose for the key on the machine, in the registry's order; there is room
 * for all strategies. Returns how many there are. */
int dpr_candidates(const dpr_key *key, const dpr_machine *machine, const dpr_strategy **list);

/* Predicted seconds of a run on the machine, from the call to the result. They are at least the time that memory takes
 * to deliver the array, whatever the strategy's cost states. For a GPU strategy that reads pinned memory in a call that
 * blocks, they include the wait for the result. The strategy can run the key there. */
double dpr_predict(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps, dpr_size size);

/* What a figure is based on: no measured times; times of numbers of elements around it, or at most a factor of two away
 * from it; times that are all further away. */
typedef enum dpr_basis { DPR_BASIS_PREDICTED, DPR_BASIS_MEASURED, DPR_BASIS_EXTRAPOLATED } dpr_basis;

/* Seconds of a run as the planner expects them: as dpr_predict(), corrected by what the machine's wisdom has of the
 * strategy, if it has something. `basis` may be NULL. */
double dpr_expect(const dpr_strategy *strategy, const dpr_key *key, const dpr_machine *machine, dpr_size size,
                  dpr_basis *basis);

/* "host", "pinned", ... */
const char *dpr_memory_name(dpr_memory memory);

/* Writes the text of dpr_plan_explain() for a run of the choice, which may lack its arrays and its stream, by the same
 * protocol. If `keys` is not NULL and has a type, the run's segments are runs of keys. */
dpr_status dpr_explain(const dpr_choice *choice, const dpr_machine *machine, const dpr_run *run, const dpr_keys *keys,
                       char *text, size_t *len);

#endif
