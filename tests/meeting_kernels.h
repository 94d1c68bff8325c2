/* Kernels made of the library's own parts, for operations and readers that no strategy has. Only in builds with CUDA.
 * Memory that they get is device memory; runs are enqueued in the legacy default stream. The functions return the
 * cudaError_t of the launch. */
#ifndef DPR_TESTS_MEETING_KERNELS_H
#define DPR_TESTS_MEETING_KERNELS_H

#include <stdint.h>

#include "strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How blocks combine accumulators of 1 KiB. */
typedef enum large_meeting {
    LARGE_LASTBLOCK, /* as those of flat.lastblock and coop.bulk do */
    LARGE_TICKET,
    LARGE_TWOPASS,
    LARGE_GRID,
    LARGE_CLUSTER, /* in clusters of 8 blocks, which then meet as those of flat.lastblock do */
    LARGE_MEETINGS
} large_meeting;

enum { LARGE_BINS = 128, LARGE_PARTIAL_WORDS = DPR_PARTIAL_HEAD + LARGE_BINS };

/* Whether device 0 can run LARGE_CLUSTER. */
int large_has_clusters(void);

/* Threads a block of the meeting, and the most blocks that device 0 can run at the same time. */
unsigned large_threads(large_meeting meeting);
unsigned large_most_blocks(large_meeting meeting);

/* Bytes of workspace for `blocks` blocks. */
size_t large_workspace(unsigned blocks);

/* Counts how often each of the numbers 0 to 127 occurs among run->count bytes: LARGE_BINS counts of 8 bytes, or, if the
 * run has a label, a partial result of LARGE_PARTIAL_WORDS words. LARGE_CLUSTER takes a multiple of 8 blocks. */
int large_count(large_meeting meeting, const dpr_run *run, unsigned blocks);

/* The pairs that are reduced with gaps between their elements. */
#define STRIDED_PAIRS(X)                                                                                               \
    X(SUM, I8)                                                                                                         \
    X(SUM, I32)                                                                                                        \
    X(SUM, F64)                                                                                                        \
    X(SUM, C64)                                                                                                        \
    X(PROD, C64)                                                                                                       \
    X(MIN, U16)                                                                                                        \
    X(MAX, F32)                                                                                                        \
    X(ARGMIN, I16)                                                                                                     \
    X(ARGMAX, F64)                                                                                                     \
    X(ANY, BOOL)

/* Reduces the elements from[i * stride] for 0 <= i < run->count, in blocks of 256 threads that meet as those of
 * flat.lastblock do. run->key has the pair. */
int strided_reduce(const void *from, int64_t stride, const dpr_run *run, unsigned blocks);

#ifdef __cplusplus
}
#endif

#endif
