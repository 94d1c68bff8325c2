/* Calls with a result for each segment on the fake device: where their arrays lie, and CUDA calls that fail. */
#include <stdio.h>
#include <string.h>

#include "fake_cuda.h"
#include "gpu_memory.h"
#include "support.h"

enum { COUNT = 5000, SEGMENTS = 4, MOST_CALLS = 200 };

static const int32_t offsets[SEGMENTS + 1] = {0, 10, 10, 1000, COUNT};
static const int64_t known[SEGMENTS] = {10, 0, 990, COUNT - 1000}, canaries[SEGMENTS] = {77, 77, 77, 77};

typedef struct scene {
    dpr_ctx *ctx;
    int32_t *in, *offsets; /* ones, and offsets, in device memory */
    int64_t *out;          /* pinned memory */
    dpr_stream stream;
} scene;

static void open_scene(void *state) {
    scene *s = state;
    int32_t ones[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof ones);
    s->offsets = gpu_alloc(DPR_MEMORY_DEVICE, sizeof offsets);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, sizeof known);
    s->stream = gpu_stream_create();
    ASSERT_TRUE(s->in && s->offsets && s->out && s->stream);
    ASSERT_TRUE(gpu_copy(s->in, ones, sizeof ones) && gpu_copy(s->offsets, offsets, sizeof offsets));
    memcpy(s->out, canaries, sizeof canaries);
}

static void close_scene(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_DEVICE, s->offsets);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define PARTS_TEST(NAME) TEST_FIXTURE(Parts, NAME, scene, open_scene, close_scene)

static dpr_segments segments_at(const int32_t *numbers) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    segments.count = SEGMENTS;
    segments.dtype = DPR_I32;
    segments.begins = numbers;
    return segments;
}

static dpr_status run(const scene *s, const dpr_segments *segments, int64_t *out, const dpr_options *options) {
    return dpr_reduce_segments(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, segments, options);
}

static dpr_status enqueue(const scene *s, const dpr_segments *segments, int64_t *out) {
    return dpr_reduce_segments_async(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, segments, NULL, s->stream);
}

static int are_known(const int64_t *results) {
    return memcmp(results, known, sizeof known) == 0;
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
    const scene *s = fixture;
    for (size_t i = 0; i < LENGTH(strategies); i++)
        for (int on_device = 0; on_device < 2; on_device++) {
            const dpr_segments segments = segments_at(on_device ? s->offsets : offsets);
            dpr_options options = DPR_OPTIONS_INIT;
            int64_t results[SEGMENTS] = {0};
            options.strategy = strategies[i];
            EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options));
            EXPECT_TRUE(are_known(results));
            memcpy(s->out, canaries, sizeof canaries);
            EXPECT_STATUS(DPR_OK, run(s, &segments, s->out, &options));
            EXPECT_TRUE(are_known(s->out));
        }
}

/* Block sizes of demonstrations. Without a name, one of them runs. */
PARTS_TEST(blocks_of_the_size_that_is_asked_for) {
    static const char *const strategies[] = {
        NULL, "segments.thread", "segments.warp", "segments.block", "segments.split", "segments.bins"};
    const scene *s = fixture;
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
    const scene *s = fixture;
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
        memcpy(s->out, canaries, sizeof canaries);
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
    const scene *s = fixture;
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
    const scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    for (size_t k = 0; k < LENGTH(names); k++) {
        dpr_options options = DPR_OPTIONS_INIT;
        double means[SEGMENTS] = {0};
        options.strategy = names[k];
        EXPECT_STATUS(DPR_OK, dpr_reduce_segments(s->ctx, s->in, means, COUNT, DPR_U8, DPR_MEAN, &segments, &options));
        for (size_t i = 0; i < SEGMENTS; i++) {
            int ones = 0;
            for (int at = offsets[i]; at < offsets[i + 1]; at++)
                ones += at % 4 == 0;
            const double mean = (double)ones / (offsets[i + 1] - offsets[i]);
            EXPECT_THAT(means[i] == mean || (mean != mean && means[i] != means[i]), "%s: mean %zu is %g, not %g",
                        names[k] ? names[k] : "the planner's choice", i, means[i], mean);
        }
    }
}

