/* The planner's whole table on captured machines, and what must hold of any table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "lists.h"
#include "machines.h"
#include "plan/registry.h"
#include "planner_keys.h"
#include "support.h"
#include "wisdom_scene.h"

/* ---- Keys ---- */

/* Calls `visit` for every valid key of every place and NaN policy. */
static void for_all_keys(const dpr_machine *machine, void (*visit)(const dpr_key *, const dpr_machine *)) {
    for (size_t p = 0; p < LENGTH(places); p++)
        for (size_t o = 0; o < DPR_OP_COUNT; o++)
            for (size_t d = 0; d < DPR_DTYPE_COUNT; d++)
                for (int nan = 0; nan < 2; nan++) {
                    const dpr_op op = dpr_op_at(o);
                    const dpr_dtype dtype = dpr_dtype_at(d);
                    dpr_key key = key_of(&places[p], op, dtype);
                    key.f.nan = (uint8_t)nan;
                    if (dpr_supported(op, dtype) && !test_failed())
                        visit(&key, machine);
                }
}

static const char *describe(const dpr_key *key) {
    static char text[128];
    (void)snprintf(text, sizeof text, "%s %s in %s memory%s, NaN policy %d", dpr_op_name(dpr_key_op(key)),
                   dpr_dtype_name(dpr_key_dtype(key)), dpr_memory_name((dpr_memory)key->f.in_memory),
                   key->f.gpu_only ? " in a stream" : "", key->f.nan);
    return text;
}

static size_t count_able(const dpr_key *key, const dpr_machine *machine) {
    size_t able = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        able += dpr_refusal(dpr_strategies[i], key, &machine->caps) == NULL;
    return able;
}

/* ---- What must hold of any table ---- */

static void check_shape(const dpr_key *key, const dpr_machine *machine, const dpr_choice_step *step) {
    const dpr_launch_limits *limits = &step->limits;
    EXPECT_THAT(limits->threads >= 1 && limits->max_blocks >= 1, "%s: %s: %d blocks of %d threads", describe(key),
                step->strategy->name, limits->max_blocks, limits->threads);
    if (step->strategy->side == DPR_ON_GPU)
        EXPECT_THAT(limits->threads <= machine->caps.gpu.max_threads_per_block
                        && limits->max_blocks <= machine->caps.gpu.max_blocks_per_sm * machine->caps.gpu.sm_count
                        && limits->cluster >= 0 && limits->cluster <= 16,
                    "%s: %s does not fit the device", describe(key), step->strategy->name);
    else
        EXPECT_THAT(limits->threads <= machine->caps.cpu.threads, "%s: %s does not fit the CPU", describe(key),
                    step->strategy->name);
}

/* No strategy that can run the key is predicted to be quicker than the chosen one. */
static void check_cheapest(const dpr_key *key, const dpr_machine *machine, const dpr_choice *choice, size_t count) {
    const dpr_choice_step *step = dpr_choice_at(choice, count);
    const double cost = dpr_predict(step->strategy, key, &machine->caps, (dpr_size){count, 1});
    EXPECT_THAT(cost > 0 && cost < 1e12, "%s, count %zu: %s costs %g s", describe(key), count, step->strategy->name,
                cost);
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (!dpr_refusal(dpr_strategies[i], key, &machine->caps)) {
            const double other = dpr_predict(dpr_strategies[i], key, &machine->caps, (dpr_size){count, 1});
            EXPECT_THAT(other >= cost, "%s, count %zu: %s is chosen at %g s, but %s costs %g s", describe(key), count,
                        step->strategy->name, cost, dpr_strategies[i]->name, other);
        }
}

