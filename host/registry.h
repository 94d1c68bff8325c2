/* The strategies of this build, in the order of strategies.def. */
#ifndef DPR_HOST_REGISTRY_H
#define DPR_HOST_REGISTRY_H

#include "strategy.h"

/* Array of dpr_strategy_count() entries. */
extern const dpr_strategy *const dpr_strategies[];

/* Index of the strategy called `name`, or -1. */
int dpr_strategy_find(const char *name);

#endif
