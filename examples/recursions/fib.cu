/* The Fibonacci numbers by their definition: the smallest recursion there is, and nearly nothing but the cost of tasks.
 * fib(40) has 331 160 281 of them. */
#include <dpr_recursion.cuh>

#include "example.h"

namespace {

struct fib {
    using task = int32_t;
    using result = uint32_t; /* up to fib(47) */
    static constexpr int most_children = 2;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<fib> children) {
        if (n < 2)
            return 0;
        children[0] = n - 1;
        children[1] = n - 2;
        return 2;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &n) { return static_cast<result>(n); }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<fib> results, int) {
        return results[0] + results[1];
    }
    /* The number of tasks grows by 1.6 with each number, 2^0.7. */
    DPR_POLICY uint64_t cost(const dpr::no_data &, const task &n) { return uint64_t{1} << n * 7 / 10; }
};

} // namespace

DPR_RECURSION(fib, fib)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    const int32_t root = static_cast<int32_t>(size);
    uint32_t result = 0, known = 0;
    const dpr_status status = fib_run(ctx, &root, 1, nullptr, &result, request->options, report, nullptr);
    for (uint32_t i = 0, next = 1; i < size; ++i) {
        const uint32_t sum = known + next;
        known = next;
        next = sum;
    }
    recursion_set_answer(answer, result == known, "fib(%d) = %u", root, result);
    return status;
}

extern "C" const recursion_example recursion_fib = {
    "fib", "Fibonacci numbers by their definition", "which number", 35, 0, 47, run, nullptr, 0, 0};
