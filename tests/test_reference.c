/* The reference itself, against values worked out by hand: it must accept what is right and refuse what is not. */
#include <float.h>
#include <math.h>

#include "data.h"
#include "reference.h"
#include "support.h"

static int accepts(const ref_state *state, const void *got) {
    char why[512];
    return ref_check(state, got, why, sizeof why);
}

TEST(Reference, reads_half_precision) {
    static const struct {
        uint16_t bits;
        double value;
    } f16[] = {{0x3c00, 1.0},     {0xc000, -2.0},        {0x7bff, 65504.0},        {0x0001, 0x1p-24},
               {0x0400, 0x1p-14}, {0x03ff, 0x1.ff8p-15}, {0x3555, 0.333251953125}, {0x8000, -0.0}},
      bf16[] = {{0x3f80, 1.0}, {0xc000, -2.0}, {0x7f7f, 0x1.fep127}, {0x0001, 0x1p-133}, {0x3eab, 0.333984375}};
    for (size_t i = 0; i < LENGTH(f16); i++) {
        EXPECT_NEAR_F64(f16[i].value, (double)ref_value(DPR_F16, &f16[i].bits, 0), 0.0);
        EXPECT_EQ_I64(signbit(f16[i].value) != 0, signbit(ref_value(DPR_F16, &f16[i].bits, 0)) != 0);
    }
    for (size_t i = 0; i < LENGTH(bf16); i++)
        EXPECT_NEAR_F64(bf16[i].value, (double)ref_value(DPR_BF16, &bf16[i].bits, 0), 0.0);
    const uint16_t inf = 0xfc00, nan = 0x7c01;
    EXPECT_TRUE(isinf(ref_value(DPR_F16, &inf, 0)) && ref_value(DPR_F16, &inf, 0) < 0);
    EXPECT_TRUE(isnan(ref_value(DPR_F16, &nan, 0)));
}

TEST(Reference, integers_wrap) {
    const int64_t in[] = {INT64_MAX, 1, 3};
    const int64_t sum = INT64_MIN + 3;
    ref_state state;
    ref_reduce(&state, DPR_SUM, DPR_I64, DPR_NAN_PROPAGATE, in, 3);
    EXPECT_TRUE(accepts(&state, &sum));
    const int8_t small[] = {-128, 127, -1};
    const int64_t small_prod = -128 * 127 * -1;
    ref_reduce(&state, DPR_PROD, DPR_I8, DPR_NAN_PROPAGATE, small, 3);
    EXPECT_TRUE(accepts(&state, &small_prod));
    EXPECT_TRUE(!accepts(&state, &sum));
}

TEST(Reference, order_of_floats) {
    const float in[] = {0.0F, -0.0F, 1.0F, -0.0F}, nans[] = {3.0F, NAN, -INFINITY, NAN};
    const float minus_zero = -0.0F, zero = 0.0F, least = -INFINITY;
    const int64_t one = 1, two = 2, three = 3, none = -1;
    uint32_t canonical = 0x7fc00000, other_nan = 0xffc00001;
    ref_state state;
    ref_reduce(&state, DPR_MIN, DPR_F32, DPR_NAN_PROPAGATE, in, 4);
    EXPECT_TRUE(accepts(&state, &minus_zero) && !accepts(&state, &zero));
    ref_reduce(&state, DPR_ARGMIN, DPR_F32, DPR_NAN_PROPAGATE, in, 4);
    EXPECT_TRUE(accepts(&state, &one) && !accepts(&state, &three));
    ref_reduce(&state, DPR_MIN, DPR_F32, DPR_NAN_PROPAGATE, nans, 4);
    EXPECT_TRUE(accepts(&state, &canonical) && !accepts(&state, &other_nan) && !accepts(&state, &least));
    ref_reduce(&state, DPR_ARGMAX, DPR_F32, DPR_NAN_PROPAGATE, nans, 4);
    EXPECT_TRUE(accepts(&state, &one) && !accepts(&state, &three));
    ref_reduce(&state, DPR_MIN, DPR_F32, DPR_NAN_IGNORE, nans, 4);
    EXPECT_TRUE(accepts(&state, &least) && !accepts(&state, &canonical));
    ref_reduce(&state, DPR_ARGMIN, DPR_F32, DPR_NAN_IGNORE, nans, 4);
    EXPECT_TRUE(accepts(&state, &two));
    ref_reduce(&state, DPR_ARGMIN, DPR_F32, DPR_NAN_IGNORE, nans + 1, 1);
    EXPECT_TRUE(accepts(&state, &none));
}

