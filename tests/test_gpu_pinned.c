/* Calls that block and read pinned memory: the GPU or the CPU runs them, whichever is expected to be the quicker. Times
 * that the test adds to the wisdom decide that here. */
#include "cycle.h"
#include "gpu_memory.h"
#include "lists.h"
#include "pinned_wisdom.h"
#include "plan/planner.h"
#include "plan/registry.h"
#include "support.h"

enum { COUNT = 1 << 17 };

typedef struct scene {
    dpr_ctx *ctx;
    int32_t *in; /* pinned memory */
    int64_t sum; /* of its elements */
    dpr_stream stream;
} scene;

/* Makes a context with wisdom by which sums are quickest with flat.lastblock if gpu_is_quicker, else with cpu.simd.
 * Times of long sums of F64 make the planner also expect the CPU to be slow, or fast, in calls without times. */
static void open_context(int gpu_is_quicker, dpr_ctx **out) {
    const size_t most = (size_t)1 << 30;
    const double seconds = gpu_is_quicker ? 100 : 1e-3;
    dpr_ctx *first = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &first));
    pinned_learn(first, gpu_is_quicker ? "flat.lastblock" : "cpu.simd", DPR_I32, DPR_MEMORY_PINNED, COUNT, 1e-9);
    pinned_learn(first, "cpu.simd", DPR_F64, DPR_MEMORY_HOST, most, seconds);
    pinned_learn(first, "cpu.threads", DPR_F64, DPR_MEMORY_HOST, most, seconds);
    dpr_ctx_destroy(first);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, out));
}

static void open_scene(dpr_side side, scene *s) {
    *s = (scene){.in = gpu_alloc(DPR_MEMORY_PINNED, COUNT * sizeof *s->in), .stream = gpu_stream_create()};
    ASSERT_THAT(s->in && s->stream, "%s", gpu_error());
    for (uint64_t i = 0; i < COUNT; i++)
        s->sum += s->in[i] = (int32_t)cycle_at(cycle_without_zero, i);
    open_context(side == DPR_ON_GPU, &s->ctx);
}

static void close_scene(scene *s) {
    dpr_ctx_destroy(s->ctx);
    dpr_wisdom_forget();
    gpu_free(DPR_MEMORY_PINNED, s->in);
    EXPECT_TRUE(!s->stream || gpu_stream_destroy(s->stream));
}

/* Expects that a strategy of the side is chosen for a result, for a partial result and for several operations. */
static void expect_side(const scene *s, dpr_side side) {
    for (int kind = 0; kind < 3; kind++) {
        dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_I32), .in_memory = DPR_MEMORY_PINNED}};
        dpr_choice choice;
        key.f.ops = UINT32_C(1) << key.f.op;
        key.f.partial = kind == 1;
        key.f.fused = kind == 2;
        if (kind == 2)
            key.f.ops |= UINT32_C(1) << DPR_ROW(DPR_MAX) | UINT32_C(1) << DPR_ROW(DPR_ARGMIN);
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, dpr_ctx_machine(s->ctx), &choice));
        EXPECT_EQ_I64(side, dpr_choice_at(&choice, COUNT)->strategy->side);
    }
}

/* The sum, to memory of any kind, behind what is in a stream and without one. */
static void expect_sums(const scene *s) {
    static const dpr_memory kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_DEVICE};
    for (size_t i = 0; i < 2 * LENGTH(kinds); i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        const dpr_memory kind = kinds[i / 2];
        int64_t got = 0, *out = gpu_alloc(kind, sizeof *out);
        ASSERT_THAT(out != NULL, "%s", gpu_error());
        options.stream = i % 2 ? s->stream : NULL;
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, s->in, out, COUNT, DPR_I32, DPR_SUM, &options));
        EXPECT_TRUE(gpu_copy(&got, out, sizeof got));
        EXPECT_THAT(got == s->sum, "to memory of kind %d: %lld, not %lld", (int)kind, (long long)got,
                    (long long)s->sum);
        gpu_free(kind, out);
    }
}

/* Several operations in one pass, and a partial result. */
static void expect_other_calls(const scene *s) {
    static const dpr_op ops[] = {DPR_SUM, DPR_MAX, DPR_ARGMIN};
    unsigned char partial[1024];
    int64_t sum = 0, of_partial = 0, at = -1;
    int32_t most = 0;
    void *const outs[] = {&sum, &most, &at};
    EXPECT_STATUS(DPR_OK, dpr_reduce_fused(s->ctx, s->in, outs, COUNT, DPR_I32, ops, 3, NULL));
    EXPECT_EQ_I64(s->sum, sum);
    EXPECT_EQ_I64(15, most);
    EXPECT_EQ_I64(0, at);
    ASSERT_TRUE(dpr_partial_size(DPR_SUM, DPR_I32) <= sizeof partial);
    EXPECT_STATUS(DPR_OK, dpr_reduce_partial(s->ctx, s->in, partial, COUNT, DPR_I32, DPR_SUM, 0, NULL));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(partial, 1, DPR_I32, DPR_SUM, NULL, &of_partial));
    EXPECT_EQ_I64(s->sum, of_partial);
}

static void check_side(dpr_side side) {
    scene s;
    open_scene(side, &s);
    if (!test_failed()) {
        expect_side(&s, side);
        expect_sums(&s);
        expect_other_calls(&s);
    }
    close_scene(&s);
}

TEST(GpuPinned, memory_is_read_by_a_gpu_that_is_quicker) {
    NEED_GPU();
    check_side(DPR_ON_GPU);
}

TEST(GpuPinned, memory_is_read_by_a_cpu_that_is_quicker) {
    NEED_GPU();
    check_side(DPR_ON_CPU);
}
