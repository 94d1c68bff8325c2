/* What the library tells of itself and of machines, as a program asks for it. */
#include <stdlib.h>
#include <string.h>

#include "machines.h"
#include "reference.h"
#include "support.h"

/* ---- Operations and types ---- */

TEST(Describe, every_operation) {
    dpr_op_info info = DPR_OP_INFO_INIT;
    for (size_t i = 0; i < dpr_op_count(); i++) {
        EXPECT_STATUS(DPR_OK, dpr_op_describe(dpr_op_at(i), &info));
        EXPECT_EQ_U64(DPR_SUM + i, dpr_op_at(i));
        EXPECT_EQ_U64(sizeof info, info.size);
        EXPECT_TRUE(strncmp(info.id, "DPR_", 4) == 0 && strlen(info.text) > 5);
    }
    EXPECT_EQ_I64(DPR_MINMAX, dpr_op_at(dpr_op_count() - 1));
    EXPECT_EQ_I64(DPR_OP_NONE, dpr_op_at(dpr_op_count()));
    EXPECT_STATUS(DPR_OK, dpr_op_describe(DPR_ARGMIN, &info));
    EXPECT_EQ_STR("DPR_ARGMIN", info.id);
    EXPECT_EQ_STR("all but complex", info.types);
    EXPECT_EQ_STR("i64", info.result);
    EXPECT_STATUS(DPR_OK, dpr_op_describe(DPR_BXOR, &info));
    EXPECT_EQ_STR("bool and integers", info.types);
    EXPECT_EQ_STR("the elements' type", info.result);
}

TEST(Describe, every_type) {
    dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
    for (size_t i = 0; i < dpr_dtype_count(); i++) {
        const dpr_dtype dtype = dpr_dtype_at(i);
        EXPECT_STATUS(DPR_OK, dpr_dtype_describe(dtype, &info));
        EXPECT_EQ_U64(DPR_BOOL + i, dtype);
        EXPECT_EQ_U64(sizeof info, info.size);
        EXPECT_TRUE(strncmp(info.id, "DPR_", 4) == 0 && strlen(info.text) > 5);
        EXPECT_EQ_I64(ref_is_complex(dtype), info.kind == DPR_KIND_COMPLEX);
        EXPECT_EQ_I64(ref_is_float(dtype), info.kind == DPR_KIND_FLOAT);
    }
    EXPECT_EQ_I64(DPR_C128, dpr_dtype_at(dpr_dtype_count() - 1));
    EXPECT_EQ_I64(DPR_DTYPE_NONE, dpr_dtype_at(dpr_dtype_count()));
    EXPECT_STATUS(DPR_OK, dpr_dtype_describe(DPR_U16, &info));
    EXPECT_EQ_STR("DPR_U16", info.id);
    EXPECT_EQ_STR("u2", info.npy);
    EXPECT_EQ_I64(DPR_KIND_UINT, info.kind);
    EXPECT_STATUS(DPR_OK, dpr_dtype_describe(DPR_BF16, &info));
    EXPECT_EQ_STR("", info.npy);
}

TEST(Describe, what_is_no_operation_or_type) {
    dpr_op_info op = DPR_OP_INFO_INIT, small_op = DPR_OP_INFO_INIT;
    dpr_dtype_info dtype = DPR_DTYPE_INFO_INIT;
    EXPECT_STATUS(DPR_ERR_INVALID_OP, dpr_op_describe((dpr_op)-1, &op));
    EXPECT_EQ_STR("op is -1, which is no dpr_op", dpr_last_error());
    EXPECT_TRUE(op.id == NULL);
    EXPECT_STATUS(DPR_ERR_INVALID_DTYPE, dpr_dtype_describe((dpr_dtype)99, &dtype));
    EXPECT_EQ_STR("dtype is 99, which is no dpr_dtype", dpr_last_error());
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_op_describe(DPR_SUM, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_dtype_describe(DPR_F32, NULL));
    small_op.size--;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_op_describe(DPR_SUM, &small_op));
    EXPECT_CONTAINS(dpr_last_error(), "start from DPR_OP_INFO_INIT");
    dtype.size = 0;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_dtype_describe(DPR_F32, &dtype));
}

TEST(Describe, a_larger_struct_of_a_later_version) {
    struct {
        dpr_op_info known;
        uint64_t later;
    } info = {DPR_OP_INFO_INIT, 77};
    info.known.size = sizeof info;
    EXPECT_STATUS(DPR_OK, dpr_op_describe(DPR_SUM, &info.known));
    EXPECT_EQ_U64(sizeof info, info.known.size);
    EXPECT_EQ_U64(77, info.later);
}

