/* Segments on the CPU: loops over many short arrays. */
#ifndef DPR_HOST_CPU_SEGMENTS_H
#define DPR_HOST_CPU_SEGMENTS_H

#include "ops.h"

/* How a segment is reduced, by its number of elements: by `many` if that is not NULL, if a result is wanted and no
 * partial result, and if the segment has at most DPR_MANY_LONGEST; otherwise by a plain loop; by `fold` if it has more
 * than `folded`; not at all if it has more than `whole`, which is more than DPR_MANY_LONGEST. */
typedef struct dpr_segment_limits {
    dpr_fold_many many;
    dpr_fold fold;
    size_t folded, whole;
} dpr_segment_limits;

/* Elements of a segment up to which a plain loop takes less time than the loops of cpu.simd take to begin and end. */
enum { DPR_SHORT_SEGMENT = 16 };

/* The elements of segment i. */
typedef struct dpr_range {
    size_t begin, end; /* equal if the segment is empty */
} dpr_range;
dpr_range dpr_segment_range(const dpr_segment_list *list, uint64_t i);

/* Elements of segments first .. end - 1 together; of offsets, from the first one's beginning to the last one's end. */
uint64_t dpr_segment_elements(const dpr_segment_list *list, uint64_t first, uint64_t end);

/* The place of the result of segment i. */
void *dpr_segment_out(const dpr_run *run, uint64_t i);

/* Reduces segments first .. end-1 of the run by the calling thread. Returns how many were left out. Memory of all
 * elements of the run's array may be read. */
uint64_t dpr_cpu_segments(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits);

#endif
