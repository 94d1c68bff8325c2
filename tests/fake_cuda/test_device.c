/* What the library asks of a device, where only the fake can tell: early launches, and waiting for all its work. */
#include <stdlib.h>

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
