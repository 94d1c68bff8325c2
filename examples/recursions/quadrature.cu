/* Ten thousand integrals at once by adaptive quadrature: Simpson's rule on an interval and on its halves; where the two
 * differ too much, the halves are integrated by themselves. The integrals are of a / (a^2 + (x - c)^2) from 0 to 1:
 * peaks of different widths 2a at different places c. One in a thousand is a needle, which takes a deep recursion. */
#include <dpr_recursion.cuh>

#include <cmath>
#include <vector>

#include "example.h"

namespace {

struct quadrature {
    struct task {
        double begin, width;
        double a, c;
        double tolerance;
        double whole; /* by Simpson's rule */
    };
    using result = double;
    static constexpr int most_children = 2;

    DPR_BOTH static double f(const task &t, double x) { return t.a / (t.a * t.a + (x - t.c) * (x - t.c)); }
    DPR_BOTH static double simpson(const task &t, double begin, double width) {
        return width / 6 * (f(t, begin) + 4 * f(t, begin + width / 2) + f(t, begin + width));
    }
    DPR_BOTH static task half(const task &t, double begin) {
        return {begin, t.width / 2, t.a, t.c, t.tolerance / 2, simpson(t, begin, t.width / 2)};
    }
    DPR_POLICY int divide(const dpr::no_data &, const task &t, dpr::children<quadrature> children) {
        const task left = half(t, t.begin), right = half(t, t.begin + t.width / 2);
        const double difference = left.whole + right.whole - t.whole;
        /* The error of the halves together is a fifteenth of the difference (Lyness, 1969). */
        if (difference * difference <= 225 * t.tolerance * t.tolerance)
            return 0;
        children[0] = left;
        children[1] = right;
        return 2;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t) {
        const double halves = half(t, t.begin).whole + half(t, t.begin + t.width / 2).whole;
        return halves + (halves - t.whole) / 15;
    }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<quadrature> results, int) {
        return results[0] + results[1];
    }
};

quadrature::task problem(uint64_t i) {
    const double random = static_cast<double>(i * 2654435761u % 4294967296u) / 4294967296;
    const double a = i % 1000 == 500 ? 1e-7 : 1e-3 + 0.01 * random;
    quadrature::task t = {0, 1, a, 0.1 + 0.8 * random, 1e-9, 0};
    t.whole = quadrature::simpson(t, 0, 1);
    return t;
}

double known(const quadrature::task &t) {
    return std::atan((1 - t.c) / t.a) + std::atan(t.c / t.a);
}

} // namespace

DPR_RECURSION(quadrature, quadrature)

static dpr_status run(dpr_ctx *ctx, uint64_t size, const dpr_recursion_options *options, dpr_recursion_report *report,
                      recursion_answer *answer) {
    std::vector<quadrature::task> roots(size);
    std::vector<double> results(size);
    for (uint64_t i = 0; i < size; ++i)
        roots[i] = problem(i);
    const dpr_status status =
        quadrature_run(ctx, roots.data(), size, nullptr, results.data(), options, report, nullptr);
    double worst = 0;
    for (uint64_t i = 0; i < size; ++i)
        worst = std::fmax(worst, std::fabs(results[i] - known(roots[i])));
    recursion_set_answer(answer, worst < 1e-8, "largest error of %llu integrals: %.1e",
                         static_cast<unsigned long long>(size), worst);
    return status;
}

extern "C" const recursion_example recursion_quadrature = {
    "quadrature", "adaptive quadrature of peaks, all at once", "how many integrals", 10000, 1, 1 << 24, run};
