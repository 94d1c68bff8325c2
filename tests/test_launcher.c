/* Launchers where there is no GPU: what is refused, and that nothing is touched then. The GPU's are in
 * test_gpu_launcher.c. */
#include <string.h>

#include "support.h"

typedef struct scene {
    dpr_ctx *cpu;
    dpr_launcher launcher, canary; /* alike */
    dpr_launch_report report;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    memset(&s->launcher, 0xa5, sizeof s->launcher);
    memset(&s->canary, 0xa5, sizeof s->canary);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
}

static void scene_close(void *state) {
    scene *s = state;
    EXPECT_EQ_BYTES(&s->canary, &s->launcher, sizeof s->launcher);
    dpr_ctx_destroy(s->cpu);
}

#define LAUNCHER_TEST(NAME) TEST_FIXTURE(Launcher, NAME, scene, scene_open, scene_close)

LAUNCHER_TEST(needs_a_gpu) {
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_launcher_create(fixture->cpu, 0, &fixture->launcher));
    EXPECT_CONTAINS(dpr_last_error(), "CPU");
}

LAUNCHER_TEST(arguments_are_checked) {
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_launcher_create(NULL, 0, &fixture->launcher));
    EXPECT_CONTAINS(dpr_last_error(), "ctx");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_launcher_create(fixture->cpu, 0, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "out");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_launcher_create(fixture->cpu, DPR_NO_LAUNCHES - 1, &fixture->launcher));
    EXPECT_CONTAINS(dpr_last_error(), "launches is -2");
}

LAUNCHER_TEST(reports_are_of_launchers) {
    const dpr_launcher none = {0};
    const dpr_launch_report before = fixture->report;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_launcher_report(NULL, &fixture->report, 0));
    EXPECT_CONTAINS(dpr_last_error(), "launcher is NULL");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_launcher_report(&fixture->launcher, NULL, 0));
    EXPECT_CONTAINS(dpr_last_error(), "out");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_launcher_report(&none, &fixture->report, 0));
    EXPECT_CONTAINS(dpr_last_error(), "launcher->memory");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_launcher_report(&fixture->launcher, &fixture->report, 0));
    EXPECT_CONTAINS(dpr_last_error(), "launcher->version is 2779096485, and this library makes launchers of version ");
    EXPECT_EQ_BYTES(&before, &fixture->report, sizeof before);
}

TEST(Launcher, nothing_can_be_given_back) {
    dpr_launcher none = {0};
    dpr_launcher_destroy(NULL);
    dpr_launcher_destroy(&none);
    EXPECT_EQ_PTR(NULL, none.memory);
}
