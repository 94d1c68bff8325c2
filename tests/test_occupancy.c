/* Theoretical occupancy against the examples of the CUDA programming guide, and hostile input. */
#include <string.h>

#include "machines.h"
#include "plan/occupancy.h"
#include "support.h"

static int load(const char *name, dpr_gpu_caps *out) {
    dpr_machine machine;
    if (!machine_load(name, &machine))
        return 0;
    *out = machine.caps.gpu;
    return 1;
}

static void expect(const dpr_gpu_caps *gpu, dpr_kernel_use use, int blocks, double fraction, const char *limit) {
    const dpr_occupancy got = dpr_occupancy_of(gpu, use);
    EXPECT_THAT(got.blocks_per_sm == blocks && got.fraction == fraction && strcmp(got.limit, limit) == 0,
                "%d threads, %d registers, %d bytes: %d blocks, %g, %s; expected %d blocks, %g, %s", use.threads,
                use.registers, use.shared_bytes, got.blocks_per_sm, got.fraction, got.limit, blocks, fraction, limit);
}

TEST(Occupancy, examples_for_cc_10_0) {
    dpr_gpu_caps gpu;
    ASSERT_TRUE(load("cc100", &gpu));
    expect(&gpu, (dpr_kernel_use){768, 16, 0}, 2, 0.75, "threads");
    expect(&gpu, (dpr_kernel_use){32, 16, 0}, 32, 0.5, "blocks");
    expect(&gpu, (dpr_kernel_use){128, 16, 100 * 1024}, 2, 0.125, "shared memory");
    expect(&gpu, (dpr_kernel_use){1024, 64, 0}, 1, 0.5, "registers");
    expect(&gpu, (dpr_kernel_use){1024, 32, 0}, 2, 1.0, "threads");
    expect(&gpu, (dpr_kernel_use){256, 32, 232448}, 1, 0.125, "shared memory");
}

TEST(Occupancy, rtx_5060_ti) {
    dpr_gpu_caps gpu;
    ASSERT_TRUE(load("rtx5060ti", &gpu));
    expect(&gpu, (dpr_kernel_use){1024, 32, 0}, 1, 1024.0 / 1536.0, "threads");
    expect(&gpu, (dpr_kernel_use){768, 32, 0}, 2, 1.0, "threads");
    expect(&gpu, (dpr_kernel_use){32, 16, 0}, 24, 0.5, "blocks");
    expect(&gpu, (dpr_kernel_use){128, 16, 50 * 1024}, 1, 128.0 / 1536.0, "shared memory");
}

TEST(Occupancy, h200) {
    dpr_gpu_caps gpu;
    ASSERT_TRUE(load("h200", &gpu));
    expect(&gpu, (dpr_kernel_use){512, 64, 0}, 2, 0.5, "registers");
    expect(&gpu, (dpr_kernel_use){512, 32, 0}, 4, 1.0, "threads");
    expect(&gpu, (dpr_kernel_use){1024, 64, 0}, 1, 0.5, "registers");
}

TEST(Occupancy, what_does_not_fit) {
    dpr_gpu_caps gpu;
    ASSERT_TRUE(load("cc100", &gpu));
    expect(&gpu, (dpr_kernel_use){0, 16, 0}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){-1, 16, 0}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){1025, 16, 0}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){256, -1, 0}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){256, 16, -1}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){256, 16, 232449}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){1024, 255, 0}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){1024, 2147483647, 0}, 0, 0, "does not fit");
    expect(&gpu, (dpr_kernel_use){2147483647, 2147483647, 2147483647}, 0, 0, "does not fit");
}

/* Whatever a driver reports, no value may divide by zero or overflow into a made-up occupancy. */
TEST(Occupancy, machines_that_cannot_be) {
    dpr_gpu_caps none;
    memset(&none, 0, sizeof none);
    expect(&none, (dpr_kernel_use){256, 16, 0}, 0, 0, "does not fit");
#define WITHOUT(A, NAME, ...)                                                                                          \
    {                                                                                                                  \
        const int64_t values[] = {0, -1, INT64_MIN, INT64_MAX, 1};                                                     \
        for (size_t i = 0; i < LENGTH(values); i++) {                                                                  \
            dpr_gpu_caps gpu;                                                                                          \
            ASSERT_TRUE(load("h200", &gpu));                                                                           \
            gpu.NAME = values[i];                                                                                      \
            const dpr_occupancy got = dpr_occupancy_of(&gpu, (dpr_kernel_use){256, 32, 1024});                         \
            EXPECT_THAT(got.blocks_per_sm >= 0 && got.fraction >= 0 && got.fraction <= 1 && got.limit != NULL,         \
                        #NAME " = %lld: %d blocks, %g", (long long)values[i], got.blocks_per_sm, got.fraction);        \
        }                                                                                                              \
    }
    DPR_GPU_CAPS_LIST(WITHOUT, _)
    DPR_NESTED_CAPS_LIST(WITHOUT, _)
#undef WITHOUT
}
