/* Starting the runs of strategies, with a line in the log and a range for profilers for each. */
#ifndef DPR_HOST_API_START_H
#define DPR_HOST_API_START_H

#include "ctx.h"

/* Runs a strategy of the CPU in the calling thread. It cannot fail. */
void dpr_start_on_cpu(const dpr_strategy *strategy, const dpr_run *run);

/* Runs a strategy of the GPU: blocking, or in run->stream if `result` is NULL. As dpr_device_run_blocking() and
 * dpr_device_run(). */
dpr_status dpr_start_on_gpu(dpr_device *device, const dpr_strategy *strategy, dpr_run *run,
                            const dpr_host_result *result, dpr_misfit *misfit);

#endif
