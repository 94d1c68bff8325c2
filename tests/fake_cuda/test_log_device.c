/* The log of calls on the fake device: kernels, memory and modules. */
#define _GNU_SOURCE /* setenv(), mkstemp() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "gpu_memory.h"
#include "support.h"

enum { COUNT = 5000, MOST_TEXT = 1 << 20 };

typedef struct scene {
    char path[32], text[MOST_TEXT];
    dpr_ctx *ctx;
    int32_t *in;
    int64_t *out;
    dpr_stream stream;
} scene;

static void open_scene(void *state) {
    scene *s = state;
    int32_t ones[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    (void)snprintf(s->path, sizeof s->path, "/tmp/dpr-log-XXXXXX");
    const int made = mkstemp(s->path);
    ASSERT_TRUE(made >= 0);
    (void)close(made);
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof ones);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->out);
    s->stream = gpu_stream_create();
    ASSERT_TRUE(s->in && s->out && s->stream && gpu_copy(s->in, ones, sizeof ones));
    dpr_shutdown();
}

static void close_scene(void *state) {
    scene *s = state;
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    (void)unlink(s->path);
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define LOG_TEST(NAME) TEST_FIXTURE(FakeLog, NAME, scene, open_scene, close_scene)

/* The context lives while the log is on. */
static void begin_log(scene *s, const char *categories) {
    ASSERT_TRUE(truncate(s->path, 0) == 0 && setenv("DPR_LOG_FILE", s->path, 1) == 0
                && setenv("DPR_LOG", categories, 1) == 0);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

/* What is in the log. */
static const char *read_log(scene *s) {
    FILE *file = fopen(s->path, "r");
    const size_t n = file ? fread(s->text, 1, sizeof s->text - 1, file) : 0;
    s->text[n] = '\0';
    if (file)
        (void)fclose(file);
    return s->text;
}

static const char *end_log(scene *s) {
    dpr_ctx_destroy(s->ctx);
    EXPECT_TRUE(unsetenv("DPR_LOG_FILE") == 0 && unsetenv("DPR_LOG") == 0);
    dpr_shutdown();
    return read_log(s);
}

static void enqueue(const scene *s, const char *strategy) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(s->ctx, s->in, s->out, COUNT, DPR_I32, DPR_SUM, &options, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(COUNT, *s->out);
}

LOG_TEST(of_choices) {
    begin_log(fixture, "plan");
    enqueue(fixture, NULL);
    enqueue(fixture, NULL);
    const char *text = end_log(fixture);
    EXPECT_CONTAINS(text, ", plan: sum of i32 in device memory, in a stream, on device 0 with ");
    EXPECT_CONTAINS(text, " SMs: flat.");
    EXPECT_CONTAINS(text, "; refused: cpu.serial, cpu.simd, cpu.threads (the CPU has no place in a CUDA stream)");
    EXPECT_TRUE(strchr(text, '\n') == strrchr(text, '\n'));
}

LOG_TEST(of_runs_and_kernels) {
    begin_log(fixture, "launch");
    enqueue(fixture, "flat.ticket");
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, fixture->in, fixture->out, COUNT, DPR_I32, DPR_SUM, NULL));
    const char *text = end_log(fixture);
    EXPECT_CONTAINS(text, ", launch: flat.ticket: sum of 5000 i32, from device memory at 0x");
    EXPECT_CONTAINS(text, " to pinned memory at 0x");
    EXPECT_CONTAINS(text, " of device 0\n");
    EXPECT_CONTAINS(text, " of device 0, waiting for the result\n");
    EXPECT_CONTAINS(text, ", launch: a kernel of ");
}

LOG_TEST(of_runs_of_keys) {
    uint64_t runs = 1;
    begin_log(fixture, "launch");
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(fixture->ctx, fixture->in, DPR_I32, fixture->in, NULL, fixture->out, &runs,
                                            COUNT, DPR_I32, DPR_MAX, NULL));
    const char *text = end_log(fixture);
    EXPECT_CONTAINS(text, ", launch: runs of keys: 5000 i32, from device memory at 0x");
    EXPECT_CONTAINS(text, ": max of 5000 i32 in 1 segments, from device memory at 0x");
    int32_t *const out = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *out);
    runs = COUNT;
    begin_log(fixture, "launch");
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(fixture->ctx, fixture->in, DPR_I32, fixture->in, NULL, out, &runs, COUNT,
                                            DPR_I32, DPR_MAX, NULL));
    text = end_log(fixture);
    EXPECT_CONTAINS(text, ", launch: runs of keys in one pass: max of 5000 i32, from device memory at 0x");
    EXPECT_TRUE(!strstr(text, "at most 0 blocks"));
    gpu_free(DPR_MEMORY_DEVICE, out);
}

