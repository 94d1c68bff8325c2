/* How a cost becomes seconds, and the rates and latencies that the strategies' cost functions share. */
#ifndef DPR_CORE_COST_H
#define DPR_CORE_COST_H

#include "lists.h"
#include "strategy.h"

/* Bytes of the array. */
static inline double dpr_array_bytes(const dpr_key *key, dpr_size size) {
    return (double)size.elements * (double)dpr_dtypes[key->f.dtype].size;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the results of all segments. */
double dpr_results_bytes(const dpr_key *key, dpr_size size);

#ifdef __cplusplus
}
#endif

/* Seconds of a cost, as a roofline: the strategy's threads and the memory, which delivers `memory_rate` bytes a second,
 * work at the same time, and the slower of them determines the time. */
static inline double dpr_cost_seconds(dpr_cost cost, double memory_rate) {
    const double rate = cost.rate > 0 && cost.rate < memory_rate ? cost.rate : memory_rate;
    return cost.latency + cost.bytes / rate;
}

/* ---- The CPU ---- */

/* Seconds that one thread spends on segments, in addition to reading their elements: 3 to 15 ns each, depending on
 * their lengths (SUM of F32 on an EPYC with AVX-512). */
static inline double dpr_cpu_segment_seconds(const dpr_key *key, dpr_size size) {
    return key->f.segments ? 10e-9 * (double)size.segments : 0;
}

/* Bytes a second that all cores together read from memory. */
static inline double dpr_host_memory_rate(const dpr_cpu_caps *cpu) {
    return 1e6 * (double)cpu->total_mb_per_s;
}

/* ---- The GPU ---- */

/* Seconds for one kernel launch in a busy stream, from one host call to the next: 2.95 us on an H200 with driver 580.
 * The time of a one-block kernel that reads next to nothing is hidden behind it. */
#define DPR_LAUNCH_SECONDS 2.95e-6

/* True for ARGMIN and ARGMAX, which take more instructions a vector, and look at the array again at the end. */
static inline int dpr_seeks_index(const dpr_key *key) {
    return dpr_key_op(key) == DPR_ARGMIN || dpr_key_op(key) == DPR_ARGMAX;
}

/* Bytes a second that kernels read from device memory: two transfers a clock on every line of the bus, times the 94.5 %
 * that reading kernels reach on an H200 (4.55 of 4.82 TB/s). */
static inline double dpr_memory_rate(const dpr_gpu_caps *gpu) {
    return 0.945 * 2e3 * (double)gpu->memory_clock_khz * (double)gpu->memory_bus_bits / 8.0;
}

/* Bytes that one SM reads and reduces in a clock while the other SMs are idle, for arrays up to 64 KiB on an H200: 40;
 * 30 for ARGMIN and ARGMAX of 32-bit elements; 20 for ARGMIN and ARGMAX of other types and for MIN and MAX of F64. PROD
 * multiplies one element at a time: 13 of one byte, 21 of two and 30 of four, on an H100. */
static inline double dpr_sm_bytes(const dpr_key *key) {
    const size_t size = dpr_dtypes[key->f.dtype].size;
    const int extremum = dpr_key_op(key) == DPR_MIN || dpr_key_op(key) == DPR_MAX;
    if (dpr_seeks_index(key))
        return size == 4 ? 30 : 20;
    if (dpr_key_op(key) == DPR_PROD && size <= 4)
        return size == 1 ? 13 : size == 2 ? 21 : 30;
    return extremum && dpr_key_dtype(key) == DPR_F64 ? 20 : 40;
}

/* Bytes a second that one SM reads and reduces. */
static inline double dpr_sm_rate(const dpr_key *key, const dpr_gpu_caps *gpu) {
    return dpr_sm_bytes(key) * 1e3 * (double)gpu->sm_clock_khz;
}

/* The most blocks a cluster, of those that a kernel asks for. Only devices of compute capability 9.x and 10.x have room
 * for clusters of more than 8 blocks. */
static inline int dpr_largest_cluster(const dpr_gpu_caps *gpu, int asked) {
    const int most = gpu->cc_major == 9 || gpu->cc_major == 10 ? 16 : 8;
    return asked < most ? asked : most;
}

#endif
