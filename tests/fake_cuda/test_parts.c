/* Calls with a result for each segment on the fake device: where their arrays lie, and CUDA calls that fail. */
#include <string.h>

#include "fake_cuda.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "parts_scene.h"
#include "support.h"

#define PARTS_TEST(NAME) TEST_FIXTURE(Parts, NAME, parts_scene, parts_open, parts_close)

static dpr_segments segments_at(const int32_t *numbers) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    segments.count = SEGMENTS;
    segments.dtype = DPR_I32;
    segments.begins = numbers;
    return segments;
}

static dpr_status run(const parts_scene *s, const dpr_segments *segments, int64_t *out, const dpr_options *options) {
    return dpr_reduce_segments(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, segments, options);
}

static dpr_status enqueue(const parts_scene *s, const dpr_segments *segments, int64_t *out) {
    return dpr_reduce_segments_async(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, segments, NULL, s->stream);
}

static int are_known(const int64_t *results) {
    return memcmp(results, parts_known, sizeof parts_known) == 0;
}

/* ---- Memory ---- */

PARTS_TEST(arrays_may_lie_in_pageable_memory) {
    static const char *const strategies[] = {NULL,
                                             "segments.merge",
                                             "segments.group",
                                             "segments.thread",
                                             "segments.warp",
                                             "segments.block",
                                             "segments.split",
                                             "segments.bins",
                                             "dp.segments"};
    const parts_scene *s = fixture;
    for (size_t i = 0; i < LENGTH(strategies); i++)
        for (int on_device = 0; on_device < 2; on_device++) {
            const dpr_segments segments = segments_at(on_device ? s->offsets : parts_offsets);
            dpr_options options = DPR_OPTIONS_INIT;
            int64_t results[SEGMENTS] = {0};
            options.strategy = strategies[i];
            EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options));
            EXPECT_TRUE(are_known(results));
            memcpy(s->out, parts_canaries, sizeof parts_canaries);
            EXPECT_STATUS(DPR_OK, run(s, &segments, s->out, &options));
            EXPECT_TRUE(are_known(s->out));
        }
}

/* Block sizes of demonstrations. Without a name, one of them runs. */
PARTS_TEST(blocks_of_the_size_that_is_asked_for) {
    static const char *const strategies[] = {
        NULL, "segments.thread", "segments.warp", "segments.block", "segments.split", "segments.bins"};
    const parts_scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    for (size_t i = 0; i < LENGTH(strategies); i++)
        for (int block = 32; block <= 1024; block *= 2) {
            const dpr_launch_options launch = {.size = sizeof launch, .block = block};
            dpr_options options = DPR_OPTIONS_INIT;
            int64_t results[SEGMENTS] = {0};
            options.strategy = strategies[i];
            options.launch = &launch;
            EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options));
            EXPECT_TRUE(are_known(results));
        }
}

/* Only a plan has a report of nested launches; those of other strategies count none. */
PARTS_TEST(reports_of_nested_launches) {
    static const char *const strategies[] = {"segments.group", "segments.split", "dp.segments"};
    const parts_scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    dpr_launch_report *const report = gpu_alloc(DPR_MEMORY_PINNED, sizeof *report);
    ASSERT_TRUE(report);
    for (size_t i = 0; i < LENGTH(strategies); i++) {
        const dpr_launch_options launch = {.size = sizeof launch, .report = report, .report_size = sizeof *report};
        dpr_options options = DPR_OPTIONS_INIT;
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_plan *plan = NULL;
        options.strategy = strategies[i];
        options.launch = &launch;
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, run(s, &segments, s->out, &options));
        EXPECT_CONTAINS(dpr_last_error(), "only a plan of segments writes a report");
        problem.dtype = DPR_I32;
        problem.count = COUNT;
        problem.segments = &segments;
        problem.options = &options;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
        memcpy(s->out, parts_canaries, sizeof parts_canaries);
        memset(report, 0x5a, sizeof *report);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, s->out, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && are_known(s->out));
        EXPECT_EQ_U64(strcmp(strategies[i], "dp.segments") == 0, report->launched); /* the fake device's count */
        EXPECT_EQ_U64(0, report->failed);
        dpr_plan_destroy(plan);
    }
    gpu_free(DPR_MEMORY_PINNED, report);
}

