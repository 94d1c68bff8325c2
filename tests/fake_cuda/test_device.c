/* What the library asks of a device, where only the fake can tell: early launches, and waiting for all its work. */
#include <string.h>

#include "gpu_strategies.h"
#include "one_sum.h"

typedef one_sum scene;

static void scene_setup(void *state) {
    one_sum_open(state);
}

static void scene_teardown(void *state) {
    fake_set_code(90);
    one_sum_close(state);
}

#define DEVICE_TEST(NAME) TEST_FIXTURE(Device, NAME, scene, scene_setup, scene_teardown)

/* A call that needs scratch memory, in a new stream, which is destroyed with the call perhaps still running. 1 if all
 * that worked. */
static int call_in_new_stream(const scene *s) {
    const dpr_stream stream = gpu_stream_create();
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "flat.lastblock";
    return EXPECT_TRUE(stream != NULL)
           && EXPECT_STATUS(DPR_OK, dpr_reduce_async(s->ctx, s->in, s->out, COUNT, DPR_I32, DPR_SUM, &options, stream))
           && EXPECT_TRUE(gpu_stream_destroy(stream));
}

/* ---- Code compiled for less than the device has ---- */

static void reopen(scene *s, int code) {
    dpr_ctx_destroy(s->ctx);
    s->ctx = NULL;
    fake_set_code(code);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static int programmatic_launches(const scene *s) {
    const int before = fake_programmatic_kernels();
    return call_in_new_stream(s) ? fake_programmatic_kernels() - before : -1;
}

static dpr_status plan_by_name(const scene *s, const char *strategy) {
    dpr_plan *plan = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    options.strategy = strategy;
    problem.count = COUNT;
    problem.options = &options;
    const dpr_status status = dpr_plan_create(s->ctx, &problem, &plan);
    dpr_plan_destroy(plan);
    return status;
}

DEVICE_TEST(older_code_has_nothing_of_what_came_later) {
    EXPECT_EQ_I64(1, programmatic_launches(fixture));
    EXPECT_STATUS(DPR_OK, plan_by_name(fixture, "coop.cluster"));
    EXPECT_STATUS(DPR_OK, plan_by_name(fixture, "coop.bulk"));
    reopen(fixture, 75);
    EXPECT_EQ_I64(0, programmatic_launches(fixture));
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, plan_by_name(fixture, "coop.cluster"));
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, plan_by_name(fixture, "coop.bulk"));
}

/* ---- Drivers without green contexts ---- */

/* Every stream then has all of the device's SMs, and runs with scratch memory work. */
DEVICE_TEST(drivers_may_not_know_the_sms_of_a_context) {
    scene *const s = fixture;
    const dpr_stream stream = gpu_stream_create();
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "flat.lastblock";
    options.stream = stream;
    fake_refuse_resources(1);
    reopen(s, 90);
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, s->in, s->out, COUNT, DPR_I32, DPR_SUM, &options));
    EXPECT_EQ_I64(expected_sum, *s->out);
    fake_refuse_resources(0);
    EXPECT_TRUE(gpu_stream_destroy(stream));
}

/* ---- Scratch memory ---- */

/* Up to 4096 streams a call never waits for the device, which may be busy for ever; past them it does. */
DEVICE_TEST(is_not_waited_for_below_4096_streams) {
    enum { MANY = 4096 };
    const int before = fake_device_waits();
    for (int i = 0; i < MANY; i++)
        if (!call_in_new_stream(fixture))
            return;
    EXPECT_EQ_I64(0, fake_device_waits() - before);
    EXPECT_TRUE(call_in_new_stream(fixture));
    EXPECT_EQ_I64(1, fake_device_waits() - before);
    EXPECT_EQ_I64(expected_sum, *fixture->out);
}

/* ---- Descriptions of the device ---- */

static int64_t capability(const dpr_machine *machine, const char *key) {
    dpr_capability c = DPR_CAPABILITY_INIT;
    for (size_t i = 0; dpr_machine_capability(machine, i, &c) == DPR_OK; i++)
        if (strcmp(c.key, key) == 0)
            return c.value;
    return -2;
}

DEVICE_TEST(machines_are_read_with_and_without_measuring) {
    EXPECT_TRUE(dpr_device_count() > 0 && dpr_device_absent() == NULL);
    for (int measure = 0; measure < 2; measure++) {
        dpr_machine *machine = NULL;
        dpr_machine_info info = DPR_MACHINE_INFO_INIT;
        ASSERT_STATUS(DPR_OK, dpr_machine_read(0, measure, &machine));
        EXPECT_STATUS(DPR_OK, dpr_machine_describe(machine, &info));
        EXPECT_TRUE(info.gpu_name != NULL && strlen(info.pci) > 8);
        EXPECT_EQ_I64(132, capability(machine, "gpu.sm_count"));
        EXPECT_EQ_I64(measure, capability(machine, "gpu.nested_times_measured"));
        dpr_machine_destroy(machine);
    }
    EXPECT_EQ_I64(132, capability(dpr_ctx_machine(fixture->ctx), "gpu.sm_count"));
}

DEVICE_TEST(every_kernel_is_described) {
    dpr_machine *machine = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_kernel_info of_ctx = DPR_KERNEL_INFO_INIT, alone = DPR_KERNEL_INFO_INIT;
    ASSERT_STATUS(DPR_OK, dpr_machine_read(0, 0, &machine));
    problem.dtype = DPR_I32; /* which every strategy sums */
    problem.options = &options;
    for (size_t i = 0; i < gpu_strategy_count(); i++) {
        options.strategy = gpu_strategy(i);
        ASSERT_STATUS(DPR_OK, dpr_kernel_describe(dpr_ctx_machine(fixture->ctx), &problem, &of_ctx));
        ASSERT_STATUS(DPR_OK, dpr_kernel_describe(machine, &problem, &alone));
        EXPECT_TRUE(of_ctx.threads >= 32 && of_ctx.blocks_per_sm > 0 && of_ctx.occupancy > 0 && of_ctx.occupancy <= 1);
        EXPECT_EQ_I64(of_ctx.blocks_per_sm, alone.blocks_per_sm);
        EXPECT_EQ_STR(of_ctx.limit, alone.limit);
    }
    dpr_machine_destroy(machine);
}

DEVICE_TEST(decisions_are_the_contexts) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    dpr_plan *plan = NULL;
    dpr_step step = DPR_STEP_INIT;
    ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(fixture->ctx), &problem, &decision));
    for (problem.count = 1; problem.count < (size_t)1 << 40; problem.count *= 8) {
        ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
        ASSERT_STATUS(DPR_OK, dpr_decision_step(decision, problem.count, &step));
        EXPECT_EQ_STR(dpr_plan_strategy(plan), dpr_strategy_name(step.strategy));
        dpr_plan_destroy(plan);
    }
    dpr_decision_destroy(decision);
}
