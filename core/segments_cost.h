/* What the costs of strategies for segments share. */
#ifndef DPR_CORE_SEGMENTS_COST_H
#define DPR_CORE_SEGMENTS_COST_H

#include "cost.h"

/* Bytes of elements, numbers and results. A number and a result count as 12 bytes, because the key does not have the
 * type of the numbers. */
static inline double dpr_segment_bytes(const dpr_key *key, dpr_size size) {
    return dpr_array_bytes(key, size) + 12 * (double)size.segments;
}

#endif
