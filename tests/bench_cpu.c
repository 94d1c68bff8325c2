/* The CPU strategies beside OpenMP, in one run: the sum of an F32 array by cpu.threads and by a parallel loop on as
 * many threads, by cpu.simd and by the same loop on one; and what dpr_reduce() of 16 doubles costs over the bare loop.
 *
 *     bench_cpu [BYTES [THREADS [ROUNDS]]]      1 GiB, as many as OpenMP takes, 15
 *
 * The four take turns, and each figure is the median of the rounds. Prints a table on standard error and JSON on
 * standard output. Exit status 1 if a result is wrong, 2 if the arguments are; slow results are no failure. To be
 * compiled with -fopenmp and the flags of the library. */
#define _POSIX_C_SOURCE 200112L /* setenv, nanosleep, clock_gettime */

#include <dpr.h>

#include "cuda/device.h"
#include "plan/processors.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_ROUNDS = 1000, SMALL = 16, SMALL_CALLS = 1000, SMALL_ROUNDS = 301 };

typedef struct bench {
    dpr_ctx *ctx;
    float *in;
    size_t count;
    int threads;
    float expected;
} bench;

typedef float (*contender)(const bench *b);

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Threads that OpenMP takes if it is not told. */
static int default_threads(void) {
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    return threads;
}

static float sum_between(const float *in, size_t from, size_t to) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = from; i < to; i++)
        sum += in[i];
    return sum;
}

static float openmp_one(const bench *b) {
    return sum_between(b->in, 0, b->count);
}

/* A loop over parts, because Clang 14 does not vectorise the loop over elements if it is shared among threads. */
static float openmp_all(const bench *b) {
    const size_t threads = (size_t)b->threads, length = b->count / threads, rest = b->count % threads;
    float sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(b->threads) schedule(static)
    for (size_t t = 0; t < threads; t++) {
        const size_t from = t * length + (t < rest ? t : rest);
        sum += sum_between(b->in, from, from + length + (t < rest));
    }
    return sum;
}

static float library(const bench *b, const char *strategy) {
    dpr_options options = DPR_OPTIONS_INIT;
    float sum = 0;
    options.strategy = strategy;
    if (dpr_reduce_ex(b->ctx, b->in, &sum, b->count, DPR_F32, DPR_SUM, &options) != DPR_OK) {
        (void)fprintf(stderr, "bench_cpu: %s\n", dpr_last_error());
        exit(1);
    }
    if (sum != b->expected) {
        (void)fprintf(stderr, "bench_cpu: %s: %.9g instead of %.9g\n", strategy, (double)sum, (double)b->expected);
        exit(1);
    }
    return sum;
}

static float dpr_one(const bench *b) {
    return library(b, "cpu.simd");
}
static float dpr_all(const bench *b) {
    return library(b, "cpu.threads");
}

static const struct {
    const char *name;
    contender run;
} contenders[] = {
    {"openmp_threads", openmp_all}, {"cpu.threads", dpr_all}, {"openmp_simd", openmp_one}, {"cpu.simd", dpr_one}};
enum { CONTENDERS = sizeof contenders / sizeof contenders[0] };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* OpenMP's threads spin for a while after a loop; the next contender waits until they sleep. */
static void settle(void) {
    struct timespec pause = {.tv_nsec = 10000000};
    (void)nanosleep(&pause, NULL);
}

static void measure(const bench *b, int rounds, double seconds[CONTENDERS]) {
    static double times[CONTENDERS][MAX_ROUNDS];
    volatile float sink;
    for (int round = -1; round < rounds; round++) /* the first does not count: threads start */
        for (int c = 0; c < CONTENDERS; c++) {
            settle();
            double start = now();
            sink = contenders[c].run(b);
            if (round >= 0)
                times[c][round] = now() - start;
        }
    (void)sink;
    for (int c = 0; c < CONTENDERS; c++)
        seconds[c] = median(times[c], rounds);
}

/* Seconds of one call of dpr_reduce() for 16 doubles, and of a loop instead. Rounds are short, so that most of them end
 * before another process has its turn. */