/* Ends that are offsets are no reason to refuse a strategy for offsets. */
PARTS_TEST(begins_and_ends_may_lie_apart) {
    const scene *s = fixture;
    for (int apart = 0; apart < 2; apart++) {
        dpr_segments segments = segments_at(s->offsets);
        dpr_options options = DPR_OPTIONS_INIT;
        int64_t results[SEGMENTS] = {0};
        segments.ends = apart ? &offsets[1] : s->offsets + 1;
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
    const scene *s = fixture;
    dpr_segments segments = segments_at(offsets);
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
        memcpy(s->out, canaries, sizeof canaries);
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
    const scene *s = fixture;
    int32_t *pinned = gpu_alloc(DPR_MEMORY_PINNED, 2 * sizeof offsets);
    int32_t *there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof offsets);
    ASSERT_TRUE(pinned && there && gpu_copy(there, offsets, sizeof offsets));
    memcpy(pinned, offsets, sizeof offsets);
    memcpy(pinned + SEGMENTS + 1, offsets, sizeof offsets);
    for (int kind = 0; kind < 6; kind++) { /* begins and ends: both on the device or not, and offsets alone */
        dpr_segments segments = segments_at(kind & 1 ? pinned : s->offsets);
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_plan *plan = NULL;
        segments.ends = kind < 2 ? NULL : kind < 4 ? there + 1 : pinned + SEGMENTS + 2;
        problem.dtype = DPR_I32;
        problem.count = COUNT;
        problem.segments = &segments;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
        memcpy(s->out, canaries, sizeof canaries);
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

static dpr_status measure_array(const scene *s, dpr_memory memory, dpr_plan **plan) {
    const dpr_options options = measuring();
    const dpr_problem problem = array_in(memory, &options);
    return dpr_plan_create(s->ctx, &problem, plan);
}

/* A plan of an array that measures runs all candidates on memory of its own, and gives it back. */
PARTS_TEST(plans_of_arrays_measure) {
    static const dpr_memory kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
    const scene *s = fixture;
    dpr_plan *plan = NULL;
    double seconds;
    char text[1 << 14];
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        dpr_options by_name = DPR_OPTIONS_INIT;
        ASSERT_STATUS(DPR_OK, measure_array(s, kinds[i], &plan));
        memcpy(s->out, canaries, sizeof canaries);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, s->out, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && s->out[0] == COUNT && s->out[1] == canaries[1]);
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
    const scene *s = fixture;
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
    const scene *s = fixture;
    int64_t results[SEGMENTS] = {0};
    dpr_segments segments = segments_at(offsets);
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
    const scene *s = fixture;
    int32_t *zeros = gpu_alloc(DPR_MEMORY_PINNED, sizeof offsets);
    ASSERT_TRUE(zeros);
    memset(zeros, 0, sizeof offsets);
    const dpr_segments segments = segments_at(zeros);
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_segments_async(s->ctx, NULL, s->out, 0, DPR_I32, DPR_SUM, &segments, NULL, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    for (int i = 0; i < SEGMENTS; i++)
        EXPECT_EQ_I64(0, s->out[i]);
    gpu_free(DPR_MEMORY_PINNED, zeros);
}

/* Keys whose runs are the segments that are not empty. */
static void make_keys(int32_t keys[COUNT]) {
    for (int i = 0; i < COUNT; i++)
        keys[i] = i < 10 ? 5 : i < 1000 ? -7 : 5;
}

/* All arrays of a call but `in`. There is room for as many runs as keys. */
typedef struct keyed {
    int32_t keys[COUNT], unique[COUNT];
    int64_t results[COUNT];
    uint64_t runs;
} keyed;

static const int64_t known_of_runs[SEGMENTS] = {10, 990, COUNT - 1000, 77};
static const int32_t known_keys[SEGMENTS] = {5, -7, 5, 77}, key_canaries[SEGMENTS] = {77, 77, 77, 77};

static int are_of_runs(const int64_t *results, const int32_t *unique) {
    return memcmp(results, known_of_runs, sizeof known_of_runs) == 0
           && memcmp(unique, known_keys, sizeof known_keys) == 0;
}

static void start_keyed(keyed *k, uint64_t room) {
    make_keys(k->keys);
    memcpy(k->unique, key_canaries, sizeof key_canaries);
    memcpy(k->results, canaries, sizeof canaries);
    k->runs = room;
}

static int is_as_started(const keyed *k) {
    return memcmp(k->results, canaries, sizeof canaries) == 0
           && memcmp(k->unique, key_canaries, sizeof key_canaries) == 0;
}

/* Reduces the runs of arrays in any memory; their number is in the host's. */
static dpr_status run_keyed(const scene *s, keyed *k, uint64_t *runs, const dpr_options *options) {
    return dpr_reduce_by_key(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, runs, COUNT, DPR_I32, DPR_SUM,
                             options);
}

PARTS_TEST(runs_of_keys) {
    static const dpr_memory kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED, DPR_MEMORY_DEVICE, DPR_MEMORY_MANAGED};
    const scene *s = fixture;
    for (size_t i = 0; i < 2 * LENGTH(kinds); i++) {
        keyed k, *const there = gpu_alloc(kinds[i / 2], sizeof k);
        dpr_options options = DPR_OPTIONS_INIT;
        uint64_t runs = 2;
        ASSERT_TRUE(there);
        options.stream = i % 2 ? s->stream : NULL;
        start_keyed(&k, 0);
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, run_keyed(s, there, &runs, &options));
        EXPECT_EQ_U64(3, runs);
        EXPECT_TRUE(gpu_copy(&k, there, sizeof k) && is_as_started(&k));
        EXPECT_STATUS(DPR_OK, run_keyed(s, there, &runs, &options));
        EXPECT_TRUE(gpu_copy(&k, there, sizeof k));
        EXPECT_THAT(are_of_runs(k.results, k.unique), "memory of kind %d", (int)kinds[i / 2]);
        start_keyed(&k, 0);
        runs = COUNT; /* from device memory, in one pass */
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_OK, run_keyed(s, there, &runs, &options));
        EXPECT_EQ_U64(3, runs);
        EXPECT_TRUE(gpu_copy(&k, there, sizeof k) && are_of_runs(k.results, k.unique));
        gpu_free(kinds[i / 2], there);
    }
}

