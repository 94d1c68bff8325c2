/* What the planner makes of strategies with nested launches on captured machines: limits of depth and of pending
 * launches, and where they do not work. */
#include <string.h>

#include "error.h"
#include "lists.h"
#include "machines.h"
#include "nested_host.h"
#include "plan/registry.h"
#include "support.h"

static const char *const names[] = {"dp.tree", "dp.recursive2", "dp.nosync", "dp.recursive"};

/* Sum of I32 in device memory, in a stream. */
static dpr_key key_for(const char *strategy, int depth) {
    dpr_key key = {.words = {0}};
    key.f.op = DPR_ROW(DPR_SUM);
    key.f.dtype = DPR_ROW(DPR_I32);
    key.f.in_memory = DPR_MEMORY_DEVICE;
    key.f.gpu_only = 1;
    key.f.depth = (uint8_t)depth;
    if (strategy)
        key.f.strategy = (uint8_t)(dpr_strategy_find(strategy) + 1);
    return key;
}

static const dpr_strategy *strategy_of(const char *name) {
    const int i = dpr_strategy_find(name);
    return i < 0 ? NULL : dpr_strategies[i];
}

#define NEED_NESTED()                                                                                                  \
    do {                                                                                                               \
        if (!strategy_of(names[0]))                                                                                    \
            SKIP("built without CUDA");                                                                                \
    } while (0)

static void expect_refusals(const dpr_machine *machine, const char *reason) {
    for (size_t i = 0; i < LENGTH(names); i++) {
        dpr_choice choice;
        const dpr_key named = key_for(names[i], 0), any = key_for(NULL, 0);
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_choose(&named, machine, &choice));
        EXPECT_CONTAINS(dpr_last_error(), reason);
        EXPECT_CONTAINS(dpr_last_error(), names[i]);
        EXPECT_STATUS(DPR_OK, dpr_choose(&any, machine, &choice));
    }
}

TEST(PlannerNested, where_kernels_cannot_launch_others_are_chosen) {
    dpr_machine machine;
    NEED_NESTED();
    ASSERT_TRUE(machine_load("h200", &machine));
    machine.caps.gpu.mps = 1;
    expect_refusals(&machine, "MPS");
    machine.caps.gpu.mps = 0;
    machine.caps.gpu.memory_pools = 0;
    expect_refusals(&machine, "stream order");
}

/* Unless a strategy is named its code and pool may take a 64th of the device's memory: here, of 16 GiB. */
TEST(PlannerNested, memory_is_taken_for_those_who_ask_or_where_it_is_little) {
    const int64_t share = ((int64_t)16 << 30) / 64;
    dpr_machine machine;
    NEED_NESTED();
    ASSERT_TRUE(machine_load("rtx5060ti", &machine));
    EXPECT_TRUE(machine.caps.gpu.nested_bytes <= share);
    for (size_t i = 0; i < LENGTH(names); i++)
        for (int over = 0; over <= 1; over++) {
            const dpr_key named = key_for(names[i], 0), any = key_for(NULL, 0);
            machine.caps.gpu.nested_bytes = share + over;
            EXPECT_TRUE(dpr_refusal(strategy_of(names[i]), &named, &machine.caps) == NULL);
            const char *refusal = dpr_refusal(strategy_of(names[i]), &any, &machine.caps);
            EXPECT_TRUE((refusal != NULL) == over);
            if (refusal)
                EXPECT_CONTAINS(refusal, "a 64th of the device's memory");
        }
}

TEST(PlannerNested, the_limit_of_depth_is_the_callers_or_the_machines) {
    dpr_machine machine;
    NEED_NESTED();
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t i = 0; i < LENGTH(names); i++)
        for (int depth = 0; depth <= 24; depth++) {
            dpr_choice choice;
            const dpr_key key = key_for(names[i], depth);
            machine.caps.gpu.nesting_depth = 9;
            ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
            EXPECT_EQ_I64(depth ? depth : 9, choice.step[0].limits.max_depth);
        }
}

/* In the forms of the literature each level is a launch, and where depth is short there are fewer. The tree launches as
 * many levels as take the least time, of those that there may be. */
