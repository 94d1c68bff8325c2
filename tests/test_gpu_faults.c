/* Kernels that fault on a real device: what the library says of it, and that the CPU goes on. Each test runs in a
 * child, as CUDA cannot use the device again in a process where one has failed. The parent stays away from CUDA, which
 * cannot be used in a child forked after it was. */
#define _GNU_SOURCE /* fork(), MAP_ANONYMOUS */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_kernels.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "plan/strategies.def"
#include "support.h"

/* Memory of this size goes back to the system when it is freed, with its addresses. */
enum { COUNT = 1 << 24, SHORT = 1000, MAILBOXES = 64 };
enum { GOOD = 0, BAD = 1, SKIPPED = 77 };

static const int64_t canary = 0x5a5a5a5a, expected_short = (int64_t)SHORT * (SHORT + 1) / 2;

/* Seconds: until a kernel faults, which is long after a call has begun to wait for its result; that a call may take
 * where the device has failed; and after which a child that hangs is ended. */
static const double until_fault = 0.05, most_of_a_call = 5;
enum { MOST_OF_A_CHILD = 60 };

/* What one child works with. */
typedef struct scene {
    const char *strategy; /* NULL: the planner's choice */
    dpr_ctx *ctx, *cpu;
    dpr_plan *plan; /* the sum of COUNT elements of I32 in device memory */
    dpr_stream stream;
    int32_t *in, *doomed; /* device memory: COUNT ones each */
    int64_t *pinned_out, *device_out;
    int32_t host[SHORT]; /* 1, 2, ... SHORT */
} scene;

static int scene_open(scene *s) {
    const int32_t one = 1;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    for (int i = 0; i < SHORT; i++)
        s->host[i] = i + 1;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *s->in);
    s->doomed = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *s->in);
    s->pinned_out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->pinned_out);
    s->device_out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *s->device_out);
    s->stream = gpu_stream_create();
    if (!EXPECT_THAT(s->in && s->doomed && s->pinned_out && s->device_out && s->stream
                         && gpu_repeat(s->in, COUNT * sizeof one, &one, sizeof one)
                         && gpu_repeat(s->doomed, COUNT * sizeof one, &one, sizeof one),
                     "%s", gpu_error()))
        return 0;
    options.strategy = s->strategy;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.options = &options;
    return EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx))
           && EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu))
           && EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &s->plan));
}

static dpr_status call_blocking(const scene *s, int64_t *out) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = s->strategy;
    return dpr_reduce_ex(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, &options);
}

static dpr_status call_async(const scene *s, const int32_t *in, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = s->strategy;
    return dpr_reduce_async(s->ctx, in, s->pinned_out, COUNT, DPR_I32, DPR_SUM, &options, stream);
}

/* All that is tried after the fault works before it. */
static int check_before(const scene *s) {
    int64_t out = canary;
    EXPECT_STATUS(DPR_OK, call_blocking(s, &out));
    EXPECT_EQ_I64(COUNT, out);
    EXPECT_STATUS(DPR_OK, call_blocking(s, s->device_out));
    for (int plan = 0; plan < 2; plan++) {
        *s->pinned_out = canary;
        EXPECT_STATUS(DPR_OK,
                      plan ? dpr_plan_run(s->plan, s->in, s->pinned_out, s->stream) : call_async(s, s->in, s->stream));
        EXPECT_THAT(gpu_stream_wait(s->stream), "%s", gpu_error());
        EXPECT_EQ_I64(COUNT, *s->pinned_out);
    }
    *s->pinned_out = canary;
    return !test_failed();
}

/* ---- What follows a fault ---- */

static void says_that_the_device_is_lost(const char *call, dpr_status status, double seconds) {
    const char *text = dpr_last_error();
    EXPECT_THAT(status == DPR_ERR_CUDA, "%s: %s, \"%s\"", call, dpr_status_name(status), text);
    EXPECT_THAT(strstr(text, "CUDA cannot use ") && strstr(text, " again in this process"), "%s: \"%s\"", call, text);
    EXPECT_THAT(seconds < most_of_a_call, "%s: took %.1f s", call, seconds);
}

