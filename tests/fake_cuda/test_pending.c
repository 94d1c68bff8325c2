/* The limit of pending launches: set for contexts that ask for it, and put back. */
#include <stdio.h>

#include "fake_cuda.h"
#include "pool_contexts.h"

enum { MOST_LIMIT = 1 << 20 };

static size_t limit_of(int device) {
    size_t limit = 0;
    EXPECT_TRUE(gpu_use(device));
    EXPECT_EQ_I64(cudaSuccess, cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
    EXPECT_TRUE(gpu_use(0));
    return limit;
}

/* Objects alive before the test. */
typedef struct alone {
    int before;
} alone;

static void alone_open(void *state) {
    alone *a = state;
    ASSERT_TRUE(gpu_count() == 2 && gpu_use(0));
    a->before = fake_live_objects();
}

static void alone_close(void *state) {
    const alone *a = state;
    EXPECT_EQ_I64(a->before, fake_live_objects());
    EXPECT_EQ_I64(0, gpu_current());
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
}

#define LIMIT_TEST(NAME) TEST_FIXTURE(Pending, NAME, alone, alone_open, alone_close)

LIMIT_TEST(a_context_leaves_the_limit_alone_unless_told) {
    (void)fixture;
    dpr_ctx *ctx = NULL;
    set_limit_of(1, 777);
    ASSERT_STATUS(DPR_OK, create(1, 0, &ctx));
    EXPECT_EQ_U64(777, limit_of(1));
    dpr_ctx_destroy(ctx);
    EXPECT_EQ_U64(777, limit_of(1));
    EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
    set_limit_of(1, FIRST_LIMIT);
}

LIMIT_TEST(the_limit_is_set_and_what_was_found_put_back) {
    (void)fixture;
    const size_t found[] = {FIRST_LIMIT, 100, 65536};
    for (size_t i = 0; i < LENGTH(found); i++) {
        dpr_ctx *ctx = NULL;
        set_limit_of(1, found[i]);
        ASSERT_STATUS(DPR_OK, create(1, 4096, &ctx));
        EXPECT_EQ_U64(4096, limit_of(1));
        EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
        dpr_ctx_destroy(ctx);
        EXPECT_EQ_U64(found[i], limit_of(1));
        EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
    }
    set_limit_of(1, FIRST_LIMIT);
}

/* Whichever of two contexts goes first, the limit goes back with the other. */
LIMIT_TEST(contexts_with_one_number_share_it) {
    (void)fixture;
    for (int first = 0; first < 2; first++) {
        dpr_ctx *ctx[3] = {NULL};
        ASSERT_STATUS(DPR_OK, create(0, 300, &ctx[0]));
        ASSERT_STATUS(DPR_OK, create(0, 300, &ctx[1]));
        ASSERT_STATUS(DPR_OK, create(1, 500, &ctx[2])); /* another device has a number of its own */
        dpr_ctx_destroy(ctx[first]);
        EXPECT_EQ_U64(300, limit_of(0));
        dpr_ctx_destroy(ctx[!first]);
        EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
        EXPECT_EQ_U64(500, limit_of(1));
        dpr_ctx_destroy(ctx[2]);
        EXPECT_EQ_U64(FIRST_LIMIT, limit_of(1));
    }
}

LIMIT_TEST(contexts_with_different_numbers_do_not_go_together) {
    (void)fixture;
    dpr_ctx *ctx = NULL, *other = NULL;
    ASSERT_STATUS(DPR_OK, create(0, 300, &ctx));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, create(0, 301, &other));
    EXPECT_CONTAINS(dpr_last_error(), "ctx_options->pending_launches is 301");
    EXPECT_CONTAINS(dpr_last_error(), "300");
    EXPECT_TRUE(other == NULL);
    EXPECT_EQ_U64(300, limit_of(0));
    ASSERT_STATUS(DPR_OK, create(0, 0, &other)); /* one that does not care does */
    dpr_ctx_destroy(ctx);
    EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
    ASSERT_STATUS(DPR_OK, create(0, 301, &ctx));
    EXPECT_EQ_U64(301, limit_of(0));
    dpr_ctx_destroy(ctx);
    dpr_ctx_destroy(other);
    EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
}

/* The device refuses the one, and gives less than the other. */
LIMIT_TEST(numbers_that_a_device_does_not_take_are_refused) {
    const size_t numbers[] = {(size_t)1 << 24, SIZE_MAX, MOST_LIMIT + 1};
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        dpr_ctx *ctx = NULL;
        char sentence[64];
        snprintf(sentence, sizeof sentence, "ctx_options->pending_launches is %zu,", numbers[i]);
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, create(1, numbers[i], &ctx));
        EXPECT_CONTAINS(dpr_last_error(), sentence);
        EXPECT_CONTAINS(dpr_last_error(), "device 1");
        EXPECT_TRUE(ctx == NULL);
        EXPECT_EQ_U64(FIRST_LIMIT, limit_of(1));
        EXPECT_EQ_I64(fixture->before, fake_live_objects());
        ASSERT_STATUS(DPR_OK, create(1, 64, &ctx)); /* and leave no trace */
        EXPECT_EQ_U64(64, limit_of(1));
        dpr_ctx_destroy(ctx);
        EXPECT_EQ_U64(FIRST_LIMIT, limit_of(1));
    }
}

/* Refused by the GPU, and not by the CPU in its place. */
LIMIT_TEST(automatic_contexts_say_what_the_device_has_against_a_number) {
    (void)fixture;
    const size_t numbers[] = {301, SIZE_MAX, MOST_LIMIT + 1};
    const char *const words[] = {"another context has set 300", "refuses", "gives"};
    dpr_ctx *ctx = NULL, *other = NULL;
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        if (i == 0)
            ASSERT_STATUS(DPR_OK, create(0, 300, &ctx));
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, create(DPR_DEVICE_AUTO, numbers[i], &other));
        EXPECT_CONTAINS(dpr_last_error(), words[i]);
        EXPECT_CONTAINS(dpr_last_error(), "device 0");
        EXPECT_TRUE(other == NULL);
        dpr_ctx_destroy(ctx);
        ctx = NULL;
    }
    ASSERT_STATUS(DPR_OK, create(DPR_DEVICE_AUTO, 300, &ctx));
    EXPECT_EQ_I64(0, dpr_ctx_device(ctx));
    EXPECT_EQ_U64(300, limit_of(0));
    dpr_ctx_destroy(ctx);
    EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
}

LIMIT_TEST(contexts_of_the_cpu_have_no_pending_launches) {
    (void)fixture;
    dpr_ctx *ctx = NULL;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, create(DPR_DEVICE_CPU, 64, &ctx));
    EXPECT_CONTAINS(dpr_last_error(), "ctx_options->pending_launches is 64");
    EXPECT_TRUE(ctx == NULL);
    ASSERT_STATUS(DPR_OK, create(DPR_DEVICE_CPU, 0, &ctx));
    dpr_ctx_destroy(ctx);
    EXPECT_EQ_U64(FIRST_LIMIT, limit_of(0));
}
