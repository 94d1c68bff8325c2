/* Which buffers the calls of a batch read. Pure. */
#ifndef DPR_BENCH_LAYOUT_H
#define DPR_BENCH_LAYOUT_H

#include "timing.h"

/* Calls of a batch, at most. */
enum { BENCH_CALLS = 1000 };

/* What the buffers are cut from. */
typedef struct bench_room {
    int on_gpu;
    size_t pool_bytes;
    size_t block_bytes; /* buffers lie at multiples of it */
    size_t cache_bytes; /* that cold calls must not hit */
} bench_room;

typedef struct bench_layout {
    size_t stride;  /* bytes from one buffer to the next */
    size_t buffers; /* in the pool, at least 1 */
    size_t hop;     /* buffers from one call's to the next call's; 0: all calls read the first */
    size_t read;    /* buffers that are read: those of calls 0 to read - 1; one batch of the CPU reads a part of them */
    int calls;      /* in a batch, 1 to BENCH_CALLS */
    int flush;      /* 1: going round all buffers once does not clear the cache */
} bench_layout;

/* 0, or -1 with the reason why the point cannot be timed. */
int bench_lay(const bench_room *room, const bench_point *point, bench_layout *out, char why[BENCH_WHY]);

/* The next multiple of BENCH_ALIGNMENT. */
size_t bench_aligned(size_t bytes);

/* Where results lie in a buffer that are an array, and the bytes of a buffer that one call reads or writes. */
size_t bench_array_at(const bench_point *point);
size_t bench_touched(const bench_point *point);

/* Buffers of an array of results each, of a batch of `calls` calls: it has one for each, until they begin again. */
size_t bench_arrays(const bench_layout *layout, int calls);

/* Bytes from the pool's begin to the buffer of call i. */
size_t bench_offset(const bench_layout *layout, size_t i);

/* How many calls a batch of a subject has whose call takes `call_seconds`, when there may be batches of batch_seconds:
 * 1 to layout->calls. */
int bench_calls(const bench_layout *layout, double call_seconds, double batch_seconds);

#endif
