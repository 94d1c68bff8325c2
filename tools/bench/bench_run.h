/* What `dpr bench` measures. */
#ifndef DPR_TOOLS_BENCH_RUN_H
#define DPR_TOOLS_BENCH_RUN_H

#include "bench_asked.h"
#include "bench_results.h"

/* Puts defaults in the place of lists that are not asked for. */
void bench_complete(bench_asked *a);

/* Measures, and puts the device's defaults in what is asked for. `out` is all 0 before. What was measured when
 * *asked->stop becomes not 0 holds. results_free() is due in any case. CLI_OK; CLI_FAILED after a message, if the
 * device could not be used or failed later, or if a strategy failed or gave a wrong result; CLI_USAGE after a message.
 */
int bench_measure(bench_asked *asked, bench_results *out);

#endif
