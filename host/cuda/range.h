/* Ranges for profilers: Nsight Systems and others show a call's range on its thread's time line, under the name of the
 * strategy or engine that ran (NVTX, domain "dpr"). Without a profiler, and in a build without CUDA or without NVTX's
 * headers, nothing happens. Ranges of a thread nest. */
#ifndef DPR_HOST_CUDA_RANGE_H
#define DPR_HOST_CUDA_RANGE_H

#ifdef DPR_WITH_NVTX
#include <stdatomic.h>

/* 0: no profiler is attached; 1: one is; 2: nobody has looked yet. */
extern atomic_int dpr_ranges;

void dpr_range_open(const char *name);
void dpr_range_close(void);

static inline void dpr_range_begin(const char *name) {
    if (__builtin_expect(atomic_load_explicit(&dpr_ranges, memory_order_relaxed) != 0, 0))
        dpr_range_open(name);
}
static inline void dpr_range_end(void) {
    if (__builtin_expect(atomic_load_explicit(&dpr_ranges, memory_order_relaxed) != 0, 0))
        dpr_range_close();
}
#else
static inline void dpr_range_begin(const char *name) {
    (void)name;
}
static inline void dpr_range_end(void) {}
#endif

#endif
