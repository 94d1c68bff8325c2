/* What dpr_peers is asked for, and doing it. */
#ifndef DPR_PEERS_RUN_H
#define DPR_PEERS_RUN_H

#include "bench_asked.h"
#include "peers_results.h"

typedef struct peers_asked {
    bench_asked common;             /* its counts and modes are set; strategies are those beside the planner's choice */
    unsigned char groups[AXIS_SET]; /* in[i] is 1 for those of peer_group that are asked for */
} peers_asked;

/* Measures. What was measured when *common.stop becomes not 0 holds. results_free(&out->common) is due in any case.
 * CLI_OK; CLI_FAILED after a message, if the device could not be used or failed later, or if a subject failed or gave a
 * wrong result; CLI_USAGE after a message. */
int peers_measure(const peers_asked *asked, peers_results *out);

#endif
