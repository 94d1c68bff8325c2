/* Contexts with pools of pending launches on device 0, and what is left of these after runs. */
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

/* Of runs that are done none has a credit any more. */
static inline void expect_credits_back(dpr_ctx *ctx) {
    dpr_nest nest;
    uint32_t pool[3] = {UINT32_MAX}; /* taken, and of these returned (credits.cuh) */
    ASSERT_STATUS(DPR_OK, dpr_nest_create(ctx, DPR_NO_LAUNCHES, &nest));
    EXPECT_TRUE(gpu_copy(pool, nest.launcher, sizeof pool));
    EXPECT_EQ_U64(pool[0], (uint64_t)pool[1] + pool[2]);
    dpr_nest_destroy(&nest);
}

#endif
