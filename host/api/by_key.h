/* Calls that reduce runs of equal consecutive keys. */
#ifndef DPR_HOST_API_BY_KEY_H
#define DPR_HOST_API_BY_KEY_H

#include "parts.h"

typedef struct dpr_keyed {
    dpr_parts parts; /* its request, `in` and `out` are set */
    const void *keys;
    void *unique; /* NULL: they are not wanted */
    dpr_dtype dtype;
    uint64_t room;                /* in runs */
    const uint64_t *device_count; /* as in dpr_reduce_by_key_async() */
} dpr_keyed;

/* Checks the call's arrays, and enqueues it in the stream; or runs it at once, on the CPU. */
dpr_status dpr_keyed_enqueue(dpr_ctx *ctx, dpr_keyed *call, int on_cpu, uint64_t *runs, dpr_stream stream);

#endif
