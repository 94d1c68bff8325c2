/* GoogleTest for test bodies in C.
 *
 *     TEST(Suite, name) {
 *         ASSERT_TRUE(buffer != NULL);
 *         EXPECT_EQ_I64(6, sum);
 *     }
 *
 * EXPECT_* notes a failure and goes on; ASSERT_* also returns from the body. Both print file, line, expressions and
 * values. SKIP("why") ends the body and counts as skipped. Tests whose names are made at start-up are added by a
 * TEST_GENERATOR. Any thread may check; a failure counts for the test that runs. */
#ifndef DPR_TESTS_SHIM_H
#define DPR_TESTS_SHIM_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A test. What the pointers point to must live as long as the program; the names are copied. */
typedef struct test_case {
    const char *suite, *name;
    const char *file;
    int line;
    void (*body)(void *context);
    void *context;
    /* A fixture: `state_size` zeroed bytes that the body gets as its context. `setup` runs before the body, which is
     * left out when it fails; `teardown` runs in any case. All may be 0. */
    size_t state_size;
    void (*setup)(void *state);
    void (*teardown)(void *state);
} test_case;

void test_add(const test_case *test);

/* Has `generate` called before the tests run; it adds tests. */
void test_add_generator(void (*generate)(void));

/* Whether a check of the running test has failed. */
int test_failed(void);

/* Each notes a failure unless the condition holds, and returns the condition. */
int test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
int test_eq_i64(const char *file, int line, const char *a_text, const char *b_text, int64_t a, int64_t b);
int test_eq_u64(const char *file, int line, const char *a_text, const char *b_text, uint64_t a, uint64_t b);
int test_eq_ptr(const char *file, int line, const char *a_text, const char *b_text, const void *a, const void *b);
int test_eq_str(const char *file, int line, const char *a_text, const char *b_text, const char *a, const char *b);
int test_near_f64(const char *file, int line, const char *a_text, const char *b_text, double a, double b, double bound);
int test_contains(const char *file, int line, const char *text_text, const char *text, const char *part);
int test_eq_bytes(const char *file, int line, const char *a_text, const char *b_text, const void *a, const void *b,
                  size_t size);

void test_skip(const char *reason);

/* Notes a value that the test measured: printed, and a property of the test in what --gtest_output writes. */
void test_record(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Seconds of a clock that never goes back. */
double test_now(void);

#ifdef __cplusplus
}
#endif

/* A call, because compilers warn of a constant whose value is not used. */
static inline int test_passed(void) {
    return 1;
}

/* The fields after the body are the fixture's. */
#define TEST_REGISTER_(SUITE, NAME, ...)                                                                               \
    static void SUITE##_##NAME##_body(void *context);                                                                  \
    __attribute__((constructor)) static void SUITE##_##NAME##_register(void) {                                         \
        const test_case test = {#SUITE, #NAME, __FILE__, __LINE__, SUITE##_##NAME##_body, __VA_ARGS__};                \
        test_add(&test);                                                                                               \
    }                                                                                                                  \
    static void SUITE##_##NAME##_body(void *context)

#define TEST(SUITE, NAME)                                                                                              \
    static void SUITE##_##NAME##_test(void);                                                                           \
    TEST_REGISTER_(SUITE, NAME, NULL, 0, NULL, NULL) {                                                                 \
        (void)context;                                                                                                 \
        SUITE##_##NAME##_test();                                                                                       \
    }                                                                                                                  \
    static void SUITE##_##NAME##_test(void)

/* The body sees its state as `TYPE *fixture`. */
#define TEST_FIXTURE(SUITE, NAME, TYPE, SETUP, TEARDOWN)                                                               \
    static void SUITE##_##NAME##_test(TYPE *fixture);                                                                  \
    TEST_REGISTER_(SUITE, NAME, NULL, sizeof(TYPE), SETUP, TEARDOWN) {                                                 \
        SUITE##_##NAME##_test((TYPE *)context);                                                                        \
    }                                                                                                                  \
    static void SUITE##_##NAME##_test(TYPE *fixture)

#define TEST_GENERATOR(NAME)                                                                                           \
    static void NAME##_generate(void);                                                                                 \
    __attribute__((constructor)) static void NAME##_register(void) {                                                   \
        test_add_generator(NAME##_generate);                                                                           \
    }                                                                                                                  \
    static void NAME##_generate(void)

#define TEST_RETURN_UNLESS_(OK)                                                                                        \
    do {                                                                                                               \
        if (!(OK))                                                                                                     \
            return;                                                                                                    \
    } while (0)

#define EXPECT_TRUE(C) ((C) ? test_passed() : test_fail(__FILE__, __LINE__, "%s is false", #C))
#define EXPECT_THAT(C, ...) ((C) ? test_passed() : test_fail(__FILE__, __LINE__, __VA_ARGS__))
#define EXPECT_EQ_I64(A, B) test_eq_i64(__FILE__, __LINE__, #A, #B, (int64_t)(A), (int64_t)(B))
#define EXPECT_EQ_U64(A, B) test_eq_u64(__FILE__, __LINE__, #A, #B, (uint64_t)(A), (uint64_t)(B))
#define EXPECT_EQ_PTR(A, B) test_eq_ptr(__FILE__, __LINE__, #A, #B, A, B)
#define EXPECT_EQ_STR(A, B) test_eq_str(__FILE__, __LINE__, #A, #B, A, B)
#define EXPECT_NEAR_F64(A, B, BOUND) test_near_f64(__FILE__, __LINE__, #A, #B, A, B, BOUND)
#define EXPECT_CONTAINS(TEXT, PART) test_contains(__FILE__, __LINE__, #TEXT, TEXT, PART)
#define EXPECT_EQ_BYTES(A, B, SIZE) test_eq_bytes(__FILE__, __LINE__, #A, #B, A, B, SIZE)

#define ASSERT_TRUE(C) TEST_RETURN_UNLESS_(EXPECT_TRUE(C))
#define ASSERT_THAT(C, ...) TEST_RETURN_UNLESS_(EXPECT_THAT(C, __VA_ARGS__))
#define ASSERT_EQ_I64(A, B) TEST_RETURN_UNLESS_(EXPECT_EQ_I64(A, B))
#define ASSERT_EQ_U64(A, B) TEST_RETURN_UNLESS_(EXPECT_EQ_U64(A, B))
#define ASSERT_EQ_PTR(A, B) TEST_RETURN_UNLESS_(EXPECT_EQ_PTR(A, B))
#define ASSERT_EQ_STR(A, B) TEST_RETURN_UNLESS_(EXPECT_EQ_STR(A, B))
#define ASSERT_NEAR_F64(A, B, BOUND) TEST_RETURN_UNLESS_(EXPECT_NEAR_F64(A, B, BOUND))
#define ASSERT_CONTAINS(TEXT, PART) TEST_RETURN_UNLESS_(EXPECT_CONTAINS(TEXT, PART))
#define ASSERT_EQ_BYTES(A, B, SIZE) TEST_RETURN_UNLESS_(EXPECT_EQ_BYTES(A, B, SIZE))

#define FAIL(...) TEST_RETURN_UNLESS_(test_fail(__FILE__, __LINE__, __VA_ARGS__))
#define SKIP(REASON)                                                                                                   \
    do {                                                                                                               \
        test_skip(REASON);                                                                                             \
        return;                                                                                                        \
    } while (0)

#endif
