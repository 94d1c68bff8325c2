/* Block sizes that callers choose, on a captured machine: which strategies take them, and for which pairs. In builds
 * with CUDA. */
#include <string.h>

#include "lists.h"
#include "machines.h"
#include "plan/registry.h"
#include "planner_keys.h"
#include "support.h"

/* 1 + log2 of a number of segments, as in dpr_key. */
enum { SOME_SEGMENTS = 10 };

static dpr_key block_key(dpr_op op, int block) {
    dpr_key key = key_of(&places[5], op, DPR_I32);
    key.f.block = (uint8_t)block;
    return key;
}

static void check_block_by_name(const dpr_machine *machine, size_t strategy, int block) {
    dpr_choice choice;
    dpr_key key = block_key(DPR_SUM, block);
    key.f.strategy = (uint8_t)(strategy + 1);
    key.f.segments = dpr_strategies[strategy]->segmented ? SOME_SEGMENTS : 0;
    const dpr_status status = dpr_choose(&key, machine, &choice);
    if (!dpr_strategies[strategy]->takes_block) {
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, status);
    } else if (EXPECT_STATUS(DPR_OK, status)) {
        const int pairs = strcmp(dpr_strategies[strategy]->name, "dp.recursive2") == 0; /* of words, each a thread's */
        const int threads = pairs && block > 5 ? 1 << (block - 1) : 1 << block;
        EXPECT_EQ_I64(threads, choice.step[0].limits.threads);
        EXPECT_EQ_I64(threads, dpr_strategies[strategy]->kernel(&key).threads);
    }
}

TEST(Planner, a_block_size_leaves_those_that_take_it) {
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (int block = 5; block <= 10; block++) {
        dpr_choice choice;
        const dpr_key sum = block_key(DPR_SUM, block), argmax = block_key(DPR_ARGMAX, block);
        for (int of_segments = 0; of_segments < 2; of_segments++) {
            dpr_key key = sum;
            key.f.segments = of_segments ? SOME_SEGMENTS : 0;
            ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
            for (int s = 0; s < choice.steps; s++) {
                EXPECT_TRUE(choice.step[s].strategy->takes_block);
                EXPECT_EQ_I64(of_segments, choice.step[s].strategy->segmented);
                EXPECT_EQ_I64(1 << block, choice.step[s].limits.threads);
            }
        }
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_choose(&argmax, &machine, &choice));
        EXPECT_CONTAINS(dpr_last_error(), "options->launch->block");
        for (size_t i = 0; i < dpr_strategy_count(); i++)
            check_block_by_name(&machine, i, block);
    }
}

static size_t pairs_taken(const dpr_strategy *strategy, const dpr_machine *machine) {
    size_t taken = 0;
    for (size_t o = 0; o < DPR_OP_COUNT; o++)
        for (size_t d = 0; d < DPR_DTYPE_COUNT; d++) {
            const dpr_op op = dpr_op_at(o);
            const dpr_dtype dtype = dpr_dtype_at(d);
            dpr_key key = key_of(&places[5], op, dtype);
            key.f.segments = strategy->segmented ? SOME_SEGMENTS : 0;
            taken += dpr_supported(op, dtype) && !dpr_refusal(strategy, &key, &machine->caps);
        }
    return taken;
}

/* Demonstrations take sums, minima and maxima of four types, some of them of segments alone, and the others means of
 * floats, too. atomic.* takes no sums of floats, and coop.tile also takes three operations on the bits of integers. A
 * family that refused its pairs would pass the tests that skip what is refused, so here they are counted. */