static void check_table(const dpr_key *key, const dpr_machine *machine) {
    dpr_choice choice;
    const dpr_status status = dpr_choose(key, machine, &choice);
    if (count_able(key, machine) == 0) {
        EXPECT_THAT(status == DPR_ERR_MEMORY_KIND, "%s: %s", describe(key), dpr_status_name(status));
        return;
    }
    ASSERT_THAT(status == DPR_OK, "%s: %s", describe(key), dpr_last_error());
    ASSERT_THAT(choice.steps >= 1 && choice.steps <= DPR_CHOICE_STEPS, "%s: %d steps", describe(key), choice.steps);
    EXPECT_THAT(dpr_key_equal(&choice.key, key), "%s: the key is not kept", describe(key));
    for (int s = 0; s < choice.steps; s++) {
        const dpr_choice_step *step = &choice.step[s];
        EXPECT_THAT(s == 0 || choice.step[s - 1].upto < step->upto, "%s: step %d does not grow", describe(key), s);
        EXPECT_THAT(s == 0 || choice.step[s - 1].strategy != step->strategy, "%s: step %d repeats", describe(key), s);
        EXPECT_THAT(dpr_refusal(step->strategy, key, &machine->caps) == NULL, "%s: a refused strategy", describe(key));
        EXPECT_THAT(dpr_choice_at(&choice, step->upto) == step, "%s: step %d is not found", describe(key), s);
        if (step->upto < SIZE_MAX) {
            EXPECT_THAT(dpr_choice_at(&choice, step->upto + 1) == step + 1, "%s: step %d", describe(key), s);
            check_cheapest(key, machine, &choice, step->upto);
            check_cheapest(key, machine, &choice, step->upto + 1);
        }
        check_shape(key, machine, step);
    }
    EXPECT_THAT(choice.step[choice.steps - 1].upto == SIZE_MAX, "%s: the last step ends", describe(key));
    for (size_t count = 1; count < (size_t)1 << 40; count = count * 3 / 2 + 1)
        check_cheapest(key, machine, &choice, count);
}

/* By name: the strategy, for every count; or the reason it was refused. */
static void check_names(const dpr_key *key, const dpr_machine *machine) {
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        dpr_key named = *key;
        dpr_choice choice;
        named.f.strategy = (uint8_t)(i + 1);
        const char *refusal = dpr_refusal(dpr_strategies[i], &named, &machine->caps);
        const dpr_status status = dpr_choose(&named, machine, &choice);
        EXPECT_EQ_I64(i, dpr_strategy_find(dpr_strategies[i]->name));
        if (refusal) {
            EXPECT_THAT(status == DPR_ERR_STRATEGY_UNABLE && refusal[0] != '\0', "%s: %s: %s", describe(key),
                        dpr_strategies[i]->name, dpr_status_name(status));
            EXPECT_CONTAINS(dpr_last_error(), refusal);
            EXPECT_CONTAINS(dpr_last_error(), dpr_strategies[i]->name);
        } else {
            EXPECT_THAT(status == DPR_OK && choice.steps == 1 && choice.step[0].upto == SIZE_MAX
                            && choice.step[0].strategy == dpr_strategies[i],
                        "%s: %s is not what is chosen", describe(key), dpr_strategies[i]->name);
        }
    }
}

static void check_explanation(const dpr_key *key, const dpr_machine *machine) {
    dpr_choice choice;
    char text[8192];
    size_t len = sizeof text;
    if (key->f.nan || dpr_choose(key, machine, &choice) != DPR_OK)
        return;
    ASSERT_STATUS(DPR_OK, dpr_explain(&choice, machine, &(dpr_run){.count = 12345}, NULL, text, &len));
    EXPECT_CONTAINS(text, "12345");
    EXPECT_CONTAINS(text, dpr_choice_at(&choice, 12345)->strategy->name);
    int left_out = 0;
    char line[64];
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const char *refusal = dpr_refusal(dpr_strategies[i], key, &machine->caps);
        if (dpr_strategies[i]->side == DPR_ON_GPU && !machine->caps.has_gpu) {
            left_out++;
            continue;
        }
        EXPECT_CONTAINS(text, dpr_strategies[i]->name);
        if (refusal)
            EXPECT_CONTAINS(text, refusal);
    }
    snprintf(line, sizeof line, "  %d more strategies run on a GPU\n", left_out);
    EXPECT_EQ_I64(left_out > 0, strstr(text, line) != NULL);
}

static double memory_rate(const dpr_strategy *strategy, const dpr_caps *caps) {
    return strategy->side == DPR_ON_GPU ? dpr_memory_rate(&caps->gpu) : dpr_host_memory_rate(&caps->cpu);
}

