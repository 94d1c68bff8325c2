/* What nested launches cost on a device, as the library measures it, and the memory that it asks for before their code
 * is loaded. Others must leave the device's memory alone meanwhile. */
#include <stdio.h>

#include "api/ctx.h"
#include "gpu_pools.h"

enum { COUNT = 1 << 20, MIB = 1 << 20 };

static const int64_t element = 0x01010101;

/* COUNT elements of I32 in device memory. */
static int32_t *make_array(void) {
    int32_t *in = gpu_alloc(DPR_MEMORY_DEVICE, COUNT * sizeof *in);
    EXPECT_THAT(in && gpu_fill_async(in, 1, COUNT * sizeof *in, NULL) && gpu_stream_wait(NULL), "%s", gpu_error());
    return in;
}

static dpr_status reduce(dpr_ctx *ctx, const char *strategy, const int32_t *in, int64_t *sum) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    return dpr_reduce_ex(ctx, in, sum, COUNT, DPR_I32, DPR_SUM, &options);
}

static void expect_sum(dpr_ctx *ctx, const char *strategy, const int32_t *in) {
    int64_t sum = -1;
    EXPECT_STATUS(DPR_OK, reduce(ctx, strategy, in, &sum));
    EXPECT_EQ_I64(COUNT * element, sum);
}

/* Of what is free, all but `left` bytes, or NULL. */
static void *take_all_but(size_t left) {
    const size_t available = gpu_free_bytes();
    return EXPECT_TRUE(available > left) ? gpu_alloc(DPR_MEMORY_DEVICE, available - left) : NULL;
}

/* ---- Costs ---- */

/* As far as is true of any device: launches take from half a microsecond to a millisecond. */
static void expect_times(const dpr_gpu_caps *gpu) {
    EXPECT_EQ_I64(1, gpu->nested_times_measured);
    EXPECT_THAT(gpu->nested_level_ns >= 500 && gpu->nested_level_ns <= 1000000, "a level takes %lld ns",
                (long long)gpu->nested_level_ns);
    EXPECT_THAT(gpu->nested_tail_ns >= 500 && gpu->nested_tail_ns <= 1000000, "a tail-launched level takes %lld ns",
                (long long)gpu->nested_tail_ns);
    EXPECT_THAT(gpu->nested_first_ns <= 1000000 && gpu->nested_fan_ns <= 100000, "%lld ns more, and %lld ns",
                (long long)gpu->nested_first_ns, (long long)gpu->nested_fan_ns);
}

/* Where the code has been loaded, most of what is gone is its and the pool's; the rest is for runs. */
static void expect_bytes(const dpr_gpu_caps *gpu, size_t gone) {
    enum { FOR_RUNS = 64 * MIB };
    if (gone < FOR_RUNS)
        return;
    EXPECT_EQ_I64(1, gpu->nested_bytes_measured);
    EXPECT_THAT(gpu->nested_bytes <= (int64_t)gone && gpu->nested_bytes + FOR_RUNS > (int64_t)gone,
                "%lld bytes, and %zu are gone", (long long)gpu->nested_bytes, gone);
}

TEST(GpuCalibration, costs_are_measured_on_the_device) {
    static const size_t pools[] = {100, 2048, 16384};
    NEED_GPU();
    int32_t *in = make_array();
    for (size_t i = 0; i < LENGTH(pools); i++) {
        char name[64];
        dpr_machine machine;
        dpr_ctx *ctx = context_of(pools[i]);
        ASSERT_TRUE(ctx != NULL);
        const size_t before = gpu_free_bytes();
        expect_sum(ctx, "dp.tree", in);
        const size_t after = gpu_free_bytes();
        ASSERT_STATUS(DPR_OK, dpr_machine_known(dpr_ctx_machine(ctx), 0, &machine));
        const dpr_gpu_caps *gpu = &machine.caps.gpu;
        expect_times(gpu);
        expect_bytes(gpu, before > after ? before - after : 0);
        snprintf(name, sizeof name, "level_tail_first_fan_bytes_%zu", pools[i]);
        test_record(name, "%lld %lld %lld %lld %lld", (long long)gpu->nested_level_ns, (long long)gpu->nested_tail_ns,
                    (long long)gpu->nested_first_ns, (long long)gpu->nested_fan_ns, (long long)gpu->nested_bytes);
        dpr_ctx_destroy(ctx);
    }
    gpu_free(DPR_MEMORY_DEVICE, in);
}

/* ---- Memory ---- */

/* Where 400 MiB are left a pool of 65 536 launches takes more. Where the code is there already, as when one process has
 * all tests, the pool cannot grow. */
TEST(GpuCalibration, a_pool_that_does_not_fit_is_refused_and_nothing_else_is) {
    dpr_ctx_options large = DPR_CTX_OPTIONS_INIT;
    dpr_ctx *ctx = NULL, *other = NULL;
    NEED_GPU();
    int32_t *in = make_array();
    large.pending_launches = 65536;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &other));
    expect_sum(other, "flat.ticket", in);
    void *all = take_all_but((size_t)400 * MIB);
    ASSERT_TRUE(all != NULL);
    const dpr_status status = dpr_ctx_create_ex(0, &large, &ctx);
    if (status == DPR_OK) {
        int64_t sum;
        EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, reduce(ctx, "dp.tree", in, &sum));
        EXPECT_CONTAINS(dpr_last_error(), "a pool of 65536 pending launches");
        expect_sum(ctx, "flat.ticket", in);
    } else {
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, status);
        EXPECT_CONTAINS(dpr_last_error(), "ctx_options->pending_launches is 65536");
    }
    dpr_ctx_destroy(ctx);
    expect_sum(other, "flat.ticket", in);
    expect_sum(other, "dp.tree", in);
    gpu_free(DPR_MEMORY_DEVICE, all);
    ctx = context_of(large.pending_launches);
    ASSERT_TRUE(ctx != NULL);
    expect_sum(ctx, "dp.tree", in);
    dpr_ctx_destroy(ctx);
    dpr_ctx_destroy(other);
    gpu_free(DPR_MEMORY_DEVICE, in);
}

/* The code is gone with the driver's context, and for the next it has to be asked for anew whether there is memory. */
TEST(GpuCalibration, after_a_reset_the_code_is_loaded_again) {
    NEED_GPU();
    for (int again = 0; again < 2; again++) {
        dpr_ctx *ctx = NULL;
        int64_t sum;
        ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
        int32_t *in = make_array();
        void *all = take_all_but((size_t)100 * MIB);
        ASSERT_TRUE(all != NULL);
        if (again)
            EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, reduce(ctx, "dp.tree", in, &sum));
        gpu_free(DPR_MEMORY_DEVICE, all);
        expect_sum(ctx, "dp.tree", in);
        gpu_free(DPR_MEMORY_DEVICE, in);
        dpr_ctx_destroy(ctx);
        dpr_shutdown();
        ASSERT_TRUE(gpu_reset());
    }
}
