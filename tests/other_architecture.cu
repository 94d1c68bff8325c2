/* A policy whose kernels are for devices of compute capability 7.5 alone. */
#include <dpr_recursion.cuh>

#include "recursion_policies.h"

namespace {

struct elsewhere {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = 1;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<elsewhere> children) {
        if (n > 0)
            children[0] = n - 1;
        return n > 0;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) { return 1; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<elsewhere> results, int) {
        return results[0] + 1;
    }
};

} // namespace

DPR_RECURSION(elsewhere, elsewhere)
