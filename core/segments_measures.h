/* The kernels of segments.group for the operations of measures.cuh: one for each element type and NaN policy. The
 * operation is dpr_segment_args.op. */
#ifndef DPR_CORE_SEGMENTS_MEASURES_H
#define DPR_CORE_SEGMENTS_MEASURES_H

#include "strategy.h"

namespace dpr {

/* Threads of every block of segments.group. */
constexpr unsigned group_threads = 256; /* 2^8 */

/* Returns the kernel that runs the key, whose operation is FUSED (ops.def), by its host address. */
const void *dpr_segments_measures(const dpr_key *key);

} // namespace dpr

#endif