/* The host finds the runs, and the GPU reduces them, if it is asked for by the name of a strategy. */
PARTS_TEST(runs_of_keys_in_pinned_memory_by_name) {
    static const char *const strategies[] = {"segments.merge", "segments.group", "segments.bins", "dp.segments"};
    const scene *s = fixture;
    int32_t keys[COUNT], *const pinned = gpu_alloc(DPR_MEMORY_PINNED, COUNT * sizeof *pinned);
    ASSERT_TRUE(pinned);
    make_keys(keys);
    for (int i = 0; i < COUNT; i++)
        pinned[i] = 1;
    for (size_t i = 0; i < LENGTH(strategies); i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        int32_t unique[SEGMENTS] = {77, 77, 77, 77};
        int64_t results[SEGMENTS] = {77, 77, 77, 77};
        uint64_t runs = 3;
        options.strategy = strategies[i];
        const dpr_status status =
            dpr_reduce_by_key(s->ctx, keys, DPR_I32, pinned, unique, results, &runs, COUNT, DPR_I32, DPR_SUM, &options);
        if (i == 0) { /* it copies from device memory alone */
            EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, status);
        } else {
            EXPECT_STATUS(DPR_OK, status);
            EXPECT_TRUE(are_of_runs(results, unique));
        }
    }
    gpu_free(DPR_MEMORY_PINNED, pinned);
}

/* Enqueues the call for arrays that the stream reaches. */
static dpr_status enqueue_keyed(const scene *s, keyed *k, uint64_t room) {
    return dpr_reduce_by_key_async(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, &k->runs, room, COUNT, NULL,
                                   DPR_I32, DPR_SUM, NULL, s->stream);
}

PARTS_TEST(runs_of_keys_in_a_stream) {
    static const dpr_memory kinds[] = {DPR_MEMORY_PINNED, DPR_MEMORY_DEVICE, DPR_MEMORY_MANAGED};
    const scene *s = fixture;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        keyed k, *const there = gpu_alloc(kinds[i], sizeof k);
        ASSERT_TRUE(there);
        const uint64_t most = kinds[i] == DPR_MEMORY_DEVICE ? COUNT : SEGMENTS; /* with COUNT, in one pass */
        for (uint64_t room = 0; room <= most; room += room < SEGMENTS ? 1 : COUNT - SEGMENTS) {
            start_keyed(&k, 77);
            EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
            EXPECT_STATUS(DPR_OK, enqueue_keyed(s, there, room));
            EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
            EXPECT_EQ_U64(3, k.runs);
            EXPECT_TRUE(room < 3 ? is_as_started(&k) : are_of_runs(k.results, k.unique));
        }
        start_keyed(&k, 77);
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_by_key_async(s->ctx, there->keys, DPR_I32, s->in, NULL, there->results, &there->runs,
                                              SEGMENTS, 3, NULL, DPR_I32, DPR_SUM, NULL, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
        EXPECT_TRUE(k.runs == 1 && k.results[0] == 3 && k.results[1] == 77);
        EXPECT_TRUE(memcmp(k.unique, key_canaries, sizeof key_canaries) == 0);
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(s->ctx, NULL, DPR_I32, NULL, NULL, NULL, &there->runs, 1, 0, NULL,
                                                      DPR_I32, DPR_SUM, NULL, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
        EXPECT_EQ_U64(0, k.runs);
        gpu_free(kinds[i], there);
    }
}

/* Makes a plan of the call of enqueue_keyed(). */
static dpr_plan *plan_of_keys(const scene *s, dpr_memory memory, uint64_t room, const dpr_options *options,
                              const uint64_t *number) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.memory = memory;
    problem.key_dtype = DPR_I32;
    problem.room = room;
    problem.options = options;
    problem.device_count = number;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    return plan;
}

