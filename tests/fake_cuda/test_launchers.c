/* Launchers as the host has to do with them: their limits, what their memory begins with, reports, and calls that fail.
 * No kernel is run here. */
#include <string.h>

#include "cuda/device.h"
#include "fake_cuda.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "launcher_memory.h"
#include "nested_args.h"
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

#define LAUNCHER_TEST(NAME) TEST_FIXTURE(FakeLauncher, NAME, scene, scene_open, scene_close)

static dpr_launcher_state state_of(const dpr_launcher *launcher) {
    dpr_launcher_state state;
    memset(&state, 0xee, sizeof state);
    EXPECT_TRUE(gpu_copy(&state, launcher->memory, sizeof state));
    return state;
}

/* As many slots are free as there are launches, from the first on, and all queues. */
static void expect_slots(const dpr_launcher *launcher) {
    static dpr_launch_slot slots[DPR_LAUNCHER_LAUNCHES];
    const dpr_launcher_state state = state_of(launcher);
    for (uint32_t i = 0; i < DPR_LAUNCHER_LAUNCHES; i++)
        EXPECT_EQ_U64(i < launcher->launches, state.free_slots[i / 32] >> i % 32 & 1);
    for (int i = 0; i < DPR_LAUNCHER_QUEUE_WORDS; i++)
        EXPECT_EQ_U64(UINT32_MAX, state.free_queues[i]);
    EXPECT_EQ_U64(0, state.held);
    EXPECT_TRUE(
        gpu_copy(slots, (const dpr_launcher_state *)launcher->memory + 1, launcher->launches * sizeof slots[0]));
    for (uint32_t i = 0; i < launcher->launches; i++)
        EXPECT_EQ_U64(0, slots[i].ticket);
}

LAUNCHER_TEST(launches_are_at_most_those_of_the_pool_and_what_is_asked) {
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
        {65536, 0, DPR_LAUNCHER_LAUNCHES},
        {65536, 65536, DPR_LAUNCHER_LAUNCHES},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        dpr_ctx *ctx = NULL;
        dpr_launcher launcher;
        dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
        options.pending_launches = cases[i].pool;
        ASSERT_STATUS(DPR_OK, dpr_ctx_create_ex(FAR_DEVICE, &options, &ctx));
        ASSERT_STATUS(DPR_OK, dpr_launcher_create(ctx, cases[i].asked, &launcher));
        EXPECT_EQ_U64(cases[i].launches, launcher.launches);
        EXPECT_EQ_PTR(NULL, launcher.line);
        EXPECT_EQ_I64(FAR_DEVICE, launcher.device);
        EXPECT_TRUE(launcher.table != NULL);
        expect_slots(&launcher);
        dpr_launcher_destroy(&launcher);
        EXPECT_EQ_PTR(NULL, launcher.memory);
        dpr_ctx_destroy(ctx);
    }
    (void)fixture;
}

LAUNCHER_TEST(too_little_stack_is_refused) {
    dpr_launcher launcher;
    fake_set_stack(1023);
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_launcher_create(fixture->ctx, 0, &launcher));
    EXPECT_CONTAINS(dpr_last_error(), "need 1024 bytes of stack a thread, and device 1 gives 1023");
    fake_set_stack(1024);
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    dpr_launcher_destroy(&launcher);
}

/* In a CUDA context to which nobody has loaded the code. The fake device keeps the module's variable with the first
 * context that asks for it, so that must be another one. */
LAUNCHER_TEST(less_stack_than_at_loading_is_refused) {
    static const size_t stacks[] = {1024, 4096, 2048, 8192};
    gpu_context *fresh = gpu_context_create(FAR_DEVICE);
    dpr_ctx *ctx = NULL;
    ASSERT_TRUE(fresh && gpu_context_push(fresh));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(FAR_DEVICE, &ctx));
    for (size_t i = 0; i < LENGTH(stacks); i++) {
        dpr_launcher launcher;
        fake_set_stack(stacks[i]);
        const dpr_status status = dpr_launcher_create(i == 0 ? fixture->ctx : ctx, 0, &launcher);
        EXPECT_STATUS(stacks[i] == 2048 ? DPR_ERR_STRATEGY_UNABLE : DPR_OK, status);
        if (status == DPR_OK)
            dpr_launcher_destroy(&launcher);
        else
            EXPECT_CONTAINS(dpr_last_error(), "device 1, because it gives 2048 bytes of stack a thread");
    }
    fake_set_stack(1024);
    dpr_ctx_destroy(ctx);
    EXPECT_TRUE(gpu_context_pop() && gpu_context_destroy(fresh));
}

LAUNCHER_TEST(launchers_of_a_device_launch_one_kernel) {
    dpr_launcher one, other, near;
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &one));
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 4, &other));
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(ctx, 4, &near));
    EXPECT_EQ_PTR(one.table, other.table);
    EXPECT_TRUE(one.table != near.table && one.memory != other.memory);
    dpr_launcher_destroy(&one);
    dpr_launcher_destroy(&other);
    dpr_launcher_destroy(&near);
    dpr_ctx_destroy(ctx);
}