/* No strategy is predicted to take less time than memory takes to deliver the array. */
static void check_roof(const dpr_key *key, const dpr_machine *machine) {
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const dpr_strategy *strategy = dpr_strategies[i];
        if (dpr_refusal(strategy, key, &machine->caps))
            continue;
        for (size_t count = 1; count < (size_t)1 << 40; count *= 4) {
            const double bytes = (double)count * (double)dpr_dtype_size(dpr_key_dtype(key));
            const double seconds = dpr_predict(strategy, key, &machine->caps, (dpr_size){count, 1});
            EXPECT_THAT(bytes > 0 && seconds >= bytes / memory_rate(strategy, &machine->caps),
                        "%s, count %zu: %s at %g GB/s", describe(key), count, strategy->name, 1e-9 * bytes / seconds);
        }
    }
}

/* Every strategy that gives a result also gives a partial result, except coop.cluster, which gives none, and kernels of
 * SUM that run MEAN. */
static void check_partial(const dpr_key *key, const dpr_machine *machine) {
    dpr_key partial = *key;
    partial.f.partial = 1;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const dpr_strategy *strategy = dpr_strategies[i];
        const int gives_none = strcmp(strategy->name, "coop.cluster") == 0
                               || (key->f.op == DPR_ROW(DPR_MEAN) && !strategy->fuses && !strategy->measures),
                  able = !gives_none && !dpr_refusal(strategy, key, &machine->caps);
        EXPECT_THAT(able == !dpr_refusal(strategy, &partial, &machine->caps), "%s: %s %s a partial result",
                    describe(key), strategy->name, able ? "refuses" : "takes");
    }
    check_table(&partial, machine);
}

/* The reference is for a few elements. */
static void check_vectors(const dpr_key *key, const dpr_machine *machine) {
    dpr_choice choice;
    if (key->f.in_memory != DPR_MEMORY_HOST || key->f.gpu_only)
        return;
    ASSERT_STATUS(DPR_OK, dpr_choose(key, machine, &choice));
    EXPECT_THAT(strcmp("cpu.serial", dpr_choice_at(&choice, 64)->strategy->name) != 0, "%s", describe(key));
}

#define CHECK_ALL(ID, NAME)                                                                                            \
    TEST(Planner, table_##ID) {                                                                                        \
        dpr_machine machine;                                                                                           \
        ASSERT_TRUE(machine_load(NAME, &machine));                                                                     \
        for_all_keys(&machine, check_table);                                                                           \
    }                                                                                                                  \
    TEST(Planner, names_##ID) {                                                                                        \
        dpr_machine machine;                                                                                           \
        ASSERT_TRUE(machine_load(NAME, &machine));                                                                     \
        for_all_keys(&machine, check_names);                                                                           \
    }                                                                                                                  \
    TEST(Planner, roof_##ID) {                                                                                         \
        dpr_machine machine;                                                                                           \
        ASSERT_TRUE(machine_load(NAME, &machine));                                                                     \
        for_all_keys(&machine, check_roof);                                                                            \
    }                                                                                                                  \
    TEST(Planner, partial_results_##ID) {                                                                              \
        dpr_machine machine;                                                                                           \
        ASSERT_TRUE(machine_load(NAME, &machine));                                                                     \
        for_all_keys(&machine, check_partial);                                                                         \
    }                                                                                                                  \
    TEST(Planner, vectors_##ID) {                                                                                      \
        dpr_machine machine;                                                                                           \
        ASSERT_TRUE(machine_load(NAME, &machine));                                                                     \
        for_all_keys(&machine, check_vectors);                                                                         \
    }                                                                                                                  \
    TEST(Planner, explanation_##ID) {                                                                                  \
        dpr_machine machine;                                                                                           \
        ASSERT_TRUE(machine_load(NAME, &machine));                                                                     \
        for_all_keys(&machine, check_explanation);                                                                     \
    }
MACHINE_LIST(CHECK_ALL)

/* ---- Costs ---- */

