/* Contexts with pools of pending launches on device 0. */
#ifndef DPR_TESTS_GPU_POOLS_H
#define DPR_TESTS_GPU_POOLS_H

#include "gpu_memory.h"
#include "support.h"

/* A context that sets the pool's size, which is in force for all. */
static inline dpr_ctx *context_of(size_t pool) {
    dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    dpr_ctx *ctx = NULL;
    options.pending_launches = pool;
    return EXPECT_STATUS(DPR_OK, dpr_ctx_create_ex(0, &options, &ctx)) ? ctx : NULL;
}

#endif
