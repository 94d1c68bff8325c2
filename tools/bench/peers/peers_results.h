/* What dpr_peers has measured. */
#ifndef DPR_PEERS_RESULTS_H
#define DPR_PEERS_RESULTS_H

#include "bench_results.h"

/* Subjects: dpr's and CUB's own function. Names of their variants begin with these. */
#define PEERS_OURS "dpr"
#define PEERS_CUB "cub"

typedef struct peers_results {
    bench_results common;
    char cub[32], cublas[32]; /* versions; "": not measured, or not in this build */
} peers_results;

#endif
