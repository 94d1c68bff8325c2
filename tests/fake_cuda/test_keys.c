/* Calls with a result for each run of equal keys on the fake device: where arrays lie, and CUDA calls that fail. */
#include <stdio.h>
#include <string.h>

#include "fake_cuda.h"
#include "gpu_memory.h"
#include "parts_scene.h"
#include "support.h"

#define KEYS_TEST(NAME) TEST_FIXTURE(Keys, NAME, parts_scene, parts_open, parts_close)

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
    memcpy(k->results, parts_canaries, sizeof parts_canaries);
    k->runs = room;
}

static int is_as_started(const keyed *k) {
    return memcmp(k->results, parts_canaries, sizeof parts_canaries) == 0
           && memcmp(k->unique, key_canaries, sizeof key_canaries) == 0;
}

/* Reduces the runs of arrays in any memory; their number is in the host's. */
static dpr_status run_keyed(const parts_scene *s, keyed *k, uint64_t *runs, const dpr_options *options) {
    return dpr_reduce_by_key(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, runs, COUNT, DPR_I32, DPR_SUM,
                             options);
}

KEYS_TEST(runs_of_keys) {
    static const dpr_memory kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED, DPR_MEMORY_DEVICE, DPR_MEMORY_MANAGED};
    const parts_scene *s = fixture;
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
KEYS_TEST(runs_of_keys_in_pinned_memory_by_name) {
    static const char *const strategies[] = {"segments.merge", "segments.group", "segments.bins", "dp.segments"};
    const parts_scene *s = fixture;
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
static dpr_status enqueue_keyed(const parts_scene *s, keyed *k, uint64_t room) {
    return dpr_reduce_by_key_async(s->ctx, k->keys, DPR_I32, s->in, k->unique, k->results, &k->runs, room, COUNT, NULL,
                                   DPR_I32, DPR_SUM, NULL, s->stream);
}

KEYS_TEST(runs_of_keys_in_a_stream) {
    static const dpr_memory kinds[] = {DPR_MEMORY_PINNED, DPR_MEMORY_DEVICE, DPR_MEMORY_MANAGED};
    const parts_scene *s = fixture;
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
static dpr_plan *plan_of_keys(const parts_scene *s, dpr_memory memory, uint64_t room, const dpr_options *options,
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

/* Runs a plan of plan_of_keys() on arrays that the stream reaches, and fetches them to *k. */
static void run_plan(const parts_scene *s, dpr_plan *plan, keyed *k, keyed *there) {
    start_keyed(k, 77);
    EXPECT_TRUE(gpu_copy(there, k, sizeof *k));
    EXPECT_STATUS(
        DPR_OK, dpr_plan_run_by_key(plan, there->keys, s->in, there->unique, there->results, &there->runs, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(k, there, sizeof *k));
}

/* Plans name the way that runs take: in one pass where there is room for all, and otherwise in several. */
KEYS_TEST(plans_of_keys) {
    static const char one_pass[] = "runs of keys in one pass";
    const parts_scene *s = fixture;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
    ASSERT_TRUE(there);
    for (uint64_t room = 2; room <= COUNT; room += room < SEGMENTS ? 1 : COUNT - SEGMENTS) {
        char text[8192];
        size_t size = sizeof text;
        dpr_plan *const plan = plan_of_keys(s, DPR_MEMORY_AUTO, room, NULL, NULL);
        ASSERT_TRUE(plan != NULL);
        run_plan(s, plan, &k, there);
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
KEYS_TEST(plans_of_keys_have_options_and_a_number) {
    const parts_scene *s = fixture;
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
        run_plan(s, plan, &k, there);
        EXPECT_EQ_U64(i / 2 ? 2 : 3, k.runs);
        EXPECT_EQ_I64(1010, k.results[0]);
        EXPECT_EQ_I64(i / 2 ? 1090 : 1990, k.results[1]);
        dpr_plan_destroy(plan);
    }
    gpu_free(DPR_MEMORY_DEVICE, there);
    gpu_free(DPR_MEMORY_PINNED, number);
}

/* A plan for pageable memory runs on the CPU, also in the context of a GPU. */
KEYS_TEST(plans_of_keys_in_host_memory) {
    const parts_scene *s = fixture;
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
KEYS_TEST(plans_of_keys_in_other_memory) {
    const parts_scene *s = fixture;
    keyed k, *const there = gpu_alloc(DPR_MEMORY_PINNED, sizeof k);
    dpr_plan *const plan = plan_of_keys(s, DPR_MEMORY_DEVICE, COUNT, NULL, NULL);
    ASSERT_TRUE(there && plan);
    run_plan(s, plan, &k, there);
    EXPECT_TRUE(k.runs == 3 && are_of_runs(k.results, k.unique));
    dpr_plan_destroy(plan);
    gpu_free(DPR_MEMORY_PINNED, there);
}

/* A number of elements that the stream reads, and one in memory that it does not reach. */
KEYS_TEST(runs_of_a_number_of_keys_on_the_device) {
    const parts_scene *s = fixture;
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
KEYS_TEST(runs_that_the_gpu_does_not_reduce) {
    const parts_scene *s = fixture;
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

KEYS_TEST(keys_that_a_stream_does_not_reach) {
    const parts_scene *s = fixture;
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

/* Without room nothing is reduced, so `in` may be NULL: the other arrays say where the call runs. */
KEYS_TEST(runs_are_counted_without_elements) {
    const parts_scene *s = fixture;
    for (int on_device = 0; on_device < 8; on_device++) {
        keyed k, *const there = gpu_alloc(DPR_MEMORY_DEVICE, sizeof k);
        uint64_t runs = 0;
        ASSERT_TRUE(there);
        start_keyed(&k, 0);
        EXPECT_TRUE(gpu_copy(there, &k, sizeof k));
        EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_reduce_by_key(s->ctx, on_device & 1 ? there->keys : k.keys, DPR_I32,
                                                                  NULL, on_device & 2 ? there->unique : k.unique,
                                                                  on_device & 4 ? there->results : k.results, &runs,
                                                                  COUNT, DPR_I32, DPR_SUM, NULL));
        EXPECT_EQ_U64(3, runs);
        gpu_free(DPR_MEMORY_DEVICE, there);
    }
}

/* Keys are read after the stream's earlier work has written them. */
KEYS_TEST(keys_are_read_after_the_work_in_the_stream) {
    const parts_scene *s = fixture;
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

/* Keys in pageable memory are copied to the device, whatever runs in other streams. */
KEYS_TEST(copies_of_keys_wait_for_no_other_work) {
    const parts_scene *s = fixture;
    parts_elsewhere elsewhere;
    parts_elsewhere_open(&elsewhere);
    for (int i = 0; i < 4; i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        uint64_t runs = COUNT;
        keyed k;
        options.stream = i % 2 ? s->stream : NULL;
        start_keyed(&k, 0);
        parts_elsewhere_begin(&elsewhere);
        EXPECT_STATUS(DPR_OK, run_keyed(s, &k, &runs, &options));
        EXPECT_TRUE(are_of_runs(k.results, k.unique));
        EXPECT_THAT(i < 2 || parts_elsewhere_is_left(&elsewhere), "call %d has waited",
                    i); /* kernels are loaded before */
    }
    parts_elsewhere_close(&elsewhere);
}

/* The graph follows the keys. */
KEYS_TEST(a_captured_call_with_keys) {
    const parts_scene *s = fixture;
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

/* Arrays that the host reaches without CUDA, for run_keys(). */
static keyed *of_keys;

/* After an error nothing has changed. The empty segment is no run; its result is filled in. */
static dpr_status run_keys(const parts_scene *s, int64_t *out) {
    start_keyed(of_keys, SEGMENTS);
    const dpr_status status = run_keyed(s, of_keys, &of_keys->runs, NULL);
    if (status == DPR_OK) {
        EXPECT_TRUE(of_keys->runs == 3 && are_of_runs(of_keys->results, of_keys->unique));
        memcpy(out, parts_known, sizeof parts_known);
    } else {
        EXPECT_TRUE(of_keys->runs == SEGMENTS && is_as_started(of_keys));
    }
    return status;
}

KEYS_TEST(calls_that_fail_in_a_run_of_keys) {
    static const dpr_memory kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED};
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        of_keys = gpu_alloc(kinds[i], sizeof *of_keys);
        ASSERT_TRUE(of_keys);
        parts_fail_every_call(fixture, run_keys, parts_known, 0);
        gpu_free(kinds[i], of_keys);
    }
}

/* Reduces in one pass: enqueues it, or waits and sets *runs. */
static dpr_status run_with_room(const parts_scene *s, keyed *k, uint64_t *runs, int in_stream) {
    *runs = COUNT;
    return in_stream ? enqueue_keyed(s, k, COUNT) : run_keyed(s, k, runs, NULL);
}

/* A call that waits may have written results before the wait fails. */
KEYS_TEST(calls_that_fail_in_one_pass_over_keys) {
    const parts_scene *s = fixture;
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
KEYS_TEST(calls_that_fail_in_one_pass_of_two_launches) {
    enum { MANY = 800000 };
    static const int64_t both[] = {MANY, 77};
    static const int32_t one = 1;
    const parts_scene *s = fixture;
    int32_t *const in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *in);
    int64_t got[2], *const out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof got);
    uint64_t runs, *const found = gpu_alloc(DPR_MEMORY_DEVICE, sizeof runs);
    ASSERT_TRUE(in && out && found && gpu_repeat(in, MANY * sizeof *in, &one, sizeof one));
    int fail = 0;
    for (const char *failed = ""; failed && ++fail < MOST_CALLS && !test_failed();) {
        EXPECT_TRUE(gpu_copy(out, parts_canaries, sizeof got));
        for (int again = 0; again < 2; again++) {
            fake_fail_call(again ? 0 : fail, again ? cudaSuccess : cudaErrorUnknown);
            const dpr_status status = dpr_reduce_by_key_async(s->ctx, in, DPR_I32, in, NULL, out, found, MANY, MANY,
                                                              NULL, DPR_I32, DPR_SUM, NULL, s->stream);
            if (!again)
                failed = fake_failed_call();
            fake_fail_call(0, cudaSuccess);
            EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(got, out, sizeof got));
            EXPECT_THAT((failed && !again) || status == DPR_OK, "call %d: %s", fail, dpr_status_name(status));
            EXPECT_TRUE(memcmp(got, status == DPR_OK ? both : parts_canaries, sizeof got) == 0);
        }
        EXPECT_TRUE(gpu_copy(&runs, found, sizeof runs) && runs == 1);
    }
    EXPECT_THAT(fail > 2 && fail < MOST_CALLS, "%d calls", fail);
    gpu_free(DPR_MEMORY_DEVICE, in);
    gpu_free(DPR_MEMORY_DEVICE, out);
    gpu_free(DPR_MEMORY_DEVICE, found);
}

/* After an error the results have not changed; the number of runs and their keys may be there. */
static dpr_status enqueue_keys(const parts_scene *s, int64_t *out) {
    return dpr_reduce_by_key_async(s->ctx, of_keys->keys, DPR_I32, s->in, of_keys->unique, out, &of_keys->runs,
                                   SEGMENTS, COUNT, NULL, DPR_I32, DPR_SUM, NULL, s->stream);
}

KEYS_TEST(calls_that_fail_with_keys_in_a_stream) {
    of_keys = gpu_alloc(DPR_MEMORY_PINNED, sizeof *of_keys);
    ASSERT_TRUE(of_keys);
    start_keyed(of_keys, 77);
    parts_fail_every_call(fixture, enqueue_keys, known_of_runs, 1);
    EXPECT_TRUE(of_keys->runs == 3 && memcmp(of_keys->unique, known_keys, sizeof known_keys) == 0);
    gpu_free(DPR_MEMORY_PINNED, of_keys);
}
