/* The layout of a nest's device memory. The host makes it; the caller's kernels, and the grids that they launch, work
 * in it. */
#ifndef DPR_DP_SLOTS_H
#define DPR_DP_SLOTS_H

#include "dpr.h"

/* Most pending launches of one nest, so that its memory stays at 3.1 MiB, queues included; most blocks of a launched
 * grid; bytes of the largest partial result. */
enum { DPR_NEST_LAUNCHES = 2048, DPR_NEST_BLOCKS = 64, DPR_NEST_PARTIAL_BYTES = 16 };

/* Most bytes of a continuation, which is aligned to 8 bytes. */
enum { DPR_NEST_THEN_BYTES = 64 };

/* A call of nested_reduce() that waits until the thread which made it can do it. */
typedef struct dpr_nest_call {
    void *run; /* the caller's device function that does the call: a waiting_run (nests.cuh) */
    const void *in;
    void *out;
    uint64_t count;
    unsigned char then[DPR_NEST_THEN_BYTES];
} dpr_nest_call;

/* Number of queues for such calls, of which one thread holds one at a time, and of calls that a queue holds. */
enum { DPR_NEST_QUEUES = 128, DPR_NEST_QUEUE_CALLS = 64 };

/* The state of one launch, from its request until its grid, and everything that was launched below it, is done. It has
 * a place in the device's launch pool for that time. */
typedef struct dpr_nest_slot {
    uint32_t ticket;  /* blocks of the grid that have arrived; 0 while the slot is free */
    uint32_t pending; /* launches directly below that are not done, and the grid itself */
    uint32_t within;  /* 1 + the slot of the launch that this one is below; 0: none */
    uint32_t depth;   /* depth of the kernel that launched it */
    dpr_nest nest;    /* the nest that the continuation gets */
    void *follow; /* the caller's device function that calls the continuation: a follower (nests.cuh); NULL: there is no
                     continuation */
    unsigned char then[DPR_NEST_THEN_BYTES];
    unsigned char partials[DPR_NEST_BLOCKS * DPR_NEST_PARTIAL_BYTES];
} dpr_nest_slot;

/* Words of the bit sets of free slots and of free queues; number of turns. */
enum { DPR_NEST_WORDS = DPR_NEST_LAUNCHES / 32, DPR_NEST_QUEUE_WORDS = DPR_NEST_QUEUES / 32, DPR_NEST_TURNS = 16384 };

/* The beginning of the nest's memory. The slots follow, and then the queues. */
typedef struct dpr_nest_state {
    dpr_nested account;
    uint32_t held; /* slots that launches have or are about to take */
    uint32_t next; /* counts calls, so that they start their search at different words of free_slots */
    uint32_t free_slots[DPR_NEST_WORDS];        /* a bit for each slot, 1 while it is free */
    uint32_t free_queues[DPR_NEST_QUEUE_WORDS]; /* a bit for each queue, 1 while it is free */
    uint32_t unused[18];
    uint32_t turns[DPR_NEST_TURNS]; /* spin lock per warp (hashed): 1 while a thread of a warp mapped to it launches */
} dpr_nest_state;

#endif
