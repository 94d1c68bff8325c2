/* The reference itself, against values worked out by hand: it must accept what is right and refuse what is not. */
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
