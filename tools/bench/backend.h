/* What the engine needs of a device: cpu.c and cuda.c, or cuda_none.c in a build without CUDA. */
#ifndef DPR_BENCH_BACKEND_H
#define DPR_BENCH_BACKEND_H

#include "layout.h"

/* What an unwritten result is made of. */
enum { BENCH_POISON = 0xA5 };

/* Functions of a backend return one of these; all but BENCH_GOOD with a clause in `why`, or in the batch's outcome. */
typedef enum bench_status {
    BENCH_GOOD,
    BENCH_UNABLE,  /* this subject cannot be timed; others can */
    BENCH_STOPPED, /* bench_goes_on() has said no */
    BENCH_BROKEN   /* nothing can be timed with this device any more */
} bench_status;

/* Whether the measurement may go on; ticks. */
int bench_goes_on(const bench_watch *watch);

/* One subject at one point. */
typedef struct bench_batch {
    const bench_subject *subject;
    const bench_point *point;
    const bench_layout *layout;
    bench_outcome *outcome; /* has the number of calls; a backend sets `why` and `late` */
    unsigned char *results; /* BENCH_CALLS of them, in host memory; those of the last sample */
    void *graph;            /* the backend's own, NULL at first */
} bench_batch;

typedef struct bench_backend {
    /* How large a pool may become on the device, which is described; 0 if it cannot be told. */
    size_t (*most)(const bench_device *device);
    /* Opens the device, which is described, with a pool of device->pool_bytes, which it may lower; *state is the
     * backend's own. */
    bench_status (*open)(bench_device *device, void **state, char *why);
    void (*close)(void *state);
    /* Repeats the block, which stays where it is until the next call, over the first `bytes` of the pool; or leaves
     * that to make(). */
    bench_status (*fill)(void *state, const void *block, size_t block_bytes, size_t bytes, char *why);
    /* Sees to it that `bytes` of each buffer that batches of the layout read hold their data. BENCH_STOPPED with a
     * clause that says how far it came. NULL: fill() has done it. */
    bench_status (*make)(void *state, const bench_layout *layout, size_t bytes, const bench_watch *watch, char *why);
    /* Takes note of what arrays of results should be. NULL: that is done by nothing. */
    bench_status (*expect)(void *state, const bench_point *point, char *why);
    /* Copies `bytes` to the pool's place `at`. */
    bench_status (*put)(void *state, size_t at, const void *from, size_t bytes, char *why);
    /* Before `calls` calls are timed: fills the caches if the point is cold, and overwrites results that lie in the
     * device's memory. */
    bench_status (*ready)(void *state, const bench_batch *batch, int calls);
    /* Times calls by the host's clock: *us is that of one. Their results are in batch->results then. */
    bench_status (*time)(void *state, const bench_batch *batch, int calls, double *us);
    /* How many of the arrays of results of the last sample, or of calls that time() has timed, are not as expected. */
    bench_status (*compare)(void *state, const bench_batch *batch, int *wrong);
    /* Makes batch->graph, of all calls. free_graph() is due in any case. NULL: the device has no graphs. */
    bench_status (*capture)(void *state, bench_batch *batch);
    /* Times the graph, as time() does calls, with all that ready() does. */
    bench_status (*replay)(void *state, const bench_batch *batch, double *us);
    void (*free_graph)(void *graph);
    bench_status (*look)(void *state, bench_reference *out, char *why); /* *out is all 0 */
    const bench_subject *launch;                                        /* bench_timer_launch() */
} bench_backend;

extern const bench_backend bench_cpu, bench_cuda;

/* Makes calls in the way of the batch's mode, which read the pool's buffers from number `first` on and write to `out`,
 * or arrays of results to the buffers; those that do not block are enqueued in `stream`. BENCH_GOOD, or BENCH_UNABLE.
 */
bench_status bench_make_calls(const bench_batch *batch, int calls, unsigned char *pool, size_t first,
                              unsigned char *out, dpr_stream stream);

#endif
