/* Nests where there is no GPU: what is refused, and that nothing is touched then. The GPU's are in test_gpu_nest.c. */
#include <string.h>

#include "support.h"

typedef struct scene {
    dpr_ctx *cpu;
    dpr_nest nest, canary; /* alike */
    dpr_nested report;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    memset(&s->nest, 0xa5, sizeof s->nest);
    memset(&s->canary, 0xa5, sizeof s->canary);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
}

static void scene_close(void *state) {
    scene *s = state;
    EXPECT_EQ_BYTES(&s->canary, &s->nest, sizeof s->nest);
    dpr_ctx_destroy(s->cpu);
}

#define NEST_TEST(NAME) TEST_FIXTURE(Nest, NAME, scene, scene_open, scene_close)

NEST_TEST(needs_a_gpu) {
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_nest_create(fixture->cpu, 0, &fixture->nest));
    EXPECT_CONTAINS(dpr_last_error(), "CPU");
}

NEST_TEST(arguments_are_checked) {
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_nest_create(NULL, 0, &fixture->nest));
    EXPECT_CONTAINS(dpr_last_error(), "ctx");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_nest_create(fixture->cpu, 0, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "out");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_nest_create(fixture->cpu, DPR_NO_LAUNCHES - 1, &fixture->nest));
    EXPECT_CONTAINS(dpr_last_error(), "launches is -2");
}

NEST_TEST(reports_are_of_nests) {
    const dpr_nest none = {0};
    const dpr_nested before = fixture->report;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_nest_report(NULL, &fixture->report));
    EXPECT_CONTAINS(dpr_last_error(), "nest is NULL");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_nest_report(&fixture->nest, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "out");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_nest_report(&none, &fixture->report));
    EXPECT_CONTAINS(dpr_last_error(), "nest->memory");
    EXPECT_EQ_BYTES(&before, &fixture->report, sizeof before);
}

TEST(Nest, nothing_can_be_given_back) {
    dpr_nest none = {0};
    dpr_nest_destroy(NULL);
    dpr_nest_destroy(&none);
    EXPECT_EQ_PTR(NULL, none.memory);
}