TEST(Planner, costs_are_a_roofline) {
    const double latency = 2e-6, bytes = 3e6, memory = 1e12;
    EXPECT_NEAR_F64(5e-6, dpr_cost_seconds((dpr_cost){latency, bytes, 0}, memory), 1e-15);
    EXPECT_NEAR_F64(5e-6, dpr_cost_seconds((dpr_cost){latency, bytes, 9e12}, memory), 1e-15);
    EXPECT_NEAR_F64(8e-6, dpr_cost_seconds((dpr_cost){latency, bytes, 5e11}, memory), 1e-15);
    EXPECT_NEAR_F64(2e-6, dpr_cost_seconds((dpr_cost){latency, 0, 5e11}, memory), 1e-15);
}

static dpr_cost state_nothing(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    (void)key, (void)caps, (void)size;
    return (dpr_cost){0, 0, 0};
}

static dpr_cost state_less_than_nothing(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return (dpr_cost){-1, dpr_array_bytes(key, size), 1e3 * dpr_memory_rate(&caps->gpu)};
}

TEST(Planner, costs_that_are_too_low_do_not_count) {
    const dpr_strategy liars[] = {{.side = DPR_ON_GPU, .cost = state_nothing},
                                  {.side = DPR_ON_CPU, .cost = state_nothing},
                                  {.side = DPR_ON_GPU, .cost = state_less_than_nothing}};
    dpr_machine machine;
    ASSERT_TRUE(machine_load("rtx5060ti", &machine));
    const dpr_key key = key_of(&places[5], DPR_SUM, DPR_F32);
    for (size_t i = 0; i < LENGTH(liars); i++) {
        const double seconds = dpr_predict(&liars[i], &key, &machine.caps, (dpr_size){1 << 20, 1});
        EXPECT_NEAR_F64((1 << 22) / memory_rate(&liars[i], &machine.caps), seconds, 1e-12);
    }
}

/* ---- The decisions themselves ---- */

enum { MOST_TEXT = 1 << 20 };

static void write_decision(char *text, const dpr_key *key, const dpr_machine *machine) {
    dpr_choice choice;
    if (dpr_choose(key, machine, &choice) != DPR_OK) {
        (void)snprintf(text, 512, "nothing");
        return;
    }
    for (int s = 0; s < choice.steps; s++) {
        const dpr_choice_step *step = &choice.step[s];
        if (step->upto < SIZE_MAX)
            text += snprintf(text, 64, "%s to %zu, ", step->strategy->name, step->upto);
        else
            (void)snprintf(text, 64, "%s", step->strategy->name);
    }
}

/* The table as text, one line for the operations of a place and a type that are decided alike. */
static void write_table(char *text, const dpr_machine *machine, int host_only) {
    char decisions[DPR_OP_COUNT][1024];
    for (size_t p = 0; p < (host_only ? 1 : LENGTH(places)); p++)
        for (size_t d = 0; d < DPR_DTYPE_COUNT; d++) {
            const dpr_dtype dtype = dpr_dtype_at(d);
            int done[DPR_OP_COUNT] = {0};
            for (size_t op = 0; op < DPR_OP_COUNT; op++) {
                const dpr_key key = key_of(&places[p], dpr_op_at(op), dtype);
                done[op] = !dpr_supported(dpr_op_at(op), dtype);
                if (!done[op])
                    write_decision(decisions[op], &key, machine);
            }
            for (size_t op = 0; op < DPR_OP_COUNT; op++) {
                if (done[op])
                    continue;
                text += sprintf(text, "%s %s", places[p].name, dpr_dtype_name(dtype));
                for (size_t other = op; other < DPR_OP_COUNT; other++)
                    if (!done[other] && strcmp(decisions[op], decisions[other]) == 0) {
                        text += sprintf(text, " %s", dpr_op_name(dpr_op_at(other)));
                        done[other] = 1;
                    }
                text += sprintf(text, ": %s\n", decisions[op]);
            }
        }
}

