/* Partial results on GPUs: pieces on host and device, merging and finishing in a stream and in a graph. */
#include <stdlib.h>

#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "partial_splits.h"

enum { ARRAY_BYTES = SPLIT_ELEMENTS * 16, MOST_PLACES = 40 };

typedef struct scene {
    dpr_ctx *cpu, *gpu;
    unsigned char *host, *device; /* the same ARRAY_BYTES bytes */
    unsigned char *pieces;        /* SPLIT_PIECES partial results in device memory */
    unsigned char *merged, *out;  /* a partial result and a result in pinned memory */
    dpr_stream stream;
    split_place places[MOST_PLACES];
    size_t place_count;
    split s;
} scene;

static void add_place(scene *at, dpr_ctx *ctx, const char *strategy, const unsigned char *in) {
    if (EXPECT_TRUE(at->place_count < MOST_PLACES))
        at->places[at->place_count++] = (split_place){ctx, strategy, in};
}

static void scene_open(void *state) {
    scene *at = state;
    if (gpu_unavailable())
        return;
    at->host = malloc(ARRAY_BYTES);
    at->device = gpu_alloc(DPR_MEMORY_DEVICE, ARRAY_BYTES);
    at->pieces = gpu_alloc(DPR_MEMORY_DEVICE, SPLIT_PIECES * PARTIAL_MOST);
    at->merged = gpu_alloc(DPR_MEMORY_PINNED, PARTIAL_MOST);
    at->out = gpu_alloc(DPR_MEMORY_PINNED, 16);
    at->stream = gpu_stream_create();
    ASSERT_THAT(at->host && at->device && at->pieces && at->merged && at->out && at->stream, "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &at->cpu));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &at->gpu));
    add_place(at, at->cpu, "cpu.serial", at->host);
    add_place(at, at->cpu, "cpu.threads", at->host);
    for (size_t i = 0; i < gpu_strategy_count(); i++)
        add_place(at, at->gpu, gpu_strategy(i), at->device);
}

static void scene_close(void *state) {
    scene *at = state;
    dpr_ctx_destroy(at->cpu);
    dpr_ctx_destroy(at->gpu);
    free(at->host);
    if (gpu_unavailable())
        return;
    gpu_free(DPR_MEMORY_DEVICE, at->device);
    gpu_free(DPR_MEMORY_DEVICE, at->pieces);
    gpu_free(DPR_MEMORY_PINNED, at->merged);
    gpu_free(DPR_MEMORY_PINNED, at->out);
    EXPECT_TRUE(gpu_stream_destroy(at->stream));
}

#define PARTIALS_TEST(NAME) TEST_FIXTURE(GpuPartials, NAME, scene, scene_open, scene_close)

/* Sets at->s to a split of an array of pair i with the NaN policy. The seed chooses the pattern of the array. Returns 0
 * if there is no such pair. */
static int take_pair(scene *at, size_t i, dpr_nan nan, uint64_t *seed) {
    const dpr_op op = dpr_op_at(i / dpr_dtype_count());
    const dpr_dtype dtype = dpr_dtype_at(i % dpr_dtype_count());
    data_pattern pattern = (data_pattern)data_below(seed, DATA_PATTERNS);
    if (!ref_supported(op, dtype))
        return 0;
    while (!data_pattern_applies(pattern, op, dtype))
        pattern = (data_pattern)((pattern + 1) % DATA_PATTERNS);
    data_fill(at->host, op, dtype, pattern, SPLIT_ELEMENTS);
    at->s = (split){.op = op,
                    .dtype = dtype,
                    .nan = nan,
                    .pattern = pattern,
                    .in = at->host,
                    .places = at->places,
                    .place_count = at->place_count,
                    .most_pieces = data_below(seed, 16) == 0 ? SPLIT_PIECES : 61};
    return EXPECT_TRUE(gpu_copy(at->device, at->host, SPLIT_ELEMENTS * ref_size(dtype)));
}

/* Calls `check` for every pair and NaN policy. */
static void for_all_pairs(scene *at, void (*check)(scene *at, uint64_t *seed)) {
    uint64_t seed = 18;
    for (size_t i = 0; i < 2 * dpr_op_count() * dpr_dtype_count() && !test_failed(); i++)
        if (take_pair(at, i / 2, i % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE, &seed))
            check(at, &seed);
}

static void check_pieces(scene *at, uint64_t *seed) {
    split_check_pair(&at->s, seed);
}

PARTIALS_TEST(pieces_on_host_and_device) {
    NEED_GPU();
    for_all_pairs(fixture, check_pieces);
}

enum { PIECE = 100, PIECES = (SPLIT_ELEMENTS + PIECE - 1) / PIECE };

/* Enqueues reductions of all pieces, merging and finishing. */
static int enqueue_all(const scene *at, const dpr_options *options) {
    const split *s = &at->s;
    int good = 1;
    for (size_t i = 0; i < PIECES && good; i++) {
        const size_t from = i * PIECE, count = SPLIT_ELEMENTS - from < PIECE ? SPLIT_ELEMENTS - from : PIECE;
        good = EXPECT_STATUS(DPR_OK, dpr_reduce_partial_async(at->gpu, at->device + from * ref_size(s->dtype),
                                                              at->pieces + i * dpr_partial_size(s->op, s->dtype), count,
                                                              s->dtype, s->op, from, options, at->stream));
    }
    return good
           && EXPECT_STATUS(DPR_OK, dpr_partial_merge_async(at->gpu, at->pieces, PIECES, s->dtype, s->op, options,
                                                            at->merged, at->stream))
           && EXPECT_STATUS(DPR_OK, dpr_partial_finish_async(at->gpu, at->pieces, PIECES, s->dtype, s->op, options,
                                                             at->out, at->stream));
}

/* Checks that the stream has written the same bits as the host computes from the same pieces. */
static void check_against_host(scene *at, const dpr_options *options) {
    const split *s = &at->s;
    const size_t bytes = dpr_partial_size(s->op, s->dtype);
    _Alignas(16) unsigned char merged[PARTIAL_MOST], out[16];
    char text[160];
    at->s.pieces = PIECES;
    split_describe(s, text);
    ASSERT_TRUE(gpu_copy(at->s.partials, at->pieces, PIECES * bytes));
    EXPECT_STATUS(DPR_OK, dpr_partial_merge(s->partials, PIECES, s->dtype, s->op, options, merged));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(s->partials, PIECES, s->dtype, s->op, options, out));
    EXPECT_THAT(memcmp(merged, at->merged, bytes) == 0, "%s: the stream merges to other bytes", text);
    EXPECT_THAT(memcmp(out, at->out, ref_result_size(s->op, s->dtype)) == 0, "%s: the stream finishes with other bytes",
                text);
}

