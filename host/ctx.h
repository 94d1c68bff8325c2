/* A context: a device, its workspaces and its plan cache. */
#ifndef DPR_HOST_CTX_H
#define DPR_HOST_CTX_H

#include "device.h"
#include "planner.h"

/* The machine and, on a GPU context, the opened device. Both are constant while the context lives. */
const dpr_machine *dpr_ctx_machine(const dpr_ctx *ctx);
dpr_device *dpr_ctx_gpu(const dpr_ctx *ctx);

/* The choice for a key, from the cache or made now. It lives as long as the context. */
dpr_status dpr_ctx_choice(dpr_ctx *ctx, dpr_key key, const dpr_choice **out);

/* The context that dpr_reduce() uses for a device (an ordinal or DPR_DEVICE_CPU), made on first use. */
dpr_status dpr_ctx_default(int device, dpr_ctx **out);

/* Destroys those. */
void dpr_ctx_drop_defaults(void);

#endif