TEST(PlannerNested, depth_costs_launches_or_spares_time) {
    dpr_machine machine;
    NEED_NESTED();
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t i = 0; i < LENGTH(names); i++) {
        double before = 0;
        for (int depth = 1; depth <= 24; depth++) {
            const dpr_key key = key_for(names[i], depth);
            const double seconds = dpr_predict(strategy_of(names[i]), &key, &machine.caps, (dpr_size){1 << 30, 1});
            const int as_expected = strcmp(names[i], "dp.tree") == 0 ? seconds <= before : seconds >= before;
            EXPECT_THAT(depth == 1 || as_expected, "%s, depth %d: %g us, and %g before", names[i], depth, 1e6 * seconds,
                        1e6 * before);
            before = seconds;
        }
    }
}

/* Predicted seconds for `count` elements where `pool` launches may be pending. */
static double seconds_with_pool(const char *name, int64_t pool, size_t count) {
    dpr_machine machine;
    const dpr_key key = key_for(name, 0);
    if (!EXPECT_TRUE(machine_load("h200", &machine)))
        return 0;
    dpr_nested_assume(&machine.caps.gpu, pool);
    return dpr_predict(strategy_of(name), &key, &machine.caps, (dpr_size){count, 1});
}

/* Whether each tile launches for itself. */
static int is_apart(const char *name) {
    return strcmp(name, "dp.nosync") == 0 || strcmp(name, "dp.recursive") == 0;
}

/* It takes memory, makes the tree's tail launches slower, and lets tiles launch that would else be done in line, which
 * is quicker. What dp.recursive2 launches takes no longer. */
TEST(PlannerNested, a_larger_pool_costs_memory_and_time) {
    static const size_t counts[] = {1 << 24, 1 << 30};
    NEED_NESTED();
    for (size_t i = 0; i < LENGTH(names); i++)
        for (size_t c = 0; c < LENGTH(counts); c++) {
            double before = 0;
            for (int64_t pool = 64; pool <= 65536; pool *= 4) {
                const double seconds = seconds_with_pool(names[i], pool, counts[c]);
                const int alike = strcmp(names[i], "dp.recursive2") == 0;
                EXPECT_THAT(pool == 64 || (alike ? seconds == before : seconds > before),
                            "%s, %zu elements, pool of %lld: %g us, and %g before", names[i], counts[c],
                            (long long)pool, 1e6 * seconds, 1e6 * before);
                before = seconds;
            }
        }
}

/* Each of a machine's own measurements counts where it is of something that the form does. */
TEST(PlannerNested, predictions_follow_what_was_measured) {
    enum { LEVEL, TAIL, FIRST, FAN, COSTS };
    NEED_NESTED();
    for (size_t i = 0; i < LENGTH(names); i++)
        for (int cost = 0; cost < COSTS; cost++) {
            dpr_machine machine;
            const dpr_key key = key_for(names[i], 0);
            const int is_tree = strcmp(names[i], "dp.tree") == 0;
            ASSERT_TRUE(machine_load("h200", &machine));
            dpr_gpu_caps *gpu = &machine.caps.gpu;
            int64_t *const costs[COSTS] = {[LEVEL] = &gpu->nested_level_ns,
                                           [TAIL] = &gpu->nested_tail_ns,
                                           [FIRST] = &gpu->nested_first_ns,
                                           [FAN] = &gpu->nested_fan_ns};
            const double before = dpr_predict(strategy_of(names[i]), &key, &machine.caps, (dpr_size){1 << 24, 1});
            *costs[cost] += 1000;
            const double more =
                dpr_predict(strategy_of(names[i]), &key, &machine.caps, (dpr_size){1 << 24, 1}) - before;
            const int counts = cost == FIRST || (cost == FAN ? is_apart(names[i]) : (cost == TAIL) == is_tree);
            EXPECT_THAT(counts ? more > 0.99e-6 : more == 0, "%s: 1 us more of cost %d makes it %g us more", names[i],
                        cost, 1e6 * more);
        }
}

/* 2^30 words: where launches take longer, one level in place of two; and the same where they differ by little. */
TEST(PlannerNested, the_tree_is_flatter_where_launches_take_longer) {
    static const struct {
        int64_t tail_ns;
        const char *levels;
    } cases[] = {{9000, "and 2 levels of"},
                 {14600, "and 2 levels of"},
                 {30000, "and 2 levels of"},
                 {40000, "and 1 level of"},
                 {100000, "and 1 level of"}};
    NEED_NESTED();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        dpr_machine machine;
        dpr_choice choice;
        char text[8192];
        size_t size = sizeof text;
        const dpr_key key = key_for("dp.tree", 0);
        ASSERT_TRUE(machine_load("h200", &machine));
        machine.caps.gpu.nested_tail_ns = cases[i].tail_ns;
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        EXPECT_STATUS(DPR_OK, dpr_explain(&choice, &machine, &(dpr_run){.count = 1 << 30}, NULL, text, &size));
        EXPECT_CONTAINS(text, cases[i].levels);
    }
}