/* ---- Machines ---- */

typedef struct scene {
    dpr_ctx *ctx;
    dpr_machine *captured; /* an H200 */
} scene;

static void scene_setup(void *state) {
    scene *s = state;
    char *text = machine_file("h200", ".caps");
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->ctx));
    EXPECT_STATUS(DPR_OK, dpr_machine_parse(text ? text : "", &s->captured));
    free(text);
}

static void scene_teardown(void *state) {
    scene *s = state;
    dpr_machine_destroy(s->captured);
    dpr_ctx_destroy(s->ctx);
}

#define DESCRIBE_TEST(NAME) TEST_FIXTURE(Describe, NAME, scene, scene_setup, scene_teardown)

/* The value of a capability; -2 if the machine lacks it. */
static int64_t value_of(const dpr_machine *machine, const char *key) {
    dpr_capability c = DPR_CAPABILITY_INIT;
    for (size_t i = 0; dpr_machine_capability(machine, i, &c) == DPR_OK; i++)
        if (strcmp(c.key, key) == 0)
            return c.value;
    return -2;
}

DESCRIBE_TEST(a_captured_machine) {
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    EXPECT_STATUS(DPR_OK, dpr_machine_describe(fixture->captured, &info));
    EXPECT_EQ_STR("NVIDIA H200", info.gpu_name);
    EXPECT_EQ_STR("", info.pci);
    EXPECT_EQ_I64(value_of(fixture->captured, "gpu.numa_node"), info.near_node);
    EXPECT_EQ_I64(132, value_of(fixture->captured, "gpu.sm_count"));
    EXPECT_EQ_I64(152000, value_of(fixture->captured, "cpu.total_mb_per_s"));
    EXPECT_EQ_I64(-2, value_of(fixture->captured, "sm_count"));
}

DESCRIBE_TEST(the_machine_of_a_context) {
    const dpr_machine *machine = dpr_ctx_machine(fixture->ctx);
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    EXPECT_STATUS(DPR_OK, dpr_machine_describe(machine, &info));
    EXPECT_TRUE(strlen(info.cpu_name) > 0 && info.gpu_name == NULL && info.near_node == -1);
    EXPECT_TRUE(value_of(machine, "cpu.cores") > 0);
    EXPECT_EQ_I64(-2, value_of(machine, "gpu.sm_count"));
    EXPECT_TRUE(dpr_ctx_machine(NULL) == NULL);
}

TEST(Describe, this_computer) {
    dpr_machine *machine = NULL, *same = NULL;
    dpr_node_info node = DPR_NODE_INFO_INIT;
    char text[8192];
    size_t len = sizeof text, nodes = 0;
    int64_t cores = 0;
    ASSERT_STATUS(DPR_OK, dpr_machine_read(DPR_DEVICE_CPU, 1, &machine));
    ASSERT_STATUS(DPR_OK, dpr_machine_format(machine, text, &len));
    ASSERT_STATUS(DPR_OK, dpr_machine_parse(text, &same));
    for (; dpr_node_describe(nodes, &node) == DPR_OK; nodes++)
        cores += node.cores;
    EXPECT_EQ_I64(value_of(machine, "cpu.numa_nodes"), (int64_t)nodes);
    EXPECT_EQ_I64(value_of(machine, "cpu.cores"), cores);
    EXPECT_EQ_I64(cores, value_of(same, "cpu.cores"));
    dpr_machine_destroy(machine);
    dpr_machine_destroy(same);
}

DESCRIBE_TEST(machines_that_cannot_be_had) {
    dpr_machine *machine = fixture->captured;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_read(DPR_DEVICE_CPU, 0, NULL));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_read(DPR_DEVICE_AUTO, 0, &machine));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_read(DPR_DEVICE_CPU, 2, &machine));
    EXPECT_EQ_STR("measure is 2; it should be 0 or 1", dpr_last_error());
    EXPECT_STATUS(DPR_ERR_NO_DEVICE, dpr_machine_read(1000, 0, &machine));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_parse(NULL, &machine));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_parse("", NULL));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_parse("cpu.cores = x", &machine));
    EXPECT_TRUE(machine == fixture->captured);
    dpr_machine_destroy(NULL);
}

