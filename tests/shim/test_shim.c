/* The shim's passing side; failing.c has the other. */
#include <string.h>

#include "shim.h"

static int order[8], calls;

TEST(Shim, checks_pass) {
    EXPECT_TRUE(1);
    EXPECT_EQ_I64(-1, -1);
    EXPECT_EQ_U64(1, 1);
    EXPECT_EQ_STR(NULL, NULL);
    EXPECT_NEAR_F64(1.0, 1.5, 0.5);
    EXPECT_CONTAINS("haystack", "stack");
    EXPECT_EQ_BYTES("ab", "ab", 2);
    EXPECT_TRUE(!test_failed());
}

typedef struct counter {
    int set_up;
} counter;

static void counter_setup(void *state) {
    EXPECT_EQ_I64(0, ((counter *)state)->set_up);
    ((counter *)state)->set_up = 1;
    order[calls++ % 8] = 1;
}

static void counter_teardown(void *state) {
    EXPECT_EQ_I64(1, ((counter *)state)->set_up);
    order[calls++ % 8] = 3;
}

TEST_FIXTURE(Shim, fixture, counter, counter_setup, counter_teardown) {
    EXPECT_EQ_I64(1, fixture->set_up);
    order[calls++ % 8] = 2;
}

TEST(Shim, fixture_order) {
    if (calls == 0)
        SKIP("Shim.fixture did not run before, as under a filter");
    EXPECT_EQ_I64(3, calls);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ_I64(i + 1, order[i]);
}

static void with_context(void *context) {
    EXPECT_TRUE(strlen(context) == 1);
}

TEST_GENERATOR(shim_generated) {
    static char letters[3][2] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        test_add(
            &(test_case){"ShimGenerated", letters[i], __FILE__, __LINE__, with_context, letters[i], 0, NULL, NULL});
}