#define EXPECT_LOST(CALL)                                                                                              \
    do {                                                                                                               \
        const double before = test_now();                                                                              \
        const dpr_status status = (CALL);                                                                              \
        says_that_the_device_is_lost(#CALL, status, test_now() - before);                                              \
    } while (0)

/* More calls than there are mailboxes, none of which gets its result. */
static void check_device_calls(const scene *s) {
    int64_t out = canary;
    dpr_ctx *ctx = NULL;
    for (int i = 0; i < 2 * MAILBOXES && !test_failed(); i++) {
        EXPECT_LOST(call_blocking(s, &out));
        EXPECT_LOST(call_blocking(s, s->device_out));
        EXPECT_LOST(dpr_reduce(s->in, &out, COUNT, DPR_I32, DPR_SUM));
        EXPECT_LOST(call_async(s, s->in, NULL));
        EXPECT_LOST(call_async(s, s->in, s->stream));
        EXPECT_LOST(dpr_plan_run(s->plan, s->in, s->pinned_out, NULL));
        EXPECT_LOST(dpr_plan_run(s->plan, s->in, s->pinned_out, s->stream));
    }
    EXPECT_LOST(dpr_ctx_create(0, &ctx));
    EXPECT_TRUE(ctx == NULL);
    EXPECT_EQ_I64(canary, out);
    EXPECT_EQ_I64(canary, *s->pinned_out);
}

static void check_host_calls(const scene *s) {
    dpr_ctx *fresh = NULL;
    int64_t out[4] = {canary, canary, canary, canary};
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->cpu, s->host, &out[0], SHORT, DPR_I32, DPR_SUM, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, s->host, &out[1], SHORT, DPR_I32, DPR_SUM, NULL));
    EXPECT_STATUS(DPR_OK, dpr_reduce(s->host, &out[2], SHORT, DPR_I32, DPR_SUM));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &fresh));
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fresh, s->host, &out[3], SHORT, DPR_I32, DPR_SUM, NULL));
    for (size_t i = 0; i < LENGTH(out); i++)
        EXPECT_EQ_I64(expected_short, out[i]);
    dpr_ctx_destroy(fresh);
}

static void check_afterwards(const scene *s) {
    check_device_calls(s);
    check_host_calls(s);
    const double start = test_now();
    dpr_plan_destroy(s->plan);
    dpr_ctx_destroy(s->ctx);
    dpr_ctx_destroy(s->cpu);
    dpr_shutdown();
    EXPECT_THAT(test_now() - start < most_of_a_call, "giving all back took %.1f s", test_now() - start);
}

/* ---- Children ---- */

/* A test's body in the child. */
typedef struct fault_test {
    const char *strategy;
    void (*body)(scene *s);
} fault_test;

static int run_child(const fault_test *test, char *why_skipped) {
    static scene s; /* a child has one */
    (void)alarm(MOST_OF_A_CHILD);
    s.strategy = test->strategy;
    if (gpu_unavailable()) {
        snprintf(why_skipped, 256, "%s", gpu_unavailable());
        return SKIPPED;
    }
    for (size_t i = 0; i < gpu_strategy_count(); i++)
        if (s.strategy && strcmp(gpu_strategy(i), s.strategy) == 0 && !gpu_strategy_runs(i, DPR_SUM, DPR_I32)) {
            snprintf(why_skipped, 256, "%s does not run on this device", s.strategy);
            return SKIPPED;
        }
    if (scene_open(&s) && check_before(&s))
        test->body(&s);
    return test_failed() ? BAD : GOOD;
}

/* The child's checks are printed; here they count as one. */
static void in_child(void *context) {
    const fault_test *test = context;
    char *why = mmap(NULL, 256, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), text[256];
    ASSERT_TRUE(why != MAP_FAILED);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int outcome = run_child(test, why);
        (void)fflush(NULL);
        _exit(outcome);
    }
    int status = -1;
    const int ended = child > 0 && waitpid(child, &status, 0) == child;
    snprintf(text, sizeof text, "%.255s", why);
    (void)munmap(why, 256);
    ASSERT_TRUE(ended);
    EXPECT_THAT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "the child hung for %d s", MOST_OF_A_CHILD);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        SKIP(text);
    EXPECT_THAT(WIFEXITED(status) && WEXITSTATUS(status) == GOOD, "the child ended with 0x%x", (unsigned)status);
}

