/* Results on their way to the host: by mailbox while the kernel runs, by the driver's wait when it takes long, and what
 * becomes of runs whose result never comes. */
#define _GNU_SOURCE /* fork() */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

enum { COUNT = 1000, MAILBOXES = 64, NEVER = 1000000 };
static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2, canary = 0x5a5a5a5a;

/* Arrays 1, 2, ... COUNT on device 0. */
typedef struct scene {
    dpr_ctx *ctx;
    int32_t *in;
    int32_t host[COUNT];
    int32_t *offsets; /* of two segments, in pinned memory */
    int64_t *sums;    /* their sums, there, too */
} scene;

static void scene_open(void *state) {
    scene *s = state;
    for (int i = 0; i < COUNT; i++)
        s->host[i] = i + 1;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof s->host);
    ASSERT_TRUE(s->in && gpu_copy(s->in, s->host, sizeof s->host));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    s->offsets = gpu_alloc(DPR_MEMORY_PINNED, 3 * sizeof *s->offsets);
    s->sums = gpu_alloc(DPR_MEMORY_PINNED, 2 * sizeof *s->sums);
    ASSERT_TRUE(s->offsets && s->sums);
    s->offsets[0] = 0;
    s->offsets[1] = COUNT / 4;
    s->offsets[2] = COUNT;
}

static void scene_close(void *state) {
    scene *s = state;
    fake_set_eager(0);
    fake_drop_kernels(0);
    dpr_ctx_destroy(s->ctx);
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->offsets);
    gpu_free(DPR_MEMORY_PINNED, s->sums);
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define MAIL_TEST(NAME) TEST_FIXTURE(Mailbox, NAME, scene, scene_open, scene_close)

static dpr_status sum(const scene *s, const char *strategy, int64_t *out) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    *out = canary;
    return dpr_reduce_ex(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, &options);
}

/* The same sum of two segments. */
static dpr_status sum_of_segments(const scene *s, const char *strategy, int64_t *out) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    segments.begins = s->offsets;
    segments.dtype = DPR_I32;
    segments.count = 2;
    s->sums[0] = s->sums[1] = canary;
    const dpr_status status = dpr_reduce_segments(s->ctx, s->in, s->sums, COUNT, DPR_I32, DPR_SUM, &segments, &options);
    *out = status == DPR_OK ? s->sums[0] + s->sums[1] : canary;
    return status;
}

typedef dpr_status run_of(const scene *s, const char *strategy, int64_t *out);

/* Which of the runtime's calls a run makes: the last one, made to fail, is named. */
static int waits_for_the_driver(const scene *s, run_of *run, const char *strategy) {
    int64_t out;
    for (int call = 1; call < 100; call++) {
        fake_fail_call(call, cudaErrorUnknown);
        const dpr_status status = run(s, strategy, &out);
        const char *failed = fake_failed_call();
        fake_fail_call(0, cudaSuccess);
        if (failed && strcmp(failed, "cudaStreamSynchronize") == 0)
            return status != DPR_OK;
        if (!failed)
            return 0;
    }
    return -1;
}

MAIL_TEST(quick_kernels_need_no_wait_of_the_driver) {
    for (size_t i = 0; i < gpu_strategy_count(); i++) {
        const char *name = gpu_strategy(i);
        int64_t out;
        fake_set_eager(1);
        EXPECT_STATUS(DPR_OK, sum(fixture, name, &out));
        EXPECT_EQ_I64(expected_sum, out);
        EXPECT_THAT(waits_for_the_driver(fixture, sum, name) == 0, "%s waits although the result is there", name);
        fake_set_eager(0);
        EXPECT_STATUS(DPR_OK, sum(fixture, name, &out)); /* there when the stream is waited for */
        EXPECT_EQ_I64(expected_sum, out);
        EXPECT_THAT(waits_for_the_driver(fixture, sum, name) == 1, "%s does not wait for its kernel", name);
    }
}

/* The results of segments are not in the mailbox, but it says that they are there. */
MAIL_TEST(segments_tell_their_end) {
    static const char *const name = "segments.small";
    int64_t out;
    for (int eager = 0; eager < 2; eager++) {
        fake_set_eager(eager);
        EXPECT_STATUS(DPR_OK, sum_of_segments(fixture, name, &out));
        EXPECT_EQ_I64(expected_sum, out);
        EXPECT_EQ_I64(!eager, waits_for_the_driver(fixture, sum_of_segments, name));
        fake_drop_kernels(1);
        EXPECT_STATUS(DPR_ERR_CUDA, sum_of_segments(fixture, name, &out));
        EXPECT_CONTAINS(dpr_last_error(), name);
        EXPECT_STATUS(DPR_OK, sum_of_segments(fixture, name, &out));
        EXPECT_EQ_I64(expected_sum, out);
        EXPECT_EQ_I64(1, waits_for_the_driver(fixture, sum_of_segments, "segments.group"));
    }
    fake_set_concurrent_managed(0);
    dpr_ctx *const concurrent = ((scene *)fixture)->ctx;
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &((scene *)fixture)->ctx));
    EXPECT_EQ_I64(1, waits_for_the_driver(fixture, sum_of_segments, name));
    dpr_ctx_destroy(((scene *)fixture)->ctx);
    ((scene *)fixture)->ctx = concurrent;
    fake_set_concurrent_managed(1);
}

