/* Nests as the host has to do with them: their limits, what their memory begins with, reports, and calls that fail. No
 * kernel is run here. */
#include <string.h>

#include "cuda/device.h"
#include "fake_cuda.h"
#include "gpu_memory.h"
#include "slots.h"
#include "support.h"

enum { FAR_DEVICE = 1, MOST_CALLS = 200, FIRST_LIMIT = 2048 };

typedef struct scene {
    int before; /* objects alive */
    dpr_ctx *ctx;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    ASSERT_TRUE(gpu_use(0));
    s->before = fake_live_objects();
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(FAR_DEVICE, &s->ctx));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    EXPECT_EQ_I64(s->before, fake_live_objects());
    EXPECT_EQ_I64(0, gpu_current());
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
}

#define NEST_TEST(NAME) TEST_FIXTURE(FakeNest, NAME, scene, scene_open, scene_close)

static dpr_nest_state state_of(const dpr_nest *nest) {
    dpr_nest_state state;
    memset(&state, 0xee, sizeof state);
    EXPECT_TRUE(gpu_copy(&state, nest->memory, sizeof state));
    return state;
}

/* As many slots are free as there are launches, from the first on, and all queues. */
static void expect_slots(const dpr_nest *nest) {
    static dpr_nest_slot slots[DPR_NEST_LAUNCHES];
    const dpr_nest_state state = state_of(nest);
    for (uint32_t i = 0; i < DPR_NEST_LAUNCHES; i++)
        EXPECT_EQ_U64(i < nest->launches, state.free_slots[i / 32] >> i % 32 & 1);
    for (int i = 0; i < DPR_NEST_QUEUE_WORDS; i++)
        EXPECT_EQ_U64(UINT32_MAX, state.free_queues[i]);
    EXPECT_EQ_U64(0, state.held);
    EXPECT_TRUE(gpu_copy(slots, (const dpr_nest_state *)nest->memory + 1, nest->launches * sizeof slots[0]));
    for (uint32_t i = 0; i < nest->launches; i++)
        EXPECT_EQ_U64(0, slots[i].ticket);
}

NEST_TEST(launches_are_at_most_those_of_the_pool_and_what_is_asked) {
    static const struct {
        size_t pool; /* 0: as it is, 2048 */
        int asked;
        uint32_t launches;
    } cases[] = {
        {0, 0, FIRST_LIMIT},
        {0, 1, 1},
        {0, FIRST_LIMIT, FIRST_LIMIT},
        {0, FIRST_LIMIT + 1, FIRST_LIMIT},
        {0, DPR_NO_LAUNCHES, 0},
        {120, 0, 120},
        {120, 121, 120},
        {121, 7, 7},
        {1, 0, 1},
        {65536, 0, DPR_NEST_LAUNCHES},
        {65536, 65536, DPR_NEST_LAUNCHES},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        dpr_ctx *ctx = NULL;
        dpr_nest nest;
        dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
        options.pending_launches = cases[i].pool;
        ASSERT_STATUS(DPR_OK, dpr_ctx_create_ex(FAR_DEVICE, &options, &ctx));
        ASSERT_STATUS(DPR_OK, dpr_nest_create(ctx, cases[i].asked, &nest));
        EXPECT_EQ_U64(cases[i].launches, nest.launches);
        EXPECT_EQ_PTR(NULL, nest.line);
        EXPECT_EQ_I64(FAR_DEVICE, nest.device);
        EXPECT_TRUE(nest.launcher != NULL);
        expect_slots(&nest);
        dpr_nest_destroy(&nest);
        EXPECT_EQ_PTR(NULL, nest.memory);
        dpr_ctx_destroy(ctx);
    }
    (void)fixture;
}

NEST_TEST(too_little_stack_is_refused) {
    dpr_nest nest;
    fake_set_stack(1023);
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_nest_create(fixture->ctx, 0, &nest));
    EXPECT_CONTAINS(dpr_last_error(), "need 1024 bytes of stack a thread, and device 1 gives 1023");
    fake_set_stack(1024);
    ASSERT_STATUS(DPR_OK, dpr_nest_create(fixture->ctx, 0, &nest));
    dpr_nest_destroy(&nest);
}

