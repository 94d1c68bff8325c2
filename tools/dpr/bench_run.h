/* What `dpr bench` is asked for, and doing it. */
#ifndef DPR_TOOLS_BENCH_RUN_H
#define DPR_TOOLS_BENCH_RUN_H

#include "bench_axes.h"
#include "bench_results.h"

typedef struct bench_asked {
    axis_counts counts; /* n is 0: the default */
    /* in[i] is 1 for those that are asked for: numbers of ops.def, dtypes.def, bench_mode, bench_cache, and strategies
     * of this build. */
    unsigned char ops[AXIS_SET], dtypes[AXIS_SET], modes[AXIS_SET], caches[AXIS_SET], strategies[AXIS_SET];
    int modes_named;      /* 0: `modes` is not used, but the default for the device */
    int strategies_named; /* 1: those that cannot run are worth a note */
    int device;
    double budget;   /* seconds */
    double accuracy; /* of medians, a fraction */
    const char *commit;
    int quiet; /* 1: no live line and no notes */
    /* Is called when the results have grown by a case. */
    void (*grown)(void *user);
    void *user;
} bench_asked;

/* Measures. *flag becomes not 0 when it should stop: what was measured until then holds. results_free() is due in any
 * case. CLI_OK; CLI_FAILED after a message, if the device could not be used or failed later, or if a strategy failed or
 * gave a wrong result; CLI_USAGE after a message. */
int bench_measure(const bench_asked *asked, const volatile sig_atomic_t *flag, bench_results *out);

#endif
