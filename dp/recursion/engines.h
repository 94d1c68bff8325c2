/* The engines of recursions, for recursion.c: one table each. */
#ifndef DPR_DP_ENGINES_H
#define DPR_DP_ENGINES_H

#include <math.h>

#include "error.h"
#include "recursion.h"

/* A checked call of dpr_recursion_run() or dpr_recursion_enqueue(). */
typedef struct dpr_recursion_call {
    dpr_ctx *ctx;
    const dpr_recursion *recursion;
    const void *roots, *data; /* on the CPU in host memory */
    void *out;                /* on the CPU in host memory */
    size_t n;                 /* at least 1; of calls that are enqueued, at least 0 */
    int by_cost, size;        /* what similar calls have, too (choice.c) */
    uint64_t cost;            /* of all roots, if by_cost is 1; of many, an estimate */
    uint64_t tasks;           /* that are to be expected; 0: nobody knows */
    uint64_t cutoff;          /* tasks that cost at most this are solved by serial(); 0: none */
    double began;             /* dpr_recursion_now() (clock.h) */
    double max_seconds;       /* more than 0 */
    int is_limited;           /* 1: the caller has set max_seconds */
    double *waited;           /* seconds in which the call waited for runs of other threads, or measured costs */
    dpr_recursion_options options;
    dpr_stream stream;
} dpr_recursion_call;

typedef struct dpr_engine {
    const char *name, *text;
    int on_gpu;
    int nested; /* 1: its kernels launch kernels or graphs, so a call runs it only if it names or allows it */
    /* Why the engine cannot run the recursion in the context, as a clause; NULL if it can. */
    const char *(*refusal)(const dpr_recursion_call *call);
    /* Writes the results if it returns DPR_OK. Adds to the report. */
    dpr_status (*run)(const dpr_recursion_call *call, dpr_recursion_report *report);
    /* Enqueues the run in call->stream; `outcome` receives how it ends. No host memory of the call is looked at later.
     * NULL: the engine cannot, for the reason in `why_not_enqueued`, a clause. */
    dpr_status (*enqueue)(const dpr_recursion_call *call, dpr_recursion_outcome *outcome);
    const char *why_not_enqueued;
    /* Seconds that a run with so many tasks takes at least. NULL: the engine runs only if it is named. */
    double (*least_seconds)(const dpr_recursion_call *call, uint64_t tasks);
    /* About how many seconds it takes for tasks of the cheapest kind, where no run is known. NULL: it is not the first
     * to run. */
    double (*likely_seconds)(const dpr_recursion_call *call, uint64_t tasks);
    /* Measures costs that both predictions depend on, once for a device. NULL: there are none. */
    void (*measure)(const dpr_recursion_call *call);
} dpr_engine;

/* ---- Checks, which keep sentences (checks.c) ---- */

/* Checks a call whose members up to `n` and `stream` are those of the caller, and takes its options. */
dpr_status dpr_call_check(dpr_recursion_call *call, const dpr_recursion_options *options);

/* Checks that the table is of this version. */
dpr_status dpr_call_recursion(const dpr_recursion *recursion);

/* Checks that the pointer is not NULL, and is aligned to `align` bytes. */
dpr_status dpr_call_pointer(const char *name, const void *pointer, size_t align);

/* Finds the engine of this name: DPR_ERR_UNKNOWN_ENGINE. */
dpr_status dpr_call_engine(const char *name, const dpr_engine **out);

/* Whether the engine can run the call: DPR_ERR_STRATEGY_UNABLE. */
dpr_status dpr_call_able(const dpr_recursion_call *call, const dpr_engine *engine);

/* The status that a run on the GPU ended with. The sentence has the values of the call's limits; NULL: these are not
 * known (outcome.c). */
dpr_status dpr_outcome_status(const dpr_recursion *recursion, const dpr_recursion_outcome *outcome,
                              const dpr_recursion_call *call);

/* The status of a run that has reached its limit of time. */
static inline dpr_status dpr_engine_took_too_long(const dpr_recursion_call *call) {
    return dpr_fail(DPR_ERR_LIMIT, "recursion \"%s\" takes longer than %g seconds, its limit (options->max_seconds)",
                    call->recursion->name, call->max_seconds);
}

/* The engines of this build, in the order in which the library tries them; NULL after the last (engines.c). */
extern const dpr_engine *const dpr_engines[];

/* Sets by_cost, size and cost of a call whose other members but `tasks` are set. Its results may be written over its
 * roots, so this is done once, before the run. */
void dpr_engine_size(dpr_recursion_call *call);

/* The least number of levels that so many tasks can have, with a fraction where the last one is not full. They are the
 * fewest if all tasks above the last level have the most children, b: then level k has n b^k tasks. */
static inline double dpr_engine_levels(const dpr_recursion_call *call, uint64_t tasks) {
    const double most = call->recursion->most_children, of_root = (double)tasks / (double)call->n;
    return most > 1 ? log1p(of_root * (most - 1)) / log(most) : of_root;
}

/* The engine for a call that names none, and why, a clause (choice.c). Sets call->tasks as dpr_engine_expect() does. */
const dpr_engine *dpr_engine_choose(dpr_recursion_call *call, const char **reason);

/* Sets call->tasks to the tasks of the last run whose roots cost about as much; 0 if there was none, or if the policy
 * does not say what a task costs. */
void dpr_engine_expect(dpr_recursion_call *call);

/* Keeps for later calls that the engine could not run one. */
void dpr_engine_note_unable(const dpr_recursion_call *call, const dpr_engine *engine);

/* Keeps what a run has taken, for later calls. */
void dpr_engine_note(const dpr_recursion_call *call, const dpr_engine *engine, const dpr_recursion_report *report);

extern const dpr_engine dpr_engine_serial, dpr_engine_cpu, dpr_engine_persistent, dpr_engine_host, dpr_engine_level,
    dpr_engine_graph, dpr_engine_naive;

#endif