/* Plans name the way that runs take: in one pass where there is room for all, and otherwise in several. */
PARTS_TEST(plans_of_keys) {
    static const char one_pass[] = "runs of keys in one pass";
    const scene *s = fixture;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
    ASSERT_TRUE(there);
    for (uint64_t room = 2; room <= COUNT; room += room < SEGMENTS ? 1 : COUNT - SEGMENTS) {
        char text[8192];
        size_t size = sizeof text;
        dpr_plan *const plan = plan_of_keys(s, DPR_MEMORY_AUTO, room, NULL, NULL);
        ASSERT_TRUE(plan != NULL);
        start_keyed(&k, 77);
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, there->keys, s->in, there->unique, there->results, &there->runs,
                                                  s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
        EXPECT_EQ_U64(3, k.runs);
        EXPECT_TRUE(room < 3 ? is_as_started(&k) : are_of_runs(k.results, k.unique));
        EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
        EXPECT_EQ_I64(room == COUNT, strcmp(dpr_plan_strategy(plan), one_pass) == 0);
        char line[80];
        (void)snprintf(line, sizeof line, "\nstrategy:  %s, ", dpr_plan_strategy(plan));
        EXPECT_CONTAINS(text, line);
        EXPECT_EQ_I64(room < COUNT,
                      strstr(text, "one pass is refused: needs room for as many runs as there are keys") != NULL);
        dpr_plan_destroy(plan);
    }
    gpu_free(DPR_MEMORY_DEVICE, there);
}

/* Options and a number of keys that the stream reads are the plan's. */
PARTS_TEST(plans_of_keys_have_options_and_a_number) {
    const scene *s = fixture;
    const int64_t init = 1000;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
    uint64_t *const number = gpu_alloc(DPR_MEMORY_PINNED, sizeof *number);
    ASSERT_TRUE(there && number);
    for (uint64_t i = 0; i < 4; i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.init = &init;
        options.strategy = i % 2 ? "segments.group" : NULL;
        *number = 100;
        dpr_plan *const plan = plan_of_keys(s, DPR_MEMORY_DEVICE, COUNT, &options, i / 2 ? number : NULL);
        ASSERT_TRUE(plan != NULL);
        EXPECT_EQ_I64(i == 0, strcmp(dpr_plan_strategy(plan), "runs of keys in one pass") == 0);
        start_keyed(&k, 77);
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, there->keys, s->in, there->unique, there->results, &there->runs,
                                                  s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
        EXPECT_EQ_U64(i / 2 ? 2 : 3, k.runs);
        EXPECT_EQ_I64(1010, k.results[0]);
        EXPECT_EQ_I64(i / 2 ? 1090 : 1990, k.results[1]);
        dpr_plan_destroy(plan);
    }
    gpu_free(DPR_MEMORY_DEVICE, there);
    gpu_free(DPR_MEMORY_PINNED, number);
}

/* A plan for pageable memory runs on the CPU, also in the context of a GPU. */
PARTS_TEST(plans_of_keys_in_host_memory) {
    const scene *s = fixture;
    static keyed k;
    static int32_t ones[COUNT];
    dpr_plan *const plan = plan_of_keys(s, DPR_MEMORY_HOST, SEGMENTS, NULL, NULL);
    ASSERT_TRUE(plan != NULL);
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    start_keyed(&k, 77);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_plan_run_by_key(plan, k.keys, ones, k.unique, k.results, &k.runs, s->stream));
    EXPECT_CONTAINS(dpr_last_error(), "the plan runs on the CPU");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_plan_run_by_key(plan, k.keys, s->in, k.unique, k.results, &k.runs, NULL));
    EXPECT_TRUE(is_as_started(&k) && k.runs == 77);
    EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, k.keys, ones, k.unique, k.results, &k.runs, NULL));
    EXPECT_TRUE(k.runs == 3 && are_of_runs(k.results, k.unique));
    dpr_plan_destroy(plan);
}