LOG_TEST(of_memory_and_modules) {
    begin_log(fixture, "memory");
    enqueue(fixture, "flat.ticket");
    enqueue(fixture, "dp.recursive");
    const char *text = end_log(fixture);
    EXPECT_CONTAINS(text, ", memory: 4194304 bytes of scratch memory at 0x");
    EXPECT_CONTAINS(text, ", memory: device 0 is open, for streams with ");
    EXPECT_CONTAINS(text, ", memory: scratch memory at 0x");
    EXPECT_CONTAINS(text, ", memory: module ");
    EXPECT_CONTAINS(text, " bytes of workspace at 0x");
    EXPECT_CONTAINS(text, ", memory: the workspace at 0x");
    EXPECT_CONTAINS(text, ", memory: device 0 is closed\n");
}

LOG_TEST(of_nothing) {
    begin_log(fixture, "recursion");
    enqueue(fixture, "dp.recursive");
    EXPECT_EQ_STR("", end_log(fixture));
}

/* ---- What plans announce ---- */

/* The sum of all numbers in front of `what`. */
static size_t total(const char *text, const char *what) {
    size_t sum = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) {
        const char *number = at;
        while (number > text && number[-1] >= '0' && number[-1] <= '9')
            number--;
        EXPECT_TRUE(number < at);
        sum += (size_t)strtoull(number, NULL, 10);
    }
    return sum;
}

/* Checks that a run of the plan has as much workspace as is announced. Measuring costs, for the plan, takes some, too.
 */
static void expect_announced(scene *s, dpr_problem *problem, const char *strategy, const void *in, void *out) {
    static const char of_run[] = " bytes of workspace at 0x";
    static char announced[8192];
    size_t size = sizeof announced;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_plan *plan = NULL;
    options.strategy = strategy;
    problem->options = &options;
    begin_log(s, "memory");
    ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, announced, &size));
    const size_t before = total(read_log(s), of_run);
    EXPECT_STATUS(DPR_OK, problem->key_dtype
                              ? dpr_plan_run_by_key(plan, in, in, NULL, out, (uint64_t *)s->out, s->stream)
                              : dpr_plan_run(plan, in, out, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    dpr_plan_destroy(plan);
    const size_t expected = total(announced, " bytes of workspace"), had = total(end_log(s), of_run) - before;
    EXPECT_THAT(had > 0 && expected == had, "%s: %zu bytes announced, and %zu taken", announced, expected, had);
}

LOG_TEST(of_the_workspace_that_plans_announce) {
    enum { ELEMENTS = 1 << 22, PARTS = 100 };
    static const char *const of_segments[] = {"segments.merge", "segments.group", "segments.split", "segments.bins",
                                              "dp.segments"};
    static const uint64_t rooms[] = {ELEMENTS, 1000};
    int64_t offsets[PARTS + 1];
    for (int i = 0; i <= PARTS; i++)
        offsets[i] = i * (int64_t)(ELEMENTS / PARTS);
    int32_t *const in = gpu_alloc(DPR_MEMORY_DEVICE, ELEMENTS * sizeof *in);
    int64_t *const out = gpu_alloc(DPR_MEMORY_DEVICE, ELEMENTS * sizeof *out);
    int64_t *const numbers = gpu_alloc(DPR_MEMORY_DEVICE, sizeof offsets);
    ASSERT_TRUE(in && out && numbers && gpu_copy(numbers, offsets, sizeof offsets));
    EXPECT_TRUE(gpu_fill_async(in, 0, ELEMENTS * sizeof *in, fixture->stream));
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_problem array = DPR_PROBLEM_INIT;
    array.dtype = DPR_I32;
    array.count = ELEMENTS;
    dpr_problem in_segments = array, by_key = array;
    segments.count = PARTS;
    segments.begins = numbers;
    in_segments.segments = &segments;
    by_key.key_dtype = DPR_I32;
    expect_announced(fixture, &array, "dp.tree", in, out);
    for (size_t i = 0; i < LENGTH(of_segments); i++)
        expect_announced(fixture, &in_segments, of_segments[i], in, out);
    for (size_t i = 0; i < LENGTH(rooms); i++) {
        by_key.room = rooms[i];
        expect_announced(fixture, &by_key, NULL, in, out);
    }
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_DEVICE, out);
    gpu_free(DPR_MEMORY_DEVICE, numbers);
}
