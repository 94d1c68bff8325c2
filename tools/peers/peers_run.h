/* What dpr_peers is asked for, and doing it. */
#ifndef DPR_PEERS_RUN_H
#define DPR_PEERS_RUN_H

#include "bench_axes.h"
#include "peers_results.h"

typedef struct peers_asked {
    axis_counts counts;
    /* in[i] is 1 for those that are asked for: numbers of ops.def, dtypes.def, bench_mode, bench_cache, strategies of
     * this build (beside the planner's choice) and peer_group. */
    unsigned char ops[AXIS_SET], dtypes[AXIS_SET], modes[AXIS_SET], caches[AXIS_SET];
    unsigned char strategies[AXIS_SET], groups[AXIS_SET];
    int floors;      /* 1: only the cases that floors are about */
    int device;      /* CUDA ordinal, or DPR_DEVICE_AUTO */
    double budget;   /* seconds */
    double accuracy; /* of medians, a fraction */
    const char *commit;
    int quiet; /* 1: no live line */
    /* Is called when the results have grown by a case. */
    void (*grown)(void *user);
    void *user;
} peers_asked;

/* Measures. *flag becomes not 0 when it should stop: what was measured until then holds. peers_free() is due in any
 * case. CLI_OK; CLI_FAILED after a message, if the device could not be used or failed later, or if a subject failed or
 * gave a wrong result; CLI_USAGE after a message. */
int peers_measure(const peers_asked *asked, const volatile sig_atomic_t *flag, peers_results *out);

#endif