/* A run looks where its arrays lie, because this may be other memory than the problem names. */
PARTS_TEST(plans_of_keys_in_other_memory) {
    const scene *s = fixture;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_PINNED, sizeof k);
    dpr_plan *const plan = plan_of_keys(s, DPR_MEMORY_DEVICE, COUNT, NULL, NULL);
    ASSERT_TRUE(there && plan);
    start_keyed(&k, 77);
    EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
    EXPECT_STATUS(
        DPR_OK, dpr_plan_run_by_key(plan, there->keys, s->in, there->unique, there->results, &there->runs, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
    EXPECT_TRUE(k.runs == 3 && are_of_runs(k.results, k.unique));
    dpr_plan_destroy(plan);
    gpu_free(DPR_MEMORY_PINNED, there);
}

/* A number of elements that the stream reads, and one in memory that it does not reach. */
PARTS_TEST(runs_of_a_number_of_keys_on_the_device) {
    const scene *s = fixture;
    const uint64_t elsewhere = 3;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
    uint64_t *const number = gpu_alloc(DPR_MEMORY_PINNED, sizeof *number);
    ASSERT_TRUE(there && number);
    for (*number = 0; *number <= COUNT + 1; ++*number) {
        start_keyed(&k, 77);
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_by_key_async(s->ctx, there->keys, DPR_I32, s->in, there->unique, there->results,
                                              &there->runs, COUNT, COUNT, number, DPR_I32, DPR_SUM, NULL, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
        int64_t elements = 0;
        for (uint64_t i = 0; i < k.runs && i < SEGMENTS; i++)
            elements += k.results[i];
        EXPECT_EQ_U64(*number < COUNT ? *number : COUNT, elements); /* each of which is 1 */
    }
    start_keyed(&k, 77);
    EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_reduce_by_key_async(s->ctx, there->keys, DPR_I32, s->in, there->unique, there->results,
                                          &there->runs, COUNT, COUNT, &elsewhere, DPR_I32, DPR_SUM, NULL, s->stream));
    EXPECT_CONTAINS(dpr_last_error(), "device_count is ");
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
    EXPECT_TRUE(is_as_started(&k));
    gpu_free(DPR_MEMORY_DEVICE, there);
    gpu_free(DPR_MEMORY_PINNED, number);
}

/* Nothing is enqueued, so not even the number of runs changes. */
PARTS_TEST(runs_that_the_gpu_does_not_reduce) {
    const scene *s = fixture;
    keyed *const k = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *k);
    keyed got, before;
    dpr_options options = DPR_OPTIONS_INIT;
    ASSERT_TRUE(k);
    options.strategy = "segments.merge";
    start_keyed(&before, 77);
    EXPECT_TRUE(gpu_copy(k, &before, sizeof before));
    for (uint64_t room = 0; room <= SEGMENTS; room += 2) {
        uint64_t runs = room;
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE,
                      dpr_reduce_by_key_async(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, &k->runs, room,
                                              COUNT, NULL, DPR_I32, DPR_VAR, &options, s->stream));
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_reduce_by_key(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results,
                                                                 &runs, COUNT, DPR_I32, DPR_VAR, &options));
        EXPECT_EQ_U64(room, runs);
    }
    options.strategy = NULL;
    options.effort = DPR_WISDOM_ONLY; /* there is none, also where one pass would do */
    EXPECT_STATUS(DPR_ERR_WISDOM,
                  dpr_reduce_by_key_async(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, &k->runs, COUNT,
                                          COUNT, NULL, DPR_I32, DPR_SUM, &options, s->stream));
    options.effort = DPR_MEASURE; /* as for plans */
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_reduce_by_key_async(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, &k->runs, COUNT,
                                          COUNT, NULL, DPR_I32, DPR_SUM, &options, s->stream));
    EXPECT_STATUS(DPR_ERR_INVALID_DTYPE,
                  dpr_reduce_by_key_async(s->ctx, NULL, (dpr_dtype)999, NULL, NULL, NULL, &k->runs, 0, 0, NULL, DPR_I32,
                                          DPR_SUM, NULL, s->stream));
    EXPECT_STATUS(DPR_ERR_INVALID_DTYPE, dpr_reduce_by_key_async(s->ctx, NULL, DPR_F32, NULL, NULL, NULL, &k->runs, 0,
                                                                 0, NULL, DPR_I32, DPR_SUM, NULL, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&got, k, sizeof got));
    EXPECT_TRUE(memcmp(&got, &before, sizeof got) == 0);
    gpu_free(DPR_MEMORY_DEVICE, k);
}

