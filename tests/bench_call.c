/* What a call costs beside its work: dpr_reduce() of 16 doubles in host memory against the bare loop. Prints JSON;
 * exits with 1 if a result is wrong. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device.h"
#include "dpr.h"

enum { ELEMENTS = 16, CALLS = 20000, ROUNDS = 51 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Not inlined, and through volatile pointers below, so that it is called each time as a library function would be. */
__attribute__((noinline)) static void bare_loop(const double *x, double *out) {
    double sum = 0;
    for (int i = 0; i < ELEMENTS; i++)
        sum += x[i];
    *out = sum;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof values[0], by_value);
    return values[ROUNDS / 2];
}

int main(void) {
    double x[ELEMENTS], expected = 0, loop[ROUNDS], call[ROUNDS];
    double out = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = i + 0.5;
        expected += x[i];
    }
    const double *volatile in = x;
    const double start = seconds();
    if (dpr_reduce(x, &out, ELEMENTS, DPR_F64, DPR_SUM) != DPR_OK || out != expected) {
        fprintf(stderr, "wrong result: %s\n", dpr_last_error());
        return 1;
    }
    const double first = seconds() - start;
    for (int r = 0; r < ROUNDS; r++) {
        const double begin = seconds();
        for (int i = 0; i < CALLS; i++)
            bare_loop(in, &out);
        const double middle = seconds();
        for (int i = 0; i < CALLS; i++) {
            if (dpr_reduce(in, &out, ELEMENTS, DPR_F64, DPR_SUM) != DPR_OK || out != expected)
                return 1;
        }
        loop[r] = (middle - begin) / CALLS;
        call[r] = (seconds() - middle) / CALLS;
    }
    const double l = median(loop), c = median(call);
    printf("{\"benchmark\": \"call\", \"devices\": %d, \"elements\": %d, \"dtype\": \"f64\", \"op\": \"sum\",\n"
           " \"loop_ns\": %.1f, \"call_ns\": %.1f, \"overhead_ns\": %.1f, \"first_call_ms\": %.2f}\n",
           dpr_device_count(), ELEMENTS, 1e9 * l, 1e9 * c, 1e9 * (c - l), 1e3 * first);
    return 0;
}
