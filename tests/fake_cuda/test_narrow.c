/* Calls with a result for each segment in a stream of a green context, which has fewer SMs than the device: a call is
 * prepared for all of them, and again when its stream turns out to have fewer. */
#include <inttypes.h>
#include <string.h>

#include "fake_cuda.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "support.h"

enum { FEW = 8, COUNT = 1 << 22, OF_SEGMENT = 64, SEGMENTS = COUNT / OF_SEGMENT };

typedef struct arrays {
    int32_t in[COUNT];             /* ones */
    int32_t offsets[SEGMENTS + 1]; /* multiples of OF_SEGMENT */
    int32_t keys[COUNT];           /* the number of the segment */
} arrays;

typedef struct scene {
    dpr_ctx *ctx, *of_few; /* of the device, and of the green context */
    gpu_context *green;
    dpr_stream wide, narrow;
    arrays *at;   /* device memory */
    int64_t *out; /* room for COUNT results in device memory */
} scene;

static void fill(arrays *a) {
    for (int i = 0; i < COUNT; i++) {
        a->in[i] = 1;
        a->keys[i] = i / OF_SEGMENT;
    }
    for (int i = 0; i <= SEGMENTS; i++)
        a->offsets[i] = i * OF_SEGMENT;
}

static void open_scene(void *state) {
    static arrays host;
    scene *s = state;
    fill(&host);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    s->wide = gpu_stream_create();
    s->at = gpu_alloc(DPR_MEMORY_DEVICE, sizeof host);
    s->out = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *s->out);
    ASSERT_TRUE(s->wide && s->at && s->out && gpu_copy(s->at, &host, sizeof host));
    s->green = gpu_green_create(0, FEW);
    ASSERT_TRUE(s->green && gpu_context_push(s->green));
    s->narrow = gpu_stream_create();
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->of_few));
    ASSERT_TRUE(s->narrow && gpu_context_pop());
}

static void close_scene(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->of_few);
    dpr_ctx_destroy(s->ctx);
    gpu_free(DPR_MEMORY_DEVICE, s->at);
    gpu_free(DPR_MEMORY_DEVICE, s->out);
    EXPECT_TRUE(gpu_stream_destroy(s->narrow) && gpu_context_destroy(s->green) && gpu_stream_destroy(s->wide));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define NARROW_TEST(NAME) TEST_FIXTURE(Narrow, NAME, scene, open_scene, close_scene)

static dpr_status reduce_segments(dpr_ctx *ctx, const scene *s, const char *strategy, dpr_stream stream) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    segments.count = SEGMENTS;
    segments.dtype = DPR_I32;
    segments.begins = s->at->offsets;
    options.strategy = strategy;
    return dpr_reduce_segments_async(ctx, s->at->in, s->out, COUNT, DPR_I32, DPR_SUM, &segments, &options, stream);
}

/* Without a strategy in one pass; with one, runs are found first. */
static dpr_status reduce_keys(dpr_ctx *ctx, const scene *s, const char *strategy, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    uint64_t runs = COUNT;
    options.strategy = strategy;
    options.stream = stream;
    const dpr_status status =
        dpr_reduce_by_key(ctx, s->at->keys, DPR_I32, s->at->in, NULL, s->out, &runs, COUNT, DPR_I32, DPR_SUM, &options);
    EXPECT_EQ_U64(SEGMENTS, runs);
    return status;
}

typedef dpr_status call(dpr_ctx *ctx, const scene *s, const char *strategy, dpr_stream stream);

/* The blocks of the largest grid of a call, whose results are checked. */
static unsigned grid_of(dpr_ctx *ctx, const scene *s, call *reduce, const char *strategy, dpr_stream stream) {
    static int64_t out[SEGMENTS];
    memset(out, 0, sizeof out);
    EXPECT_TRUE(gpu_copy(s->out, out, sizeof out));
    (void)fake_largest_grid();
    EXPECT_STATUS(DPR_OK, reduce(ctx, s, strategy, stream));
    EXPECT_TRUE(gpu_stream_wait(stream) && gpu_copy(out, s->out, sizeof out));
    int i = 0;
    while (i < SEGMENTS && out[i] == OF_SEGMENT)
        i++;
    EXPECT_THAT(i == SEGMENTS, "%s: segment %d is %" PRId64, strategy ? strategy : "no name", i,
                out[i < SEGMENTS ? i : 0]);
    return fake_largest_grid();
}

/* Grids in the narrow stream are those of the context that knows no other SMs, before and after a call in the wide
 * stream. */
static void expect_grids(const scene *s, call *reduce, const char *strategy) {
    const unsigned few = grid_of(s->of_few, s, reduce, strategy, s->narrow);
    EXPECT_EQ_U64(few, grid_of(s->ctx, s, reduce, strategy, s->narrow));
    EXPECT_TRUE(grid_of(s->ctx, s, reduce, strategy, s->wide) > few);
    EXPECT_EQ_U64(few, grid_of(s->ctx, s, reduce, strategy, s->narrow));
}

NARROW_TEST(grids_of_segments) {
    static const char *const strategies[] = {"segments.merge", "segments.group", "segments.small"};
    for (size_t i = 0; i < LENGTH(strategies); i++)
        expect_grids(fixture, reduce_segments, strategies[i]);
}

/* Their grids do not depend on SMs, but their scratch memory does. */
NARROW_TEST(runs_of_keys) {
    static const char *const strategies[] = {NULL, "segments.merge"};
    const scene *s = fixture;
    const dpr_stream streams[] = {s->narrow, s->wide, s->narrow};
    for (size_t i = 0; i < LENGTH(strategies); i++)
        for (size_t j = 0; j < LENGTH(streams); j++)
            EXPECT_TRUE(grid_of(s->ctx, s, reduce_keys, strategies[i], streams[j]) > FEW);
}