PARTS_TEST(keys_that_a_stream_does_not_reach) {
    const scene *s = fixture;
    keyed k, got = {.runs = 0}, *const there = gpu_alloc(DPR_MEMORY_PINNED, sizeof k);
    start_keyed(&k, 77);
    ASSERT_TRUE(there && gpu_copy(there, &k, sizeof k));
#define EXPECT_OUT_OF_REACH(NAME, KEYS, UNIQUE, OUT, RUNS)                                                             \
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce_by_key_async(s->ctx, KEYS, DPR_I32, s->in, UNIQUE, OUT, RUNS, 4,     \
                                                               COUNT, NULL, DPR_I32, DPR_SUM, NULL, s->stream));       \
    EXPECT_CONTAINS(dpr_last_error(), NAME " is 0x");                                                                  \
    EXPECT_CONTAINS(dpr_last_error(), "in pageable host memory, which a stream cannot reach")
    EXPECT_OUT_OF_REACH("keys", k.keys, there->unique, there->results, &there->runs);
    EXPECT_OUT_OF_REACH("unique_keys", there->keys, k.unique, there->results, &there->runs);
    EXPECT_OUT_OF_REACH("out", there->keys, there->unique, k.results, &there->runs);
    EXPECT_OUT_OF_REACH("runs", there->keys, there->unique, there->results, &k.runs);
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&got, there, sizeof got));
    EXPECT_TRUE(is_as_started(&k) && is_as_started(&got) && k.runs == 77 && got.runs == 77);
    EXPECT_STATUS(DPR_OK, enqueue_keyed(s, there, 4));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&got, there, sizeof got));
    EXPECT_TRUE(are_of_runs(got.results, got.unique));
    gpu_free(DPR_MEMORY_PINNED, there);
}

/* ---- Order ---- */

/* Numbers that a stream is still to write are checked and read after that. */
PARTS_TEST(numbers_are_read_after_the_work_in_the_stream) {
    const scene *s = fixture;
    int32_t *of_later = gpu_alloc(DPR_MEMORY_PINNED, sizeof offsets);
    ASSERT_TRUE(of_later);
    memcpy(of_later, offsets, sizeof offsets);
    dpr_segments segments = segments_at(s->offsets);
    dpr_options options = DPR_OPTIONS_INIT;
    int64_t results[SEGMENTS] = {0};
    segments.check = 1;
    options.stream = s->stream;
    EXPECT_TRUE(gpu_fill_async(s->offsets, 0x7f, sizeof offsets, s->stream));
    EXPECT_TRUE(gpu_copy_async(s->offsets, of_later, sizeof offsets, s->stream));
    EXPECT_STATUS(DPR_OK, run(s, &segments, results, &options));
    EXPECT_TRUE(are_known(results));
    of_later[SEGMENTS] = COUNT + 1;
    EXPECT_TRUE(gpu_copy_async(s->offsets, of_later, sizeof offsets, s->stream));
    EXPECT_STATUS(DPR_ERR_SEGMENT, run(s, &segments, results, &options));
    EXPECT_CONTAINS(dpr_last_error(), "segment 3 ends at 5001");
    gpu_free(DPR_MEMORY_PINNED, of_later);
}

/* So are keys that a stream is still to write. */
PARTS_TEST(keys_are_read_after_the_work_in_the_stream) {
    const scene *s = fixture;
    const size_t bytes = COUNT * sizeof(int32_t);
    int32_t *const later = gpu_alloc(DPR_MEMORY_PINNED, bytes), *const keys = gpu_alloc(DPR_MEMORY_DEVICE, bytes);
    dpr_options options = DPR_OPTIONS_INIT;
    int32_t unique[SEGMENTS] = {77, 77, 77, 77};
    int64_t results[SEGMENTS] = {77, 77, 77, 77};
    uint64_t runs = 3;
    ASSERT_TRUE(later && keys);
    make_keys(later);
    options.stream = s->stream;
    EXPECT_TRUE(gpu_fill_async(keys, 0, bytes, s->stream) && gpu_copy_async(keys, later, bytes, s->stream));
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->ctx, keys, DPR_I32, s->in, unique, results, &runs, COUNT, DPR_I32,
                                            DPR_SUM, &options));
    EXPECT_TRUE(runs == 3 && are_of_runs(results, unique));
    gpu_free(DPR_MEMORY_PINNED, later);
    gpu_free(DPR_MEMORY_DEVICE, keys);
}

PARTS_TEST(a_captured_call_runs_with_each_launch) {
    const scene *s = fixture;
    const dpr_segments segments = segments_at(s->offsets);
    EXPECT_STATUS(DPR_OK, enqueue(s, &segments, s->out));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && are_known(s->out));
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, enqueue(s, &segments, s->out));
    gpu_graph *graph = gpu_capture_end(s->stream);
    for (int i = 0; i < 2; i++) {
        memcpy(s->out, canaries, sizeof canaries);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        EXPECT_TRUE(are_known(s->out));
    }
    gpu_graph_destroy(graph);
}

