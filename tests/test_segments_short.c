/* Short segments on the CPU whose elements the vector loops must not treat as they treat most. */
#include <math.h>

#include "support.h"

/* Reduces the elements between neighbouring offsets, by vectors. */
static void reduce(const void *in, const int32_t *offsets, uint64_t segments, dpr_dtype dtype, dpr_op op,
                   const void *init, void *out) {
    dpr_ctx *ctx = cpu_ctx();
    dpr_segments list = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    list.count = segments;
    list.begins = offsets;
    list.dtype = DPR_I32;
    options.strategy = "cpu.simd";
    options.init = init;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(ctx, in, out, (size_t)offsets[segments], dtype, op, &list, &options));
    dpr_ctx_destroy(ctx);
}

/* Norms whose squares are outside of F64's range, between those of which they are inside, and some in between. */
TEST(ShortSegments, norms_of_any_magnitude) {
    enum { N = 4, SCALES = 8 };
    static const double scales[SCALES] = {1, 0x1p-540, 0x1p-490, 0x1p600, 0, 0x1p-449, 0x1p509, 0x1p-1060};
    static double in[N * SCALES], norms[SCALES];
    static int32_t offsets[SCALES + 1];
    for (int i = 0; i < N * SCALES; i++)
        in[i] = (i % N == 0 ? -1 : i % N == 1 ? 3 : i % N == 2 ? -5 : 1) * scales[i / N]; /* their norm is 6 */
    for (int i = 0; i <= SCALES; i++)
        offsets[i] = N * i;
    reduce(in, offsets, SCALES, DPR_F64, DPR_NORM2, NULL, norms);
    for (int i = 0; i < SCALES; i++)
        EXPECT_THAT(norms[i] == 6 * scales[i], "%g instead of %g", norms[i], 6 * scales[i]);
}

/* A segment of any length that has only negative zeros is 0, also if the initial value is one. */
TEST(ShortSegments, negative_zeros) {
    enum { N = 40 };
    static float in[N * (N + 1) / 2], sums[N];
    static int32_t offsets[N + 1];
    static const float init = -0.0F;
    for (size_t i = 0; i < LENGTH(in); i++)
        in[i] = -0.0F;
    for (int i = 0; i < N; i++)
        offsets[i + 1] = offsets[i] + i + 1;
    reduce(in, offsets, N, DPR_F32, DPR_SUM, &init, sums);
    for (int i = 0; i < N; i++)
        EXPECT_THAT(sums[i] == 0 && !signbit(sums[i]), "%g of %d elements", (double)sums[i], i + 1);
}

/* The numbers in each lane of a vector have a sum that is out of range, and those of the segment have not. */
TEST(ShortSegments, variance_of_numbers_that_cancel) {
    static const double in[] = {1e308, -1e308, 1e308, -1e308, 1e308, -1e308, 1e308, -1e308, 1, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t offsets[] = {0, 8, 16};
    double out[2] = {0};
    reduce(in, offsets, 2, DPR_F64, DPR_VAR, NULL, out);
    EXPECT_THAT(isinf(out[0]) && out[1] == 5.25, "%g and %g", out[0], out[1]);
}
