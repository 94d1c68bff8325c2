/* A strategy that no build of the library has: a candidate that needs workspace, and no scratch memory. Only in builds
 * with CUDA. */
#ifndef DPR_TESTS_WORKSPACE_STRATEGY_H
#define DPR_TESTS_WORKSPACE_STRATEGY_H

#include "strategy.h"

#ifdef __cplusplus
extern "C" {
#endif
/* "test.workspace": sums of I32. Its partial results are too many for scratch memory. */
extern const dpr_strategy test_workspace_strategy;
#ifdef __cplusplus
}
#endif

#endif