/* Of operations that share kernels, each runs its own. */
PARTS_TEST(operations_that_share_kernels) {
    static const dpr_op ops[] = {DPR_SUMSQ, DPR_NORM1}; /* of ones: the same as their sum */
    const parts_scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    double means[SEGMENTS] = {0};
    int32_t both[SEGMENTS][2] = {{0}};
    for (size_t i = 0; i < LENGTH(ops); i++) {
        int64_t results[SEGMENTS] = {0};
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->ctx, s->in, results, COUNT, DPR_I32, ops[i], &segments, NULL));
        EXPECT_TRUE(are_known(results));
    }
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->ctx, s->in, means, COUNT, DPR_I32, DPR_MEAN, &segments, NULL));
    EXPECT_TRUE(means[0] == 1 && means[1] != means[1] && means[2] == 1 && means[3] == 1);
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->ctx, s->in, both, COUNT, DPR_I32, DPR_MINMAX, &segments, NULL));
    for (size_t i = 0; i < SEGMENTS; i++)
        EXPECT_TRUE(both[i][0] == (i == 1 ? INT32_MAX : 1) && both[i][1] == (i == 1 ? INT32_MIN : 1));
}

/* The host tells kernels of SUM that the run wants means, for each strategy. The elements are ones of four bytes; if
 * they are read as bytes, one byte in four is 1. */
PARTS_TEST(means_by_kernels_of_sums) {
    static const char *const names[] = {NULL, "segments.merge", "segments.small", "segments.group"};
    const parts_scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    for (size_t k = 0; k < LENGTH(names); k++) {
        dpr_options options = DPR_OPTIONS_INIT;
        double means[SEGMENTS] = {0};
        options.strategy = names[k];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->ctx, s->in, means, COUNT, DPR_U8, DPR_MEAN, &segments, &options));
        for (size_t i = 0; i < SEGMENTS; i++) {
            int ones = 0;
            for (int at = parts_offsets[i]; at < parts_offsets[i + 1]; at++)
                ones += at % 4 == 0;
            const double mean = (double)ones / (parts_offsets[i + 1] - parts_offsets[i]);
            EXPECT_THAT(means[i] == mean || (mean != mean && means[i] != means[i]), "%s: mean %zu is %g, not %g",
                        names[k] ? names[k] : "the planner's choice", i, means[i], mean);
        }
    }
}

/* Ends that are offsets are no reason to refuse a strategy for offsets. */
PARTS_TEST(begins_and_ends_may_lie_apart) {
    const parts_scene *s = fixture;
    for (int apart = 0; apart < 2; apart++) {
        dpr_segments segments = segments_at(s->offsets);
        dpr_options options = DPR_OPTIONS_INIT;
        int64_t results[SEGMENTS] = {0};
        segments.ends = apart ? &parts_offsets[1] : s->offsets + 1;
        EXPECT_STATUS(DPR_OK, run(s, &segments, results, NULL));
        EXPECT_TRUE(are_known(results));
        memset(results, 0, sizeof results);
        options.strategy = "segments.merge";
        EXPECT_STATUS(apart ? DPR_ERR_STRATEGY_UNABLE : DPR_OK, run(s, &segments, results, &options));
        EXPECT_CONTAINS(dpr_last_error(), apart ? "takes offsets, not begins and ends" : "");
        EXPECT_TRUE(are_known(results) == !apart);
    }
}

/* A plan of segments runs in a stream, and explains itself. Its numbers must be where the GPU reaches them. */
PARTS_TEST(plans_have_segments) {
    const parts_scene *s = fixture;
    dpr_segments segments = segments_at(parts_offsets);
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    char text[8192];
    size_t size = sizeof text;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.segments = &segments;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_plan_create(s->ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "segments->begins is ");
    segments.begins = s->offsets;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    for (int i = 0; i < 3; i++) {
        memcpy(s->out, parts_canaries, sizeof parts_canaries);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, s->out, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && are_known(s->out));
    }
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, "problem:   sum of 5000 i32 in 4 segments, in device memory, in a stream\n");
    EXPECT_CONTAINS(text, "segments.merge ");
    EXPECT_CONTAINS(text, "flat.ticket");
    EXPECT_CONTAINS(text, "refused: runs one array, not its segments\n");
    dpr_plan_destroy(plan);
    segments.count = 0;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    size = sizeof text;
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, "in 0 segments");
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, NULL, s->stream));
    dpr_plan_destroy(plan);
}