static void check_stream(scene *at, uint64_t *seed) {
    const dpr_options options = split_options(&at->s, NULL);
    (void)seed;
    memset(at->merged, 0x5a, PARTIAL_MOST);
    memset(at->out, 0x5a, 16);
    if (enqueue_all(at, &options) && EXPECT_TRUE(gpu_stream_wait(at->stream)))
        check_against_host(at, &options);
}

PARTIALS_TEST(merged_in_a_stream_as_on_the_host) {
    NEED_GPU();
    for_all_pairs(fixture, check_stream);
}

/* A captured graph runs again with other data. It computes a sum of F64, which is rounded in every piece, or ARGMIN. */
PARTIALS_TEST(merged_in_a_graph) {
    scene *at = fixture;
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMIN};
    NEED_GPU();
    for (size_t i = 0; i < LENGTH(ops); i++) {
        at->s = (split){.op = ops[i], .dtype = DPR_F64, .in = at->host, .places = at->places};
        const dpr_options options = split_options(&at->s, NULL);
        ASSERT_THAT(gpu_capture_begin(at->stream), "%s", gpu_error());
        enqueue_all(at, &options);
        gpu_graph *graph = gpu_capture_end(at->stream);
        ASSERT_THAT(graph != NULL, "%s", gpu_error());
        for (int pattern = 0; pattern < DATA_PATTERNS; pattern++) {
            if (!data_pattern_applies((data_pattern)pattern, ops[i], DPR_F64))
                continue;
            at->s.pattern = (data_pattern)pattern;
            data_fill(at->host, ops[i], DPR_F64, at->s.pattern, SPLIT_ELEMENTS);
            EXPECT_TRUE(gpu_copy(at->device, at->host, SPLIT_ELEMENTS * sizeof(double)));
            EXPECT_TRUE(gpu_graph_launch(graph, at->stream) && gpu_stream_wait(at->stream));
            check_against_host(at, &options);
        }
        gpu_graph_destroy(graph);
    }
}

/* A stream cannot report bytes that are no partial result. Merging them writes bytes that every later call refuses, and
 * finishing them writes nothing. */
PARTIALS_TEST(what_is_no_partial_result) {
    scene *at = fixture;
    static const unsigned char untouched[sizeof(double)] = {1, 8};
    dpr_partial_info info = DPR_PARTIAL_INFO_INIT;
    NEED_GPU();
    at->s = (split){.op = DPR_SUM, .dtype = DPR_F64};
    const dpr_options options = split_options(&at->s, NULL);
    memset(at->host, 0, ARRAY_BYTES);
    ASSERT_TRUE(gpu_copy(at->device, at->host, ARRAY_BYTES) && enqueue_all(at, &options));
    ASSERT_TRUE(gpu_fill_async(at->pieces + 5 * dpr_partial_size(DPR_SUM, DPR_F64), 1, 8, at->stream));
    ASSERT_TRUE(gpu_stream_wait(at->stream));
    memcpy(at->out, &untouched, sizeof untouched);
    EXPECT_STATUS(DPR_OK, dpr_partial_merge_async(at->gpu, at->pieces, PIECES, DPR_F64, DPR_SUM, &options, at->merged,
                                                  at->stream));
    EXPECT_STATUS(
        DPR_OK, dpr_partial_finish_async(at->gpu, at->pieces, PIECES, DPR_F64, DPR_SUM, &options, at->out, at->stream));
    ASSERT_TRUE(gpu_stream_wait(at->stream));
    EXPECT_STATUS(DPR_ERR_INVALID_PARTIAL, dpr_partial_describe(at->merged, &info));
    EXPECT_TRUE(memcmp(at->out, &untouched, sizeof untouched) == 0);
}

