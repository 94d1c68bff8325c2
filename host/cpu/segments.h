/* Segments on the CPU: loops over many short arrays. */
#ifndef DPR_HOST_CPU_SEGMENTS_H
#define DPR_HOST_CPU_SEGMENTS_H

#include "ops.h"

/* How a segment is reduced, by its number of elements. Up to `folded` elements: by `segments` if it is not NULL and has
 * the pair, otherwise by a plain loop. Up to `whole` elements: by `fold`. Longer ones are left out. */
typedef struct dpr_segment_limits {
    dpr_fold_segments segments;
    dpr_fold fold;
    size_t folded, whole;
} dpr_segment_limits;

/* The limits with the best loops for the key. */
dpr_segment_limits dpr_cpu_segment_limits(const dpr_key *key, size_t whole);

dpr_range dpr_segment_range(const dpr_segment_list *list, uint64_t i);

/* The place of the result of segment i. */
void *dpr_segment_out(const dpr_run *run, uint64_t i);

/* Called for a segment that is left out, after the results around its own have been written. */
typedef void dpr_leave(void *user, uint64_t segment, dpr_range range);

/* Reduces segments first .. end-1 of the run by the calling thread, and calls `leave`, with `user`, for those that it
 * leaves out, whose results are undefined then. `leave` may be NULL if limits.whole is SIZE_MAX. Returns the number of
 * elements of the others. */
uint64_t dpr_cpu_segments(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits, dpr_leave *leave,
                          void *user);

enum { DPR_RANGES = 256 };

/* Reduces n ranges, at most DPR_RANGES, of run->in, and writes the results one behind the other to `out`. None is
 * longer than `longest`, nor than limits.whole. The ranges are undefined afterwards. */
void dpr_cpu_ranges(const dpr_run *run, dpr_range *ranges, size_t n, size_t longest, dpr_segment_limits limits,
                    void *out);

#endif