NEST_TEST(nests_of_a_device_launch_one_kernel) {
    dpr_nest one, other, near;
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    ASSERT_STATUS(DPR_OK, dpr_nest_create(fixture->ctx, 0, &one));
    ASSERT_STATUS(DPR_OK, dpr_nest_create(fixture->ctx, 4, &other));
    ASSERT_STATUS(DPR_OK, dpr_nest_create(ctx, 4, &near));
    EXPECT_EQ_PTR(one.launcher, other.launcher);
    EXPECT_TRUE(one.launcher != near.launcher && one.memory != other.memory);
    dpr_nest_destroy(&one);
    dpr_nest_destroy(&other);
    dpr_nest_destroy(&near);
    dpr_ctx_destroy(ctx);
}

NEST_TEST(a_report_starts_the_account_anew) {
    static const dpr_nested account = {5, 4, 3, 2, 1, 701, 0, 9}, none;
    dpr_nest nest;
    dpr_nested report;
    ASSERT_STATUS(DPR_OK, dpr_nest_create(fixture->ctx, 0, &nest));
    ASSERT_TRUE(gpu_copy(nest.memory, &account, sizeof account));
    ASSERT_STATUS(DPR_OK, dpr_nest_report(&nest, &report));
    EXPECT_EQ_BYTES(&account, &report, sizeof report);
    EXPECT_STATUS(DPR_ERR_NESTED_LAUNCH, dpr_nested_status(&report));
    ASSERT_STATUS(DPR_OK, dpr_nest_report(&nest, &report));
    EXPECT_EQ_BYTES(&none, &report, sizeof report);
    expect_slots(&nest);
    dpr_nest_destroy(&nest);
}

/* ---- Calls that fail ---- */

static int stands(const dpr_nest *nest, const dpr_nest *canary) {
    return memcmp(nest, canary, sizeof *nest) == 0;
}

/* A stream that could not be given back is there for good. */
static int kept_streams(const char *failed) {
    return failed && strcmp(failed, "cudaStreamDestroy") == 0;
}

/* Whether call number `fail` was reached, after which all must be as before. */
static int fail_create(scene *s, int fail, cudaError_t error) {
    dpr_nest nest, canary;
    memset(&nest, 0xa5, sizeof nest);
    memset(&canary, 0xa5, sizeof canary);
    const int before = fake_live_objects();
    fake_fail_call(fail, error);
    const dpr_status status = dpr_nest_create(s->ctx, 0, &nest);
    const char *failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
    if (status == DPR_OK) {
        dpr_nest_destroy(&nest);
    } else {
        EXPECT_THAT(stands(&nest, &canary), "*out has changed although %s failed", failed);
        EXPECT_THAT(error != cudaErrorMemoryAllocation || status == DPR_ERR_OUT_OF_MEMORY
                        || status == DPR_ERR_STRATEGY_UNABLE,
                    "%s without memory: %s", failed, dpr_status_name(status));
    }
    EXPECT_THAT(fake_live_objects() == before + kept_streams(failed), "objects are left after %s failed",
                failed ? failed : "nothing");
    s->before += kept_streams(failed);
    EXPECT_TRUE(gpu_use(0));
    return failed != NULL;
}

static int fail_report(scene *s, const dpr_nest *nest, int fail) {
    static const dpr_nested account = {.launched = 5};
    dpr_nested report, canary;
    memset(&report, 0xa5, sizeof report);
    memset(&canary, 0xa5, sizeof canary);
    EXPECT_TRUE(gpu_copy(nest->memory, &account, sizeof account));
    fake_fail_call(fail, cudaErrorUnknown);
    const dpr_status status = dpr_nest_report(nest, &report);
    const char *failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
    if (status == DPR_OK)
        EXPECT_EQ_U64(account.launched, report.launched);
    else
        EXPECT_THAT(memcmp(&report, &canary, sizeof report) == 0, "*out has changed although %s failed", failed);
    s->before += kept_streams(failed);
    EXPECT_TRUE(gpu_use(0));
    return failed != NULL;
}

NEST_TEST(whichever_call_fails_nothing_is_left) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (size_t e = 0; e < LENGTH(errors); e++) {
        int call = 1;
        while (call < MOST_CALLS && fail_create(fixture, call, errors[e]))
            call++;
        EXPECT_THAT(call > 5 && call < MOST_CALLS, "%d calls", call);
    }
    dpr_nest nest;
    int call = 1;
    ASSERT_STATUS(DPR_OK, dpr_nest_create(fixture->ctx, 0, &nest));
    while (call < MOST_CALLS && fail_report(fixture, &nest, call))
        call++;
    EXPECT_THAT(call > 3 && call < MOST_CALLS, "%d calls", call);
    dpr_nest_destroy(&nest);
}
