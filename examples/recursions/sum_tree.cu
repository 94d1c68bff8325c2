/* gpuRecursiveReduce of "Professional CUDA C Programming" (Cheng, Grossman, McKercher; 2014) as a policy: a range of an
 * array is divided into halves until it is short. For sums of arrays dpr_reduce() is a hundred times as fast; this one
 * is here to be read. */
#include <dpr_recursion.cuh>

#include "example.h"
#include "memory.h"

namespace {

struct sum_tree {
    struct task {
        uint32_t begin, end;
    };
    using result = int64_t;
    struct data {
        const int32_t *x;
        uint32_t shortest; /* elements of a range that is not divided */
    };
    static constexpr int most_children = 2;
    static constexpr bool host_data = true;

    DPR_POLICY int divide(const data &d, const task &t, dpr::children<sum_tree> children) {
        if (t.end - t.begin <= d.shortest)
            return 0;
        const uint32_t middle = t.begin + (t.end - t.begin) / 2;
        children[0] = {t.begin, middle};
        children[1] = {middle, t.end};
        return 2;
    }
    DPR_POLICY result base(const data &d, const task &t) {
        result sum = 0;
        for (uint32_t i = t.begin; i < t.end; ++i)
            sum += d.x[i];
        return sum;
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<sum_tree> results, int) {
        return results[0] + results[1];
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return t.end - t.begin; }
};

} // namespace

DPR_RECURSION(sum_tree, sum_tree)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    const array<int32_t> x(ctx, size);
    int64_t known = 0, result = 0;
    for (uint64_t i = 0; i < size; ++i)
        known += x[i] = static_cast<int32_t>(i * 2654435761u >> 12 & 1023) - 500;
    const sum_tree::data data = {x.get(), 64};
    const sum_tree::task root = {0, static_cast<uint32_t>(size)};
    prefetch(ctx, request->options, report, x.get(), size);
    const dpr_status status = sum_tree_run(ctx, &root, 1, &data, &result, request->options, report, nullptr);
    recursion_set_answer(answer, result == known, "the sum is %lld", static_cast<long long>(result));
    return status;
}

extern "C" const recursion_example recursion_sum_tree = {"sum_tree",
                                                         "the sum of an array, divided into halves",
                                                         "how many elements",
                                                         1 << 20,
                                                         1,
                                                         1 << 30,
                                                         within_memory<run>,
                                                         nullptr,
                                                         0,
                                                         0};
