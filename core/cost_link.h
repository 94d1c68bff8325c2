/* What it costs to read the memory in which an array lies. Kernels read pinned memory over the link to the host, whose
 * rate and latency are taken to be those of an H100 with 16 lanes of PCIe 5.0, on any machine. All strategies that read
 * with many SMs are faster than links, so this rate hardly decides among the GPU's strategies. In calls that block,
 * however, it decides between the GPU and the CPU; there the times that `dpr tune` has measured correct it. */
#ifndef DPR_CORE_COST_LINK_H
#define DPR_CORE_COST_LINK_H

#include "cost.h"

static inline int dpr_reads_link(const dpr_key *key) {
    return key->f.in_memory == DPR_MEMORY_PINNED;
}

/* Bytes a second that kernels read the array with: 50 GB/s over the link. */
static inline double dpr_array_rate(const dpr_key *key, const dpr_gpu_caps *gpu) {
    const double link = 50e9, memory = dpr_memory_rate(gpu);
    return dpr_reads_link(key) && link < memory ? link : memory;
}

/* Bytes a second that one SM reads and reduces. The same loads in flight take longer over the link: 43 GB/s in a sum of
 * F32 where device memory gives 79. */
static inline double dpr_array_sm_rate(const dpr_key *key, const dpr_gpu_caps *gpu) {
    const double share = dpr_reads_link(key) ? 0.54 : 1;
    return share * dpr_sm_rate(key, gpu);
}

/* Seconds that the last look of ARGMIN and ARGMAX at the array takes longer over the link than in device memory, where
 * another SM has read that place. */
static inline double dpr_last_look(const dpr_key *key) {
    return dpr_reads_link(key) && dpr_seeks_index(key) ? 1.1e-6 : 0;
}

/* Seconds that a GPU's call which blocks takes beyond a launch in a busy stream and the kernel, less those that a call
 * of the CPU takes beyond its loop: 4 to 6 us on an H100 and an H200. 0 for other memory, and for calls that only a GPU
 * may run: there all candidates have the same wait, and it decides nothing. */
static inline double dpr_wait_for_result(const dpr_key *key) {
    return dpr_reads_link(key) && !key->f.gpu_only ? 5e-6 : 0;
}

#endif
