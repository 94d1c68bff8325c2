/* Planning by measuring. */
#ifndef DPR_HOST_API_MEASURE_H
#define DPR_HOST_API_MEASURE_H

#include "ctx.h"
#include "request.h"

/* Runs every candidate for the request, whose key has its memory, on an array of its own, and finds the quickest. What
 * was measured is added to the process's wisdom. DPR_ERR_INVALID_OPTION if the memory is neither host nor device
 * memory; DPR_ERR_OUT_OF_MEMORY; errors of runs. */
dpr_status dpr_measure(dpr_ctx *ctx, const dpr_request *request, const dpr_strategy **out);

#endif
