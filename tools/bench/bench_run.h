/* What `dpr bench` measures. */
#ifndef DPR_TOOLS_BENCH_RUN_H
#define DPR_TOOLS_BENCH_RUN_H

#include "bench_asked.h"
#include "bench_results.h"

/* Measures. What was measured when *asked->stop becomes not 0 holds. results_free() is due in any case. CLI_OK;
 * CLI_FAILED after a message, if the device could not be used or failed later, or if a strategy failed or gave a wrong
 * result; CLI_USAGE after a message. */
int bench_measure(const bench_asked *asked, bench_results *out);

#endif
