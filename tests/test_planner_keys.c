/* Decisions about runs of keys: one pass, or why not. */
#include <string.h>

#include "lists.h"
#include "machines.h"
#include "plan/registry.h"
#include "support.h"

/* Each reason against one pass has its own clause. */
TEST(PlannerKeys, runs_of_keys_in_one_pass_or_not) {
    typedef struct question {
        const char *refusal;
        dpr_op op;
        dpr_memory memory;
        size_t count;
        uint64_t room;
        const char *strategy;
        int block, counted;
    } question;
    static const uint64_t number;
    static const question questions[] = {
        {NULL, DPR_SUM, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, NULL, 0, 0},
        {NULL, DPR_SUM, DPR_MEMORY_AUTO, UINT32_MAX, UINT64_MAX, NULL, 0, 0},
        {"needs room for as many", DPR_SUM, DPR_MEMORY_DEVICE, 1 << 20, (1 << 20) - 1, NULL, 0, 0},
        {"fewer than 2^32", DPR_SUM, DPR_MEMORY_DEVICE, (size_t)1 << 32, UINT64_MAX, NULL, 0, 0},
        {"nothing to reduce", DPR_SUM, DPR_MEMORY_DEVICE, 0, 8, NULL, 0, 0},
        {"no kernel for this operation", DPR_ARGMAX, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, NULL, 0, 0},
        {"no kernel for this operation", DPR_MEAN, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, NULL, 0, 0},
        {"no kernel for this operation", DPR_VAR, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, NULL, 0, 0},
        {"all arrays in device memory", DPR_SUM, DPR_MEMORY_HOST, 1 << 20, 1 << 20, NULL, 0, 0},
        {"asked for by name", DPR_SUM, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, "segments.merge", 0, 0},
        {"a block size", DPR_SUM, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, NULL, 256, 0},
        {"the number of keys before the run", DPR_SUM, DPR_MEMORY_DEVICE, 1 << 20, 1 << 20, NULL, 0, 1},
    };
    dpr_machine machine;
    if (dpr_strategy_find("segments.merge") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    for (const question *q = questions; q < questions + LENGTH(questions); q++) {
        dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_decision *decision = NULL;
        const char *refusal = "none";
        char text[8192];
        size_t size = sizeof text;
        launch.block = q->block;
        options.launch = &launch;
        options.strategy = q->strategy;
        problem.op = q->op;
        problem.memory = q->memory;
        problem.count = q->count;
        problem.options = &options;
        problem.device_count = q->counted ? &number : NULL;
        problem.key_dtype = DPR_I64;
        problem.room = q->room;
        ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
        EXPECT_STATUS(DPR_OK, dpr_decision_one_pass(decision, q->count, &refusal));
        EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, q->count, text, &size));
        EXPECT_EQ_I64(q->refusal == NULL, refusal == NULL);
        if (q->refusal) {
            EXPECT_CONTAINS(refusal ? refusal : "", q->refusal);
            EXPECT_CONTAINS(text, refusal ? refusal : "");
        } else {
            EXPECT_CONTAINS(text, "strategy:  runs of keys in one pass");
        }
        dpr_decision_destroy(decision);
    }
}

/* A GPU without the copy engine, and wisdom alone, of which there is none. */
TEST(PlannerKeys, runs_of_keys_where_one_pass_has_no_kernel_or_times) {
    const dpr_keys keys = {DPR_I64, 8, NULL};
    dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_F32), .in_memory = DPR_MEMORY_DEVICE}};
    dpr_machine machine;
    if (dpr_strategy_find("segments.merge") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    EXPECT_TRUE(dpr_refuse_one_pass(&keys, &key, &machine.caps, 8) == NULL);
    key.f.effort = DPR_ESTIMATE;
    EXPECT_TRUE(dpr_refuse_one_pass(&keys, &key, &machine.caps, 8) == NULL);
    key.f.effort = DPR_MEASURE;
    EXPECT_CONTAINS(dpr_refuse_one_pass(&keys, &key, &machine.caps, 8), "no measured times");
    key.f.effort = DPR_WISDOM_ONLY;
    EXPECT_CONTAINS(dpr_refuse_one_pass(&keys, &key, &machine.caps, 8), "no measured times");
    key.f.effort = DPR_EFFORT_DEFAULT;
    machine.caps.gpu.cc_major = 8;
    EXPECT_CONTAINS(dpr_refuse_one_pass(&keys, &key, &machine.caps, 8), "compute capability 9.0");
}

/* The choice is for as many runs as there can be: the lesser of the keys and the room. Nothing is said to be reduced
 * where no run fits. */
