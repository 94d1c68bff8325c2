/* Rates and latencies that the strategies' cost functions share, derived from capabilities. */
#ifndef DPR_CORE_COST_H
#define DPR_CORE_COST_H

#include "lists.h"
#include "strategy.h"

/* Bytes of `count` elements of the key's type. */
static inline double dpr_key_bytes(const dpr_key *key, size_t count) {
    return (double)count * (double)dpr_dtypes[key->f.dtype].size;
}

/* One kernel launch in a stream that is busy, from the host's call to the next one: 2.95 us on an H200 with driver 580.
 * A kernel of one block that reads next to nothing hides behind it. */
#define DPR_LAUNCH_SECONDS 2.95e-6

/* ARGMIN and ARGMAX take more instructions a vector, and end with a look at the array. */
static inline int dpr_seeks_index(const dpr_key *key) {
    return key->f.op == DPR_ARGMIN || key->f.op == DPR_ARGMAX;
}

/* Bytes a second that kernels read from device memory: two transfers a clock on every line of the bus, and of that the
 * 94.5 % that reading kernels reach on an H200 (4.55 of 4.82 TB/s). */
static inline double dpr_memory_rate(const dpr_gpu_caps *gpu) {
    return 0.945 * 2e3 * (double)gpu->memory_clock_khz * (double)gpu->memory_bus_bits / 8.0;
}

/* Bytes that one SM reads and reduces in a clock while the others are idle: 40 on an H200 up to 64 KiB, three quarters
 * of that where indices of 32-bit elements are sought, and half where those of others are or 64-bit floats compared. */
static inline double dpr_sm_bytes(const dpr_key *key) {
    const int extremum = key->f.op == DPR_MIN || key->f.op == DPR_MAX;
    if (dpr_seeks_index(key))
        return dpr_dtypes[key->f.dtype].size == 4 ? 30 : 20;
    return extremum && key->f.dtype == DPR_F64 ? 20 : 40;
}

/* The same a second. */
static inline double dpr_sm_rate(const dpr_key *key, const dpr_gpu_caps *gpu) {
    return dpr_sm_bytes(key) * 1e3 * (double)gpu->sm_clock_khz;
}

#endif