LAUNCHER_TEST(a_report_starts_the_account_anew) {
    static const dpr_launch_report account = {5, 4, 3, 2, 1, 701, 0, 9}, none;
    dpr_launcher launcher;
    dpr_launch_report report;
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    ASSERT_TRUE(gpu_copy(launcher.memory, &account, sizeof account));
    ASSERT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
    EXPECT_EQ_BYTES(&account, &report, sizeof report);
    ASSERT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
    EXPECT_EQ_BYTES(&none, &report, sizeof report);
    expect_slots(&launcher);
    dpr_launcher_destroy(&launcher);
}

/* What device code of other versions finds in the launcher's memory. Whoever changes one of these sizes changes
 * DPR_LAUNCHER_VERSION, too. */
LAUNCHER_TEST(launchers_have_a_version) {
    dpr_launcher launcher;
    dpr_launch_report report;
    memset(&report, 0xa5, sizeof report);
    const dpr_launch_report canary = report;
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    EXPECT_EQ_U64(1 << 16 | 18 << 8 | 15, launcher.version);
    EXPECT_EQ_U64(0, offsetof(dpr_launcher_state, account));
    EXPECT_EQ_U64(65920, sizeof(dpr_launcher_state));
    EXPECT_EQ_U64(1152, sizeof(dpr_launch_slot));
    EXPECT_EQ_U64(96, sizeof(dpr_waiting_call));
    EXPECT_EQ_U64(120, sizeof(dpr_kernel_args));
    EXPECT_EQ_U64(232, sizeof(dpr_nested_args));
    launcher.version++;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_launcher_report(&launcher, &report, sizeof report));
    EXPECT_CONTAINS(dpr_last_error(), "launcher->version is 70160, and this library makes launchers of version 70159");
    EXPECT_EQ_BYTES(&canary, &report, sizeof report);
    launcher.version--;
    EXPECT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
    dpr_launcher_destroy(&launcher);
}

/* A smaller report gets the first counters, a larger one zeros behind those of this version; all are set to 0. */
LAUNCHER_TEST(reports_have_the_size_of_the_caller) {
    static const dpr_launch_report account = {5, 4, 3, 2, 1, 701, 6, 9};
    dpr_launcher launcher;
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    for (size_t size = 0; size <= sizeof account + 16; size += 4) {
        const size_t given = size == 0 ? sizeof account : size;
        unsigned char bytes[64], expected[64];
        memset(bytes, 0xa5, sizeof bytes);
        memset(expected, 0, sizeof expected);
        memcpy(expected, &account, given < sizeof account ? given : sizeof account);
        memset(expected + given, 0xa5, sizeof expected - given);
        ASSERT_TRUE(gpu_copy(launcher.memory, &account, sizeof account));
        EXPECT_STATUS(DPR_OK, dpr_launcher_report(&launcher, (dpr_launch_report *)(void *)bytes, size));
        EXPECT_EQ_BYTES(expected, bytes, sizeof bytes);
        EXPECT_EQ_U64(0, state_of(&launcher).account.error_depth);
    }
    dpr_launch_report report;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_launcher_report(&launcher, &report, 34));
    EXPECT_EQ_STR("report_size is 34; it should be sizeof(dpr_launch_report)", dpr_last_error());
    dpr_launcher_destroy(&launcher);
}

/* ---- Calls that fail ---- */

static int stands(const dpr_launcher *launcher, const dpr_launcher *canary) {
    return memcmp(launcher, canary, sizeof *launcher) == 0;
}

/* A stream that could not be given back is there for good. */
static int kept_streams(const char *failed) {
    return failed && strcmp(failed, "cudaStreamDestroy") == 0;
}

/* Whether call number `fail` was reached, after which all must be as before. */
static int fail_create(scene *s, int fail, cudaError_t error) {
    dpr_launcher launcher, canary;
    memset(&launcher, 0xa5, sizeof launcher);
    memset(&canary, 0xa5, sizeof canary);
    const int before = fake_live_objects();
    fake_fail_call(fail, error);
    const dpr_status status = dpr_launcher_create(s->ctx, 0, &launcher);
    const char *failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
    if (status == DPR_OK) {
        dpr_launcher_destroy(&launcher);
    } else {
        EXPECT_THAT(stands(&launcher, &canary), "*out has changed although %s failed", failed);
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

static int fail_report(scene *s, const dpr_launcher *launcher, int fail) {
    static const dpr_launch_report account = {.launched = 5};
    dpr_launch_report report, canary;
    memset(&report, 0xa5, sizeof report);
    memset(&canary, 0xa5, sizeof canary);
    EXPECT_TRUE(gpu_copy(launcher->memory, &account, sizeof account));
    fake_fail_call(fail, cudaErrorUnknown);
    const dpr_status status = dpr_launcher_report(launcher, &report, sizeof report);
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

LAUNCHER_TEST(whichever_call_fails_nothing_is_left) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (size_t e = 0; e < LENGTH(errors); e++) {
        int call = 1;
        while (call < MOST_CALLS && fail_create(fixture, call, errors[e]))
            call++;
        EXPECT_THAT(call > 5 && call < MOST_CALLS, "%d calls", call);
    }
    dpr_launcher launcher;
    int call = 1;
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    while (call < MOST_CALLS && fail_report(fixture, &launcher, call))
        call++;
    EXPECT_THAT(call > 3 && call < MOST_CALLS, "%d calls", call);
    dpr_launcher_destroy(&launcher);
}
