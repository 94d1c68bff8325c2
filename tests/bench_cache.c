/* The CPU's arithmetic on data in its caches, on one thread with the best instruction set or that of DPR_CPU_ISA.
 *
 * bench_cache sums [OFFSET]: times of sums of F32 in ns. Contenders are a loop made for this processor, the fold of
 * cpu.simd, a run of a plan, and a call. The array begins OFFSET bytes after the beginning of a page.
 *
 * bench_cache pairs [RATE]: GB/s of the folds of all pairs in L1, L2 and L3 (16 KiB, 512 KiB, 8 MiB); only of those
 * that are slower than RATE in L3.
 *
 * Contenders take turns, and each figure is a median. Elements are ones, and zeros for ANY. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */

#include "bench_loop.h"
#include "cpu/ops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, PAIR_ROUNDS = 15, LARGEST = 8 << 20, CONTENDERS = 4 };

static unsigned char *memory; /* LARGEST bytes and a page */

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* Ones of the type, or zeros. */
static void fill(dpr_dtype dtype, int zero, unsigned char *at, size_t count) {
    static const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    static const float f32 = 1;
    static const double f64 = 1;
    static const uint64_t integer = 1; /* little-endian: its low bytes */
    const int kind = dpr_dtypes[DPR_ROW(dtype)].kind;
    const void *one = dtype == DPR_F16                             ? (const void *)&f16
                      : dtype == DPR_BF16                          ? (const void *)&bf16
                      : dtype == DPR_F32 || dtype == DPR_C64       ? (const void *)&f32
                      : kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX) ? (const void *)&f64
                                                                   : (const void *)&integer;
    const size_t size = dpr_dtypes[DPR_ROW(dtype)].size, part = kind == DPR_KIND_COMPLEX ? size / 2 : size;
    memset(at, 0, count * size);
    for (size_t i = 0; !zero && i < count; i++)
        memcpy(at + i * size, one, part);
}

static dpr_key key_of(dpr_op op, dpr_dtype dtype, int nan) {
    dpr_key key = {.words = {0}};
    key.f.op = DPR_ROW(op);
    key.f.dtype = DPR_ROW(dtype);
    key.f.nan = (uint8_t)nan;
    return key;
}

/* ---- Sums of F32 ---- */

typedef struct sums {
    dpr_ctx *ctx;
    dpr_plan *plan;
    dpr_fold fold;
    dpr_acc start;
    const float *in;
    size_t count;
} sums;

static float by_loop(const sums *s) {
    return bench_loop(s->in, s->count);
}

static float by_fold(const sums *s) {
    dpr_acc acc = s->start;
    s->fold(s->in, 0, s->count, &acc);
    return (float)acc.re;
}

static float by_plan(const sums *s) {
    float sum = 0;
    return dpr_plan_run(s->plan, s->in, &sum, NULL) == DPR_OK ? sum : -1;
}

static float by_call(const sums *s) {
    float sum = 0;
    return dpr_reduce_ex(s->ctx, s->in, &sum, s->count, DPR_F32, DPR_SUM, NULL) == DPR_OK ? sum : -1;
}

static void measure_sums(const sums *s) {
    static float (*const contenders[CONTENDERS])(const sums *s) = {by_loop, by_fold, by_plan, by_call};
    static double seconds[CONTENDERS][ROUNDS];
    const int calls = (int)(2000000 / s->count) + 3;
    double ns[CONTENDERS];
    for (int round = 0; round < ROUNDS; round++)
        for (int c = 0; c < CONTENDERS; c++) {
            const double start = now();
            for (int i = 0; i < calls; i++)
                if (contenders[c](s) != (float)s->count)
                    exit(1);
            seconds[c][round] = (now() - start) / calls;
        }
    for (int c = 0; c < CONTENDERS; c++)
        ns[c] = 1e9 * median(seconds[c], ROUNDS);
    (void)printf("%9zu %10.1f %10.1f %10.1f %10.1f   %.2f %.2f %.2f  %s\n", s->count, ns[0], ns[1], ns[2], ns[3],
                 ns[0] / ns[1], ns[0] / ns[2], ns[0] / ns[3], dpr_plan_strategy(s->plan));
}

