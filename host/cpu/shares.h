/* Which thread reduces which segments. Each thread takes blocks from the list, and reduces its block in pieces that
 * have about the same number of elements. When no block is left, it takes pieces of other threads' blocks. So a block
 * of long segments keeps no thread busy alone, and threads seldom meet at the same number. */
#ifndef DPR_HOST_CPU_SHARES_H
#define DPR_HOST_CPU_SHARES_H

#include "caps.h"
#include "strategy.h"

#include <stdatomic.h>

/* The segments of a thread's block that nobody has taken: number of the first << 16 | how many. */
typedef struct dpr_share {
    _Alignas(64) _Atomic uint64_t left;
} dpr_share;

typedef struct dpr_shares {
    const dpr_segment_list *list;
    int threads;
    uint64_t block;        /* segments that a thread takes from the list at a time */
    uint64_t elements;     /* of a piece; of longer segments, a piece has one */
    _Atomic uint64_t next; /* first segment that is in no block */
    dpr_share of[DPR_THREADS_MAX];
} dpr_shares;

/* Divides all segments among `threads` threads, from 1 to DPR_THREADS_MAX. */
void dpr_shares_begin(dpr_shares *s, const dpr_segment_list *list, int threads, uint64_t elements);

/* The next segments *first .. *end - 1 for a thread, from 0 to threads - 1; returns 0 if there are none. Every segment
 * comes once, if each thread that gets some asks until there are none. */
int dpr_shares_next(dpr_shares *s, int thread, uint64_t *first, uint64_t *end);

#endif