TEST(Planner, demonstrations_take_their_pairs) {
    const struct {
        const char *family; /* what their names begin with */
        size_t strategies, pairs;
    } of[] = {{"ladder.", 9, 14},         {"atomic.", 5, 10},       {"coop.tile", 1, 26},
              {"coop.async", 1, 14},      {"dp.recursive", 2, 14},  {"dp.nosync", 1, 14},
              {"segments.thread", 1, 12}, {"segments.warp", 1, 12}, {"segments.block", 1, 12},
              {"segments.split", 1, 12},  {"segments.bins", 1, 12}};
    size_t seen[LENGTH(of)] = {0}, of_families = 0, all = 0;
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        all += dpr_strategies[i]->takes_block != 0;
        for (size_t f = 0; f < LENGTH(of); f++)
            if (strncmp(dpr_strategies[i]->name, of[f].family, strlen(of[f].family)) == 0) {
                EXPECT_THAT(pairs_taken(dpr_strategies[i], &machine) == of[f].pairs, "%s takes %zu pairs, not %zu",
                            dpr_strategies[i]->name, pairs_taken(dpr_strategies[i], &machine), of[f].pairs);
                seen[f]++;
            }
    }
    for (size_t f = 0; f < LENGTH(of); f++) {
        EXPECT_THAT(seen[f] == of[f].strategies, "%zu strategies are %s*, not %zu", seen[f], of[f].family,
                    of[f].strategies);
        of_families += seen[f];
    }
    EXPECT_EQ_U64(of_families, all);
}

/* What demonstrations for segments say of keys that they do not run. */
TEST(Planner, demonstrations_of_segments_refuse) {
    static const char *const names[] = {"segments.thread", "segments.warp", "segments.block",
                                        "segments.split",  "segments.bins", "dp.segments"};
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t i = 0; i < LENGTH(names); i++) {
        const int found = dpr_strategy_find(names[i]);
        dpr_key key = key_of(&places[5], DPR_MAX, DPR_F32);
        ASSERT_TRUE(found >= 0);
        key.f.strategy = (uint8_t)(found + 1);
        EXPECT_EQ_STR("reduces segments alone", dpr_refusal(dpr_strategies[found], &key, &machine.caps));
        key.f.segments = SOME_SEGMENTS;
        EXPECT_TRUE(dpr_refusal(dpr_strategies[found], &key, &machine.caps) == NULL);
        key.f.ranges = 1;
        EXPECT_TRUE(dpr_refusal(dpr_strategies[found], &key, &machine.caps) == NULL);
        key.f.partial = 1;
        EXPECT_EQ_STR("writes no partial results", dpr_refusal(dpr_strategies[found], &key, &machine.caps));
        key = key_of(&places[5], DPR_ARGMAX, DPR_F32);
        key.f.segments = SOME_SEGMENTS;
        EXPECT_EQ_STR("it is there to show sums, minima and maxima of i32, i64, f32 and f64",
                      dpr_refusal(dpr_strategies[found], &key, &machine.caps));
        key = key_of(&places[5], DPR_VAR, DPR_F32);
        key.f.segments = SOME_SEGMENTS;
        EXPECT_EQ_STR("has no kernels for this operation", dpr_refusal(dpr_strategies[found], &key, &machine.caps));
    }
}

/* The planner chooses a demonstration of segments only if the caller names it, and refuses one that needs workspace
 * where the device has no memory pools. */
TEST(Planner, demonstrations_of_segments_are_chosen_by_name) {
    dpr_machine machine;
    dpr_choice choice;
    dpr_key key = key_of(&places[5], DPR_SUM, DPR_I32);
    key.f.segments = SOME_SEGMENTS;
    ASSERT_TRUE(machine_load("h200", &machine));
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    for (int s = 0; s < choice.steps; s++)
        EXPECT_EQ_I64(DPR_ROLE_CANDIDATE, choice.step[s].strategy->role);
    machine.caps.gpu.memory_pools = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const dpr_strategy *strategy = dpr_strategies[i];
        if (!strategy->segmented || strategy->role == DPR_ROLE_CANDIDATE)
            continue;
        key.f.strategy = (uint8_t)(i + 1);
        EXPECT_STATUS(strategy->workspace_bytes ? DPR_ERR_STRATEGY_UNABLE : DPR_OK,
                      dpr_choose(&key, &machine, &choice));
    }
}

/* Compute capability 7.5 has 64 KiB, for what a kernel has of its own too. */
TEST(Planner, blocks_whose_stages_do_not_fit_are_refused) {
    dpr_machine machine;
    dpr_choice choice;
    dpr_key key = block_key(DPR_SUM, 10);
    ASSERT_TRUE(machine_load("h200", &machine));
    machine.caps.gpu.shared_per_block_optin = 64 * 1024;
    key.f.strategy = (uint8_t)(dpr_strategy_find("coop.async") + 1);
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_choose(&key, &machine, &choice));
    EXPECT_CONTAINS(dpr_last_error(), "shared memory");
    key.f.block = 9;
    EXPECT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
}