/* Compares line by line, or, with DPR_UPDATE_EXPECTED=1 in the environment, writes the file anew for review. */
static void check_decisions(const char *name) {
    dpr_machine machine;
    static char text[MOST_TEXT];
    char path[1024];
    const char *update = getenv("DPR_UPDATE_EXPECTED");
    ASSERT_TRUE(machine_load(name, &machine));
#ifdef DPR_WITH_CUDA
    const int host_only = 0;
#else
    const int host_only = 1; /* without GPU strategies only host memory is decided as it is with them */
#endif
    write_table(text, &machine, host_only);
    (void)snprintf(path, sizeof path, "%s/%s.expect", TEST_MACHINES, name);
    if (update && strcmp(update, "1") == 0 && !host_only) {
        FILE *file = fopen(path, "wb");
        EXPECT_THAT(file && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write %s", path);
        SKIP("wrote the expected decisions instead of checking them");
    }
    char *expected = machine_file(name, ".expect");
    ASSERT_TRUE(expected != NULL);
    const char *got = text, *want = expected;
    for (int line = 1; *got && !test_failed(); line++) {
        const size_t got_length = strcspn(got, "\n"), want_length = strcspn(want, "\n");
        EXPECT_THAT(got_length == want_length && memcmp(got, want, got_length) == 0,
                    "%s.expect:%d\n  decided:  %.*s\n  expected: %.*s", name, line, (int)got_length, got,
                    (int)want_length, want);
        got += got_length + (got[got_length] == '\n');
        want += want_length + (want[want_length] == '\n');
    }
    if (!host_only)
        EXPECT_THAT(*want == '\0' || test_failed(), "%s.expect has more lines", name);
    free(expected);
}

#define CHECK_DECISIONS(ID, NAME)                                                                                      \
    TEST(Planner, decisions_##ID) {                                                                                    \
        check_decisions(NAME);                                                                                         \
    }
MACHINE_LIST(CHECK_DECISIONS)

/* What any sensible cost model gives, whatever its constants. */

static const char *decide(const dpr_machine *machine, const char *place, dpr_op op, dpr_dtype dtype, size_t count) {
    dpr_choice choice;
    for (size_t p = 0; p < LENGTH(places); p++) {
        const dpr_key key = key_of(&places[p], op, dtype);
        if (strcmp(places[p].name, place) == 0)
            return dpr_choose(&key, machine, &choice) == DPR_OK ? dpr_choice_at(&choice, count)->strategy->name : "";
    }
    return "no such place";
}

TEST(Planner, host_memory_stays_on_the_cpu) {
    const char *const names[] = {"h200", "h100", "rtx5060ti", "cc100", "cpu-only"};
    for (size_t m = 0; m < LENGTH(names); m++) {
        dpr_machine machine;
        ASSERT_TRUE(machine_load(names[m], &machine));
        EXPECT_TRUE(strcmp("cpu.threads", decide(&machine, "host", DPR_SUM, DPR_F64, 16)) != 0);
        EXPECT_EQ_STR("cpu.threads", decide(&machine, "host", DPR_SUM, DPR_F32, (size_t)1 << 28));
        EXPECT_EQ_STR("cpu.threads", decide(&machine, "pinned", DPR_SUM, DPR_F32, (size_t)1 << 28));
        EXPECT_EQ_STR("cpu.threads", decide(&machine, "host", DPR_ARGMAX, DPR_U8, (size_t)1 << 30));
    }
}

TEST(Planner, one_core_uses_no_threads) {
    dpr_machine machine;
    ASSERT_TRUE(machine_load("one-core", &machine));
    for (size_t count = 1; count < (size_t)1 << 40; count *= 2)
        EXPECT_TRUE(strcmp("cpu.threads", decide(&machine, "host", DPR_SUM, DPR_F32, count)) != 0);
}

TEST(Planner, sets_use_vectors_whatever_their_order) {
    static const dpr_op ops[] = {DPR_SUM, DPR_VAR, DPR_MIN, DPR_MAX, DPR_NORM2};
    dpr_machine machine;
    ASSERT_TRUE(machine_load("one-core", &machine));
    for (size_t first = 0; first < LENGTH(ops); first++) {
        dpr_key key = key_of(&places[0], ops[first], DPR_F64);
        dpr_choice choice;
        key.f.fused = 1;
        for (size_t i = 0; i < LENGTH(ops); i++)
            key.f.ops |= UINT32_C(1) << DPR_ROW(ops[i]);
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        EXPECT_EQ_STR("cpu.simd", dpr_choice_at(&choice, 64)->strategy->name);
    }
}

#ifdef DPR_WITH_CUDA
/* Many elements need the memory's whole bandwidth, which a few blocks never have. */
TEST(Planner, large_arrays_in_device_memory_take_most_SMs) {
    const char *const names[] = {"h200", "h100", "rtx5060ti", "cc100"};
    for (size_t m = 0; m < LENGTH(names); m++) {
        dpr_machine machine;
        ASSERT_TRUE(machine_load(names[m], &machine));
        for (size_t d = 0; d < DPR_DTYPE_COUNT; d++) {
            dpr_choice choice;
            const dpr_key key = key_of(&places[5], DPR_SUM, dpr_dtype_at(d));
            ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
            for (int shift = 24; shift < 36; shift++)
                EXPECT_TRUE(dpr_choice_at(&choice, (size_t)1 << shift)->limits.max_blocks
                            > machine.caps.gpu.sm_count * 3 / 4);
        }
    }
}

/* Of calls that block, short ones are the CPU's, which waits for nothing, and long ones go to the side that reads the
 * array faster. Many results are the CPU's. */
TEST(Planner, pinned_memory_is_read_by_the_quicker_of_gpu_and_cpu) {
    const char *const names[] = {"h200", "h100", "rtx5060ti", "cc100"};
    for (size_t m = 0; m < LENGTH(names); m++) {
        dpr_machine machine;
        dpr_choice choice;
        dpr_key key = sum_of_f32();
        key.f.in_memory = DPR_MEMORY_PINNED;
        ASSERT_TRUE(machine_load(names[m], &machine));
        for (int of_slow_cpu = 0; of_slow_cpu < 2; of_slow_cpu++) {
            if (of_slow_cpu)
                machine.caps.cpu.core_mb_per_s = machine.caps.cpu.total_mb_per_s = 10000;
            ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
            EXPECT_EQ_I64(DPR_ON_CPU, dpr_choice_at(&choice, 16)->strategy->side);
            EXPECT_EQ_I64(of_slow_cpu ? DPR_ON_GPU : DPR_ON_CPU, dpr_choice_at(&choice, 1 << 28)->strategy->side);
        }
        key.f.segments = 10;
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        for (int s = 0; s < choice.steps; s++)
            EXPECT_EQ_I64(DPR_ON_CPU, choice.step[s].strategy->side);
        EXPECT_EQ_STR("the CPU reduces segments and axes of arrays in pinned or managed memory unless a GPU strategy "
                      "is asked for",
                      dpr_refusal(strategy_of("segments.small"), &key, &machine.caps));
    }
}

TEST(Planner, lost_capabilities_are_refused_with_a_reason) {
    dpr_machine machine;
    dpr_choice choice;
    ASSERT_TRUE(machine_load("h200", &machine));
    const dpr_key key = key_of(&places[5], DPR_SUM, DPR_F32);
    machine.caps.gpu.max_threads_per_block = 32;
    machine.caps.gpu.cluster_launch = machine.caps.gpu.cooperative_launch = 0;
    machine.caps.gpu.cc_major = 7;
    machine.caps.gpu.cc_minor = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (dpr_strategies[i]->side == DPR_ON_GPU) {
            const char *refusal = dpr_refusal(dpr_strategies[i], &key, &machine.caps);
            EXPECT_THAT(refusal && refusal[0], "%s is not refused", dpr_strategies[i]->name);
        }
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_choose(&key, &machine, &choice));
    EXPECT_CONTAINS(dpr_last_error(), "no strategy can run this; flat.fused: needs blocks of 512 threads");
}