TEST(Reference, empty) {
    const float inf = INFINITY, minus_inf = -INFINITY;
    const uint8_t ones = 0xff, zero = 0, one = 1;
    const int16_t most = INT16_MAX;
    ref_state state;
    ref_reduce(&state, DPR_MIN, DPR_F32, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &inf) && !accepts(&state, &minus_inf));
    ref_reduce(&state, DPR_MAX, DPR_F32, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &minus_inf));
    ref_reduce(&state, DPR_BAND, DPR_U8, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &ones));
    ref_reduce(&state, DPR_BAND, DPR_BOOL, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &one) && !accepts(&state, &ones));
    ref_reduce(&state, DPR_MAX, DPR_BOOL, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &zero));
    ref_reduce(&state, DPR_MIN, DPR_I16, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &most));
    ref_reduce(&state, DPR_ALL, DPR_F64, DPR_NAN_PROPAGATE, NULL, 0);
    EXPECT_TRUE(accepts(&state, &one));
}

/* A sum in F32 one after the other is far off for a million elements; the bound must see that. */
TEST(Reference, refuses_a_naive_sum) {
    enum { MANY = 1000000 };
    static float in[MANY];
    float naive = 0;
    double wide = 0;
    for (int i = 0; i < MANY; i++) {
        in[i] = 0.1F;
        naive += in[i];
        wide += (double)in[i];
    }
    const float good = (float)wide, off = (float)(wide * (1 + 0x1p-18));
    ref_state state;
    ref_reduce(&state, DPR_SUM, DPR_F32, DPR_NAN_PROPAGATE, in, MANY);
    EXPECT_TRUE(accepts(&state, &good));
    EXPECT_TRUE(!accepts(&state, &naive));
    EXPECT_TRUE(!accepts(&state, &off));
}

/* 1 and 17 times half a unit of its last place: with 17 + 8 roundings lost, and with one more. */
TEST(Reference, refuses_more_roundings_than_promised) {
    enum { MANY = 1 << 17 };
    static float in[MANY];
    const float least = 1 - 8 * 0x1p-24F, too_little = 1 - 9 * 0x1p-24F;
    ref_state state;
    data_fill(in, DPR_SUM, DPR_F32, DATA_POWERS, MANY);
    ref_reduce(&state, DPR_SUM, DPR_F32, DPR_NAN_PROPAGATE, in, MANY);
    EXPECT_TRUE(accepts(&state, &least));
    EXPECT_TRUE(!accepts(&state, &too_little));
}

/* Leaving out, or taking twice, any one element of the random data must show. */
TEST(Reference, refuses_a_sum_that_lacks_an_element) {
    enum { N = 4097 };
    static double in[N];
    ref_state state;
    data_fill(in, DPR_SUM, DPR_F64, DATA_RANDOM, N);
    ref_reduce(&state, DPR_SUM, DPR_F64, DPR_NAN_PROPAGATE, in, N);
    const long double exact = state.sum[0].value + state.sum[0].correction;
    for (int i = 0; i < N; i++) {
        const double lacks = (double)(exact - (long double)in[i]), twice = (double)(exact + (long double)in[i]);
        ASSERT_TRUE(!accepts(&state, &lacks) && !accepts(&state, &twice));
    }
    const double good = (double)exact;
    EXPECT_TRUE(accepts(&state, &good));
}

TEST(Reference, small_sums_are_nearly_exact) {
    const float one[] = {0.1F}, two[] = {1.0F, 0x1p-24F};
    const float off = 0.1F + 0x1p-27F, rounded = 1.0F, far = 1.0F + 0x1p-22F;
    ref_state state;
    ref_reduce(&state, DPR_SUM, DPR_F32, DPR_NAN_PROPAGATE, one, 1);
    EXPECT_TRUE(accepts(&state, one) && !accepts(&state, &off));
    ref_reduce(&state, DPR_SUM, DPR_F32, DPR_NAN_PROPAGATE, two, 2);
    EXPECT_TRUE(accepts(&state, &rounded) && !accepts(&state, &far));
}

TEST(Reference, infinities_and_nans_of_sums) {
    const double in[] = {1, INFINITY, 2}, both[] = {INFINITY, -INFINITY}, nans[] = {1, NAN, 2};
    const double inf = INFINITY, minus_inf = -INFINITY, nan = NAN, three = 3;
    ref_state state;
    ref_reduce(&state, DPR_SUM, DPR_F64, DPR_NAN_PROPAGATE, in, 3);
    EXPECT_TRUE(accepts(&state, &inf) && !accepts(&state, &minus_inf) && !accepts(&state, &three));
    ref_reduce(&state, DPR_SUM, DPR_F64, DPR_NAN_PROPAGATE, both, 2);
    EXPECT_TRUE(accepts(&state, &nan) && !accepts(&state, &inf));
    ref_reduce(&state, DPR_SUM, DPR_F64, DPR_NAN_PROPAGATE, nans, 3);
    EXPECT_TRUE(accepts(&state, &nan) && !accepts(&state, &three));
    ref_reduce(&state, DPR_SUM, DPR_F64, DPR_NAN_IGNORE, nans, 3);
    EXPECT_TRUE(accepts(&state, &three) && !accepts(&state, &nan));
}

