/* Checks of statuses, and small helpers of the tests. */
#ifndef DPR_TESTS_SUPPORT_H
#define DPR_TESTS_SUPPORT_H

#include <stdint.h>
#include <stdlib.h>

#include "dpr.h"
#include "shim/shim.h"

/* An array's length. */
#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))

/* How many times as long code may take in this build as in one without a sanitizer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { TEST_SLOWNESS = 20 };
#else
enum { TEST_SLOWNESS = 1 };
#endif

/* DPR_TEST_LARGEST leaves out longer arrays, for tools that take a thousand times as long: the most elements. */
static inline size_t test_largest(void) {
    const char *text = getenv("DPR_TEST_LARGEST");
    return text ? strtoull(text, NULL, 10) : SIZE_MAX;
}

static inline int test_status(const char *file, int line, const char *call, dpr_status expected, dpr_status got) {
    if (expected == got)
        return 1;
    return test_fail(file, line, "%s\n  status:   %s\n  expected: %s\n  last error: %s", call, dpr_status_name(got),
                     dpr_status_name(expected), dpr_last_error());
}

#define EXPECT_STATUS(EXPECTED, CALL) test_status(__FILE__, __LINE__, #CALL, EXPECTED, CALL)
#define ASSERT_STATUS(EXPECTED, CALL) TEST_RETURN_UNLESS_(EXPECT_STATUS(EXPECTED, CALL))

/* A call is refused because of arrays that overlap, with this part of a sentence. */
#define EXPECT_OVERLAP(SENTENCE, CALL)                                                                                 \
    do {                                                                                                               \
        EXPECT_STATUS(DPR_ERR_OVERLAP, CALL);                                                                          \
        EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                   \
    } while (0)

static inline dpr_ctx *cpu_ctx(void) {
    dpr_ctx *ctx = NULL;
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    return ctx;
}

#endif