/* Operations that are FUSED (ops.def), on segments and along axes: one strategy each runs them, and the others say
 * why not. */
TEST(Planner, measures_of_many_results_have_one_strategy) {
    dpr_machine machine;
    dpr_choice choice;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t op = 0; op < DPR_OP_COUNT; op++)
        for (int strided = 0; strided < 2; strided++) {
            dpr_key key = key_of(&places[5], dpr_op_at(op), DPR_F32);
            const char *name = strided ? "axes.tiles" : "segments.group";
            if (!dpr_supported(dpr_op_at(op), DPR_F32) || !dpr_ops[op].fused_only)
                continue;
            key.f.segments = 10;
            key.f.strided = strided & 1;
            key.f.nan = DPR_NAN_IGNORE; /* else kernels of SUM run MEAN */
            EXPECT_EQ_I64(1, count_able(&key, &machine));
            ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
            EXPECT_EQ_STR(name, choice.step[0].strategy->name);
            key.f.strategy = (uint8_t)(dpr_strategy_find("segments.merge") + 1);
            EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_choose(&key, &machine, &choice));
            if (!strided)
                EXPECT_CONTAINS(dpr_last_error(),
                                "\"segments.merge\" cannot run this: has no kernels for this operation");
        }
}

/* A sum that cannot wrap, and of which all elements count, is divided by the kernels of SUM. */
TEST(Planner, means_are_run_by_what_runs_sums) {
    static const struct {
        dpr_dtype dtype;
        int by_sums[2]; /* with DPR_NAN_PROPAGATE, and with DPR_NAN_IGNORE */
    } types[] = {{DPR_F32, {1, 0}}, {DPR_F16, {1, 0}}, {DPR_C128, {1, 0}}, {DPR_U8, {1, 1}},
                 {DPR_I16, {1, 1}}, {DPR_I32, {0, 0}}, {DPR_U64, {0, 0}},  {DPR_BOOL, {1, 1}}};
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t k = 0; k < 12 * LENGTH(types); k++) {
        const int nan = (int)(k & 1), partial = (int)(k >> 1 & 1), by_sums = types[k / 12].by_sums[nan];
        dpr_key key = key_of(&places[5], DPR_ROW(DPR_SUM), types[k / 12].dtype), of_mean;
        key.f.segments = k % 12 < 4 ? 0 : 10; /* an array, its segments, or along axes */
        key.f.strided = k % 12 >= 8;
        key.f.nan = (uint8_t)nan;
        key.f.partial = partial & 1;
        of_mean = key;
        of_mean.f.op = DPR_ROW(DPR_MEAN);
        for (size_t i = 0; i < dpr_strategy_count(); i++) {
            const dpr_strategy *strategy = dpr_strategies[i];
            /* Code for means would make sums slower there, or they are there to be looked at. */
            const int without_means = strcmp(strategy->name, "coop.cluster") == 0
                                      || (strategy->role != DPR_ROLE_CANDIDATE && strategy->segmented);
            const int runs_sums = !without_means && !dpr_refusal(strategy, &key, &machine.caps);
            const int expected = runs_sums && (strategy->measures || strategy->fuses || (by_sums && !partial));
            EXPECT_THAT(expected == !dpr_refusal(strategy, &of_mean, &machine.caps), "%s: %s%s", describe(&of_mean),
                        strategy->name, expected ? " is refused" : " is not refused");
        }
    }
}