static void measure_small(double *call, double *loop) {
    double in[SMALL], out = 0, times[2][SMALL_ROUNDS];
    volatile double sink;
    const double *volatile hidden = in; /* so that the loop is not done once for all calls */
    for (int i = 0; i < SMALL; i++)
        in[i] = i;
    for (int round = 0; round < SMALL_ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < SMALL_CALLS; i++)
            if (dpr_reduce(hidden, &out, SMALL, DPR_F64, DPR_SUM) != DPR_OK || out != SMALL * (SMALL - 1) / 2.0)
                exit(1);
        times[0][round] = (now() - start) / SMALL_CALLS;
        start = now();
        for (int i = 0; i < SMALL_CALLS; i++) {
            const double *from = hidden;
            double sum = 0;
            for (int k = 0; k < SMALL; k++)
                sum += from[k];
            sink = sum;
        }
        times[1][round] = (now() - start) / SMALL_CALLS;
    }
    (void)sink;
    *call = median(times[0], SMALL_ROUNDS);
    *loop = median(times[1], SMALL_ROUNDS);
}

/* Values whose sum is exact: -3 to 3. Each thread touches first what it will read. */
static void fill(bench *b) {
    long long sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(b->threads) schedule(static)
    for (size_t i = 0; i < b->count; i++) {
        int value = (int)(i % 7) - 3 + (i % 1024 == 0);
        b->in[i] = (float)value;
        sum += value;
    }
    b->expected = (float)sum;
}

static void report(const bench *b, const double seconds[CONTENDERS], double call, double loop) {
    double bytes = (double)(b->count * sizeof(float));
    double all = seconds[0] / seconds[1], one = seconds[2] / seconds[3];
    (void)fprintf(stderr, "%.0f bytes, %d threads\n", bytes, b->threads);
    for (int c = 0; c < CONTENDERS; c++)
        (void)fprintf(stderr, "%-16s %10.3f ms %8.2f GB/s\n", contenders[c].name, 1e3 * seconds[c],
                      1e-9 * bytes / seconds[c]);
    (void)fprintf(stderr, "cpu.threads / OpenMP %.3f, cpu.simd / OpenMP on one thread %.3f\n", all, one);
    (void)fprintf(stderr, "16 doubles: dpr_reduce() %.1f ns, bare loop %.1f ns\n", 1e9 * call, 1e9 * loop);
    dpr_cpu_caps cpu;
    char name[64];
    dpr_read_processors(&cpu, name);
    const char *commit = getenv("DPR_COMMIT");
    (void)printf("{\"benchmark\": \"cpu\", \"device\": \"%s\", \"commit\": \"%s\", \"gpus\": %d", name,
                 commit ? commit : "", dpr_device_count());
    (void)printf(", \"bytes\": %.0f, \"threads\": %d", bytes, b->threads);
    for (int c = 0; c < CONTENDERS; c++)
        (void)printf(", \"%s_gb_per_s\": %.3f", contenders[c].name, 1e-9 * bytes / seconds[c]);
    (void)printf(", \"threads_ratio\": %.4f, \"simd_ratio\": %.4f", all, one);
    (void)printf(", \"small_call_ns\": %.2f, \"small_loop_ns\": %.2f}\n", 1e9 * call, 1e9 * loop);
}

/* Argument i as a number from 1 to `most`, or `otherwise` if it is not given; 0 if it is bad. */
static size_t argument(int argc, char **argv, int i, size_t most, size_t otherwise) {
    char *end;
    if (i >= argc)
        return otherwise;
    unsigned long long n = strtoull(argv[i], &end, 10);
    return *argv[i] >= '0' && *argv[i] <= '9' && *end == '\0' && n <= most ? (size_t)n : 0;
}

int main(int argc, char **argv) {
    size_t bytes = argument(argc, argv, 1, SIZE_MAX, (size_t)1 << 30);
    size_t threads = argument(argc, argv, 2, 1024, (size_t)default_threads());
    size_t rounds = argument(argc, argv, 3, MAX_ROUNDS, 15);
    bench b = {.count = bytes / sizeof(float), .threads = (int)threads};
    double seconds[CONTENDERS], call, loop;
    char text[16];
    if (argc > 4 || b.count == 0 || threads == 0 || rounds == 0) {
        (void)fprintf(stderr, "usage: bench_cpu [BYTES [THREADS [ROUNDS]]]\n");
        return 2;
    }
    (void)snprintf(text, sizeof text, "%d", b.threads);
    b.in = malloc(b.count * sizeof *b.in);
    if (!b.in || setenv("DPR_NUM_THREADS", text, 1) != 0 || dpr_ctx_create(DPR_DEVICE_CPU, &b.ctx) != DPR_OK) {
        (void)fprintf(stderr, "bench_cpu: out of memory\n");
        return 1;
    }
    measure_small(&call, &loop); /* before OpenMP has threads, which go on spinning for a while after their loop */
    fill(&b);
    measure(&b, (int)rounds, seconds);
    report(&b, seconds, call, loop);
    dpr_ctx_destroy(b.ctx);
    dpr_shutdown();
    free(b.in);
    return 0;
}
