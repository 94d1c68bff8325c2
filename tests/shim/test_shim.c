/* The shim's passing side; failing.c has the other. */
#include <string.h>

#include "shim.h"

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

typedef struct stages {
    int set_up, ran;
} stages;

static void stages_setup(void *state) {
    EXPECT_EQ_I64(0, ((stages *)state)->set_up);
    ((stages *)state)->set_up = 1;
}

/* failing.c shows that this runs. */
static void stages_teardown(void *state) {
    EXPECT_EQ_I64(1, ((stages *)state)->ran);
}

TEST_FIXTURE(Shim, fixture, stages, stages_setup, stages_teardown) {
    EXPECT_EQ_I64(1, fixture->set_up);
    EXPECT_EQ_I64(0, fixture->ran);
    fixture->ran = 1;
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