static int bench_sums(size_t offset) {
    static const size_t counts[] = {256,  257,  271,   384,   512,   777,   1024,   2048,   4096,
                                    4111, 8192, 10000, 16384, 32768, 65536, 131072, 262144, 524288};
    sums s = {.in = (const float *)(const void *)(memory + offset % 4096 / sizeof(float) * sizeof(float))};
    const dpr_key key = key_of(DPR_SUM, DPR_F32, 0);
    s.fold = dpr_cpu_fold(&key);
    s.start = dpr_acc_neutral(DPR_SUM, DPR_F32);
    fill(DPR_F32, 0, memory, LARGEST / sizeof(float) + 1024);
    if (dpr_ctx_create(DPR_DEVICE_CPU, &s.ctx) != DPR_OK)
        return 1;
    (void)printf("%s\n elements    loop, ns   fold, ns   plan, ns   call, ns   speed of fold, plan, call to loop\n",
                 dpr_cpu_kernels_best()->name);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dpr_problem problem = DPR_PROBLEM_INIT;
        s.count = problem.count = counts[i];
        if (dpr_plan_create(s.ctx, &problem, &s.plan) != DPR_OK)
            return 1;
        measure_sums(&s);
        dpr_plan_destroy(s.plan);
    }
    dpr_ctx_destroy(s.ctx);
    return 0;
}

/* ---- All pairs ---- */

static double rate_of(const dpr_key *key, size_t bytes) {
    const size_t count = bytes / dpr_dtypes[key->f.dtype].size;
    const int calls = (int)(LARGEST / bytes / 4) + 1;
    double seconds[PAIR_ROUNDS];
    for (int round = 0; round < PAIR_ROUNDS; round++) {
        const double start = now();
        for (int i = 0; i < calls; i++) {
            dpr_acc acc = dpr_acc_neutral(dpr_key_op(key), dpr_key_dtype(key));
            dpr_cpu_fold(key)(memory, 0, count, &acc);
        }
        seconds[round] = (now() - start) / calls;
    }
    return 1e-9 * (double)bytes / median(seconds, PAIR_ROUNDS);
}

static void bench_pair(dpr_op op, dpr_dtype dtype, double least) {
    const int policies = dpr_dtypes[DPR_ROW(dtype)].kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX) ? 2 : 1;
    fill(dtype, op == DPR_ANY, memory, LARGEST / dpr_dtypes[DPR_ROW(dtype)].size);
    for (int nan = 0; nan < policies; nan++) {
        const dpr_key key = key_of(op, dtype, nan);
        const double l1 = rate_of(&key, 16384), l2 = rate_of(&key, 524288), l3 = rate_of(&key, LARGEST);
        if (l3 < least)
            (void)printf("%-6s %-5s %-7s %8.1f %8.1f %8.1f\n", dpr_op_name(op), dpr_dtype_name(dtype),
                         nan ? "ignore" : "", l1, l2, l3);
    }
}

static int bench_pairs(double least) {
    (void)printf("%s                    L1       L2       L3, GB/s\n", dpr_cpu_kernels_best()->name);
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int dtype = 0; dtype < DPR_DTYPE_COUNT; dtype++)
            if (dpr_supported(dpr_op_at((size_t)op), dpr_dtype_at((size_t)dtype)))
                bench_pair(dpr_op_at((size_t)op), dpr_dtype_at((size_t)dtype), least);
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    memory = aligned_alloc(4096, LARGEST + 8192);
    if (!memory)
        return 1;
    if (strcmp(what, "sums") == 0)
        return bench_sums(argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
    if (strcmp(what, "pairs") == 0)
        return bench_pairs(argc > 2 ? strtod(argv[2], NULL) : 1e9);
    (void)fprintf(stderr, "usage: bench_cache sums [OFFSET] | pairs [RATE]\n");
    return 2;
}
