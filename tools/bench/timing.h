/* The timing engine: how long calls take that read an array and give a small result, on a GPU or on the CPU.
 *
 * Several subjects are timed in turn (A, B, C, A, B, C, ...), in one process, on the same rotating buffers, so that
 * what drifts hits all alike. It knows nothing of operations, types or strategies: a subject is a callback.
 *
 *     bench_timer *timer;
 *     bench_timer_create(device, memory, pool_bytes, &timer, why);
 *     bench_fill(timer, block, block_bytes, why);           the same data in every buffer
 *     bench_run(timer, &point, &rule, subjects, n, outcomes, why);
 *
 * One sample is the time of a batch of calls divided by the number of calls:
 *
 *   graph     the calls are captured in one CUDA graph; a sample is one replay, between two CUDA events. The launch
 *             lies behind earlier work of the stream, so that it is not in the time; samples where the device got there
 *             before the host had launched are thrown away.
 *   stream    wall time from before the first of some hundred calls into one stream, which is empty, until the last has
 *             completed: what a program sees that enqueues and then waits. So the start of the first call and the wait
 *             at the end are in it, some 10 us spread over all the calls.
 *   blocking  wall time of calls that return with the result in a host variable, one after another. On the CPU, the
 *             only mode.
 *
 *   cold      before each batch the device's L2 is filled with other data, by reading (lines that are written would go
 *             back to memory during the measurement), and each call of the batch reads a buffer that was not touched
 *             since; where the pool has fewer buffers than the batch has calls, these together are at least four times
 *             L2. On the CPU, L2 means the last-level caches, and buffers rotate from batch to batch: the caches are
 *             filled when the rotation starts anew. Before blocking calls that read pinned memory, both are filled.
 *   hot       all calls read one buffer, of at most two thirds of L2, that calls have read just before.
 *
 * A batch has as many calls as make one that is long against what starts and ends it, and fewer for a subject that is
 * so slow that the rule's time would not do: the outcome says how many.
 *
 * Every result of every batch is checked; their memory is overwritten before each batch, so that a result that was not
 * written shows.
 *
 * Not for use by several threads at once. `why` receives a clause when a function fails. */
#ifndef DPR_BENCH_TIMING_H
#define DPR_BENCH_TIMING_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "available.h"
#include "statistics.h"

enum {
    BENCH_SUBJECTS = 64,      /* at one point, at most */
    BENCH_RESULT_STRIDE = 64, /* bytes from one call's results to the next's, if the point names no other number */
    BENCH_MOST_STRIDE = 128,  /* the most that it may name */
    BENCH_ALIGNMENT = 256,    /* of every buffer, in bytes */
    BENCH_LEAST_POOL = 16 << 20,
    BENCH_WHY = 512
};

typedef enum bench_mode { BENCH_GRAPH, BENCH_STREAM, BENCH_BLOCKING, BENCH_MODES } bench_mode;
typedef enum bench_cache { BENCH_COLD, BENCH_HOT, BENCH_CACHES } bench_cache;

/* "graph", "stream", "blocking"; "cold", "hot"; NULL past the end. Static storage. */
const char *bench_mode_name(size_t mode);
const char *bench_cache_name(size_t cache);

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* Something that is timed. Callbacks return 0, or another number when they failed: that ends the subject at this point,
 * and the number is in its outcome's reason. The callback that the point's mode does not need may be NULL. */
typedef struct bench_subject {
    const char *name;
    void *user; /* for the callbacks; knows how many elements a call reads */
    /* Graph and stream: enqueues one call in `stream` that reads `in` and writes its result to `out`, both device
     * memory. Returns at once; must be fit for stream capture. The calls made before (bench_run() makes some
     * uncaptured) may allocate what later ones need. */
    int (*enqueue)(void *user, const void *in, void *out, dpr_stream stream);
    /* Blocking: reads `in`, in device memory or, on the CPU, in host memory; on return the result is at `host_out`. */
    int (*call)(void *user, const void *in, void *host_out);
    /* How many of the n calls, whose results are the point's stride apart in host memory, gave wrong ones. May be NULL:
     * unchecked, for what gives no result. Not called if the point has array_bytes. */
    int (*count_wrong)(void *user, const void *results, int n);
    int most_captured; /* calls of a batch in a graph, at most; 0: as many as others have */
    int accompanies;   /* 1: it is sampled until no other subject wants more samples */
} bench_subject;