/* ---- Measuring ---- */

typedef struct gauge {
    int asked, measured;
    dpr_status status;
} gauge;

static dpr_status tell_costs(void *user, int measure, dpr_gpu_caps *gpu) {
    gauge *g = user;
    g->asked++;
    g->measured |= measure;
    if (g->measured) {
        gpu->nested_tail_ns = 40000;
        gpu->nested_times_measured = 1;
    }
    return g->status == DPR_OK ? DPR_OK : dpr_fail(g->status, "the gauge is broken");
}

TEST(PlannerNested, costs_are_measured_for_those_who_name_a_strategy) {
    gauge g = {.status = DPR_OK};
    dpr_machine machine;
    dpr_choice choice;
    const dpr_key any = key_for(NULL, 0), flat = key_for("flat.ticket", 0), tree = key_for("dp.tree", 0);
    NEED_NESTED();
    ASSERT_TRUE(machine_load("h200", &machine));
    machine.nested_costs = tell_costs;
    machine.user = &g;
    EXPECT_STATUS(DPR_OK, dpr_choose(&any, &machine, &choice));
    EXPECT_STATUS(DPR_OK, dpr_choose(&flat, &machine, &choice));
    EXPECT_EQ_I64(0, g.measured);
    EXPECT_EQ_I64(2, g.asked); /* for what is known */
    EXPECT_STATUS(DPR_OK, dpr_choose(&tree, &machine, &choice));
    EXPECT_EQ_I64(1, g.measured);
    EXPECT_NEAR_F64(40e-6, choice.step[0].limits.launch_seconds, 1e-12);
    EXPECT_EQ_I64(1, choice.step[0].limits.measured);
    g = (gauge){.status = DPR_ERR_CUDA};
    EXPECT_STATUS(DPR_ERR_CUDA, dpr_choose(&tree, &machine, &choice));
    EXPECT_CONTAINS(dpr_last_error(), "the gauge is broken");
}

TEST(PlannerNested, nothing_is_measured_where_nested_launches_do_not_work) {
    gauge g = {.status = DPR_OK};
    dpr_machine machine;
    NEED_NESTED();
    ASSERT_TRUE(machine_load("h200", &machine));
    machine.nested_costs = tell_costs;
    machine.user = &g;
    machine.caps.gpu.mps = 1;
    expect_refusals(&machine, "MPS");
    EXPECT_EQ_I64(0, g.measured);
}

/* One leaf; leaves and one node; leaves and two levels above. */
TEST(PlannerNested, the_tree_pays_for_each_level_above_its_leaves) {
    static const size_t counts[] = {1 << 10, 1 << 20, 1 << 30};
    const dpr_key key = key_for("dp.tree", 0);
    NEED_NESTED();
    for (size_t levels = 0; levels < LENGTH(counts); levels++) {
        dpr_machine machine;
        ASSERT_TRUE(machine_load("h200", &machine));
        const double before = dpr_predict(strategy_of("dp.tree"), &key, &machine.caps, (dpr_size){counts[levels], 1});
        machine.caps.gpu.nested_tail_ns += 1000;
        EXPECT_NEAR_F64(
            1e-6 * (double)levels,
            dpr_predict(strategy_of("dp.tree"), &key, &machine.caps, (dpr_size){counts[levels], 1}) - before, 1e-9);
    }
}

static void expect_no_nested_launches(const dpr_key *key, const dpr_machine *machine, const char *name) {
    dpr_choice choice;
    ASSERT_STATUS(DPR_OK, dpr_choose(key, machine, &choice));
    for (int s = 0; s < choice.steps; s++)
        EXPECT_THAT(choice.step[s].strategy->role != DPR_ROLE_NESTED,
                    "%s of %s on %s, log2 of the block %d: %s up to %zu", dpr_ops[key->f.op].name,
                    dpr_dtypes[key->f.dtype].name, name, key->f.block, choice.step[s].strategy->name,
                    choice.step[s].upto);
}

