/* Wisdom by which the GPU or the CPU is the quicker one in calls that block and read pinned memory. */
#ifndef DPR_TESTS_PINNED_WISDOM_H
#define DPR_TESTS_PINNED_WISDOM_H

#include "dpr.h"
#include "support.h"

/* Adds the time of a sum by a strategy. */
static inline void pinned_learn(dpr_ctx *ctx, const char *strategy, dpr_dtype dtype, dpr_memory memory, size_t count,
                                double seconds) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    problem.op = DPR_SUM;
    problem.dtype = dtype;
    problem.count = count;
    problem.memory = memory;
    problem.options = &options;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_add(dpr_ctx_machine(ctx), &problem, 0, seconds));
}

#endif
