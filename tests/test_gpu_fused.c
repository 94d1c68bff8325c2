/* Several operations in one pass on a GPU: blocking, in a stream, in a graph, with places of every kind. */
#include <stdlib.h>

#include "fused_sets.h"
#include "gpu_memory.h"

typedef struct scene {
    dpr_ctx *ctx;
    unsigned char *host, *device; /* the same FUSED_BYTES bytes */
    fused_out *pinned, *far;      /* places in pinned and device memory */
    uint64_t *count;              /* pinned memory */
    dpr_stream stream;
} scene;

static void scene_open(void *state) {
    scene *at = state;
    if (gpu_unavailable())
        return;
    at->host = malloc(FUSED_BYTES);
    at->device = gpu_alloc(DPR_MEMORY_DEVICE, FUSED_BYTES);
    at->pinned = gpu_alloc(DPR_MEMORY_PINNED, DPR_FUSED_MOST * sizeof *at->pinned);
    at->far = gpu_alloc(DPR_MEMORY_DEVICE, DPR_FUSED_MOST * sizeof *at->far);
    at->count = gpu_alloc(DPR_MEMORY_PINNED, sizeof *at->count);
    at->stream = gpu_stream_create();
    ASSERT_THAT(at->host && at->device && at->pinned && at->far && at->count && at->stream, "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &at->ctx));
}

static void scene_close(void *state) {
    scene *at = state;
    dpr_ctx_destroy(at->ctx);
    free(at->host);
    if (gpu_unavailable())
        return;
    gpu_free(DPR_MEMORY_DEVICE, at->device);
    gpu_free(DPR_MEMORY_PINNED, at->pinned);
    gpu_free(DPR_MEMORY_DEVICE, at->far);
    gpu_free(DPR_MEMORY_PINNED, at->count);
    EXPECT_TRUE(gpu_stream_destroy(at->stream));
}

#define FUSED_TEST(NAME) TEST_FIXTURE(GpuFused, NAME, scene, scene_open, scene_close)

/* A random set of a type, with its array on the device. */
static int choose(const scene *at, dpr_dtype dtype, uint64_t *seed, fused_set *set) {
    *set = (fused_set){.dtype = dtype, .in = at->host};
    fused_choose(set, seed);
    data_fill(at->host, set->ops[0], dtype, set->pattern, set->count);
    return EXPECT_TRUE(gpu_copy(at->device, at->host, set->count * ref_size(dtype)));
}

/* Arrays of several tiles a thread. They begin one element after a boundary of 16 bytes, complex ones half an element,
 * so that their elements are read one by one. */
static void check_many_tiles(const scene *at, dpr_dtype dtype, data_pattern pattern) {
    static const dpr_op ops[] = {DPR_SUM, DPR_VAR, DPR_SUMSQ, DPR_NORM2, DPR_MEAN, DPR_ARGMIN, DPR_ARGMAX};
    const size_t size = ref_size(dtype), before = ref_is_complex(dtype) ? size / 2 : size;
    fused_set set = {.dtype = dtype, .pattern = pattern, .count = size < 8 ? 10000001 : 5000001};
    unsigned char *device = gpu_alloc(DPR_MEMORY_DEVICE, (set.count + 1) * size), *host = malloc(set.count * size);
    for (size_t i = 0; i < LENGTH(ops); i++)
        if (ref_supported(ops[i], dtype))
            set.ops[set.n++] = ops[i];
    set.in = host;
    if (EXPECT_TRUE(device && host)) {
        data_fill(host, DPR_VAR, dtype, pattern, set.count);
        if (EXPECT_TRUE(gpu_copy(device + before, host, set.count * size)))
            fused_reduce(&set, at->ctx, "flat.fused", device + before);
    }
    gpu_free(DPR_MEMORY_DEVICE, device);
    free(host);
}

FUSED_TEST(arrays_of_many_tiles) {
    const scene *at = fixture;
    static const dpr_dtype dtypes[] = {DPR_U8, DPR_I32, DPR_F32, DPR_F64, DPR_C64, DPR_C128};
    static const data_pattern patterns[] = {DATA_CONSTANT, DATA_OUTLIER, DATA_RAMP, DATA_INF_MIDDLE, DATA_NAN_LAST};
    NEED_GPU();
    for (size_t i = 0; i < LENGTH(dtypes) * LENGTH(patterns) && !test_failed(); i++) {
        const dpr_dtype dtype = dtypes[i % LENGTH(dtypes)];
        const data_pattern pattern = patterns[i / LENGTH(dtypes)];
        if (data_pattern_applies(pattern, DPR_VAR, dtype))
            check_many_tiles(at, dtype, pattern);
    }
}

/* SUM, MEAN, SUMSQ and NORM2 from the accumulator of VAR, where it must tell infinities from NaNs. */
FUSED_TEST(results_of_a_shared_accumulator) {
    const scene *at = fixture;
    static const dpr_dtype dtypes[] = {DPR_F16, DPR_BF16, DPR_F32, DPR_C64};
    static const size_t counts[] = {1, 2, 33, 4097, FUSED_ELEMENTS};
    fused_set set = {.in = at->host, .n = 5, .ops = {DPR_NORM2, DPR_VAR, DPR_SUMSQ, DPR_MEAN, DPR_SUM}};
    NEED_GPU();
    for (size_t i = 0; i < LENGTH(dtypes) * LENGTH(counts) * DATA_PATTERNS * 2 && !test_failed(); i++) {
        size_t rest = i;
        set.nan = rest % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        set.dtype = dtypes[(rest /= 2) % LENGTH(dtypes)];
        set.count = counts[(rest /= LENGTH(dtypes)) % LENGTH(counts)];
        set.pattern = (data_pattern)(rest / LENGTH(counts));
        const dpr_op op = data_pattern_applies(set.pattern, DPR_VAR, set.dtype) ? DPR_VAR : DPR_NORM2;
        if (!data_pattern_applies(set.pattern, op, set.dtype))
            continue;
        data_fill(at->host, op, set.dtype, set.pattern, set.count);
        if (EXPECT_TRUE(gpu_copy(at->device, at->host, set.count * ref_size(set.dtype))))
            fused_reduce(&set, at->ctx, "flat.fused", at->device);
    }
}

/* Places of which some are in host, some in pinned, and some in device memory. */
static void mixed_places(const scene *at, fused_out *host, void **places) {
    fused_outs(host, places);
    fused_outs(at->pinned, places);
    EXPECT_TRUE(gpu_copy(at->far, host, DPR_FUSED_MOST * sizeof *host));
    for (size_t i = 0; i < DPR_FUSED_MOST; i++)
        places[i] = i % 3 == 0 ? host[i].result : i % 3 == 1 ? at->pinned[i].result : at->far[i].result;
}

static void collect(const scene *at, fused_out *host) {
    for (size_t i = 0; i < DPR_FUSED_MOST; i++)
        if (i % 3 != 0)
            EXPECT_TRUE(gpu_copy(&host[i], i % 3 == 1 ? &at->pinned[i] : &at->far[i], sizeof *host));
}

FUSED_TEST(random_sets) {
    const scene *at = fixture;
    uint64_t seed = 18;
    NEED_GPU();
    for (size_t i = 0; i < 20 * dpr_dtype_count() && !test_failed(); i++) {
        fused_set set;
        if (choose(at, dpr_dtype_at(i % dpr_dtype_count()), &seed, &set))
            fused_reduce(&set, at->ctx, i % 2 ? "flat.fused" : NULL, at->device);
    }
}

FUSED_TEST(places_of_every_kind) {
    const scene *at = fixture;
    uint64_t seed = 19;
    NEED_GPU();
    for (size_t i = 0; i < 4 * dpr_dtype_count() && !test_failed(); i++) {
        fused_out outs[DPR_FUSED_MOST];
        void *places[DPR_FUSED_MOST];
        fused_set set;
        choose(at, dpr_dtype_at(i % dpr_dtype_count()), &seed, &set);
        const dpr_options options = fused_options(&set, NULL);
        mixed_places(at, outs, places);
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_fused(at->ctx, at->device, places, set.count, set.dtype, set.ops, set.n, &options));
        collect(at, outs);
        fused_check(&set, outs, "places of every kind");
    }
}

