/* Times that tests of wisdom add. */
#ifndef DPR_TESTS_WISDOM_SCENE_H
#define DPR_TESTS_WISDOM_SCENE_H

#include "lists.h"
#include "plan/registry.h"
#include "plan/wisdom.h"
#include "support.h"

static inline dpr_key sum_of_f32(void) {
    dpr_key key = {.words = {0}};
    key.f.op = DPR_ROW(DPR_SUM);
    key.f.dtype = DPR_ROW(DPR_F32);
    key.f.ops = UINT32_C(1) << key.f.op;
    key.f.in_memory = DPR_MEMORY_HOST;
    return key;
}

static inline const dpr_strategy *strategy_of(const char *name) {
    return dpr_strategies[dpr_strategy_find(name)];
}

/* Adds a time to *wisdom. */
static inline void learn_of(dpr_key key, dpr_wisdom **wisdom, const dpr_machine *machine, const char *strategy,
                            uint64_t count, double seconds) {
    dpr_wisdom *one = NULL, *joined = NULL;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_single(machine, strategy_of(strategy), &key, count, seconds, &one));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_join(*wisdom, one, &joined));
    dpr_wisdom_release(one);
    dpr_wisdom_release(*wisdom);
    *wisdom = joined;
}

static inline void learn(dpr_wisdom **wisdom, const dpr_machine *machine, const char *strategy, uint64_t count,
                         double seconds) {
    learn_of(sum_of_f32(), wisdom, machine, strategy, count, seconds);
}

#endif