/* Where a plan's numbers lie decides whether kernels may read them ahead. The fake checks what kernels are told. */
PARTS_TEST(plans_have_numbers_in_any_memory) {
    const parts_scene *s = fixture;
    int32_t *pinned = gpu_alloc(DPR_MEMORY_PINNED, 2 * sizeof parts_offsets);
    int32_t *there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof parts_offsets);
    ASSERT_TRUE(pinned && there && gpu_copy(there, parts_offsets, sizeof parts_offsets));
    memcpy(pinned, parts_offsets, sizeof parts_offsets);
    memcpy(pinned + SEGMENTS + 1, parts_offsets, sizeof parts_offsets);
    for (int kind = 0; kind < 6; kind++) { /* begins and ends: both on the device or not, and offsets alone */
        dpr_segments segments = segments_at(kind & 1 ? pinned : s->offsets);
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_plan *plan = NULL;
        segments.ends = kind < 2 ? NULL : kind < 4 ? there + 1 : pinned + SEGMENTS + 2;
        problem.dtype = DPR_I32;
        problem.count = COUNT;
        problem.segments = &segments;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
        memcpy(s->out, parts_canaries, sizeof parts_canaries);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, s->out, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && are_known(s->out));
        dpr_plan_destroy(plan);
    }
    gpu_free(DPR_MEMORY_DEVICE, there);
    gpu_free(DPR_MEMORY_PINNED, pinned);
}

static dpr_options measuring(void) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.effort = DPR_MEASURE;
    return options;
}

/* A problem whose arrays lie in such memory. */
static dpr_problem array_in(dpr_memory memory, const dpr_options *options) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.memory = memory;
    problem.options = options;
    return problem;
}

static dpr_status measure_array(const parts_scene *s, dpr_memory memory, dpr_plan **plan) {
    const dpr_options options = measuring();
    const dpr_problem problem = array_in(memory, &options);
    return dpr_plan_create(s->ctx, &problem, plan);
}

/* A plan of an array that measures runs all candidates on memory of its own, and gives it back. */
PARTS_TEST(plans_of_arrays_measure) {
    static const dpr_memory kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
    const parts_scene *s = fixture;
    dpr_plan *plan = NULL;
    double seconds;
    char text[1 << 14];
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        dpr_options by_name = DPR_OPTIONS_INIT;
        ASSERT_STATUS(DPR_OK, measure_array(s, kinds[i], &plan));
        memcpy(s->out, parts_canaries, sizeof parts_canaries);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, s->out, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && s->out[0] == COUNT && s->out[1] == parts_canaries[1]);
        by_name.strategy = dpr_plan_strategy(plan);
        const dpr_problem problem = array_in(kinds[i], &by_name);
        size_t size = sizeof text;
        EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
        EXPECT_CONTAINS(text, " us, measured\n");
        for (int in_stream = 0; in_stream < 2; in_stream++) /* those with cold caches are others */
            EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_find(dpr_ctx_machine(s->ctx), &problem, in_stream, &seconds));
        dpr_plan_destroy(plan);
        dpr_wisdom_forget();
        const int objects = fake_live_objects();
        ASSERT_STATUS(DPR_OK, measure_array(s, kinds[i], &plan));
        dpr_plan_destroy(plan);
        dpr_wisdom_forget();
        EXPECT_EQ_I64(objects, fake_live_objects());
    }
}

/* What fails while a plan measures is the plan's error, and the next plan is made. */
PARTS_TEST(plans_that_fail_to_measure) {
    static const dpr_memory kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
    static const char *const takes[] = {"cudaMalloc", "cudaHostAlloc", "cudaMallocManaged"};
    static const char *const sentences[] = {"20001 bytes of device memory for device 0: out of memory",
                                            "20001 bytes of pinned memory for device 0: out of memory",
                                            "20001 bytes of managed memory for device 0: out of memory"};
    const parts_scene *s = fixture;
    dpr_plan *first = NULL;
    ASSERT_STATUS(DPR_OK, measure_array(s, DPR_MEMORY_DEVICE, &first)); /* what the context keeps is there */
    dpr_plan_destroy(first);
    const int objects = fake_live_objects();
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        int is_taken = 0;
        for (int fail = 1; fail < 12 && !test_failed(); fail++) { /* also what the first candidate calls */
            dpr_plan *plan = NULL;
            fake_fail_call(fail, cudaErrorMemoryAllocation);
            const dpr_status status = measure_array(s, kinds[i], &plan);
            const char *failed = fake_failed_call();
            fake_fail_call(0, cudaSuccess);
            EXPECT_THAT(failed && (status == DPR_OK) == (plan != NULL), "call %d: %s", fail, dpr_status_name(status));
            if (!is_taken && failed && strcmp(failed, takes[i]) == 0) {
                EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, status);
                EXPECT_CONTAINS(dpr_last_error(), sentences[i]);
                is_taken = 1;
            }
            dpr_plan_destroy(plan);
            ASSERT_STATUS(DPR_OK, measure_array(s, kinds[i], &plan));
            dpr_plan_destroy(plan);
        }
        EXPECT_TRUE(is_taken);
        EXPECT_EQ_I64(objects, fake_live_objects());
    }
    dpr_wisdom_forget();
}