TEST(Reference, complex_products) {
    const dpr_c64 in[] = {{1, 2}, {3, -4}, {0, 1}}; /* 11 + 2i, times i */
    const dpr_c64 right = {-2, 11}, wrong = {2, 11};
    ref_state state;
    ref_reduce(&state, DPR_PROD, DPR_C64, DPR_NAN_PROPAGATE, in, 3);
    EXPECT_TRUE(accepts(&state, &right) && !accepts(&state, &wrong));
}

TEST(Reference, complex_products_of_infinities) {
    const dpr_c64 one[] = {{1, INFINITY}}, mixed = {NAN, INFINITY}, finite = {1, 2};
    const dpr_c64 two[] = {{1, INFINITY}, {2, 0}};
    ref_state state;
    ref_reduce(&state, DPR_PROD, DPR_C64, DPR_NAN_PROPAGATE, one, 1);
    EXPECT_TRUE(accepts(&state, one) && !accepts(&state, &mixed));
    ref_reduce(&state, DPR_PROD, DPR_C64, DPR_NAN_PROPAGATE, two, 2);
    EXPECT_TRUE(accepts(&state, &mixed) && !accepts(&state, &finite));
}

TEST(Reference, initial_values) {
    const uint8_t in[] = {1, 0, 2};
    const int64_t init = 40, expected = 42;
    ref_state state;
    ref_reduce(&state, DPR_COUNT, DPR_U8, DPR_NAN_PROPAGATE, in, 3);
    ref_add_init(&state, &init);
    EXPECT_TRUE(accepts(&state, &expected));
}

/* ---- Squares, norms, means and variances ---- */

static ref_state reduced(dpr_op op, dpr_dtype dtype, const void *in, size_t count) {
    ref_state state;
    ref_reduce(&state, op, dtype, DPR_NAN_PROPAGATE, in, count);
    return state;
}

static int accepts_f64(const ref_state *state, double got) {
    return accepts(state, &got);
}

static int accepts_f32(const ref_state *state, float got) {
    return accepts(state, &got);
}

static int accepts_i64(const ref_state *state, int64_t got) {
    return accepts(state, &got);
}

TEST(Reference, types_and_sizes_of_results) {
    EXPECT_EQ_I64(DPR_F32, ref_result_dtype(DPR_SUMSQ, DPR_C64));
    EXPECT_EQ_I64(DPR_U64, ref_result_dtype(DPR_NORM1, DPR_U8));
    EXPECT_EQ_I64(DPR_I64, ref_result_dtype(DPR_SUMSQ, DPR_BOOL));
    EXPECT_EQ_I64(DPR_F64, ref_result_dtype(DPR_NORM2, DPR_I8));
    EXPECT_EQ_I64(DPR_F32, ref_result_dtype(DPR_VAR, DPR_BF16));
    EXPECT_EQ_I64(DPR_F64, ref_result_dtype(DPR_VAR, DPR_C128));
    EXPECT_EQ_I64(DPR_C64, ref_result_dtype(DPR_MEAN, DPR_C64));
    EXPECT_EQ_I64(DPR_F64, ref_result_dtype(DPR_MEAN, DPR_U64));
    EXPECT_EQ_I64(DPR_I16, ref_result_dtype(DPR_MINMAX, DPR_I16));
    EXPECT_EQ_U64(4, ref_result_size(DPR_MINMAX, DPR_F16));
    EXPECT_TRUE(!ref_supported(DPR_MINMAX, DPR_C64) && ref_supported(DPR_VAR, DPR_C64));
}

TEST(Reference, squares_and_magnitudes_of_integers_wrap) {
    const int8_t small[] = {-128, 127, -3};
    const int64_t large[] = {INT64_MIN, INT64_C(1) << 32, 3}; /* squares: 0, 0 and 9 modulo 2^64 */
    const uint64_t unsigned_ones[] = {UINT64_MAX, UINT64_MAX}, one = 1, minus_two = UINT64_MAX - 1, two = 2;
    const uint8_t truths[] = {7, 0, 255};
    ref_state state = reduced(DPR_SUMSQ, DPR_I8, small, 3);
    EXPECT_TRUE(accepts_i64(&state, 16384 + 16129 + 9));
    state = reduced(DPR_NORM1, DPR_I8, small, 3);
    EXPECT_TRUE(accepts_i64(&state, 258) && !accepts_i64(&state, 2));
    state = reduced(DPR_SUMSQ, DPR_I64, large, 3);
    EXPECT_TRUE(accepts_i64(&state, 9));
    state = reduced(DPR_NORM1, DPR_I64, large, 3);
    EXPECT_TRUE(accepts_i64(&state, INT64_MIN + (INT64_C(1) << 32) + 3));
    state = reduced(DPR_SUMSQ, DPR_U64, unsigned_ones, 2); /* (-1)^2 each */
    EXPECT_TRUE(accepts(&state, &two) && !accepts(&state, &one));
    state = reduced(DPR_NORM1, DPR_U64, unsigned_ones, 2);
    EXPECT_TRUE(accepts(&state, &minus_two));
    state = reduced(DPR_SUMSQ, DPR_BOOL, truths, 3);
    EXPECT_TRUE(accepts_i64(&state, 2));
    state = reduced(DPR_NORM1, DPR_BOOL, truths, 3);
    EXPECT_TRUE(accepts_i64(&state, 2));
}

