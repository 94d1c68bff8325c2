// The only C++ of the tests: hands C test bodies to GoogleTest.
#include "shim.h"

#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

namespace {

// A function, because generators are added by constructors that may run before this file's own.
std::vector<void (*)()> &generators() {
    static std::vector<void (*)()> list;
    return list;
}

class c_test : public testing::Test {
  public:
    explicit c_test(const test_case &test) : test_(test), state_(test.state_size) {}
    void SetUp() override {
        if (test_.setup)
            test_.setup(state_.data());
    }
    void TearDown() override {
        if (test_.teardown)
            test_.teardown(state_.data());
    }
    void TestBody() override {
        if (HasFailure())
            return; // of the set-up, in C: not fatal to GoogleTest
        test_.body(test_.state_size ? state_.data() : test_.context);
    }

  private:
    test_case test_;
    std::vector<unsigned char> state_;
};

int fail(const char *file, int line, const std::string &message) {
    ADD_FAILURE_AT(file, line) << message;
    return 0;
}

template <typename T>
int check_eq(const char *file, int line, const char *a_text, const char *b_text, const T &a, const T &b) {
    if (a == b)
        return 1;
    std::ostringstream message;
    message << a_text << " == " << b_text << "\n  left:  " << a << "\n  right: " << b;
    return fail(file, line, message.str());
}

std::string quoted(const char *text) {
    return text ? '"' + std::string(text) + '"' : "NULL";
}

} // namespace

void test_add(const test_case *test) {
    testing::RegisterTest(test->suite, test->name, nullptr, nullptr, test->file, test->line,
                          [copy = *test]() -> testing::Test * { return new c_test(copy); });
}

void test_add_generator(void (*generate)(void)) {
    generators().push_back(generate);
}

int test_failed(void) {
    return testing::Test::HasFailure();
}

int test_fail(const char *file, int line, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(file, line, text);
}

int test_eq_i64(const char *file, int line, const char *a_text, const char *b_text, int64_t a, int64_t b) {
    return check_eq(file, line, a_text, b_text, a, b);
}

int test_eq_u64(const char *file, int line, const char *a_text, const char *b_text, uint64_t a, uint64_t b) {
    return check_eq(file, line, a_text, b_text, a, b);
}

int test_eq_ptr(const char *file, int line, const char *a_text, const char *b_text, const void *a, const void *b) {
    return check_eq(file, line, a_text, b_text, a, b);
}

int test_eq_str(const char *file, int line, const char *a_text, const char *b_text, const char *a, const char *b) {
    return check_eq(file, line, a_text, b_text, quoted(a), quoted(b));
}

int test_near_f64(const char *file, int line, const char *a_text, const char *b_text, double a, double b,
                  double bound) {
    if (a == b || std::fabs(a - b) <= bound)
        return 1;
    return test_fail(file, line, "%s near %s\n  left:  %.17g\n  right: %.17g\n  difference %.3g exceeds %.3g", a_text,
                     b_text, a, b, std::fabs(a - b), bound);
}

int test_contains(const char *file, int line, const char *text_text, const char *text, const char *part) {
    if (text && part && std::strstr(text, part))
        return 1;
    return fail(file, line, std::string(text_text) + " contains " + quoted(part) + "\n  text: " + quoted(text));
}

int test_eq_bytes(const char *file, int line, const char *a_text, const char *b_text, const void *a, const void *b,
                  size_t size) {
    const auto *left = static_cast<const unsigned char *>(a), *right = static_cast<const unsigned char *>(b);
    for (size_t i = 0; i < size; i++)
        if (left[i] != right[i])
            return test_fail(file, line, "%s == %s\n  byte %zu of %zu\n  left:  0x%02x\n  right: 0x%02x", a_text,
                             b_text, i, size, left[i], right[i]);
    return 1;
}

void test_skip(const char *reason) {
    GTEST_SKIP() << reason;
}

void test_record(const char *key, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    testing::Test::RecordProperty(key, text);
    std::printf("%s: %s\n", key, text);
}

double test_now(void) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char **argv) {
    setenv("DPR_WISDOM", "none", 0); // times of this machine would change what the planner chooses
    for (auto *generate : generators())
        generate();
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
