/* What the launches of segments.group and its kernels share. */
#ifndef DPR_CORE_SEGMENTS_GROUP_H
#define DPR_CORE_SEGMENTS_GROUP_H

#include "strategy.h"

namespace dpr {

/* Threads of every block of segments.group. */
constexpr uint32_t log_group_threads = 8;
constexpr unsigned group_threads = 1 << log_group_threads;

/* All blocks share segments of more elements, in a second launch. A block of an H100 reads longest_of_block elements of
 * F32 in 14 us. */
constexpr uint32_t longest_of_block = 1 << 15, longest_of_warp = 1 << 13;

/* A unit of slices, in elements. A block reads a slice of a long segment at a time, which is of whole units, because
 * combining slices takes time, too. An H100's block reads a unit of F32 in 4 us. */
constexpr uint64_t slice_unit = 1 << 13;

/* A long segment, in workspace. */
struct alignas(16) listed_segment {
    uint64_t number;  /* of the segment */
    uint64_t before;  /* the units of all segments before it in the list */
    unsigned arrived; /* slices that are reduced */
};

/* Bytes for the value of a slice, in workspace behind the list. */
constexpr int slice_bytes = 64;

/* Returns the kernel that runs the key, whose operation is FUSED (ops.def), by its host address. There is one for each
 * element type and NaN policy; the operation is dpr_segment_args.op. */
const void *dpr_segments_measures(const dpr_key *key);

} // namespace dpr

#endif
