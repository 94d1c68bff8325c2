/* Calls that block and read pinned memory, where the GPU is the quicker one: in a stream with few SMs, and of arrays
 * that are pinned in part. */
#include "fake_cuda.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "pinned_wisdom.h"
#include "support.h"

enum { FEW = 8, COUNT = 1 << 14 }; /* whole pages, and several blocks */

typedef struct scene {
    dpr_ctx *ctx;
    int32_t *in; /* 1, 2, ... COUNT in pinned memory */
} scene;

static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2;

static void fill(int32_t *in) {
    for (int i = 0; i < COUNT; i++)
        in[i] = i + 1;
}

static void open_scene(void *state) {
    scene *s = state;
    dpr_ctx *first = NULL;
    s->in = gpu_alloc(DPR_MEMORY_PINNED, COUNT * sizeof *s->in);
    ASSERT_TRUE(s->in);
    fill(s->in);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &first));
    pinned_learn(first, "flat.lastblock", DPR_I32, DPR_MEMORY_PINNED, COUNT, 1e-9);
    dpr_ctx_destroy(first);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void close_scene(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    dpr_wisdom_forget();
    gpu_free(DPR_MEMORY_PINNED, s->in);
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define PINNED_TEST(NAME) TEST_FIXTURE(Pinned, NAME, scene, open_scene, close_scene)

/* The sum of `in`, to memory of a kind. Whether kernels were launched for it. */
static int expect_sum(const scene *s, const int32_t *in, dpr_memory kind, dpr_stream stream) {
    dpr_options options = DPR_OPTIONS_INIT;
    int64_t got = 0, *out = gpu_alloc(kind, sizeof *out);
    options.stream = stream;
    EXPECT_TRUE(out);
    (void)fake_largest_grid();
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, in, out, COUNT, DPR_I32, DPR_SUM, &options));
    EXPECT_TRUE(gpu_copy(&got, out, sizeof got));
    EXPECT_EQ_I64(expected_sum, got);
    gpu_free(kind, out);
    return fake_largest_grid() > 0;
}

static const dpr_memory kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_DEVICE};

PINNED_TEST(memory_is_read_by_the_gpu) {
    for (size_t i = 0; i < LENGTH(kinds); i++)
        EXPECT_TRUE(expect_sum(fixture, fixture->in, kinds[i], NULL));
}

/* Wisdom does not apply to a stream with fewer SMs, so its times cannot decide there; the call must stay on the GPU all
 * the same. */
PINNED_TEST(memory_is_read_by_the_gpu_in_a_stream_with_few_sms) {
    gpu_context *green = gpu_green_create(0, FEW);
    ASSERT_TRUE(green && gpu_context_push(green));
    dpr_stream narrow = gpu_stream_create();
    ASSERT_TRUE(narrow && gpu_context_pop());
    for (size_t i = 0; i < LENGTH(kinds); i++)
        EXPECT_TRUE(expect_sum(fixture, fixture->in, kinds[i], narrow));
    EXPECT_TRUE(gpu_stream_destroy(narrow) && gpu_context_destroy(green));
}

/* The array is one element longer than the pinned memory. Reading that element is safe, because the fake device
 * allocates whole pages. */
PINNED_TEST(memory_that_is_pinned_in_part_is_read_by_the_cpu) {
    int32_t *in = gpu_alloc(DPR_MEMORY_PINNED, (COUNT - 1) * sizeof *in);
    ASSERT_TRUE(in);
    fill(in);
    for (size_t i = 0; i < LENGTH(kinds); i++)
        EXPECT_TRUE(!expect_sum(fixture, in, kinds[i], NULL));
    gpu_free(DPR_MEMORY_PINNED, in);
}

/* It has no last byte that might not be pinned. */
PINNED_TEST(memory_without_elements) {
    int64_t sum = -1;
    (void)fake_largest_grid();
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, fixture->in, &sum, 0, DPR_I32, DPR_SUM, NULL));
    EXPECT_EQ_I64(0, sum);
    EXPECT_TRUE(fake_largest_grid() > 0);
}