PARTS_TEST(a_stream_reaches_no_pageable_memory) {
    const parts_scene *s = fixture;
    int64_t results[SEGMENTS] = {0};
    dpr_segments segments = segments_at(parts_offsets);
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, enqueue(s, &segments, s->out));
    EXPECT_CONTAINS(dpr_last_error(), "segments->begins is ");
    segments.begins = s->offsets;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, enqueue(s, &segments, results));
    EXPECT_CONTAINS(dpr_last_error(), "out is ");
    segments.check = 1;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, enqueue(s, &segments, s->out));
    EXPECT_CONTAINS(dpr_last_error(), "segments->check is 1");
    EXPECT_EQ_I64(77, s->out[0]);
}

/* An array without elements has no place. A stream runs it on the GPU, also if no other array is in device memory. */
PARTS_TEST(no_elements) {
    const parts_scene *s = fixture;
    int32_t *zeros = gpu_alloc(DPR_MEMORY_PINNED, sizeof parts_offsets);
    ASSERT_TRUE(zeros);
    memset(zeros, 0, sizeof parts_offsets);
    const dpr_segments segments = segments_at(zeros);
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_segments_async(s->ctx, NULL, s->out, 0, DPR_I32, DPR_SUM, &segments, NULL, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    for (int i = 0; i < SEGMENTS; i++)
        EXPECT_EQ_I64(0, s->out[i]);
    gpu_free(DPR_MEMORY_PINNED, zeros);
}

/* ---- Order ---- */

/* Numbers that a stream is still to write are checked and read after that. */
PARTS_TEST(numbers_are_read_after_the_work_in_the_stream) {
    const parts_scene *s = fixture;
    int32_t *of_later = gpu_alloc(DPR_MEMORY_PINNED, sizeof parts_offsets);
    ASSERT_TRUE(of_later);
    memcpy(of_later, parts_offsets, sizeof parts_offsets);
    dpr_segments segments = segments_at(s->offsets);
    dpr_options options = DPR_OPTIONS_INIT;
    int64_t results[SEGMENTS] = {0};
    segments.check = 1;
    options.stream = s->stream;
    EXPECT_TRUE(gpu_fill_async(s->offsets, 0x7f, sizeof parts_offsets, s->stream));
    EXPECT_TRUE(gpu_copy_async(s->offsets, of_later, sizeof parts_offsets, s->stream));
    EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options));
    EXPECT_TRUE(are_known(results));
    of_later[SEGMENTS] = COUNT + 1;
    EXPECT_TRUE(gpu_copy_async(s->offsets, of_later, sizeof parts_offsets, s->stream));
    EXPECT_STATUS(DPR_ERR_SEGMENT, run(s, &segments, results, &options));
    EXPECT_CONTAINS(dpr_last_error(), "segment 3 ends at 5001");
    gpu_free(DPR_MEMORY_PINNED, of_later);
}

/* Arrays in pageable memory are copied to the device and back, whatever runs in other streams. */
PARTS_TEST(copies_wait_for_no_other_work) {
    const parts_scene *s = fixture;
    parts_elsewhere elsewhere;
    parts_elsewhere_open(&elsewhere);
    for (int i = 0; i < 4; i++) {
        dpr_segments segments = segments_at(i < 2 ? parts_offsets : s->offsets);
        dpr_options options = DPR_OPTIONS_INIT;
        int64_t results[SEGMENTS] = {0};
        segments.check = 1;
        options.stream = i % 2 ? s->stream : NULL;
        EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options)); /* now kernels are loaded */
        memset(results, 0, sizeof results);
        parts_elsewhere_begin(&elsewhere);
        EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options));
        EXPECT_TRUE(are_known(results) && parts_elsewhere_is_left(&elsewhere));
    }
    parts_elsewhere_close(&elsewhere);
}

