/* The device memory of a dpr_nest: the host makes it, and kernels of the caller's work in it. */
#ifndef DPR_DP_SLOTS_H
#define DPR_DP_SLOTS_H

#include "dpr.h"

/* Launches of one nest that may be pending, so that its memory stays at 3.1 MiB, queues included; blocks of a launched
 * grid; bytes of the largest partial result. */
enum { DPR_NEST_LAUNCHES = 2048, DPR_NEST_BLOCKS = 64, DPR_NEST_PARTIAL_BYTES = 16 };

/* Bytes of a continuation object, at most; it is aligned to 8. */
enum { DPR_NEST_THEN_BYTES = 64 };

/* A call of nested_reduce() that waits for the thread which made it. */
typedef struct dpr_nest_call {
    void *run; /* device function of the caller's that does it */
    const void *in;
    void *out;
    uint64_t count;
    unsigned char then[DPR_NEST_THEN_BYTES];
} dpr_nest_call;

/* Queues of such calls, each for one thread at a time, and how many calls one holds. */
enum { DPR_NEST_QUEUES = 128, DPR_NEST_QUEUE_CALLS = 64 };

/* A launch, from when it is asked for until its grid, and all that was launched below it, is done: that long it has a
 * place in the device's pool. */
typedef struct dpr_nest_slot {
    uint32_t ticket;  /* the grid's blocks that have arrived; 0 while nobody has the slot */
    uint32_t pending; /* launches right below that are not done; and the grid itself */
    uint32_t within;  /* 1 + the slot of the launch that this one is below of; 0: none */
    uint32_t depth;   /* of the kernel that launched it */
    dpr_nest nest;    /* as its continuation gets it */
    void *follow; /* device function of the caller's, by which the grid calls the continuation; NULL: there is none */
    unsigned char then[DPR_NEST_THEN_BYTES];
    unsigned char partials[DPR_NEST_BLOCKS * DPR_NEST_PARTIAL_BYTES];
} dpr_nest_slot;

/* Words of free slots and of free queues, and of turns. */
enum { DPR_NEST_WORDS = DPR_NEST_LAUNCHES / 32, DPR_NEST_QUEUE_WORDS = DPR_NEST_QUEUES / 32, DPR_NEST_TURNS = 16384 };

/* The nest's memory begins with this; behind it lie the slots, and behind these the queues. */
typedef struct dpr_nest_state {
    dpr_nested account;
    uint32_t held;                              /* slots that launches have, or are about to take */
    uint32_t next;                              /* callers start at different words of free_slots by counting here */
    uint32_t free_slots[DPR_NEST_WORDS];        /* a bit for each, 1 while it is free */
    uint32_t free_queues[DPR_NEST_QUEUE_WORDS]; /* the same */
    uint32_t unused[18];
    uint32_t turns[DPR_NEST_TURNS]; /* spin lock per warp (hashed): 1 while a thread of a warp mapped to it launches */
} dpr_nest_state;

#endif
