/* A context: a device, its workspaces and its plan cache. */
#ifndef DPR_HOST_API_CTX_H
#define DPR_HOST_API_CTX_H

#include "cuda/device.h"
#include "plan/planner.h"

/* The machine and, on a GPU context, the opened device. Both are constant while the context lives. */
const dpr_machine *dpr_ctx_machine(const dpr_ctx *ctx);
dpr_device *dpr_ctx_gpu(const dpr_ctx *ctx);

/* The choice for a key, from the cache or made now. It lives as long as the context. */
dpr_status dpr_ctx_choice(dpr_ctx *ctx, dpr_key key, const dpr_choice **out);

/* Where in host memory a blocking run puts its result; `out` is NULL if it goes to run->out, which the device reaches.
 */
typedef struct dpr_host_result {
    void *out;
    size_t bytes;
} dpr_host_result;

/* Runs a choice of GPU strategies for run->count elements: blocking, or in run->stream if `result` is NULL. If it does
 * not fit the stream's SMs, another choice is made for them. Sets the fields of *run that depend on the choice. */
dpr_status dpr_ctx_run(dpr_ctx *ctx, const dpr_choice *choice, dpr_run *run, const dpr_host_result *result);

/* The context in which dpr_reduce() works for memory at `at`, made on first use: that of the CPU for memory of no
 * device, else one of the CUDA context that dpr_device_home() finds. */
dpr_status dpr_ctx_default(const dpr_place *at, dpr_ctx **out);

/* Destroys those. */
void dpr_ctx_drop_defaults(void);

#endif