/* For a flat reduction they cannot win, whatever the machine; also where a block size leaves demonstrations alone. */
TEST(PlannerNested, nothing_is_left_to_nested_launches) {
    static const char *const machines[] = {"h200", "h100", "cc100", "rtx5060ti"};
    static const dpr_op ops[] = {DPR_SUM, DPR_MIN, DPR_MAX};
    static const dpr_dtype dtypes[] = {DPR_I32, DPR_F64};
    enum { PAIRS = LENGTH(ops) * LENGTH(dtypes), SMALLEST = 5, LARGEST = 10 };
    NEED_NESTED();
    for (size_t m = 0; m < LENGTH(machines); m++) {
        dpr_machine machine;
        ASSERT_TRUE(machine_load(machines[m], &machine));
        for (size_t pair = 0; pair < PAIRS; pair++) {
            dpr_key key = key_for(NULL, 0);
            key.f.op = DPR_ROW(ops[pair / LENGTH(dtypes)]);
            key.f.dtype = DPR_ROW(dtypes[pair % LENGTH(dtypes)]);
            expect_no_nested_launches(&key, &machine, machines[m]);
            for (key.f.block = SMALLEST; key.f.block <= LARGEST; key.f.block++)
                expect_no_nested_launches(&key, &machine, machines[m]);
        }
    }
}

static void explain_on(const char *name, const char *strategy, int depth, int pending, size_t count, char *text,
                       size_t size) {
    dpr_machine machine;
    dpr_choice choice;
    const dpr_key key = key_for(strategy, depth);
    ASSERT_TRUE(machine_load(name, &machine));
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    EXPECT_STATUS(
        DPR_OK, dpr_explain(&choice, &machine, &(dpr_run){.count = count, .max_pending = pending}, NULL, text, &size));
}

static void explain(const char *strategy, int depth, int pending, size_t count, char *text, size_t size) {
    explain_on("h200", strategy, depth, pending, count, text, size);
}

TEST(PlannerNested, plans_say_what_it_costs_and_how_that_is_known) {
    char text[8192];
    NEED_NESTED();
    explain_on("h200", "dp.recursive2", 0, 0, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(
        text, "costs:     10.8 us a level of launches (measured), 106 MiB of memory for code and pool (measured)\n");
    explain_on("rtx5060ti", "dp.recursive2", 0, 0, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(text,
                    "costs:     11 us a level of launches (assumed), 106 MiB of memory for code and pool (assumed)\n");
    explain_on("rtx5060ti", "dp.tree", 0, 0, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(text, "costs:     14.6 us a level of launches (assumed), ");
}

TEST(PlannerNested, plans_say_what_will_be_launched) {
    char text[8192];
    NEED_NESTED();
    explain("dp.tree", 0, 0, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(text, "1024 leaves of 64 KiB, and 1 level of up to 1024 children a node above, a launch each");
    EXPECT_CONTAINS(text, "24 launches deep; at most 2048 launches, and the device's pool holds 2048\n");
    explain("dp.tree", 0, 17, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(text, "24 launches deep; at most 17 launches (asked for), and the device's pool holds 2048\n");
    explain("dp.tree", 0, 2049, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(text, "at most 2048 launches, and the device's pool holds 2048\n");
    explain("dp.tree", 0, DPR_NO_LAUNCHES, 1 << 24, text, sizeof text);
    EXPECT_CONTAINS(text, "at most 0 launches (asked for), and");
    explain("dp.tree", 0, 0, 100, text, sizeof text);
    EXPECT_CONTAINS(text, "one leaf, and no launches");
    explain("dp.recursive2", 3, 0, 1 << 20, text, sizeof text);
    EXPECT_CONTAINS(text, "2048 tiles of up to 512 words, 3 levels of launches, one for all tiles; 5 further halvings");
    EXPECT_CONTAINS(text, "3 launches deep (asked for)");
    explain("dp.nosync", 0, 0, 512, text, sizeof text);
    EXPECT_CONTAINS(text, "1 tile of up to 512 words, 8 levels of launches, one for each tile; 0 further halvings");
    explain("flat.ticket", 0, 0, 512, text, sizeof text);
    EXPECT_TRUE(strstr(text, "nesting:") == NULL);
}
