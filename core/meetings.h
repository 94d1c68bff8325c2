/* The kernel of flat.ticket, flat.twopass and coop.grid. An argument of the kernel selects how the blocks' partial
 * results are combined; this is the only difference between the three. */
#ifndef DPR_CORE_MEETINGS_H
#define DPR_CORE_MEETINGS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the blocks' partial results are combined: `meeting` in dpr_launch. */
enum {
    DPR_MEET_BY_TICKET, /* the block that takes the last ticket folds all of them */
    DPR_MEET_IN_GRID, /* between barriers of the grid, each block folds as many as it has threads, until one is left */
    DPR_MEET_LATER,   /* they stay in scratch memory for a second launch */
    DPR_MEET_NOW      /* the second launch: one block folds the partial results of the launch before */
};

/* Entries of the three strategies' tables. */
const char *dpr_meeting_probe(const dpr_key *key, const dpr_caps *caps);
dpr_kernel dpr_meeting_kernel(const dpr_key *key);
dpr_launch_limits dpr_meeting_limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident);

/* The launch whose blocks read the run's array. */
dpr_launch dpr_meeting_spread(const dpr_run *run, uint32_t meeting);

#ifdef __cplusplus
}
#endif

#endif
