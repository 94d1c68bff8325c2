/* Results of dpr_peers as a report. */
#ifndef DPR_PEERS_REPORT_H
#define DPR_PEERS_REPORT_H

#include "bench_report.h"
#include "peers_results.h"

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int peers_write(FILE *f, const peers_results *r, report_format format);

#endif