#define FAULT_TEST(NAME)                                                                                               \
    static void NAME(scene *s);                                                                                        \
    TEST(GpuFaults, NAME) {                                                                                            \
        in_child(&(fault_test){NULL, NAME});                                                                           \
    }                                                                                                                  \
    static void NAME(scene *s)

/* ---- A user's kernel faults, ahead of a blocking call in the default stream ---- */

static void fault_ahead(const scene *s, gpu_fault fault, int64_t *out) {
    const double start = test_now();
    ASSERT_EQ_I64(0, gpu_fault_later(fault, until_fault, NULL));
    EXPECT_LOST(call_blocking(s, out));
    EXPECT_CONTAINS(dpr_last_error(), "CUDA cannot use the device again in this process");
    EXPECT_THAT(test_now() - start >= 0.9 * until_fault, "the call did not wait: %.1f ms", 1e3 * (test_now() - start));
    check_afterwards(s);
}

FAULT_TEST(trap_ahead_of_a_result_for_the_host) {
    int64_t out = canary;
    fault_ahead(s, GPU_TRAPS, &out);
    EXPECT_EQ_I64(canary, out);
}

FAULT_TEST(trap_ahead_of_a_result_for_the_device) {
    fault_ahead(s, GPU_TRAPS, s->device_out);
}

FAULT_TEST(illegal_write_ahead_of_a_result_for_the_host) {
    int64_t out = canary;
    fault_ahead(s, GPU_WRITES, &out);
    EXPECT_EQ_I64(canary, out);
}

FAULT_TEST(illegal_write_ahead_of_a_result_for_the_device) {
    fault_ahead(s, GPU_WRITES, s->device_out);
}

/* ---- A kernel of the library faults, as its array is gone ---- */

static void expect_stream_fails(const scene *s) {
    const double start = test_now();
    EXPECT_TRUE(!gpu_stream_wait(s->stream));
    EXPECT_THAT(test_now() - start < most_of_a_call, "the fault took %.1f s", test_now() - start);
    check_afterwards(s);
}

FAULT_TEST(graph_replayed_on_freed_memory) {
    ASSERT_THAT(gpu_capture_begin(s->stream), "%s", gpu_error());
    EXPECT_STATUS(DPR_OK, call_async(s, s->doomed, s->stream));
    gpu_graph *graph = gpu_capture_end(s->stream);
    ASSERT_THAT(graph && gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream), "%s", gpu_error());
    EXPECT_EQ_I64(COUNT, *s->pinned_out);
    *s->pinned_out = canary;
    gpu_free(DPR_MEMORY_DEVICE, s->doomed);
    ASSERT_THAT(gpu_graph_launch(graph, s->stream), "%s", gpu_error());
    expect_stream_fails(s);
}

/* Blocks that wait for others, or for the copy engine, must not wait for ever. */
static void plan_on_freed_memory(scene *s) {
    gpu_free(DPR_MEMORY_DEVICE, s->doomed);
    ASSERT_STATUS(DPR_OK, dpr_plan_run(s->plan, s->doomed, s->pinned_out, s->stream));
    expect_stream_fails(s);
}

/* Whether the strategy reduces an array to one result. */
static int is_for_arrays(const char *name) {
    return strncmp(name, "segments", strlen("segments")) != 0 && strncmp(name, "axes", strlen("axes")) != 0
           && strcmp(name, "dp_segments") != 0;
}

TEST_GENERATOR(plans_on_freed_memory) {
#define NONE(ID)
#define QUOTE(ID) #ID,
    static char names[][32] = {DPR_STRATEGY_LIST(NONE, QUOTE)};
#undef QUOTE
#undef NONE
    static fault_test tests[LENGTH(names)];
    for (size_t i = 0; i < LENGTH(names); i++) {
        char name[64], *underscore = strchr(names[i], '_');
        if (!is_for_arrays(names[i]))
            continue;
        snprintf(name, sizeof name, "plan_on_freed_memory_%.32s", names[i]);
        if (underscore)
            *underscore = '.';
        tests[i] = (fault_test){names[i], plan_on_freed_memory};
        test_add(&(test_case){"GpuFaults", name, __FILE__, __LINE__, in_child, &tests[i], 0, NULL, NULL});
    }
}