TEST(PlannerKeys, keys_have_at_most_as_many_runs_as_fit) {
    static const struct {
        size_t count;
        uint64_t room, runs;
        const char *line;
    } cases[] = {{1 << 20, UINT64_MAX, 1 << 20, "two passes find the runs first"},
                 {1 << 20, 100, 100, "two passes find the runs first"},
                 {1 << 20, 0, 1, "one pass counts the runs, of which none fits"}};
    dpr_machine machine;
    if (dpr_strategy_find("segments.merge") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    const size_t group = (size_t)dpr_strategy_find("segments.group");
    for (size_t i = 0; i < LENGTH(cases); i++) {
        static const int64_t numbers[1];
        dpr_segments segments = DPR_SEGMENTS_INIT;
        dpr_problem by_key = DPR_PROBLEM_INIT, in_segments = DPR_PROBLEM_INIT;
        dpr_options options = DPR_OPTIONS_INIT;
        dpr_decision *decisions[2] = {NULL, NULL};
        dpr_prediction predictions[2] = {DPR_PREDICTION_INIT, DPR_PREDICTION_INIT};
        char text[8192];
        size_t size = sizeof text;
        options.strategy = "segments.group";
        by_key.options = &options;
        by_key.count = in_segments.count = cases[i].count;
        by_key.key_dtype = DPR_I32;
        by_key.room = cases[i].room;
        segments.count = cases[i].runs;
        segments.begins = numbers;
        in_segments.segments = &segments;
        ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &by_key, &decisions[0]));
        ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &in_segments, &decisions[1]));
        for (int k = 0; k < 2; k++)
            EXPECT_STATUS(DPR_OK, dpr_decision_predict(decisions[k], group, cases[i].count, &predictions[k]));
        EXPECT_TRUE(predictions[0].seconds > 0 && predictions[0].seconds == predictions[1].seconds);
        EXPECT_STATUS(DPR_OK, dpr_decision_explain(decisions[0], cases[i].count, text, &size));
        EXPECT_CONTAINS(text, cases[i].line);
        dpr_decision_destroy(decisions[0]);
        dpr_decision_destroy(decisions[1]);
    }
}

/* Calls that wait have the GPU find runs of elements in device memory alone, whatever reduces them. */
TEST(PlannerKeys, the_cpu_finds_runs_of_pinned_memory) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_decision *decision = NULL;
    dpr_machine machine;
    char text[8192];
    size_t size = sizeof text;
    if (dpr_strategy_find("segments.group") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    options.strategy = "segments.group";
    problem.options = &options;
    problem.count = 1 << 20;
    problem.memory = DPR_MEMORY_PINNED;
    problem.key_dtype = DPR_I32;
    problem.room = 1 << 20;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, 1 << 20, text, &size));
    EXPECT_CONTAINS(text,
                    "strategy:  segments.group, asked for by name\nkeys:      threads of the CPU find the runs first");
    dpr_decision_destroy(decision);
}

/* One pass takes workspace for long arrays only. The passes that find runs take 64 KiB and 8 bytes to count them, and 4
 * bytes for each run and for the end of the last one, rounded up to 8. */
TEST(PlannerKeys, explanations_by_key_have_workspace) {
    static const struct {
        size_t count;
        uint64_t room;
        const char *strategy, *line;
    } cases[] = {
        {1 << 20, 1 << 20, NULL, "\nlaunch:    8192 bytes of scratch memory, 0 bytes of workspace\n"},
        {1 << 28, 1 << 28, NULL, "\nlaunch:    8192 bytes of scratch memory, "},
        {1 << 20, 1000, NULL, "\nkeys:      two passes find the runs first, with up to 69552 bytes of workspace; one"},
        {1 << 20, UINT64_MAX, "segments.merge", " first, with up to 4259856 bytes of workspace; one pass is refused: "},
    };
    dpr_machine machine;
    if (dpr_strategy_find("segments.merge") < 0)
        SKIP("built without CUDA");
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t i = 0; i < LENGTH(cases); i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_decision *decision = NULL;
        char text[8192];
        size_t size = sizeof text;
        options.strategy = cases[i].strategy;
        problem.options = &options;
        problem.count = cases[i].count;
        problem.key_dtype = DPR_I32;
        problem.room = cases[i].room;
        ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
        EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, problem.count, text, &size));
        EXPECT_CONTAINS(text, cases[i].line);
        EXPECT_EQ_I64(i == 0, strstr(text, ", 0 bytes of workspace") != NULL);
        dpr_decision_destroy(decision);
    }
}

TEST(PlannerKeys, one_pass_is_of_keys) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    dpr_machine machine;
    const char *refusal = "none";
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    problem.count = 8;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_decision_one_pass(decision, 8, &refusal));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_one_pass(decision, 8, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_one_pass(NULL, 8, &refusal));
    EXPECT_EQ_STR("none", refusal);
    dpr_decision_destroy(decision);
    problem.key_dtype = DPR_BOOL;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(&machine, &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_decision_one_pass(decision, 8, &refusal));
    EXPECT_EQ_STR("needs a GPU", refusal);
    dpr_decision_destroy(decision);
}
