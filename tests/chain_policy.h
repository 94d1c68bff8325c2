/* The policy of a chain (recursion_policies.h), which two files compile for different devices. */
#ifndef DPR_TESTS_CHAIN_POLICY_H
#define DPR_TESTS_CHAIN_POLICY_H

#include <dpr_recursion.cuh>

namespace {

struct chain {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = 1;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<chain> children) {
        if (n > 0)
            children[0] = n - 1;
        return n > 0;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) { return 1; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<chain> results, int) {
        return results[0] + 1;
    }
};

} // namespace

#endif
