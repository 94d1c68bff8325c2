/* The kernel of flat.ticket, flat.twopass and coop.grid. They differ in how the blocks' partial results meet, which is
 * an argument of the kernel. */
#ifndef DPR_CORE_MEETINGS_H
#define DPR_CORE_MEETINGS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the partial results meet: `meeting` in dpr_launch. */
enum {
    DPR_MEET_BY_TICKET, /* the block that takes the last ticket folds them */
    DPR_MEET_IN_GRID,   /* a block's worth in each block, between barriers of the grid, until one is left */
    DPR_MEET_LATER,     /* they stay in scratch memory */
    DPR_MEET_NOW        /* no array is read: one block folds those that a launch before has left */
};

enum {
    DPR_MEETING_THREADS = 1024, /* a block at most, one block on each SM */
    DPR_MEETING_BYTES = 16      /* of a partial result at most */
};

/* What is in the table of each of the three. */
const char *dpr_meeting_probe(const dpr_key *key, const dpr_caps *caps);
dpr_kernel dpr_meeting_kernel(const dpr_key *key);
dpr_shape dpr_meeting_shape(const dpr_key *key, const dpr_caps *caps, dpr_residency resident);

/* The launch whose blocks read the run's array. */
dpr_launch dpr_meeting_spread(const dpr_run *run, uint32_t meeting);

#ifdef __cplusplus
}
#endif

#endif