TEST(Reference, squares_and_norms_of_floats) {
    const double in[] = {1, -2, 2};
    const dpr_c64 complex[] = {{3, -4}, {-5, 12}};
    const int16_t integers[] = {-3, 4};
    ref_state state = reduced(DPR_SUMSQ, DPR_F64, in, 3);
    EXPECT_TRUE(accepts_f64(&state, 9) && !accepts_f64(&state, 9 * (1 + 13 * 0x1p-53)));
    state = reduced(DPR_NORM1, DPR_F64, in, 3);
    EXPECT_TRUE(accepts_f64(&state, 5) && !accepts_f64(&state, 1));
    state = reduced(DPR_NORM2, DPR_F64, in, 3);
    EXPECT_TRUE(accepts_f64(&state, 3) && !accepts_f64(&state, 3 * (1 + 13 * 0x1p-53)));
    state = reduced(DPR_SUMSQ, DPR_C64, complex, 2);
    EXPECT_TRUE(accepts_f32(&state, 25 + 169) && !accepts_f32(&state, 9 + 25));
    state = reduced(DPR_NORM1, DPR_C64, complex, 2);
    EXPECT_TRUE(accepts_f32(&state, 5 + 13) && !accepts_f32(&state, 3 + 4 + 5 + 12));
    state = reduced(DPR_NORM2, DPR_I16, integers, 2);
    EXPECT_TRUE(accepts_f64(&state, 5) && !accepts_f64(&state, 7));
}

/* 3, 4 and 5 times a power of two. */
TEST(Reference, norms_whose_squares_leave_the_range) {
    const double large[] = {0x3p1000, 0x4p1000}, small[] = {0x3p-1070, 0x4p-1070};
    const float large32[] = {0x3p100F, 0x4p100F}, small32[] = {0x3p-149F, 0x4p-149F};
    ref_state state = reduced(DPR_NORM2, DPR_F64, large, 2);
    EXPECT_TRUE(accepts_f64(&state, 0x5p1000) && !accepts_f64(&state, INFINITY));
    state = reduced(DPR_SUMSQ, DPR_F64, large, 2);
    EXPECT_TRUE(accepts_f64(&state, INFINITY) && !accepts_f64(&state, DBL_MAX) && !accepts_f64(&state, NAN));
    state = reduced(DPR_NORM2, DPR_F64, small, 2);
    EXPECT_TRUE(accepts_f64(&state, 0x5p-1070) && !accepts_f64(&state, 0) && !accepts_f64(&state, 0x7p-1070));
    state = reduced(DPR_SUMSQ, DPR_F64, small, 2);
    EXPECT_TRUE(accepts_f64(&state, 0) && !accepts_f64(&state, 0x1p-1060));
    state = reduced(DPR_NORM2, DPR_F32, large32, 2);
    EXPECT_TRUE(accepts_f32(&state, 0x5p100F) && !accepts_f32(&state, INFINITY));
    state = reduced(DPR_SUMSQ, DPR_F32, large32, 2);
    EXPECT_TRUE(accepts_f32(&state, INFINITY) && !accepts_f32(&state, FLT_MAX));
    state = reduced(DPR_NORM2, DPR_F32, small32, 2);
    EXPECT_TRUE(accepts_f32(&state, 0x5p-149F) && !accepts_f32(&state, 0x7p-149F));
}

/* FLT_MAX is 2^128 - 2^104, and 2^128 - 2^103 is halfway to what F32 cannot have. */
TEST(Reference, the_end_of_the_range) {
    const double halfway = 0x1p128 - 0x1p103;
    const float at_end[] = {0x1.fffffep+127F}, four[] = {0x1p126F, 0x1p126F, 0x1p126F, 0x1p126F},
                inside[] = {0x1p127F, 0x1.ffffc0p+126F};
    EXPECT_TRUE(halfway > (double)at_end[0]);
    ref_state state = reduced(DPR_NORM1, DPR_F32, at_end, 1);
    EXPECT_TRUE(accepts_f32(&state, FLT_MAX));
    state = reduced(DPR_NORM1, DPR_F32, four, 4); /* 2^128, and 12 roundings less */
    EXPECT_TRUE(accepts_f32(&state, INFINITY) && accepts_f32(&state, FLT_MAX) && !accepts_f32(&state, 0x1p127F));
    state = reduced(DPR_NORM1, DPR_F32, inside, 2); /* 32 units below the end */
    EXPECT_TRUE(accepts_f32(&state, 0x1.ffffe0p+127F) && !accepts_f32(&state, INFINITY));
}

