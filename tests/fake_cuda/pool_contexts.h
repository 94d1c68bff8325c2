/* The fake devices' limits of pending launches, and contexts and plans that go by them. */
#ifndef DPR_TESTS_POOL_CONTEXTS_H
#define DPR_TESTS_POOL_CONTEXTS_H

#include "gpu_memory.h"
#include "support.h"

/* Of each device at first. */
enum { FIRST_LIMIT = 2048 };

/* As anybody may, at any time. */
static inline void set_limit_of(int device, size_t limit) {
    EXPECT_TRUE(gpu_use(device));
    EXPECT_EQ_I64(cudaSuccess, cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, limit));
    EXPECT_TRUE(gpu_use(0));
}

/* With `pending` as the context's own limit; 0: it leaves the device's alone. */
static inline dpr_status create(int device, size_t pending, dpr_ctx **out) {
    dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    options.pending_launches = pending;
    return dpr_ctx_create_ex(device, &options, out);
}

/* A sum of `count` elements of I32. */
static inline dpr_status plan_for(dpr_ctx *ctx, size_t count, const char *strategy, dpr_launch_report *report,
                                  dpr_plan **out) {
    const dpr_launch_options launch = {.size = sizeof launch, .report = report};
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    options.strategy = strategy;
    options.launch = &launch;
    problem.dtype = DPR_I32;
    problem.count = count;
    problem.options = &options;
    return dpr_plan_create(ctx, &problem, out);
}

#endif