/* Who may not touch managed memory while a kernel runs would fault after a call that returns before its kernel ends. */
MAIL_TEST(kernels_have_ended_where_they_keep_the_host_from_managed_memory) {
    dpr_ctx *const concurrent = ((scene *)fixture)->ctx;
    int64_t out;
    fake_set_concurrent_managed(0);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &((scene *)fixture)->ctx));
    fake_set_concurrent_managed(1);
    fake_set_eager(1);
    EXPECT_STATUS(DPR_OK, sum(fixture, NULL, &out));
    EXPECT_EQ_I64(expected_sum, out);
    EXPECT_EQ_I64(1, waits_for_the_driver(fixture, sum, NULL));
    dpr_ctx_destroy(((scene *)fixture)->ctx);
    ((scene *)fixture)->ctx = concurrent;
}

/* Wherever array and result are. */
MAIL_TEST(nothing_is_under_way_after_a_blocking_call) {
    const scene *s = fixture;
    int64_t host, *const out[] = {&host, gpu_alloc(DPR_MEMORY_DEVICE, sizeof host),
                                  gpu_alloc(DPR_MEMORY_PINNED, sizeof host)};
    for (size_t i = 0; i < LENGTH(out); i++) {
        EXPECT_STATUS(DPR_OK, dpr_reduce(s->host, out[i], COUNT, DPR_I32, DPR_SUM));
        EXPECT_TRUE(!fake_is_working());
        EXPECT_STATUS(DPR_OK, dpr_reduce(s->in, out[i], COUNT, DPR_I32, DPR_SUM));
        EXPECT_TRUE(!fake_is_working());
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, s->in, out[i], 0, DPR_I32, DPR_SUM, NULL));
        EXPECT_TRUE(!fake_is_working());
    }
    gpu_free(DPR_MEMORY_DEVICE, out[1]);
    gpu_free(DPR_MEMORY_PINNED, out[2]);
}

/* Of 1 to 16 bytes, one after the other in the same mailbox. */
MAIL_TEST(results_of_every_size) {
    const dpr_c128 complex_in[2] = {{1.5, -2.5}, {4, 8}};
    const unsigned char bytes_in[5] = {1, 0, 7, 7, 3};
    void *in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof complex_in);
    ASSERT_TRUE(in != NULL);
    for (int i = 0; i < 40 && !test_failed(); i++) {
        unsigned char any[3] = {9, 9, 9};
        struct {
            dpr_c128 sum;
            int64_t after;
        } wide = {{0, 0}, canary};
        uint16_t half[2] = {0, 0x5a5a};
        const uint16_t half_in[2] = {0x3c00, 0x4000}; /* 1 and 2 */
        fake_set_eager(i % 2);
        ASSERT_TRUE(gpu_copy(in, complex_in, sizeof complex_in));
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, in, &wide.sum, 2, DPR_C128, DPR_SUM, NULL));
        EXPECT_TRUE(wide.sum.re == 5.5 && wide.sum.im == 5.5 && wide.after == canary);
        ASSERT_TRUE(gpu_copy(in, bytes_in, sizeof bytes_in));
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, in, &any[1], 5, DPR_U8, DPR_MAX, NULL));
        EXPECT_TRUE(any[0] == 9 && any[1] == 7 && any[2] == 9);
        ASSERT_TRUE(gpu_copy(in, half_in, sizeof half_in));
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, in, half, 2, DPR_F16, DPR_MAX, NULL));
        EXPECT_TRUE(half[0] == 0x4000 && half[1] == 0x5a5a);
    }
    gpu_free(DPR_MEMORY_DEVICE, in);
}

/* The wait works, but there is no result. */
MAIL_TEST(a_kernel_without_a_result_is_a_status) {
    int64_t out;
    for (int i = 0; i < 3; i++) {
        fake_drop_kernels(1);
        EXPECT_STATUS(DPR_ERR_CUDA, sum(fixture, "flat.block", &out));
        EXPECT_CONTAINS(dpr_last_error(), "flat.block");
        EXPECT_EQ_I64(canary, out);
        EXPECT_STATUS(DPR_OK, sum(fixture, "flat.block", &out));
        EXPECT_EQ_I64(expected_sum, out);
    }
}

