/* What the engine needs of a device: cpu.c and cuda.c, or cuda_none.c in a build without CUDA. */
#ifndef DPR_BENCH_BACKEND_H
#define DPR_BENCH_BACKEND_H

#include "layout.h"

/* What an unwritten result is made of. */
enum { BENCH_POISON = 0xA5 };

/* Functions of a backend return one of these; all but BENCH_GOOD with a clause in `why`. */
typedef enum bench_status {
    BENCH_GOOD,
    BENCH_CALLBACK, /* the subject's callback returned batch->code */
    BENCH_UNABLE,   /* this subject cannot be timed; others can */
    BENCH_STOPPED,  /* bench_goes_on() has said no */
    BENCH_BROKEN    /* nothing can be timed with this device any more */
} bench_status;

/* Whether the measurement may go on; ticks. */
int bench_goes_on(const bench_watch *watch);

/* One subject at one point. */
typedef struct bench_batch {
    const bench_subject *subject;
    const bench_point *point;
    const bench_layout *layout;
    const bench_watch *watch;
    double seconds;         /* that one batch may take */
    unsigned char *results; /* BENCH_CALLS of them, in host memory; those of the last sample */
    int calls;              /* of one sample, from warm() on */
    int code;               /* what a callback returned that failed */
    int late;               /* samples thrown away */
    void *graph;            /* the backend's own, NULL at first */
} bench_batch;

typedef struct bench_backend {
    /* How large a pool may become; 0 if it cannot be told. */
    size_t (*most)(int ordinal);
    /* Opens the device of device->ordinal with a pool of up to pool_bytes, and describes it; *state is the backend's
     * own. */
    bench_status (*open)(bench_device *device, size_t pool_bytes, void **state, char *why);
    void (*close)(void *state);
    /* Repeats the block, which stays where it is until the next call, over the first `bytes` of the pool; or leaves
     * that to make(). */
    bench_status (*fill)(void *state, const void *block, size_t block_bytes, size_t bytes, char *why);
    /* Sees to it that `bytes` of each buffer that batches of the layout read hold their data. BENCH_STOPPED with a
     * clause that says how far it came. NULL: fill() has done it. */
    bench_status (*make)(void *state, const bench_layout *layout, size_t bytes, const bench_watch *watch, char *why);
    /* Copies `bytes` to the pool's place `at`. */
    bench_status (*put)(void *state, size_t at, const void *from, size_t bytes, char *why);
    /* Makes a batch ready: first calls, captures. cool() is due in any case. */
    bench_status (*warm)(void *state, bench_batch *batch, char *why);
    bench_status (*sample)(void *state, bench_batch *batch, double *us, char *why);
    void (*cool)(void *state, bench_batch *batch);
    bench_status (*look)(void *state, bench_reference *out, char *why); /* *out is all 0 */
} bench_backend;

extern const bench_backend bench_cpu, bench_cuda;

/* Makes the blocking calls of a batch, which read the pool's buffers from number `first` on. 0, or what the callback
 * returned that failed: batch->code. */
int bench_make_calls(bench_batch *batch, const unsigned char *pool, size_t first);

#endif