/* The graph follows the keys. */
PARTS_TEST(a_captured_call_with_keys) {
    const scene *s = fixture;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
    ASSERT_TRUE(there && gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, enqueue_keyed(s, there, 3));
    gpu_graph *const graph = gpu_capture_end(s->stream);
    ASSERT_TRUE(graph != NULL);
    for (int i = 0; i < 4; i++) {
        start_keyed(&k, 77);
        if (i % 2)
            k.keys[500] = 1; /* five runs */
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k) && gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream)
                    && gpu_copy(&k, there, sizeof k));
        EXPECT_EQ_U64(i % 2 ? 5 : 3, k.runs);
        EXPECT_TRUE(i % 2 ? is_as_started(&k) : are_of_runs(k.results, k.unique));
    }
    gpu_graph_destroy(graph);
    gpu_free(DPR_MEMORY_DEVICE, there);
}

/* ---- Failing calls ---- */

/* Makes call after call of CUDA's fail. `run_once` runs once and returns its status; the results should be `expected`.
 */
static void fail_every_call(scene *s, dpr_status (*run_once)(const scene *, int64_t *), const int64_t *expected,
                            int in_stream) {
    int fail = 0, is_over = 0;
    while (!is_over && ++fail < MOST_CALLS && !test_failed()) {
        int64_t pageable[SEGMENTS];
        int64_t *results = in_stream ? s->out : pageable;
        memcpy(results, canaries, sizeof canaries);
        fake_fail_call(fail, cudaErrorUnknown);
        const dpr_status status = run_once(s, results);
        const char *failed = fake_failed_call();
        fake_fail_call(0, cudaSuccess);
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        is_over = failed == NULL;
        const int is_right = memcmp(results, status == DPR_OK ? expected : canaries, sizeof canaries) == 0
                             && (failed || status == DPR_OK);
        EXPECT_THAT(is_right, "call %d, %s: %s", fail, failed ? failed : "none", dpr_status_name(status));
        EXPECT_STATUS(DPR_OK, run_once(s, results));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && memcmp(results, expected, sizeof canaries) == 0);
    }
    EXPECT_THAT(fail > 3 && fail < MOST_CALLS, "%d calls", fail);
}

static dpr_status run_staged(const scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(offsets);
    return run(s, &segments, out, NULL);
}

static dpr_status run_in_stream(const scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(s->offsets);
    return enqueue(s, &segments, out);
}

/* Arrays that the host reaches without CUDA, for run_keys(). */
static keyed *of_keys;

/* After an error nothing has changed. The empty segment is no run; its result is filled in. */
static dpr_status run_keys(const scene *s, int64_t *out) {
    start_keyed(of_keys, SEGMENTS);
    const dpr_status status = run_keyed(s, of_keys, &of_keys->runs, NULL);
    if (status == DPR_OK) {
        EXPECT_TRUE(of_keys->runs == 3 && are_of_runs(of_keys->results, of_keys->unique));
        memcpy(out, known, sizeof known);
    } else {
        EXPECT_TRUE(of_keys->runs == SEGMENTS && is_as_started(of_keys));
    }
    return status;
}

PARTS_TEST(calls_that_fail_in_a_run_of_keys) {
    static const dpr_memory kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED};
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        of_keys = gpu_alloc(kinds[i], sizeof *of_keys);
        ASSERT_TRUE(of_keys);
        fail_every_call(fixture, run_keys, known, 0);
        gpu_free(kinds[i], of_keys);
    }
}

/* Reduces in one pass: enqueues it, or waits and sets *runs. */
static dpr_status run_with_room(const scene *s, keyed *k, uint64_t *runs, int in_stream) {
    *runs = COUNT;
    return in_stream ? enqueue_keyed(s, k, COUNT) : run_keyed(s, k, runs, NULL);
}

/* A call that waits may have written results before the wait fails. */
PARTS_TEST(calls_that_fail_in_one_pass_over_keys) {
    const scene *s = fixture;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
    ASSERT_TRUE(there);
    for (int in_stream = 0; in_stream < 2; in_stream++) {
        int fail = 0;
        for (const char *failed = ""; failed && ++fail < MOST_CALLS && !test_failed();) {
            uint64_t runs;
            start_keyed(&k, 77);
            EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
            fake_fail_call(fail, cudaErrorUnknown);
            const dpr_status status = run_with_room(s, there, &runs, in_stream);
            failed = fake_failed_call();
            fake_fail_call(0, cudaSuccess);
            EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
            EXPECT_THAT(failed || status == DPR_OK, "call %d: %s", fail, dpr_status_name(status));
            EXPECT_EQ_U64(status == DPR_OK && !in_stream ? 3 : COUNT, runs);
            EXPECT_TRUE(status == DPR_OK ? are_of_runs(k.results, k.unique) : !in_stream || is_as_started(&k));
            EXPECT_STATUS(DPR_OK, run_with_room(s, there, &runs, in_stream));
            EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&k, there, sizeof k));
            EXPECT_TRUE(are_of_runs(k.results, k.unique));
        }
        EXPECT_THAT(fail > 1 && fail < MOST_CALLS, "%d calls", fail);
    }
    gpu_free(DPR_MEMORY_DEVICE, there);
}