/* A call that waits, and has arrays in pageable memory, does not harm the capture of its stream. */
PARTS_TEST(a_captured_stream_is_refused) {
    const parts_scene *s = fixture;
    dpr_options options = DPR_OPTIONS_INIT;
    int64_t results[SEGMENTS] = {0};
    options.stream = s->stream;
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    for (int i = 0; i < 2; i++) {
        const dpr_segments segments = segments_at(i ? parts_offsets : s->offsets);
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, run(s, &segments, results, &options));
        EXPECT_CONTAINS(dpr_last_error(), "which is being captured");
    }
    gpu_graph *graph = gpu_capture_end(s->stream);
    EXPECT_TRUE(graph != NULL);
    gpu_graph_destroy(graph);
}

/* A capture forbids the legacy default stream, in which nothing is measured. */
PARTS_TEST(plans_measure_while_a_stream_is_captured) {
    const parts_scene *s = fixture;
    const dpr_stream blocking = gpu_blocking_stream_create();
    dpr_plan *plan = NULL;
    ASSERT_TRUE(blocking && gpu_capture_begin(blocking));
    EXPECT_STATUS(DPR_OK, measure_array(s, DPR_MEMORY_DEVICE, &plan));
    gpu_graph *graph = gpu_capture_end(blocking);
    EXPECT_TRUE(graph != NULL);
    dpr_plan_destroy(plan);
    dpr_wisdom_forget();
    gpu_graph_destroy(graph);
    EXPECT_TRUE(gpu_stream_destroy(blocking));
}

PARTS_TEST(a_captured_call_runs_with_each_launch) {
    const parts_scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    EXPECT_STATUS(DPR_OK, enqueue(s, &segments, s->out));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && are_known(s->out));
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, enqueue(s, &segments, s->out));
    gpu_graph *graph = gpu_capture_end(s->stream);
    for (int i = 0; i < 2; i++) {
        memcpy(s->out, parts_canaries, sizeof parts_canaries);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        EXPECT_TRUE(are_known(s->out));
    }
    gpu_graph_destroy(graph);
}

/* ---- Failing calls ---- */

static dpr_status run_staged(const parts_scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(parts_offsets);
    return run(s, &segments, out, NULL);
}

static dpr_status run_in_stream(const parts_scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(s->offsets);
    return enqueue(s, &segments, out);
}

PARTS_TEST(calls_that_fail_in_a_blocking_run) {
    parts_fail_every_call(fixture, run_staged, parts_known, 0);
}

PARTS_TEST(calls_that_fail_in_a_stream) {
    parts_fail_every_call(fixture, run_in_stream, parts_known, 1);
}

/* ---- An array that may have a segment that all blocks share ---- */

enum { MORE = 40000 };
static const int32_t more_offsets[SEGMENTS + 1] = {0, 10, 10, 1000, MORE};
static const int64_t more_known[SEGMENTS] = {10, 0, 990, MORE - 1000};
static int32_t *more, *more_numbers; /* in device memory */

static void open_more(void) {
    static const int32_t one = 1;
    more = gpu_alloc(DPR_MEMORY_DEVICE, MORE * sizeof *more);
    more_numbers = gpu_alloc(DPR_MEMORY_DEVICE, sizeof more_offsets);
    ASSERT_TRUE(more && more_numbers && gpu_repeat(more, MORE * sizeof *more, &one, sizeof one)
                && gpu_copy(more_numbers, more_offsets, sizeof more_offsets));
}

static void close_more(void) {
    gpu_free(DPR_MEMORY_DEVICE, more);
    gpu_free(DPR_MEMORY_DEVICE, more_numbers);
}

static dpr_status enqueue_more(const parts_scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(more_numbers);
    return dpr_reduce_segments_async(s->ctx, more, out, MORE, DPR_I32, DPR_NORM1, &segments, NULL, s->stream);
}

static dpr_status run_more(const parts_scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(more_offsets);
    return dpr_reduce_segments(s->ctx, more, out, MORE, DPR_I32, DPR_NORM1, &segments, NULL);
}

PARTS_TEST(calls_that_fail_in_a_run_of_two_launches) {
    open_more();
    parts_fail_every_call(fixture, enqueue_more, more_known, 1);
    parts_fail_every_call(fixture, run_more, more_known, 0);
    close_more();
}

PARTS_TEST(a_captured_run_of_two_launches) {
    const parts_scene *s = fixture;
    open_more();
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, enqueue_more(s, s->out));
    gpu_graph *graph = gpu_capture_end(s->stream);
    for (int i = 0; i < 2; i++) {
        memcpy(s->out, parts_canaries, sizeof parts_canaries);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        EXPECT_TRUE(memcmp(s->out, more_known, sizeof more_known) == 0);
    }
    gpu_graph_destroy(graph);
    close_more();
}