/* Mailboxes that are lost run out, which is a status too, and no wait for ever. */
MAIL_TEST(lost_mailboxes_run_out) {
    int64_t out;
    fake_drop_kernels(NEVER);
    for (int i = 0; i < MAILBOXES && !test_failed(); i++)
        EXPECT_STATUS(DPR_ERR_CUDA, sum(fixture, "flat.block", &out));
    fake_drop_kernels(0);
    EXPECT_STATUS(DPR_ERR_CUDA, sum(fixture, "flat.block", &out));
    EXPECT_CONTAINS(dpr_last_error(), "device 0 has failed");
    EXPECT_EQ_I64(canary, out);
    EXPECT_STATUS(DPR_OK, sum_of_segments(fixture, "segments.small", &out)); /* waits for the driver instead */
    EXPECT_EQ_I64(expected_sum, out);
}

/* What a launch never reached can be used again. */
MAIL_TEST(failed_launches_lose_no_mailbox) {
    int64_t out;
    fake_set_eager(1);
    for (int i = 0; i < 3 * MAILBOXES && !test_failed(); i++) {
        int call = 0;
        const char *failed = NULL;
        do { /* which of a run's calls is the launch */
            fake_fail_call(++call, cudaErrorLaunchOutOfResources);
            (void)sum(fixture, "flat.block", &out);
            failed = fake_failed_call();
        } while (failed && strcmp(failed, "cuLaunchKernelEx") != 0 && call < 20);
        fake_fail_call(0, cudaSuccess);
        ASSERT_TRUE(failed != NULL);
        EXPECT_EQ_STR("cuLaunchKernelEx", failed);
        EXPECT_EQ_I64(canary, out);
    }
    EXPECT_STATUS(DPR_OK, sum(fixture, "flat.block", &out));
    EXPECT_EQ_I64(expected_sum, out);
}

/* ---- Faults, in a process of its own, as the device cannot be used afterwards ---- */

#define CHECK(CONDITION)                                                                                               \
    do {                                                                                                               \
        if (!(CONDITION)) {                                                                                            \
            printf("%s:%d: %s: \"%s\"\n", __FILE__, __LINE__, #CONDITION, dpr_last_error());                           \
            return 0;                                                                                                  \
        }                                                                                                              \
    } while (0)

static int says_that_the_device_failed(void) {
    return strstr(dpr_last_error(), "cudaErrorIllegalAddress") && strstr(dpr_last_error(), "again in this process");
}

static int after_a_fault(const scene *s, int to_host) {
    int64_t out = canary, *far_out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *far_out);
    dpr_ctx *cpu = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "flat.ticket";
    CHECK(dpr_ctx_create(DPR_DEVICE_CPU, &cpu) == DPR_OK);
    fake_fault_kernel(cudaErrorIllegalAddress);
    CHECK(dpr_reduce_ex(s->ctx, s->in, to_host ? &out : far_out, COUNT, DPR_I32, DPR_SUM, &options) == DPR_ERR_CUDA);
    CHECK(out == canary && says_that_the_device_failed());
    for (int i = 0; i < 2 * MAILBOXES; i++) {
        CHECK(dpr_reduce_ex(s->ctx, s->in, &out, COUNT, DPR_I32, DPR_SUM, NULL) == DPR_ERR_CUDA);
        CHECK(out == canary && says_that_the_device_failed());
        CHECK(dpr_reduce(s->in, &out, COUNT, DPR_I32, DPR_SUM) == DPR_ERR_CUDA && says_that_the_device_failed());
        CHECK(dpr_reduce_async(s->ctx, s->in, far_out, COUNT, DPR_I32, DPR_SUM, &options, NULL) == DPR_ERR_CUDA);
        CHECK(says_that_the_device_failed());
    }
    CHECK(dpr_reduce_ex(cpu, s->host, &out, COUNT, DPR_I32, DPR_SUM, NULL) == DPR_OK && out == expected_sum);
    out = canary;
    CHECK(dpr_reduce(s->host, &out, COUNT, DPR_I32, DPR_SUM) == DPR_OK && out == expected_sum);
    out = canary;
    CHECK(dpr_reduce_ex(s->ctx, s->host, &out, COUNT, DPR_I32, DPR_SUM, NULL) == DPR_OK && out == expected_sum);
    dpr_ctx_destroy(cpu);
    dpr_ctx_destroy(s->ctx);
    dpr_shutdown();
    return 1;
}

/* The child, which finds the driver anew, makes the scene itself. */
static void expect_in_child(int to_host) {
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        scene s = {0};
        (void)alarm(60);
        scene_open(&s);
        const int good = s.ctx && after_a_fault(&s, to_host);
        (void)fflush(NULL);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    EXPECT_TRUE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with 0x%x", (unsigned)status);
}

TEST(Faults, of_a_kernel_whose_result_goes_to_host_memory) {
    expect_in_child(1);
}

TEST(Faults, of_a_kernel_whose_result_goes_to_device_memory) {
    expect_in_child(0);
}