PARTIALS_TEST(memory_that_a_stream_cannot_reach) {
    const scene *at = fixture;
    NEED_GPU();
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_partial_merge_async(at->gpu, at->host, 1, DPR_F64, DPR_SUM, NULL, at->merged, at->stream));
    EXPECT_CONTAINS(dpr_last_error(), "partials is");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_partial_finish_async(at->gpu, at->pieces, 1, DPR_F64, DPR_SUM, NULL, at->host, at->stream));
    EXPECT_CONTAINS(dpr_last_error(), "out is");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_partial_finish_async(at->cpu, at->pieces, 1, DPR_F64, DPR_SUM, NULL, at->out, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "the context is the CPU's");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_partial_merge_async(at->cpu, at->host, 1, DPR_F64, DPR_SUM, NULL, at->merged, at->stream));
}

/* ---- A strategy that writes no partial results ---- */

enum { LONG = 1 << 16 };
static const char cluster[] = "coop.cluster";

/* A plan for the sum of `count` elements of I32 in device memory; strategy NULL: the planner's choice. */
static dpr_plan *plan_of(dpr_ctx *ctx, size_t count, const char *strategy) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    options.strategy = strategy;
    problem.op = DPR_SUM;
    problem.dtype = DPR_I32;
    problem.count = count;
    problem.options = &options;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    return plan;
}

/* A plan for which the planner has chosen coop.cluster, and its number of elements, at most LONG; NULL if there is no
 * such number. */
static dpr_plan *plan_that_chose_clusters(dpr_ctx *ctx, size_t *count) {
    for (*count = LONG; *count > 0; *count /= 2) {
        dpr_plan *plan = plan_of(ctx, *count, NULL);
        if (!plan || strcmp(dpr_plan_strategy(plan), cluster) == 0)
            return plan;
        dpr_plan_destroy(plan);
    }
    return NULL;
}

static void expect_refused(dpr_status status) {
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, status);
    EXPECT_CONTAINS(dpr_last_error(), cluster);
    EXPECT_CONTAINS(dpr_last_error(), "write no partial results");
}

/* A call does not replace a strategy that the caller has named. */
PARTIALS_TEST(named_clusters_are_refused) {
    scene *at = fixture;
    unsigned char untouched[PARTIAL_MOST];
    dpr_options options = DPR_OPTIONS_INIT;
    NEED_GPU();
    if (!gpu_caps() || !gpu_caps()->gpu.cluster_launch)
        SKIP("needs thread-block clusters");
    options.strategy = cluster;
    memset(untouched, 0x5a, sizeof untouched);
    memset(at->merged, 0x5a, PARTIAL_MOST);
    dpr_plan *plan = plan_of(at->gpu, SPLIT_ELEMENTS, cluster);
    ASSERT_TRUE(plan != NULL);
    expect_refused(dpr_reduce_partial(at->gpu, at->device, at->merged, SPLIT_ELEMENTS, DPR_I32, DPR_SUM, 0, &options));
    expect_refused(dpr_reduce_partial_async(at->gpu, at->device, at->merged, SPLIT_ELEMENTS, DPR_I32, DPR_SUM, 0,
                                            &options, at->stream));
    expect_refused(dpr_plan_run_partial(plan, at->device, at->merged, 0, at->stream));
    EXPECT_TRUE(gpu_stream_wait(at->stream));
    EXPECT_EQ_BYTES(untouched, at->merged, sizeof untouched);
    dpr_plan_destroy(plan);
}

PARTIALS_TEST(plans_that_chose_clusters_choose_another_strategy) {
    scene *at = fixture;
    size_t count = 0;
    int64_t sum = 0;
    NEED_GPU();
    dpr_plan *plan = plan_that_chose_clusters(at->gpu, &count);
    if (!plan)
        SKIP("the planner does not choose coop.cluster on this device");
    const int64_t expected = (int64_t)count * 0x01010101;
    int32_t *in = gpu_alloc(DPR_MEMORY_DEVICE, LONG * sizeof *in);
    ASSERT_TRUE(in && gpu_fill_async(in, 1, LONG * sizeof *in, at->stream));
    memset(at->merged, 0x5a, PARTIAL_MOST);
    EXPECT_STATUS(DPR_OK, dpr_plan_run_partial(plan, in, at->merged, 0, at->stream));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, at->out, at->stream));
    EXPECT_TRUE(gpu_stream_wait(at->stream));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(at->merged, 1, DPR_I32, DPR_SUM, NULL, &sum));
    EXPECT_EQ_I64(expected, sum);
    EXPECT_EQ_BYTES(&expected, at->out, sizeof expected);
    EXPECT_EQ_STR(cluster, dpr_plan_strategy(plan));
    gpu_free(DPR_MEMORY_DEVICE, in);
    dpr_plan_destroy(plan);
}
