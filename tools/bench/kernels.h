/* The engine's own kernels. */
#ifndef DPR_BENCH_KERNELS_H
#define DPR_BENCH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "dpr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues a kernel that reads `bytes` (a multiple of 16) of device memory by plain loads, so that they stay in L2: no
 * strategy's, as those hint that what they read need not. `sink` is 4 bytes of device memory that it could write to.
 * Returns the cudaError_t. */
int bench_launch_read(const void *data, size_t bytes, uint32_t *sink, dpr_stream stream);

/* Enqueues a kernel that stores 1 to *differs, which is device memory, if `bytes` of device memory differ from others.
 * `a` and `b` are aligned to 16 bytes. Returns the cudaError_t. */
int bench_launch_compare(const void *a, const void *b, size_t bytes, uint32_t *differs, dpr_stream stream);

/* Enqueues a kernel of one thread that does nothing; with `programmatic` one that may begin before the stream's earlier
 * work is done. Returns the cudaError_t. */
int bench_launch_nothing(int programmatic, dpr_stream stream);

/* Enqueues a kernel of one thread that lasts `cycles` cycles of its SM and writes two numbers to device memory: the
 * cycles and the nanoseconds of the device's timer that it was at it. Returns the cudaError_t. */
int bench_launch_clock(uint64_t cycles, uint64_t *cycles_and_ns, dpr_stream stream);

#ifdef __cplusplus
}
#endif

#endif
