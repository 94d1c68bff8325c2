/* The strategies of this build, in the order of strategies.def. */
#ifndef DPR_HOST_PLAN_REGISTRY_H
#define DPR_HOST_PLAN_REGISTRY_H

#include "cuda/hook.h"
#include "strategies.def"
#include "strategy.h"

#define DPR_STRATEGY_ONE(id) +1
#define DPR_STRATEGY_NONE(id)
#ifdef DPR_WITH_CUDA
enum { DPR_STRATEGY_COUNT = 0 DPR_STRATEGY_LIST(DPR_STRATEGY_ONE, DPR_STRATEGY_ONE) };
#else
enum { DPR_STRATEGY_COUNT = 0 DPR_STRATEGY_LIST(DPR_STRATEGY_ONE, DPR_STRATEGY_NONE) };
#endif
#undef DPR_STRATEGY_ONE
#undef DPR_STRATEGY_NONE

extern const dpr_strategy *const dpr_strategies[DPR_STRATEGY_COUNT];

/* Index of the strategy called `name`, or -1. */
int dpr_strategy_find(const char *name);

/* Index of the strategy, which is in the registry. */
size_t dpr_strategy_index(const dpr_strategy *strategy);

/* DPR_OK, or DPR_ERR_UNKNOWN_STRATEGY if there is no strategy i. */
dpr_status dpr_strategy_check(size_t i);

/* What dpr_device_open() needs of this build; all NULL in a build without CUDA. */
extern const dpr_build dpr_this_build;

/* Length of the longest name in characters: the width of a table's column of strategies. */
int dpr_strategy_width(void);

#endif
