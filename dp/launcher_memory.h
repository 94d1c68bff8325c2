/* The layout of a launcher's device memory. The host makes it; the caller's kernels, and the grids that they launch,
 * work in it. */
#ifndef DPR_DP_LAUNCHER_MEMORY_H
#define DPR_DP_LAUNCHER_MEMORY_H

#include "lists.h"

/* dpr_launcher.version: of the structs below, of the launch table, and of the arguments of launched kernels. Device
 * code that was compiled for another one does all work in line. A change of one of them takes another number at the
 * front; the numbers of operations and types count because the table has a place for each pair. */
enum { DPR_LAUNCHER_VERSION = 1 << 16 | DPR_OP_COUNT << 8 | DPR_DTYPE_COUNT };

/* Most pending launches of one launcher, so that its memory stays at 3.1 MiB, queues included; most blocks of a
 * launched grid; bytes of the largest partial result. */
enum { DPR_LAUNCHER_LAUNCHES = 2048, DPR_LAUNCHER_BLOCKS = 64, DPR_LAUNCH_PARTIAL_BYTES = 16 };

/* Most bytes of a continuation, which is aligned to 8 bytes. */
enum { DPR_LAUNCHER_THEN_BYTES = 64 };

/* A call of nested_reduce() that waits until the thread which made it can do it. */
typedef struct dpr_waiting_call {
    void *run; /* the caller's device function that does the call: a waiting_run (launcher.cuh) */
    const void *in;
    void *out;
    uint64_t count;
    unsigned char then[DPR_LAUNCHER_THEN_BYTES];
} dpr_waiting_call;

/* Number of queues for such calls, of which one thread holds one at a time, and of calls that a queue holds. */
enum { DPR_LAUNCHER_QUEUES = 128, DPR_LAUNCHER_QUEUE_CALLS = 64 };

/* The state of one launch, from its request until its grid, and everything that was launched below it, is done. It has
 * a place in the device's launch pool for that time. */
typedef struct dpr_launch_slot {
    uint32_t ticket;       /* blocks of the grid that have arrived; 0 while the slot is free */
    uint32_t pending;      /* launches directly below that are not done, and the grid itself */
    uint32_t within;       /* 1 + the slot of the launch that this one is below; 0: none */
    uint32_t depth;        /* depth of the kernel that launched it */
    dpr_launcher launcher; /* the launcher that the continuation gets */
    void *follow; /* the caller's device function that calls the continuation: a follower (launcher.cuh); NULL: there is
                     no continuation */
    unsigned char then[DPR_LAUNCHER_THEN_BYTES];
    unsigned char partials[DPR_LAUNCHER_BLOCKS * DPR_LAUNCH_PARTIAL_BYTES];
} dpr_launch_slot;

/* Words of the bit sets of free slots and of free queues; number of turns. */
enum {
    DPR_LAUNCHER_WORDS = DPR_LAUNCHER_LAUNCHES / 32,
    DPR_LAUNCHER_QUEUE_WORDS = DPR_LAUNCHER_QUEUES / 32,
    DPR_LAUNCHER_TURNS = 16384
};

/* The beginning of the launcher's memory. The slots follow, and then the queues. The account is first in every version.
 */
typedef struct dpr_launcher_state {
    dpr_launch_report account;
    uint32_t held; /* slots that launches have or are about to take */
    uint32_t next; /* counts calls, so that they start their search at different words of free_slots */
    uint32_t free_slots[DPR_LAUNCHER_WORDS];        /* a bit for each slot, 1 while it is free */
    uint32_t free_queues[DPR_LAUNCHER_QUEUE_WORDS]; /* a bit for each queue, 1 while it is free */
    uint32_t unused[18];
    uint32_t
        turns[DPR_LAUNCHER_TURNS]; /* spin lock per warp (hashed): 1 while a thread of a warp mapped to it launches */
} dpr_launcher_state;

#endif
