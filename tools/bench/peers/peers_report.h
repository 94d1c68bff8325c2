/* What dpr_peers has measured, as a report. */
#ifndef DPR_PEERS_REPORT_H
#define DPR_PEERS_REPORT_H

#include "bench_report.h"

/* Subjects: dpr's and CUB's own function. Names of their variants begin with these. */
#define PEERS_OURS "dpr"
#define PEERS_CUB "cub"

typedef struct peers_results {
    bench_results common;
    char cub[32], cublas[32], cusparse[32]; /* versions; "": not measured, or not in this build */
} peers_results;

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int peers_write(FILE *f, const peers_results *r, report_format format);

#endif
