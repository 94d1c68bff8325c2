/* What the costs of strategies for segments share. */
#ifndef DPR_CORE_SEGMENTS_COST_H
#define DPR_CORE_SEGMENTS_COST_H

#include "cost.h"

/* Bytes of elements, numbers and results. Numbers count as 4 bytes, because the key does not have their type. */
static inline double dpr_segment_bytes(const dpr_key *key, dpr_size size) {
    return dpr_array_bytes(key, size) + dpr_results_bytes(key, size) + 4 * (double)size.segments;
}

#endif