/* What is timed, for all subjects alike. */
typedef struct bench_point {
    bench_mode mode;
    bench_cache cache;
    size_t bytes; /* that one call reads, at most; 0 is allowed */
    /* Where arrays differ from the repeated block while the point is timed: their last mark_bytes are those at `mark`,
     * in host memory; without array_bytes at most one block's length. 0: nowhere. */
    const void *mark;
    size_t mark_bytes;
    size_t result_stride; /* from a call's results to the next call's, bytes; 0: BENCH_RESULT_STRIDE */
    /* Calls with many results write them behind what they read, from the next multiple of BENCH_ALIGNMENT on: that is
     * `out` of their callbacks, in device memory also if they block. So many bytes there should become those at
     * `expected`, in host memory, and the engine compares them. 0: calls have few results, elsewhere. */
    size_t array_bytes;
    const void *expected;
} bench_point;

static inline size_t bench_stride(const bench_point *point) {
    return point->result_stride ? point->result_stride : BENCH_RESULT_STRIDE;
}

typedef enum bench_state {
    BENCH_DONE,        /* `us` holds, also where the rule's target was not reached */
    BENCH_FAILED,      /* a callback failed, or the device did */
    BENCH_INTERRUPTED, /* stopped before any sample; `why` is a clause if that was while the data was made, else "" */
    BENCH_REFUSED      /* for callers' own results: the subject cannot do what is measured */
} bench_state;

typedef struct bench_outcome {
    bench_state state;
    char why[BENCH_WHY];
    bench_verdict verdict;         /* why sampling ended; BENCH_MORE: interrupted */
    int calls;                     /* in one sample */
    int late;                      /* samples thrown away */
    long checked, wrong;           /* results, or arrays of them, looked at, and those of them that were wrong */
    double slowdown;               /* bench_slowdown() of the best reference so far and one right after the point */
    bench_summary us;              /* microseconds of one call */
    double samples[BENCH_SAMPLES]; /* us.n of them, in the order taken; sample i of all subjects is of one round */
} bench_outcome;

/* Keeps a sample. Whether there should be more, by the rule, for a point that began at `began` (seconds_now()). */
int bench_keep(bench_outcome *o, double us, const bench_rule *rule, double began);

/* Has take(user, i) take one sample of each of n subjects (at most BENCH_SUBJECTS) in turn, as long as it returns 1;
 * 0: that subject needs no more; -1 ends all. 0, or -1. */
int bench_take_turns(int n, int (*take)(void *user, int i), void *user);

/* How a is to b: the summary of a's time over b's, of the rounds that both were in; n is 0 where there are none. What
 * drifts hits both alike, because they took turns, and leaves the ratio alone. */
bench_summary bench_compare(const bench_outcome *a, const bench_outcome *b);

/* ---- Devices ---------------------------------------------------------------------------------------------------- */

/* A device as reports name it. Numbers are 0 where they are not known. */
typedef struct bench_device {
    int ordinal; /* CUDA ordinal, or DPR_DEVICE_CPU */
    char name[64];
    int driver_version, runtime_version; /* as CUDA gives them: 13000 is 13.0 */
    int sm_count;                        /* cores, on the CPU */
    int sm_clock_khz, memory_clock_khz;  /* as reported: what the device is made for, not what it runs at */
    int memory_bus_bits;
    uint64_t cache_bytes;      /* L2, or the last-level caches */
    uint64_t host_cache_bytes; /* the CPU's last-level caches */
    uint64_t memory_bytes;
    dpr_memory memory; /* of the timer's pool, and how large that is */
    size_t pool_bytes;
} bench_device;

/* Fixed work that is timed now and then: it tells whether the machine is as quick as it was.
 *
 * On a GPU: the SM clock, from a kernel that counts cycles against the device's timer, and the rate at which it fills
 * L2 by reading memory. They show a clock that falls with heat or the power limit, and other programs' traffic; not
 * what lasts for less than some 100 us, and not what falls between two looks.
 * On the CPU: the rate of a chain of dependent multiplications, in MHz of one a nanosecond / 1000; and of reading. It
 * shows a falling clock and other programs on the same core or memory. */
typedef struct bench_reference {
    double clock_mhz, read_gb_per_s;
} bench_reference;

typedef struct bench_timer bench_timer;

/* How large a pool of this memory may become, for what is free; 0 if it cannot be told. */
size_t bench_pool_most(int device, dpr_memory memory);

/* How large a pool is enough for small arrays to lie in buffers of which none is read twice in a batch, on a device
 * with such a cache. On the CPU a larger pool changes nothing for them. */
