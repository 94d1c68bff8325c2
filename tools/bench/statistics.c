#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const double *sorted, int n, double q) {
    const double place = q * (n - 1);
    const int below = (int)place;
    if (below >= n - 1)
        return sorted[n - 1];
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

/* The k-th least and the k-th greatest of n enclose the median unless fewer than k values are on one side of it: the
 * number on a side is binomial with p = 1/2, and each side may take 2.5 %. */
int bench_median_rank(int n) {
    double tail = 0;
    for (int k = 0; k < n / 2; k++) {
        tail += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) - n * log(2.0));
        if (tail > 0.025)
            return k;
    }
    return n / 2;
}

bench_summary bench_summarise(const double *values, int n) {
    double sorted[BENCH_SAMPLES];
    bench_summary s = {.n = n};
    if (n < 1)
        return (bench_summary){0};
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    const int rank = bench_median_rank(n);
    s.median = bench_quantile(sorted, n, 0.5);
    s.least = sorted[0];
    s.bounded = rank > 0;
    s.low = sorted[s.bounded ? rank - 1 : 0];
    s.high = sorted[s.bounded ? n - rank : n - 1];
    s.p10 = bench_quantile(sorted, n, 0.1);
    s.p90 = bench_quantile(sorted, n, 0.9);
    if (s.median > 0) {
        s.half_width = (s.high - s.low) / 2 / s.median;
        s.spread = (s.p90 - s.p10) / s.median;
    }
    return s;
}

bench_verdict bench_judge(const bench_rule *rule, const bench_summary *summary, double seconds) {
    if (summary->n < rule->min_samples)
        return BENCH_MORE;
    if (summary->bounded && summary->half_width <= rule->half_width)
        return BENCH_SETTLED;
    if (summary->n >= rule->max_samples)
        return BENCH_OUT_OF_SAMPLES;
    return seconds >= rule->seconds ? BENCH_OUT_OF_TIME : BENCH_MORE;
}