TEST(Reference, initial_values_of_squares_and_magnitudes_are_added) {
    const float in[] = {2, 3};
    const int32_t integers[] = {2, -3};
    const float init = -5;
    const int64_t integer = -20;
    ref_state state = reduced(DPR_SUMSQ, DPR_F32, in, 2);
    ref_add_init(&state, &init);
    EXPECT_TRUE(accepts_f32(&state, 8) && !accepts_f32(&state, 38));
    state = reduced(DPR_NORM1, DPR_F32, in, 2);
    ref_add_init(&state, &init);
    EXPECT_TRUE(accepts_f32(&state, 0) && !accepts_f32(&state, 10));
    state = reduced(DPR_SUMSQ, DPR_I32, integers, 2);
    ref_add_init(&state, &integer);
    EXPECT_TRUE(accepts_i64(&state, -7));
    state = reduced(DPR_NORM1, DPR_I32, integers, 2);
    ref_add_init(&state, &integer);
    EXPECT_TRUE(accepts_i64(&state, -15));
}

TEST(Reference, means_of_integers_do_not_wrap) {
    const int64_t large[] = {INT64_MAX, INT64_MAX, INT64_MAX, 3}, mixed[] = {INT64_MAX, INT64_MIN, -4};
    const uint64_t most[] = {UINT64_MAX, UINT64_MAX};
    const uint8_t truths[] = {1, 0, 9, 0};
    ref_state state = reduced(DPR_MEAN, DPR_I64, large, 4);
    EXPECT_TRUE(accepts_f64(&state, 0x3p61) && !accepts_f64(&state, -0x1p61));
    state = reduced(DPR_MEAN, DPR_I64, mixed, 3); /* -5 / 3 */
    EXPECT_TRUE(accepts_f64(&state, -5.0 / 3) && !accepts_f64(&state, 0) && !accepts_f64(&state, -4.0 / 3));
    EXPECT_TRUE(!accepts_f64(&state, -5.0 / 3 * (1 + 0x1p-51)));
    state = reduced(DPR_MEAN, DPR_U64, most, 2);
    EXPECT_TRUE(accepts_f64(&state, 0x1p64) && !accepts_f64(&state, 0x1p63));
    state = reduced(DPR_MEAN, DPR_BOOL, truths, 4);
    EXPECT_TRUE(accepts_f64(&state, 0.5));
}

TEST(Reference, means_of_floats) {
    const double in[] = {1, 2, 4}, good = 7.0 / 3;
    const float narrow[] = {1, 2, 4};
    const dpr_c128 complex[] = {{1, -2}, {2, 6}}, mean = {1.5, 2}, wrong = {1.5, -2};
    ref_state state = reduced(DPR_MEAN, DPR_F64, in, 3);
    EXPECT_TRUE(accepts_f64(&state, good) && !accepts_f64(&state, 0) && !accepts_f64(&state, good + 0x1p-49));
    state = reduced(DPR_MEAN, DPR_F32, narrow, 3);
    EXPECT_TRUE(accepts_f32(&state, 7 / 3.0F) && !accepts_f32(&state, 7 / 3.0F + 0x1p-19F));
    state = reduced(DPR_MEAN, DPR_C128, complex, 2);
    EXPECT_TRUE(accepts(&state, &mean) && !accepts(&state, &wrong));
}

