/* From case to case within a budget: what the measurements of dpr bench and of dpr_peers have in common.
 *
 *     bench_walk w = {.asked = asked, .results = results, .prepare = prepare, .user = user};
 *     walk_open(&w);
 *     walk_run(&w);
 *     walk_close(&w);        due in any case */
#ifndef DPR_TOOLS_BENCH_WALK_H
#define DPR_TOOLS_BENCH_WALK_H

#include "bench_asked.h"
#include "bench_caller.h"

typedef struct bench_walk bench_walk;

struct bench_walk {
    /* Set by the caller. */
    bench_asked *asked;
    bench_results *results;
    /* Whether a case is wanted; NULL: all that are asked for are. */
    int (*wants)(void *user, const bench_case *at);
    /* Whether a case is measured in a second pass over the operations and types, after the other cases of its mode;
     * NULL: there is one pass. */
    int (*is_later)(void *user, const bench_case *at);
    /* Makes the `n` subjects of the case, each of which has a bench_caller as its user, or what begins with one. 0, or
     * -1 with the reason why there are none. */
    int (*prepare)(bench_walk *w, char why[BENCH_WHY]);
    /* Is told of a strategy that cannot run a case with many results, which no plan is asked for. NULL: that is a
     * failure. */
    void (*unable)(bench_walk *w, const char *strategy, const char *why);
    /* Is told that a case has been measured for the first time, or twice if its choice seemed slow. NULL: nobody is. */
    void (*after)(bench_walk *w);
    void *user;
    int without_launches; /* 1: no empty launches take turns with the subjects, so rows have no steady times */

    /* From walk_open() on. */
    dpr_ctx *ctx; /* of the device */
    dpr_ctx *cpu; /* where results to compare with come from */

    /* The case. */
    bench_case at;
    known known; /* what the buffers hold */
    known_results expected;
    bench_shaped shaped; /* of a case with many results, instead of `known` and `expected` */
    int n;
    bench_subject subjects[BENCH_SUBJECTS];
    bench_caller callers[BENCH_SUBJECTS]; /* those of walk_add() */
    const char *choice;                   /* the strategy that the planner chooses, after walk_choose() */

    /* Private. */
    bench_timer *timer;
    bench_outcome *outcomes; /* BENCH_SUBJECTS of them */
    size_t cases, done;
    int visit;                  /* as in bench_row */
    size_t most;                /* bytes that may fit the device */
    double began, most_seconds; /* when the first case began, and how long all may take */
    int code;
};

/* Makes the contexts. CLI_OK, or CLI_FAILED after a message. */
int walk_open(bench_walk *w);

/* Why walk_open() has taken the CPU where it might have taken a GPU, as a clause. */
const char *walk_why_no_gpu(void);

/* Prints that --memory names a GPU's memory although there is no GPU or --device is cpu. CLI_USAGE if --device is cpu,
 * else CLI_FAILED. */
int walk_refuse_memory(const bench_asked *a);

/* Bytes of the largest array of a case that may fit the device. */
size_t walk_largest(bench_walk *w);

/* The number of cases. */
size_t walk_cases(bench_walk *w);

/* Begins the subjects of a case: there are none, and the planner's choice is known; of arrays with many results it is
 * CALLER_PLANNER. 0, or -1 with the reason if there is no choice. */
int walk_choose(bench_walk *w, char why[BENCH_WHY]);

/* Adds a strategy to them; with the block size, if it lets that be chosen, and the depth that are asked for, or by
 * default. NULL with the reason if it cannot run the case. */
bench_caller *walk_add(bench_walk *w, const char *strategy, int as_asked, char why[BENCH_WHY]);

/* Adds a row that says why a strategy cannot run the case. */
void walk_refuse(bench_walk *w, const char *strategy, const char *why);

/* Measures all cases, those whose choice seems slow (results_choice_seems_slow()) a second time, and in the end
 * disturbed ones (results_disturbed()) up to three times more, within the budget and at most as long as the first pass
 * took. What is measured when asked->stop becomes not 0, or the budget is spent, holds. CLI_OK;
 * CLI_FAILED after a message, if the device could not be used or failed later, or if a subject failed or gave a wrong
 * result; CLI_USAGE after a message, if there is no case. */
int walk_run(bench_walk *w);

void walk_close(bench_walk *w);

#endif