size_t bench_pool_enough(int on_gpu, size_t cache_bytes);

/* Opens a device (CUDA ordinal or DPR_DEVICE_CPU) with a pool of memory for the rotating buffers.
 *
 * @param memory      of the pool: device, pinned or managed memory on a GPU, pageable memory on the CPU
 *                    (DPR_MEMORY_HOST); DPR_MEMORY_AUTO: the first.
 * @param pool_bytes  wanted. At least BENCH_LEAST_POOL is taken, and at most bench_pool_most(): some 80 % of the free
 *                    memory, or half of it if it is pinned. bench_device.pool_bytes tells how much.
 *
 * 0, or -1. The caller gives the timer to bench_timer_destroy(). A GPU timer's calls make its device the calling
 * thread's current one and leave it so. */
int bench_timer_create(int device, dpr_memory memory, size_t pool_bytes, bench_timer **out, char why[BENCH_WHY]);
void bench_timer_destroy(bench_timer *timer); /* NULL is allowed */

const bench_device *bench_timer_device(const bench_timer *timer);

/* What may end a measurement before it is done. */
typedef struct bench_watch {
    const volatile sig_atomic_t *stop; /* ends it once *stop is not 0; NULL: nothing does */
    double end;                        /* ends it once seconds_now() is past this; 0: never */
    void (*tick)(void *user);          /* is called between samples, so it should be quick; NULL: nothing is */
    void *tick_user;
} bench_watch;

/* The timer's, for the caller to set; all 0 at first. bench_run() looks at it after every sample and all the time while
 * data is made. */
bench_watch *bench_timer_watch(bench_timer *timer);

/* Has the pool hold repetitions of `block`, which is in host memory and stays there until the next call. Every buffer
 * begins with the block's first byte, so that all hold the same data: `bytes` of the endless repetition. On the CPU,
 * where that takes long, bench_run() makes the data of those buffers that it reads.
 *
 * @param block_bytes  a multiple of BENCH_ALIGNMENT. Buffers lie at multiples of it.
 *
 * 0, or -1. */
int bench_fill(bench_timer *timer, const void *block, size_t block_bytes, char why[BENCH_WHY]);

/* Times n subjects (1 to BENCH_SUBJECTS) in turn at one point and checks their results. The pool must have been filled.
 *
 * Each subject is warmed up, and then has one sample in each round until the rule's verdict on it; the others go on.
 * outcomes[i] is that of subjects[i].
 *
 * 0, also when single subjects fail; 1 when the point cannot be timed (the array is larger than the pool; a hot one
 * does not fit the cache; the CPU has no graph or stream); -1 when the device failed. After an error that the device
 * does not recover from (a fault in a kernel), every later call fails too. */
int bench_run(bench_timer *timer, const bench_point *point, const bench_rule *rule, const bench_subject *subjects,
              int n, bench_outcome *outcomes, char why[BENCH_WHY]);

/* A subject that launches an empty kernel, in streams one that may begin before earlier work is done, as dpr's may; and
 * that waits for it if calls block: how fast the host is while other subjects have their turns. It accompanies them.
 * NULL for the CPU. Static storage. */
const bench_subject *bench_timer_launch(const bench_timer *timer);

/* What short calls of the outcome, timed in a stream or blocking, would take if the empty launches `launch` of the same
 * rounds took BENCH_STREAM_LAUNCH or BENCH_BLOCKING_LAUNCH ns, about as on the hosts of H100s, and if the host was what
 * limits them. Blocking calls differ from an empty launch by what the device does, so the difference is kept. Calls in
 * a stream keep the host busy, one of them for longer than the other, so the ratio is.
 *
 * All 0 for graphs; if calls take more than BENCH_MOST_LAUNCHES times as long as the launch, because then the device
 * limits them; and if the outcomes have so few rounds in common that nothing bounds a median. */
enum { BENCH_STREAM_LAUNCH = 3500, BENCH_BLOCKING_LAUNCH = 10000, BENCH_MOST_LAUNCHES = 4 };
bench_summary bench_steady(const bench_outcome *of, const bench_outcome *launch, bench_mode mode);

/* The best reference so far; all 0 before the first. */
bench_reference bench_timer_best(const bench_timer *timer);

/* Measures the reference. 0, or -1. */
int bench_look(bench_timer *timer, bench_reference *out, char why[BENCH_WHY]);

/* How much slower `after` is than `before`: the greater loss of the two rates, as a fraction; 0 if it is not slower. */
double bench_slowdown(const bench_reference *before, const bench_reference *after);

#endif
