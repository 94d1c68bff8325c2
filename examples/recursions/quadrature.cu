/* Ten thousand integrals at once by adaptive quadrature: Simpson's rule on an interval and on its halves; where the two
 * differ too much, the halves are integrated by themselves. The integrals are of a / (a^2 + (x - c)^2) from 0 to 1:
 * peaks of different widths 2a at different places c. One in a thousand is a needle, which takes a deep recursion. */
#include <dpr_recursion.cuh>

#include <cmath>
#include <vector>

#include "example.h"
#include "memory.h"

namespace {

/* The integral of a / (a^2 + (x - c)^2). */
struct peak {
    double a, c;
};

struct quadrature {
    /* An interval. Its width is a power of two, which a float has exactly. Small tasks leave room for more lanes, so
     * that Simpson's rule for the whole interval is computed again instead of being kept. */
    struct task {
        double begin;
        float width;
        uint32_t integral;
    };
    using result = double;
    struct data {
        const peak *peaks;
    };
    static constexpr int most_children = 2;
    static constexpr bool host_data = true;

    DPR_BOTH static double f(const peak &p, double x) { return p.a / (p.a * p.a + (x - p.c) * (x - p.c)); }

    /* Simpson's rule for the halves of an interval together, and how much it differs from that for the whole. */
    struct estimate {
        double halves, difference;
    };
    DPR_BOTH static estimate simpson(const data &d, const task &t) {
        const peak p = d.peaks[t.integral];
        const double w = t.width, begin = f(p, t.begin), middle = f(p, t.begin + w / 2), end = f(p, t.begin + w);
        const double left = f(p, t.begin + w / 4), right = f(p, t.begin + 3 * w / 4);
        const double halves = w / 12 * (begin + 4 * left + 2 * middle + 4 * right + end);
        return {halves, halves - w / 6 * (begin + 4 * middle + end)};
    }

    DPR_POLICY int divide(const data &d, const task &t, dpr::children<quadrature> children) {
        constexpr double tolerance = 1e-9; /* of the whole interval */
        const double difference = simpson(d, t).difference;
        /* The error of the halves together is a fifteenth of the difference (Lyness, 1969). */
        if (std::fabs(difference) <= 15 * tolerance * t.width)
            return 0;
        const float half = t.width / 2;
        children[0] = {t.begin, half, t.integral};
        children[1] = {t.begin + half, half, t.integral};
        return 2;
    }
    DPR_POLICY result base(const data &d, const task &t) {
        const estimate e = simpson(d, t);
        return e.halves + e.difference / 15;
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<quadrature> results, int) {
        return results[0] + results[1];
    }
};

peak problem(uint64_t i) {
    const double random = static_cast<double>(i * 2654435761u % 4294967296u) / 4294967296;
    return {i % 1000 == 500 ? 1e-7 : 1e-3 + 0.01 * random, 0.1 + 0.8 * random};
}

double known(const peak &p) {
    return std::atan((1 - p.c) / p.a) + std::atan(p.c / p.a);
}

} // namespace

DPR_RECURSION(quadrature, quadrature)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    std::vector<quadrature::task> roots(size);
    std::vector<double> results(size);
    const array<peak> peaks(ctx, size);
    for (uint64_t i = 0; i < size; ++i) {
        roots[i] = {0, 1, static_cast<uint32_t>(i)};
        peaks[i] = problem(i);
    }
    const quadrature::data data = {peaks.get()};
    prefetch(ctx, request->options, report, peaks.get(), size);
    const dpr_status status =
        quadrature_run(ctx, roots.data(), size, &data, results.data(), request->options, report, nullptr);
    double worst = 0;
    for (uint64_t i = 0; i < size; ++i)
        worst = std::fmax(worst, std::fabs(results[i] - known(problem(i))));
    recursion_set_answer(answer, worst < 1e-8, "largest error of %llu integrals: %.1e",
                         static_cast<unsigned long long>(size), worst);
    return status;
}

extern "C" const recursion_example recursion_quadrature = {"quadrature",
                                                           "adaptive quadrature of peaks, all at once",
                                                           "how many integrals",
                                                           10000,
                                                           1,
                                                           1 << 24,
                                                           within_memory<run>,
                                                           nullptr,
                                                           0,
                                                           0};