DESCRIBE_TEST(what_machines_do_not_tell) {
    dpr_capability c = DPR_CAPABILITY_INIT;
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_node_info node = DPR_NODE_INFO_INIT;
    size_t len = 1;
    char text[1];
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_capability(fixture->captured, 1000, &c));
    EXPECT_CONTAINS(dpr_last_error(), "i is 1000, and the machine has ");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_capability(NULL, 0, &c));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_capability(fixture->captured, 0, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_describe(NULL, &info));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_format(NULL, text, &len));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_format(fixture->captured, text, NULL));
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_machine_format(fixture->captured, text, &len));
    EXPECT_TRUE(len > 1000);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_node_describe(100000, &node));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_node_describe(0, NULL));
    c.size = info.size = node.size = 7;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_capability(fixture->captured, 0, &c));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_describe(fixture->captured, &info));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_node_describe(0, &node));
}

TEST(Describe, a_reason_for_no_device) {
    const char *absent = dpr_device_absent();
    EXPECT_TRUE(dpr_device_count() >= 0 && (dpr_device_count() == 0) == (absent != NULL));
}

/* ---- Decisions ---- */

/* The table has no gaps, every step has the cheapest strategy at its ends, and refusals have reasons. */
static void check_table(const dpr_decision *decision) {
    dpr_step step = DPR_STEP_INIT;
    dpr_prediction p = DPR_PREDICTION_INIT, best = DPR_PREDICTION_INIT;
    for (size_t from = 0, end = 0; !end; from = step.upto + 1) {
        ASSERT_STATUS(DPR_OK, dpr_decision_step(decision, from, &step));
        ASSERT_TRUE(step.from == from && step.upto >= from && step.threads > 0 && step.max_blocks > 0);
        ASSERT_STATUS(DPR_OK, dpr_decision_predict(decision, step.strategy, from, &best));
        EXPECT_TRUE(best.refusal == NULL && best.seconds > 0);
        for (size_t i = 0; dpr_decision_predict(decision, i, from, &p) == DPR_OK; i++)
            EXPECT_TRUE(p.refusal ? strlen(p.refusal) > 3 && p.seconds == 0 : p.seconds >= best.seconds);
        end = step.upto == SIZE_MAX;
    }
    EXPECT_STATUS(DPR_OK, dpr_decision_step(decision, SIZE_MAX, &step));
    EXPECT_EQ_U64(SIZE_MAX, step.upto);
}

DESCRIBE_TEST(tables_of_decisions) {
    const dpr_machine *machines[] = {fixture->captured, dpr_ctx_machine(fixture->ctx)};
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.memory = DPR_MEMORY_HOST;
    for (size_t i = 0; i < LENGTH(machines); i++) {
        dpr_decision *decision = NULL;
        ASSERT_STATUS(DPR_OK, dpr_decision_create(machines[i], &problem, &decision));
        check_table(decision);
        dpr_decision_destroy(decision);
    }
}

/* What a plan of the context says, but for the line that names the problem. */
DESCRIBE_TEST(a_decision_explains_itself_like_a_plan) {
    char of_plan[4096], of_decision[4096];
    size_t plan_len = sizeof of_plan, len = sizeof of_decision;
    dpr_decision *decision = NULL;
    dpr_plan *plan = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.count = 1000;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(fixture->ctx), &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, of_plan, &plan_len));
    EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, 1000, of_decision, &len));
    EXPECT_EQ_STR(of_plan, of_decision);
    len = 10;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_decision_explain(decision, 1000, of_decision, &len));
    EXPECT_EQ_U64(plan_len, len);
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_explain(decision, 0, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_explain(NULL, 0, NULL, &len));
    dpr_decision_destroy(decision);
    dpr_plan_destroy(plan);
}

DESCRIBE_TEST(a_decision_outlives_its_machine) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    dpr_step step = DPR_STEP_INIT;
    size_t len;
    options.strategy = "cpu.threads";
    problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(fixture->ctx), &problem, &decision));
    dpr_ctx_destroy(fixture->ctx);
    fixture->ctx = NULL;
    EXPECT_STATUS(DPR_OK, dpr_decision_step(decision, 5, &step));
    EXPECT_EQ_STR("cpu.threads", dpr_strategy_name(step.strategy));
    EXPECT_TRUE(step.from == 0 && step.upto == SIZE_MAX);
    EXPECT_STATUS(DPR_OK, dpr_decision_explain(decision, 5, NULL, &len));
    dpr_decision_destroy(decision);
}