/* Several sets in a row, so that kernels are launched while those before them run. */
FUSED_TEST(in_a_stream) {
    const scene *at = fixture;
    uint64_t seed = 20;
    void *places[DPR_FUSED_MOST];
    NEED_GPU();
    for (size_t i = 0; i < 10 * dpr_dtype_count() && !test_failed(); i++) {
        fused_set set;
        choose(at, dpr_dtype_at(i % dpr_dtype_count()), &seed, &set);
        const dpr_options options = fused_options(&set, NULL);
        fused_outs(at->pinned, places);
        for (int again = 0; again < 3; again++)
            EXPECT_STATUS(DPR_OK, dpr_reduce_fused_async(at->ctx, at->device, places, set.count, set.dtype, set.ops,
                                                         set.n, &options, at->stream));
        EXPECT_TRUE(gpu_stream_wait(at->stream));
        fused_check(&set, at->pinned, "in a stream");
    }
}

/* A captured plan follows the array and the number of elements from one launch to the next. */
FUSED_TEST(plans_in_a_graph) {
    const scene *at = fixture;
    uint64_t seed = 21;
    void *places[DPR_FUSED_MOST];
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    fused_set set = {.dtype = DPR_F32, .n = 5, .ops = {DPR_SUM, DPR_VAR, DPR_MINMAX, DPR_MEAN, DPR_NORM2}};
    NEED_GPU();
    set.in = at->host;
    problem.dtype = DPR_F32;
    problem.count = FUSED_ELEMENTS;
    problem.ops = set.ops;
    problem.op_count = set.n;
    problem.device_count = at->count;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(at->ctx, &problem, &plan));
    fused_outs(at->pinned, places);
    ASSERT_THAT(gpu_capture_begin(at->stream), "%s", gpu_error());
    EXPECT_STATUS(DPR_OK, dpr_plan_run_fused(plan, at->device, places, at->stream));
    gpu_graph *graph = gpu_capture_end(at->stream);
    ASSERT_THAT(graph != NULL, "%s", gpu_error());
    for (int i = 0; i < 12; i++) {
        set.count = i == 0 ? 1 : data_below(&seed, FUSED_ELEMENTS) + 1;
        *at->count = set.count;
        data_fill(at->host, DPR_VAR, DPR_F32, DATA_RANDOM, set.count);
        EXPECT_TRUE(gpu_copy(at->device, at->host, set.count * sizeof(float)));
        fused_outs(at->pinned, places);
        EXPECT_TRUE(gpu_graph_launch(graph, at->stream) && gpu_stream_wait(at->stream));
        fused_check(&set, at->pinned, "in a graph");
    }
    gpu_graph_destroy(graph);
    dpr_plan_destroy(plan);
}

FUSED_TEST(memory_that_a_stream_cannot_reach) {
    const scene *at = fixture;
    static const dpr_op ops[] = {DPR_SUM, DPR_VAR};
    float near[2] = {0};
    NEED_GPU();
    void *const places[] = {at->pinned[0].result, near};
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_reduce_fused_async(at->ctx, at->device, places, 4, DPR_F32, ops, 2, NULL, at->stream));
    EXPECT_CONTAINS(dpr_last_error(), "outs[1] is");
}