static int chooses(const dpr_choice *choice, const char *name) {
    int found = 0;
    for (int s = 0; s < choice->steps; s++)
        found += strcmp(choice->step[s].strategy->name, name) == 0;
    return found > 0;
}

TEST(Planner, clusters_write_no_partial_results) {
    const char *const names[] = {"h200", "h100", "rtx5060ti", "cc100"};
    for (size_t m = 0; m < LENGTH(names); m++) {
        dpr_machine machine;
        dpr_choice choice;
        dpr_key key = key_of(&places[5], DPR_SUM, DPR_I32);
        ASSERT_TRUE(machine_load(names[m], &machine));
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        EXPECT_THAT(chooses(&choice, "coop.cluster"), "%s: never chosen for a result", names[m]);
        key.f.partial = 1;
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        EXPECT_THAT(!chooses(&choice, "coop.cluster"), "%s: chosen for a partial result", names[m]);
        key.f.strategy = (uint8_t)(dpr_strategy_find("coop.cluster") + 1);
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_choose(&key, &machine, &choice));
        EXPECT_CONTAINS(dpr_last_error(), "write no partial results");
    }
}
#endif

TEST(Planner, without_a_gpu_nothing_reaches_device_memory) {
    dpr_machine machine;
    dpr_choice choice;
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    dpr_key key = key_of(&places[5], DPR_SUM, DPR_F32);
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_choose(&key, &machine, &choice));
    EXPECT_CONTAINS(dpr_last_error(), "device");
    key.f.block = 8;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_choose(&key, &machine, &choice));
}