DESCRIBE_TEST(problems_without_a_decision) {
    const dpr_machine *cpu = dpr_ctx_machine(fixture->ctx);
    dpr_options options = DPR_OPTIONS_INIT;
    const dpr_launch_options too_deep = {.size = sizeof too_deep, .max_depth = 25};
    dpr_problem good = DPR_PROBLEM_INIT, p = good;
    dpr_decision *decision = NULL;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_create(NULL, &good, &decision));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_create(cpu, NULL, &decision));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_create(cpu, &good, NULL));
    p.op = DPR_BAND;
    EXPECT_STATUS(DPR_ERR_UNSUPPORTED_PAIR, dpr_decision_create(cpu, &p, &decision));
    p = good;
    p.count = SIZE_MAX;
    EXPECT_STATUS(DPR_ERR_SIZE, dpr_decision_create(cpu, &p, &decision));
    p = good;
    p.memory = (dpr_memory)9;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_decision_create(cpu, &p, &decision));
    p.memory = DPR_MEMORY_DEVICE;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_decision_create(cpu, &p, &decision));
    p = good;
    p.options = &options;
    options.strategy = "cpu";
    EXPECT_STATUS(DPR_ERR_UNKNOWN_STRATEGY, dpr_decision_create(cpu, &p, &decision));
    options = (dpr_options)DPR_OPTIONS_INIT;
    options.launch = &too_deep;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_decision_create(cpu, &p, &decision));
    EXPECT_TRUE(decision == NULL);
    dpr_decision_destroy(NULL);
}

DESCRIBE_TEST(questions_that_decisions_refuse) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    dpr_step step = DPR_STEP_INIT;
    dpr_prediction p = DPR_PREDICTION_INIT;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(fixture->ctx), &problem, &decision));
    EXPECT_STATUS(DPR_ERR_UNKNOWN_STRATEGY, dpr_decision_predict(decision, dpr_strategy_count(), 1, &p));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_predict(NULL, 0, 1, &p));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_predict(decision, 0, 1, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_step(NULL, 0, &step));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_decision_step(decision, 0, NULL));
    step.size--;
    p.size--;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_decision_step(decision, 0, &step));
    EXPECT_CONTAINS(dpr_last_error(), "start from DPR_STEP_INIT");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_decision_predict(decision, 0, 1, &p));
    dpr_decision_destroy(decision);
}

/* ---- Kernels ---- */

DESCRIBE_TEST(kernels_that_are_not_there) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_kernel_info info = DPR_KERNEL_INFO_INIT;
    size_t i;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_kernel_describe(NULL, &problem, &info));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_kernel_describe(fixture->captured, NULL, &info));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_kernel_describe(fixture->captured, &problem, NULL));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_kernel_describe(fixture->captured, &problem, &info));
    EXPECT_CONTAINS(dpr_last_error(), "names no strategy");
    problem.options = &options;
    options.strategy = "cpu.simd";
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_kernel_describe(fixture->captured, &problem, &info));
    EXPECT_CONTAINS(dpr_last_error(), "the CPU has no kernels");
    if (dpr_strategy_parse("flat.block", &i) != DPR_OK)
        SKIP("a build without CUDA");
    options.strategy = "flat.block";
    EXPECT_STATUS(DPR_ERR_NO_DEVICE, dpr_kernel_describe(fixture->captured, &problem, &info));
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_kernel_describe(dpr_ctx_machine(fixture->ctx), &problem, &info));
}

/* Decisions for a GPU that is not there. */
DESCRIBE_TEST(tables_of_a_captured_gpu) {
    const dpr_launch_options launch = {.size = sizeof launch, .max_depth = 3};
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    dpr_step step = DPR_STEP_INIT;
    size_t i;
    if (dpr_strategy_parse("dp.tree", &i) != DPR_OK)
        SKIP("a build without CUDA");
    ASSERT_STATUS(DPR_OK, dpr_decision_create(fixture->captured, &problem, &decision));
    check_table(decision);
    dpr_decision_destroy(decision);
    problem.options = &options;
    options.strategy = "dp.tree";
    options.launch = &launch;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(fixture->captured, &problem, &decision));
    EXPECT_STATUS(DPR_OK, dpr_decision_step(decision, 1 << 20, &step));
    EXPECT_EQ_U64(i, step.strategy);
    EXPECT_TRUE(step.max_depth >= 1 && step.max_depth <= 3 && step.launch_seconds > 0);
    dpr_decision_destroy(decision);
}
