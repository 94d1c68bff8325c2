/* A context: a device, its scratch memory and its cache of choices. */
#ifndef DPR_HOST_API_CTX_H
#define DPR_HOST_API_CTX_H

#include "cuda/device.h"
#include "plan/planner.h"

/* The opened device of a GPU context, which is constant while the context lives; NULL on the CPU. */
dpr_device *dpr_ctx_gpu(const dpr_ctx *ctx);

/* The threads of cpu.threads, as many as when the context was made: finding their number reads files of control groups.
 */
int dpr_ctx_threads(const dpr_ctx *ctx);

/* Finds the choice for a key in the cache, or makes it. The choice lives as long as the context. Errors: those of
 * dpr_choose(), and DPR_ERR_OUT_OF_MEMORY. */
dpr_status dpr_ctx_choice(dpr_ctx *ctx, dpr_key key, const dpr_choice **out);

/* Where a blocking run puts its result in host memory. `out` is NULL if the device writes the result to run->out. */
typedef struct dpr_host_result {
    void *out;
    size_t bytes;
} dpr_host_result;

/* Runs a choice of GPU strategies for run->count elements: blocking, or in run->stream if `result` is NULL. If the
 * choice does not fit the stream's SMs, makes another one for them. Sets the choice's fields of *run. */
dpr_status dpr_ctx_run(dpr_ctx *ctx, const dpr_choice *choice, dpr_run *run, const dpr_host_result *result);

/* Fails if memory at this place is another device's, or any device's and the context the CPU's. The sentence names the
 * argument. */
dpr_status dpr_ctx_reaches(const dpr_ctx *ctx, const char *argument, dpr_place place);

/* Finds the context in which dpr_reduce() works for memory at `at`, or makes it on first use. Memory of no device has
 * the CPU's context; other memory has the context for the CUDA context that dpr_device_home() finds. */
dpr_status dpr_ctx_default(const dpr_place *at, dpr_ctx **out);

/* Destroys all contexts that dpr_ctx_default() has made. */
void dpr_ctx_drop_defaults(void);

#endif