TEST(Planner, same_question_same_answer) {
    dpr_machine machine;
    static char first[MOST_TEXT], again[MOST_TEXT];
    ASSERT_TRUE(machine_load("h200", &machine));
    write_table(first, &machine, 0);
    write_table(again, &machine, 0);
    EXPECT_TRUE(first[0] != '\0');
    EXPECT_EQ_STR(first, again);
}

/* The workspace that is announced is that of the problem's shape: few long rows are divided among blocks. */
TEST(Planner, explanations_along_axes_have_workspace) {
    static const uint64_t extents[] = {4, 1 << 26}, none[] = {0, 4};
    dpr_axes axes = DPR_AXES_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    dpr_machine machine;
    char text[8192];
    size_t size = sizeof text;
    if (dpr_strategy_find("axes.tiles") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    axes.dimensions = 2;
    axes.reduced = 2;
    axes.extents = extents;
    problem.axes = &axes;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, 1 << 28, text, &size));
    EXPECT_CONTAINS(text, "along axes, 4 results, in device memory");
    EXPECT_CONTAINS(text, "strategy:  axes.tiles");
    EXPECT_CONTAINS(text, " bytes of workspace\n");
    EXPECT_TRUE(!strstr(text, " 0 bytes of workspace"));
    dpr_decision_destroy(decision);
    axes.extents = none;
    size = sizeof text;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, 0, text, &size));
    EXPECT_CONTAINS(text, "along axes, 0 results, in device memory");
    dpr_decision_destroy(decision);
}

/* The workspace that a strategy's explanation announces for `count` elements in 2^20 segments, and the blocks. */
static void explain_segments(const dpr_machine *machine, const char *strategy, size_t count, int *blocks,
                             size_t *workspace) {
    static const int64_t numbers[2];
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_decision *decision = NULL;
    char text[8192];
    size_t size = sizeof text;
    *blocks = 0;
    *workspace = 0;
    segments.count = 1 << 20;
    segments.begins = numbers;
    problem.segments = &segments;
    problem.options = &options;
    options.strategy = strategy;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(machine, &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, count, text, &size));
    const char *launch = strstr(text, "launch:    up to ");
    ASSERT_TRUE(launch != NULL);
    const char *bytes = strstr(launch, " bytes of workspace\n");
    *blocks = (int)strtol(launch + strlen("launch:    up to "), NULL, 10);
    while (bytes && bytes[-1] != ' ')
        bytes--;
    *workspace = bytes ? (size_t)strtoull(bytes, NULL, 10) : 0;
    dpr_decision_destroy(decision);
}

/* As dpr_reduce_segments() states it in dpr.h. */
TEST(Planner, explanations_of_segments_have_workspace) {
    dpr_machine machine;
    int blocks;
    size_t workspace;
    if (dpr_strategy_find("segments.merge") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    explain_segments(&machine, "segments.merge", 1 << 28, &blocks, &workspace);
    EXPECT_TRUE(blocks > 0);
    EXPECT_EQ_U64(128 * (uint64_t)blocks, workspace);
    explain_segments(&machine, "segments.group", 1 << 28, &blocks, &workspace);
    EXPECT_EQ_U64(256 * (uint64_t)blocks + 96 * ((1 << 28) / (1 << 13)), workspace);
    explain_segments(&machine, "segments.group", (size_t)1 << 32, &blocks, &workspace);
    EXPECT_EQ_U64(256 * (uint64_t)blocks + (12 << 20), workspace);
    explain_segments(&machine, "segments.group", 1 << 20, &blocks, &workspace);
    EXPECT_EQ_U64(256 * (uint64_t)blocks + 96 * 1024, workspace);
    explain_segments(&machine, "segments.group", 1 << 13, &blocks, &workspace);
    EXPECT_EQ_U64(0, workspace);
    explain_segments(&machine, "segments.small", 1 << 20, &blocks, &workspace);
    EXPECT_EQ_U64(0, workspace);
}
