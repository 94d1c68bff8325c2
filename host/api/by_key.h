/* Calls that reduce runs of equal consecutive keys. */
#ifndef DPR_HOST_API_BY_KEY_H
#define DPR_HOST_API_BY_KEY_H

#include "parts.h"

typedef struct dpr_keyed {
    dpr_parts parts; /* the caller sets its request, `in` and `out` */
    const void *keys;
    void *unique;   /* NULL: they are not wanted */
    dpr_keys known; /* what the planner knows of them */
} dpr_keyed;

/* Checks the arrays of the call, and enqueues it in `stream`; with on_cpu 1 it is run on the CPU, and done on return.
 * *runs receives the number of runs. */
dpr_status dpr_keyed_enqueue(dpr_ctx *ctx, dpr_keyed *call, int on_cpu, uint64_t *runs, dpr_stream stream);

#endif
