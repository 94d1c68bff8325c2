/* Kernels whose threads all ask for reductions at once (dpr_nested.cuh), for test_gpu_storms.c. In builds with CUDA. */
#ifndef DPR_TESTS_STORM_KERNELS_H
#define DPR_TESTS_STORM_KERNELS_H

#include "dpr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one thread asks for: the sum of x[first .. first + count - 1]. */
typedef struct storm_row {
    uint64_t first;
    uint32_t count;
    uint32_t again; /* continuations that ask once more, one after the other: at most STORM_MOST_AGAIN */
} storm_row;

enum { STORM_MOST_AGAIN = 2 };

#ifdef __CUDACC__
#define STORM_HOST_DEVICE __host__ __device__
#else
#define STORM_HOST_DEVICE
#endif

/* The row that thread `thread` of `n` asks for when `level` sums came before. */
static inline STORM_HOST_DEVICE unsigned storm_row_of(unsigned thread, unsigned level, unsigned n) {
    return (thread + 7 * level) % n;
}

/* Enqueues one kernel of `n` threads in blocks of `block` and returns the cudaError_t of the launch. Thread i puts its
 * sums to sums[i], sums[n + i], ... All pointers are device memory. */
int storm_ask(const dpr_launcher *launcher, const int32_t *x, const storm_row *rows, unsigned n, unsigned block,
              int64_t *sums, dpr_stream stream);

#ifdef __cplusplus
}
#endif

#endif
