/* Calls with many results, of parts of an array: what those of segments, of keys and of axes share. So far the CPU
 * alone runs them. */
#ifndef DPR_HOST_API_PARTS_H
#define DPR_HOST_API_PARTS_H

#include "ctx.h"
#include "request.h"

/* A checked call. Its maker sets one of `segments` and `axes`. */
typedef struct dpr_parts {
    dpr_request request;
    const void *in;
    void *out;
    dpr_place in_place;
    const dpr_segment_list *segments;
    const dpr_axes_layout *axes;
} dpr_parts;

/* Makes a call, and checks everything but `in` and `out`. There may be no elements, also for ARGMIN and ARGMAX. */
dpr_status dpr_parts_make(const dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                          const dpr_options *options, dpr_parts *call);

/* Fails unless the host reaches `in`, `out` and two arrays more, of which each may be NULL. Then waits for
 * earlier work on the stream or device. */
dpr_status dpr_parts_reach(const dpr_ctx *ctx, dpr_parts *call, const char *const names[2], const void *const more[2]);

/* Chooses a strategy for `results` (at least 1) results of `elements` elements in total, and runs it. */
dpr_status dpr_parts_run(dpr_ctx *ctx, dpr_parts *call, uint64_t results, size_t elements);

#endif