/* So many elements that the records of tiles lie in workspace, which a launch zeroes before each run. */
PARTS_TEST(calls_that_fail_in_one_pass_of_two_launches) {
    enum { MANY = 800000 };
    static const int64_t both[] = {MANY, 77};
    static const int32_t one = 1;
    const scene *s = fixture;
    int32_t *const in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *in);
    int64_t got[2], *const out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof got);
    uint64_t runs, *const found = gpu_alloc(DPR_MEMORY_DEVICE, sizeof runs);
    ASSERT_TRUE(in && out && found && gpu_repeat(in, MANY * sizeof *in, &one, sizeof one));
    int fail = 0;
    for (const char *failed = ""; failed && ++fail < MOST_CALLS && !test_failed();) {
        EXPECT_TRUE(gpu_copy(out, canaries, sizeof got));
        for (int again = 0; again < 2; again++) {
            fake_fail_call(again ? 0 : fail, again ? cudaSuccess : cudaErrorUnknown);
            const dpr_status status = dpr_reduce_by_key_async(s->ctx, in, DPR_I32, in, NULL, out, found, MANY, MANY,
                                                              NULL, DPR_I32, DPR_SUM, NULL, s->stream);
            if (!again)
                failed = fake_failed_call();
            fake_fail_call(0, cudaSuccess);
            EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(got, out, sizeof got));
            EXPECT_THAT((failed && !again) || status == DPR_OK, "call %d: %s", fail, dpr_status_name(status));
            EXPECT_TRUE(memcmp(got, status == DPR_OK ? both : canaries, sizeof got) == 0);
        }
        EXPECT_TRUE(gpu_copy(&runs, found, sizeof runs) && runs == 1);
    }
    EXPECT_THAT(fail > 2 && fail < MOST_CALLS, "%d calls", fail);
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_DEVICE, out);
    gpu_free(DPR_MEMORY_DEVICE, found);
}

PARTS_TEST(calls_that_fail_in_a_blocking_run) {
    fail_every_call(fixture, run_staged, known, 0);
}

PARTS_TEST(calls_that_fail_in_a_stream) {
    fail_every_call(fixture, run_in_stream, known, 1);
}

/* After an error the results have not changed; the number of runs and their keys may be there. */
static dpr_status enqueue_keys(const scene *s, int64_t *out) {
    return dpr_reduce_by_key_async(s->ctx, of_keys->keys, DPR_I32, s->in, of_keys->unique, out, &of_keys->runs,
                                   SEGMENTS, COUNT, NULL, DPR_I32, DPR_SUM, NULL, s->stream);
}

PARTS_TEST(calls_that_fail_with_keys_in_a_stream) {
    of_keys = gpu_alloc(DPR_MEMORY_PINNED, sizeof *of_keys);
    ASSERT_TRUE(of_keys);
    start_keyed(of_keys, 77);
    fail_every_call(fixture, enqueue_keys, known_of_runs, 1);
    EXPECT_TRUE(of_keys->runs == 3 && memcmp(of_keys->unique, known_keys, sizeof known_keys) == 0);
    gpu_free(DPR_MEMORY_PINNED, of_keys);
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

static dpr_status enqueue_more(const scene *s, int64_t *out) {
    const dpr_segments segments = segments_at(more_numbers);
    return dpr_reduce_segments_async(s->ctx, more, out, MORE, DPR_I32, DPR_NORM1, &segments, NULL, s->stream);
}

PARTS_TEST(calls_that_fail_in_a_run_of_two_launches) {
    open_more();
    fail_every_call(fixture, enqueue_more, more_known, 1);
    close_more();
}

PARTS_TEST(a_captured_run_of_two_launches) {
    const scene *s = fixture;
    open_more();
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, enqueue_more(s, s->out));
    gpu_graph *graph = gpu_capture_end(s->stream);
    for (int i = 0; i < 2; i++) {
        memcpy(s->out, canaries, sizeof canaries);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        EXPECT_TRUE(memcmp(s->out, more_known, sizeof more_known) == 0);
    }
    gpu_graph_destroy(graph);
    close_more();
}
