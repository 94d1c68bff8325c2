/* Statistics of timings. Pure: no clock, no device. */
#ifndef DPR_BENCH_STATISTICS_H
#define DPR_BENCH_STATISTICS_H

/* Values of one sample, at most. */
enum { BENCH_SAMPLES = 1000 };

/* A summary of a sample; all 0 for n == 0. */
typedef struct bench_summary {
    int n;
    double median, least;
    double low, high;  /* a confidence interval of the median, of at least 95 % where `bounded` */
    int bounded;       /* 0: fewer than 6 values bound no median with 95 %; low and high are the extremes */
    double p10, p90;   /* quantiles, interpolated */
    double half_width; /* (high - low) / 2 / median: what the stopping rule looks at; 0 when the median is */
    double spread;     /* (p90 - p10) / median; 0 when the median is */
} bench_summary;

/* Summarises n values (at most BENCH_SAMPLES), which are finite and need not be sorted. Makes no assumption on their
 * distribution: the interval comes from order statistics, whose ranks are binomially distributed with p = 1/2. */
bench_summary bench_summarise(const double *values, int n);

/* Value at fraction q (0 to 1) of n sorted values, linear between neighbours. n is at least 1. */
double bench_quantile(const double *sorted, int n, double q);

/* Greatest rank k (from 1) such that the k-th least and the k-th greatest of n values enclose the median with at least
 * 95 %; 0 if no pair does. */
int bench_median_rank(int n);

/* When to stop taking samples. */
typedef struct bench_rule {
    double half_width; /* target of bench_summary.half_width, e.g. 0.01 */
    int min_samples;   /* at least 1 */
    int max_samples;   /* at most BENCH_SAMPLES */
    double seconds;    /* of wall time for all subjects of a point together, warm-up included; min_samples, warm-up and
                          captures are not cut short by it, so that a point may take longer */
} bench_rule;

typedef enum bench_verdict { BENCH_MORE, BENCH_SETTLED, BENCH_OUT_OF_SAMPLES, BENCH_OUT_OF_TIME } bench_verdict;

/* Whether the samples summarised so far are enough, `seconds` after the point began. */
bench_verdict bench_judge(const bench_rule *rule, const bench_summary *summary, double seconds);

#endif