TEST(Reference, variances) {
    const double in[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* mean 5, squared distances 32 */
    const int64_t integers[] = {INT64_MAX, INT64_MIN};
    const dpr_c64 complex[] = {{1, 5}, {3, 1}}; /* squared distances 1 + 4 each */
    const uint8_t truths[] = {2, 0, 0, 0};
    ref_state state = reduced(DPR_VAR, DPR_F64, in, 8);
    EXPECT_TRUE(accepts_f64(&state, 4) && !accepts_f64(&state, 32.0 / 7) && !accepts_f64(&state, 4 + 0x1p-46));
    state.sample = 1;
    EXPECT_TRUE(accepts_f64(&state, 32.0 / 7) && !accepts_f64(&state, 4));
    state = reduced(DPR_VAR, DPR_I64, integers, 2); /* +-2^63 in F64 */
    EXPECT_TRUE(accepts_f64(&state, 0x1p126) && !accepts_f64(&state, 0x1p127));
    state = reduced(DPR_VAR, DPR_C64, complex, 2);
    EXPECT_TRUE(accepts_f32(&state, 5));
    state.sample = 1;
    EXPECT_TRUE(accepts_f32(&state, 10));
    state = reduced(DPR_VAR, DPR_BOOL, truths, 4); /* 3/4 * 1/4 */
    EXPECT_TRUE(accepts_f64(&state, 0.1875));
}

/* Alternately 10^12 - 1 and 10^12 + 1, or one of all equal: the squares of the mean's rounding are allowed. */
TEST(Reference, variances_far_from_zero) {
    enum { MANY = 10000 };
    static double in[MANY];
    double squares = 0, sum = 0;
    for (int i = 0; i < MANY; i++) {
        in[i] = 1e12 + (i % 2 ? 1 : -1);
        sum += in[i];
        squares += in[i] * in[i];
    }
    ref_state state = reduced(DPR_VAR, DPR_F64, in, MANY);
    EXPECT_TRUE(accepts_f64(&state, 1) && accepts_f64(&state, 1 + 0x1p-27) && !accepts_f64(&state, 1 + 0x1p-24));
    EXPECT_TRUE(!accepts_f64(&state, squares / MANY - sum / MANY * (sum / MANY)));
    for (int i = 0; i < MANY; i++)
        in[i] = 0.1;
    state = reduced(DPR_VAR, DPR_F64, in, MANY);
    EXPECT_TRUE(accepts_f64(&state, 0) && accepts_f64(&state, 0x1p-113) && !accepts_f64(&state, 0x1p-110));
}

TEST(Reference, two_values) {
    const float in[] = {3, -0.0F, 0, -0.0F}, right[] = {-0.0F, 3}, swapped[] = {3, -0.0F}, zero[] = {0, 3};
    const float nans[] = {NAN, 2, -1, NAN}, rest[] = {-1, 2}, none[] = {INFINITY, -INFINITY};
    const uint32_t both_nan[] = {0x7fc00000, 0x7fc00000};
    const float init[] = {1, 2}, with_init[] = {-0.0F, 3}, nan_first[] = {NAN, 7}, far[] = {-9, 9};
    ref_state state = reduced(DPR_MINMAX, DPR_F32, in, 4);
    EXPECT_TRUE(accepts(&state, right) && !accepts(&state, swapped) && !accepts(&state, zero));
    ref_add_init(&state, init);
    EXPECT_TRUE(accepts(&state, with_init));
    ref_add_init(&state, far);
    EXPECT_TRUE(accepts(&state, far));
    ref_reduce(&state, DPR_MINMAX, DPR_F32, DPR_NAN_IGNORE, nans, 4);
    EXPECT_TRUE(accepts(&state, rest));
    ref_reduce(&state, DPR_MINMAX, DPR_F32, DPR_NAN_IGNORE, nans, 1);
    EXPECT_TRUE(accepts(&state, none));
    ref_add_init(&state, init);
    EXPECT_TRUE(accepts(&state, init));
    state = reduced(DPR_MINMAX, DPR_F32, nans, 4);
    EXPECT_TRUE(accepts(&state, both_nan) && !accepts(&state, rest));
    state = reduced(DPR_MINMAX, DPR_F32, NULL, 0);
    ref_add_init(&state, nan_first); /* each value has its own initial value */
    const float nan_and_seven[] = {NAN, 7};
    EXPECT_TRUE(accepts(&state, nan_and_seven));
}

TEST(Reference, two_values_of_integers) {
    const int8_t in[] = {5, -7, 100}, right[] = {-7, 100}, none[] = {127, -128};
    const uint8_t truths[] = {3, 8}, both[] = {1, 1}, no_truths[] = {1, 0};
    const uint64_t words[] = {UINT64_MAX, 1}, ends[] = {1, UINT64_MAX};
    ref_state state = reduced(DPR_MINMAX, DPR_I8, in, 3);
    EXPECT_TRUE(accepts(&state, right));
    state = reduced(DPR_MINMAX, DPR_I8, in, 0);
    EXPECT_TRUE(accepts(&state, none));
    state = reduced(DPR_MINMAX, DPR_BOOL, truths, 2);
    EXPECT_TRUE(accepts(&state, both) && !accepts(&state, truths));
    state = reduced(DPR_MINMAX, DPR_BOOL, truths, 0);
    EXPECT_TRUE(accepts(&state, no_truths));
    state = reduced(DPR_MINMAX, DPR_U64, words, 2);
    EXPECT_TRUE(accepts(&state, ends) && !accepts(&state, words));
}

/* What an operation gives for an array of doubles; NAN stands for any NaN. */
typedef struct special {
    dpr_op op;
    dpr_nan nan;
    int sample;
    size_t count;
    double in[2];
    double expected;
} special;

TEST(Reference, specials_of_sums_and_norms) {
    static const special cases[] = {
        {DPR_SUMSQ, DPR_NAN_PROPAGATE, 0, 0, {0, 0}, 0},
        {DPR_NORM1, DPR_NAN_PROPAGATE, 0, 0, {0, 0}, 0},
        {DPR_NORM2, DPR_NAN_PROPAGATE, 0, 0, {0, 0}, 0},
        {DPR_MEAN, DPR_NAN_PROPAGATE, 0, 0, {0, 0}, NAN},
        {DPR_VAR, DPR_NAN_PROPAGATE, 0, 0, {0, 0}, NAN},
        {DPR_VAR, DPR_NAN_PROPAGATE, 1, 0, {0, 0}, NAN},
        {DPR_VAR, DPR_NAN_PROPAGATE, 0, 1, {7, 0}, 0},
        {DPR_VAR, DPR_NAN_PROPAGATE, 1, 1, {7, 0}, NAN},
        {DPR_VAR, DPR_NAN_PROPAGATE, 1, 2, {7, 9}, 2},
        {DPR_SUMSQ, DPR_NAN_PROPAGATE, 0, 2, {INFINITY, -INFINITY}, INFINITY},
        {DPR_NORM1, DPR_NAN_PROPAGATE, 0, 2, {INFINITY, -INFINITY}, INFINITY},
        {DPR_NORM2, DPR_NAN_PROPAGATE, 0, 2, {INFINITY, -INFINITY}, INFINITY},
        {DPR_MEAN, DPR_NAN_PROPAGATE, 0, 2, {INFINITY, -INFINITY}, NAN},
        {DPR_MEAN, DPR_NAN_PROPAGATE, 0, 2, {1, -INFINITY}, -INFINITY},
        {DPR_VAR, DPR_NAN_PROPAGATE, 0, 2, {1, -INFINITY}, NAN},
        {DPR_VAR, DPR_NAN_PROPAGATE, 0, 1, {INFINITY, 0}, NAN},
        {DPR_SUMSQ, DPR_NAN_PROPAGATE, 0, 2, {NAN, INFINITY}, NAN},
        {DPR_NORM1, DPR_NAN_PROPAGATE, 0, 2, {NAN, INFINITY}, NAN},
        {DPR_NORM2, DPR_NAN_PROPAGATE, 0, 2, {NAN, INFINITY}, NAN},
        {DPR_MEAN, DPR_NAN_PROPAGATE, 0, 2, {NAN, 3}, NAN},
        {DPR_VAR, DPR_NAN_PROPAGATE, 0, 2, {NAN, 3}, NAN},
        {DPR_SUMSQ, DPR_NAN_IGNORE, 0, 2, {NAN, 3}, 9},
        {DPR_NORM1, DPR_NAN_IGNORE, 0, 2, {NAN, -3}, 3},
        {DPR_NORM2, DPR_NAN_IGNORE, 0, 2, {NAN, -3}, 3},
        {DPR_NORM2, DPR_NAN_IGNORE, 0, 1, {NAN, 0}, 0},
        {DPR_MEAN, DPR_NAN_IGNORE, 0, 2, {NAN, 3}, 3},
        {DPR_MEAN, DPR_NAN_IGNORE, 0, 1, {NAN, 0}, NAN},
        {DPR_VAR, DPR_NAN_IGNORE, 0, 2, {NAN, 3}, 0},
        {DPR_VAR, DPR_NAN_IGNORE, 1, 2, {NAN, 3}, NAN},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        ref_state state;
        ref_reduce(&state, cases[i].op, DPR_F64, cases[i].nan, cases[i].in, cases[i].count);
        state.sample = cases[i].sample;
        EXPECT_THAT(accepts_f64(&state, cases[i].expected), "case %zu", i);
        EXPECT_THAT(!accepts_f64(&state, isnan(cases[i].expected) ? 0 : NAN) && !accepts_f64(&state, -1), "case %zu",
                    i);
    }
}

TEST(Reference, complex_elements_with_a_nan_are_nan) {
    const dpr_c64 in[] = {{INFINITY, NAN}, {3, 4}}, mean = {INFINITY, NAN}, mean_of_rest = {3, 4};
    ref_state state = reduced(DPR_NORM1, DPR_C64, in, 2);
    EXPECT_TRUE(accepts_f32(&state, NAN) && !accepts_f32(&state, INFINITY));
    state = reduced(DPR_MEAN, DPR_C64, in, 2);
    EXPECT_TRUE(accepts(&state, &mean));
    ref_reduce(&state, DPR_NORM2, DPR_C64, DPR_NAN_IGNORE, in, 2);
    EXPECT_TRUE(accepts_f32(&state, 5));
    ref_reduce(&state, DPR_MEAN, DPR_C64, DPR_NAN_IGNORE, in, 2);
    EXPECT_TRUE(accepts(&state, &mean_of_rest));
}

/* Taking any one element of the random data twice must show here, too. */
TEST(Reference, refuses_norms_and_variances_with_an_element_twice) {
    enum { N = 1009 };
    static const dpr_op ops[] = {DPR_SUMSQ, DPR_NORM1, DPR_NORM2, DPR_MEAN, DPR_VAR};
    static double in[N + 1];
    for (size_t k = 0; k < LENGTH(ops); k++) {
        data_fill(in, ops[k], DPR_F64, DATA_RANDOM, N);
        const ref_state state = reduced(ops[k], DPR_F64, in, N);
        for (int i = 0; i < N; i++) {
            in[N] = in[i];
            const ref_state twice = reduced(ops[k], DPR_F64, in, N + 1);
            long double got = ops[k] == DPR_VAR ? twice.spread.squares.value : twice.sum[0].value;
            if (ops[k] == DPR_NORM2)
                got = sqrtl(got);
            else if (ops[k] == DPR_MEAN || ops[k] == DPR_VAR)
                got /= N + 1;
            ASSERT_THAT(!accepts_f64(&state, (double)got), "operation %d, element %d", (int)ops[k], i);
        }
    }
}

/* ---- Data ---- */

/* Decisive elements: a result of random data is not what most elements would give. */
TEST(Data, random_logic_is_decided_by_few_elements) {
    unsigned char in[1000], all = 9, any = 9;
    ref_state state;
    data_fill(in, DPR_ALL, DPR_BOOL, DATA_RANDOM, sizeof in);
    ref_reduce(&state, DPR_ALL, DPR_BOOL, DPR_NAN_PROPAGATE, in, sizeof in);
    all = 0;
    EXPECT_TRUE(accepts(&state, &all));
    data_fill(in, DPR_ANY, DPR_BOOL, DATA_RANDOM, sizeof in);
    ref_reduce(&state, DPR_ANY, DPR_BOOL, DPR_NAN_PROPAGATE, in, sizeof in);
    any = 1;
    EXPECT_TRUE(accepts(&state, &any));
    int zeros = 0;
    for (size_t i = 0; i < sizeof in; i++)
        zeros += in[i] == 0;
    EXPECT_TRUE(zeros > 990 && zeros < 1000);
}

/* Products of random data stay where they can be told from 0 and infinity. */
TEST(Data, random_products_stay_in_range) {
    enum { N = 1000003 };
    static unsigned char in[N * 16];
    const dpr_dtype types[] = {DPR_F16, DPR_BF16, DPR_F32, DPR_F64, DPR_C64, DPR_C128};
    for (size_t t = 0; t < LENGTH(types); t++) {
        ref_state state;
        data_fill(in, DPR_PROD, types[t], DATA_RANDOM, N);
        ref_reduce(&state, DPR_PROD, types[t], DPR_NAN_PROPAGATE, in, N);
        EXPECT_THAT(state.prod.magnitude > 0x1p-100L && state.prod.magnitude < 0x1p100L, "%d: %Lg", (int)types[t],
                    state.prod.magnitude);
    }
}

/* What the patterns for them are to be: ratios of mean and deviation, and norms in range whose squares are not. */
TEST(Data, means_far_from_zero) {
    enum { N = 100000 };
    static unsigned char in[N * 8];
    static const struct {
        dpr_dtype dtype;
        long double least, most;
    } ratios[] = {{DPR_F32, 3e7L, 3e8L}, {DPR_F64, 3e11L, 1e13L}, {DPR_I64, 1e12L, 1e13L}};
    for (size_t i = 0; i < LENGTH(ratios); i++) {
        data_fill(in, DPR_VAR, ratios[i].dtype, DATA_FAR, N);
        const ref_state state = reduced(DPR_VAR, ratios[i].dtype, in, N);
        const long double ratio = state.sum[0].value / N / sqrtl(state.spread.squares.value / N);
        EXPECT_THAT(ratio > ratios[i].least && ratio < ratios[i].most, "%d: %Lg", (int)ratios[i].dtype, ratio);
    }
}

TEST(Data, norms_stay_in_range) {
    enum { N = 100003 };
    static unsigned char in[N * 16];
    static const data_pattern patterns[] = {DATA_HUGE, DATA_TINY, DATA_SCALES, DATA_BRINK};
    static const dpr_dtype types[] = {DPR_F16, DPR_BF16, DPR_F32, DPR_F64, DPR_C64, DPR_C128};
    for (size_t i = 0; i < LENGTH(patterns) * LENGTH(types); i++) {
        const dpr_dtype dtype = types[i / LENGTH(patterns)], result = ref_result_dtype(DPR_NORM2, dtype);
        const data_pattern pattern = patterns[i % LENGTH(patterns)];
        const long double greatest = result == DPR_F64 ? (long double)DBL_MAX : (long double)FLT_MAX;
        for (size_t n = N - 1; n <= N; n++) {
            data_fill(in, DPR_NORM2, dtype, pattern, n);
            const long double norm = sqrtl(reduced(DPR_NORM2, dtype, in, n).sum[0].value);
            EXPECT_THAT(norm > 0 && norm < greatest, "%s of type %d: %Lg", data_pattern_name(pattern), (int)dtype,
                        norm);
        }
    }
}
