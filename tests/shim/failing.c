/* Tests that are meant to fail, one failure each: check_failing.cmake sees that every line with a "fails:" comment is
 * reported with this file's name, its line and the text after the colon. */
#include "shim.h"

TEST(Failing, expect_true) {
    int zero = 0;
    EXPECT_TRUE(zero == 1); /* fails: zero == 1 is false */
}

TEST(Failing, expect_goes_on) {
    EXPECT_EQ_I64(1, 2);  /* fails: left:  1 */
    EXPECT_EQ_I64(-3, 4); /* fails: left:  -3 */
}

TEST(Failing, assert_returns) {
    ASSERT_EQ_I64(5, 6); /* fails: right: 6 */
    FAIL("reached the line after a failed assertion");
}

TEST(Failing, u64) {
    EXPECT_EQ_U64(UINT64_MAX, 0); /* fails: left:  18446744073709551615 */
}

TEST(Failing, pointers) {
    EXPECT_EQ_PTR((void *)16, (void *)32); /* fails: left:  0x10 */
}

TEST(Failing, strings) {
    EXPECT_EQ_STR("one", NULL); /* fails: right: NULL */
}

TEST(Failing, near) {
    EXPECT_NEAR_F64(1.0, 1.5, 0.25); /* fails: difference 0.5 exceeds 0.25 */
}

TEST(Failing, near_nan) {
    EXPECT_NEAR_F64(0.0 / 0.0, 1.0, 1e300); /* fails: nan */
}

TEST(Failing, contains) {
    EXPECT_CONTAINS("a haystack", "needle"); /* fails: contains "needle" */
}

TEST(Failing, bytes) {
    EXPECT_EQ_BYTES("abcd", "abXd", 4); /* fails: byte 2 of 4 */
}

TEST(Failing, message) {
    EXPECT_THAT(1 == 2, "with %s and %d", "text", 7); /* fails: with text and 7 */
}

TEST(Failing, unconditional) {
    FAIL("always"); /* fails: always */
}

static void bad_setup(void *state) {
    (void)state;
    FAIL("set-up"); /* fails: set-up */
}

TEST_FIXTURE(Failing, setup, int, bad_setup, NULL) {
    FAIL("the body ran after a failed set-up, state %d", *fixture);
}

static void bad_teardown(void *state) {
    EXPECT_EQ_I64(12, *(const int *)state); /* fails: right: 34 */
}

TEST_FIXTURE(Failing, teardown, int, NULL, bad_teardown) {
    *fixture = 34;
}

static void generated_body(void *context) {
    EXPECT_EQ_I64(*(const int *)context, 0); /* fails: left:  11 */
}

TEST_GENERATOR(failing_generated) {
    static int eleven = 11;
    test_add(&(test_case){"Failing", "generated", __FILE__, __LINE__, generated_body, &eleven, 0, NULL, NULL});
}
