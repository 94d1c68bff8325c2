/* The contract between the planner and a strategy.
 *
 * A strategy is one const dpr_strategy at the bottom of its own file, named dpr_<family>_<name>, and one line of
 * host/plan/strategies.def. It sees core/ only. `probe`, `cost` and `limits` are pure: the same arguments give the same
 * answer, nothing is allocated or launched, and the hardware is not asked. `launch` neither allocates nor synchronises,
 * with three exceptions: a CPU strategy is done when it returns; cpu.threads starts its pool of threads if there is
 * none; and it allocates accumulators for a reduction along axes whose results are divided among threads. */
#ifndef DPR_CORE_STRATEGY_H
#define DPR_CORE_STRATEGY_H

#include <assert.h>

#include "caps.h"
#include "lists.h"
#include "words.h"

/* Everything that a choice depends on, except the number of elements: sixteen bytes, compared and hashed as two words.
 */
typedef union dpr_key {
    struct {
        uint8_t op, dtype; /* rows of dpr_ops and dpr_dtypes; if there are several operations, `op` is the first */
        unsigned mode : 4;
        unsigned gpu_only : 2; /* 1: the call must run in a stream, so CPU strategies are excluded */
        unsigned partial : 2;  /* 1: a partial result takes the place of the result */
        uint8_t nan;
        uint8_t in_memory;    /* dpr_memory, never AUTO */
        uint8_t block;        /* log2 of the threads a block; 0: the strategy's default */
        uint8_t depth;        /* most nested launches below each other; 0: the device's limit */
        uint8_t strategy;     /* 0: the planner chooses; i + 1: strategy i of the registry was asked for by name */
        uint8_t fused;        /* 1: several operations in one pass over the array */
        uint8_t segments;     /* 0: one array; otherwise 1 + log2 of the number of segments, rounded down */
        unsigned strided : 4; /* 1: results are along axes, or elements do not lie one behind the other */
        unsigned ranges : 4;  /* 1: segments are given by begins and ends; 0: by offsets */
        uint8_t effort;       /* dpr_effort */
        uint32_t ops;         /* bit i: the operation of row i is asked for */
    } f;
    uint64_t words[2];
} dpr_key;

static_assert(sizeof(dpr_key) == 16, "comparing and hashing see two words");
static_assert(DPR_OP_COUNT <= 32, "dpr_key.ops has a bit for each operation");

static inline int dpr_key_equal(const dpr_key *a, const dpr_key *b) {
    return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

static inline dpr_op dpr_key_op(const dpr_key *key) {
    return (dpr_op)(DPR_FIRST_OP + key->f.op);
}
static inline dpr_dtype dpr_key_dtype(const dpr_key *key) {
    return (dpr_dtype)(DPR_FIRST_DTYPE + key->f.dtype);
}

/* The number of segments that the key stands for, to within a factor of two; 1 for one array. */
static inline uint64_t dpr_key_segments(const dpr_key *key) {
    return key->f.segments ? UINT64_C(1) << (key->f.segments - 1) : 1;
}

/* The initial value in the result type and the divisor of VAR, from which a result is made together with its
 * accumulator.
 */
typedef struct dpr_init {
    unsigned char bytes[16]; /* the value, or the two of MINMAX, at the front */
    int32_t present;         /* 0: there is none */
    int32_t sample;          /* 1: VAR divides by one less than the number of elements */
} dpr_init;

/* Two more values of `present`, which only kernels get: the run wants a partial result (args.h); the run wants the
 * mean, and a kernel of SUM is to divide its sum (means.h). */
enum { DPR_PARTIAL_WANTED = 2, DPR_MEAN_WANTED = 3 };

/* The places of the results of several operations. */
typedef struct dpr_outputs {
    int count;
    uint8_t op[DPR_FUSED_MOST]; /* rows of dpr_ops */
    void *out[DPR_FUSED_MOST];
} dpr_outputs;

/* Segments, as in dpr_segments. Every segment that is not empty lies within the array. */
typedef struct dpr_segment_list {
    uint64_t count;
    const void *begins, *ends; /* for offsets, `ends` points to the second number of `begins` */
    dpr_dtype dtype;           /* DPR_I32, DPR_U32, DPR_I64 or DPR_U64 */
    dpr_index index;
    int on_device; /* 1: all of `begins` and `ends` is in device memory, so kernels may bring it to L2 ahead */
    const uint64_t *device_count; /* NULL, or the number of segments, of which `count` is the most, in memory that the
                                     device can read */
} dpr_segment_list;

/* The number of segments, by a processor that reaches device_count. */
DPR_INLINE uint64_t dpr_segment_count(const dpr_segment_list *list) {
    const uint64_t n = list->device_count ? *list->device_count : list->count;
    return n < list->count ? n : list->count;
}

/* An axis of an array: how many indices it has, and the distances of neighbours in the array and in the results. */
typedef struct dpr_axis {
    uint64_t extent;
    int64_t in, out; /* elements; results */
} dpr_axis;

/* The axes of an array that is reduced along some of them. In each list the last axis is the innermost one. There is at
 * least one axis in `reduce`; extents of 1 are left out of both, and axes are joined where that is possible. */
typedef struct dpr_axes_layout {
    int kept, reduced;
    dpr_axis keep[DPR_MOST_DIMENSIONS], reduce[DPR_MOST_DIMENSIONS];
    uint64_t outputs, each; /* results, at least 1; elements of each */
} dpr_axes_layout;

/* Bytes of the largest result, and of the place of each result in a mailbox. */
enum { DPR_RESULT_BYTES = 16 };

typedef struct dpr_module dpr_module;

/* Called before a module's first kernel is loaded in the current CUDA context, which belongs to device `ordinal`.
 * Returns DPR_OK if the device has room for the module; otherwise a status, with its sentence for dpr_last_error(). */
typedef dpr_status dpr_admit(const dpr_module *module, int ordinal);

/* Kernels that are loaded not with the program but when the first of them is needed: a fat binary in read-only data. */
struct dpr_module {
    const char *name;
    const void *image;
    dpr_admit *admit; /* NULL: there is always room */
};

enum { DPR_OTHER_KERNELS = 3 };

/* The kernel of a strategy, for the occupancy calculation and the launch. */
typedef struct dpr_kernel {
    const void *entry; /* host address of the __global__ function; for a kernel of a module its name, always at the same
                          address */
    int threads;       /* largest block, in threads, that it is launched with */
    int shared_bytes;  /* dynamic shared memory a block, in bytes */
    int min_blocks;    /* blocks an SM that its launch bounds guarantee on every device: the planner assumes this number
                          for a machine that it cannot ask */
    int cluster;       /* blocks a cluster, at most 16; 0: no clusters */
    const dpr_module *module;              /* NULL: the kernel is loaded with the program */
    const void *others[DPR_OTHER_KERNELS]; /* NULL, or kernels of the program that a launch may be of instead, with as
                                              many threads at most: planning loads them, too */
} dpr_kernel;

/* Resources that a kernel uses. */
typedef struct dpr_kernel_use {
    int threads;      /* a block */
    int registers;    /* a thread */
    int shared_bytes; /* a block, static and dynamic together, in bytes */
} dpr_kernel_use;

/* How many blocks of a kernel a device can hold at the same time. */
typedef struct dpr_residency {
    int blocks;  /* on the whole device */
    int cluster; /* blocks a cluster: as the kernel asks, or 8 if the device has no room for that; 0: no clusters */
} dpr_residency;

/* The limits of a strategy's launches on one device, found when planning. They and the count determine the grid. */
typedef struct dpr_launch_limits {
    int threads;           /* most threads a block; for a CPU strategy the worker threads */
    int max_blocks;        /* most blocks on the whole device; for a CPU strategy 1 */
    int cluster;           /* blocks a cluster; 0: no clusters */
    size_t cached_bytes;   /* input up to this size may stay in L2 from one run to the next */
    int max_depth;         /* most nested launches below each other; 0: its kernels launch none */
    double launch_seconds; /* one level of nested launches: from the start of a kernel to the start of the kernel that
                              it launches */
    int measured;          /* 1: launch_seconds was measured on this device; 0: it is assumed */
} dpr_launch_limits;

/* Most bytes of a report, whatever the version of the caller's header. */
enum { DPR_MOST_REPORT_BYTES = 4096 };

/* Bytes of scratch memory of one run in flight. It is zeroed once, and every run leaves it zero. */
enum { DPR_SCRATCH_BYTES = 8192 };

/* In a mailbox the host receives a result without asking the driver: DPR_MAIL_WORDS words of 8 bytes, zero at first.
 * The kernel stores each 4 bytes of what it writes (the last padded with zeros) in the lower half of a word and the
 * run's tag in the upper half. The result is complete when all of its words carry the tag. */
enum { DPR_MAIL_WORDS = DPR_FUSED_MOST * DPR_RESULT_BYTES / 4 };

/* A partial result is a row of 64-bit words: a label, which says what it is of (partial.h) and is never 0, the number
 * of elements, and the words of an accumulator (acc.h), from this place on. */
enum { DPR_PARTIAL_HEAD = 2 };

typedef struct dpr_run dpr_run;
typedef struct dpr_launch dpr_launch; /* args.h */
typedef struct dpr_kernel_args dpr_kernel_args;

/* Puts a kernel into the run's stream. Returns the cudaError_t. */
typedef int dpr_enqueue(const dpr_run *run, const dpr_launch *launch, dpr_kernel_args *args);

/* One run. */
struct dpr_run {
    const void *in;
    void *out; /* memory that the strategy can write: device, pinned or managed memory for a GPU strategy, any host
                  memory for a CPU strategy */
    const dpr_outputs *fused; /* NULL: the key's operation writes `out`. Otherwise each operation writes its own place;
                                 with a tag, result i is at byte DPR_RESULT_BYTES * i of the mailbox's contents */
    size_t count;             /* elements; 0 gives the identity, or -1 for ARGMIN and ARGMAX */
    const dpr_axes_layout *axes;      /* NULL, or `out` receives a result for each index of the axes that are kept */
    const dpr_segment_list *segments; /* NULL: one array. Otherwise `out` receives a result for each segment */
    const uint64_t *device_count; /* NULL, or the number of elements in memory that the device can read. The run reads
                                     it when its turn in the stream comes; a number above `count` is taken as `count` */
    dpr_key key;
    dpr_init init;
    uint64_t label;       /* 0: `out` receives the result; otherwise a partial result with this label (partial.h) */
    uint64_t first_index; /* index of the first element of `in` in the whole array, for partial results */
    dpr_launch_limits limits;
    void *scratch;   /* the strategy's scratch_bytes of device memory that no other run in flight uses, or NULL */
    void *workspace; /* workspace_bytes() of device memory that nobody has prepared, aligned to 256 bytes, or NULL */
    dpr_launch_report *report; /* where the last kernel writes the counters of nested launches: `launch_report`, or the
                                  run's own memory if `launch_report` is NULL or pageable */
    dpr_launch_report *launch_report; /* NULL, or where the caller wants the counters */
    size_t report_size;               /* bytes of the report, of which kernels write no more */
    int max_pending;                  /* as in dpr_launch_options */
    uint32_t launches;                /* most nested launches that the run may make */
    int is_apart; /* 1: the caller keeps graphs that launch themselves away until the run's nested launches are
                     done (dp/apart.h) */
    uint32_t tag; /* 0: `out` has the type of the result; otherwise `out` is a mailbox, or `done` is one, and this is
                     its tag */
    void *done;   /* NULL, or a mailbox: a strategy that `tells_end` writes a word of 4 bytes there, whatever its
                     value, when all of its results are in `out` */
    int sms;      /* SMs that the limits are for */
    int programmatic; /* 1: the kernel may be launched before the work ahead of it in the stream is done, because it
                         waits for that work itself (programmatic dependent launch) */
    dpr_stream stream;
    dpr_enqueue *enqueue; /* for GPU strategies only */
    void *enqueuer;       /* private to enqueue() */
};

/* Most nested launches that a run may make if the device's launch pool has `pending` places and the caller asks for
 * `max_pending` (dpr_launch_options). */
static inline uint32_t dpr_launches_of(size_t pending, int max_pending) {
    const uint32_t places = pending < UINT32_MAX ? (uint32_t)pending : UINT32_MAX;
    if (max_pending == DPR_NO_LAUNCHES)
        return 0;
    return max_pending > 0 && (uint32_t)max_pending < places ? (uint32_t)max_pending : places;
}

/* Bytes of the run's report that kernels of this version write. */
static inline size_t dpr_report_bytes(const dpr_run *run) {
    return run->report_size < sizeof *run->report ? run->report_size : sizeof *run->report;
}

/* The size of a problem, on which costs depend. */
typedef struct dpr_size {
    uint64_t elements; /* of all segments together */
    uint64_t segments; /* parts of the array that are reduced each by itself; 1 for one array */
} dpr_size;

/* What a run costs. dpr_cost_seconds() (cost.h) makes seconds of it. */
typedef struct dpr_cost {
    double latency; /* seconds that the run takes in addition to reading: launches, levels, meetings of blocks */
    double bytes;   /* bytes that go through memory */
    double rate;    /* bytes a second that the run's own threads read and reduce; 0: as many as memory delivers */
} dpr_cost;

typedef enum { DPR_ON_CPU, DPR_ON_GPU } dpr_side;

typedef struct dpr_strategy {
    const char *name; /* "family.name" */
    const char *text; /* one line for lists and help */
    dpr_side side;
    dpr_role role;   /* what it is there for. Kernels launch kernels only if this is DPR_ROLE_NESTED */
    int takes_block; /* 1: it runs with any block size that the key has; 0: with its own block sizes only */
    int fuses;       /* 1: it runs all operations, and several in one run; 0: one a run */
    int measures;    /* 1: it runs all operations; 0: those that are OWN (ops.def), and means as sums (means.h),
                        unless probe() refuses them. Not
                        used if `fuses` is 1 */
    int segmented;   /* 1: it also runs arrays of segments; 0: only one array */
    int tells_end;   /* 1: with segments, it takes `done` of dpr_run; 0: the host waits for the kernels' end */
    int strided;     /* 1: it also reduces along axes; 0: only arrays without gaps */
    size_t
        scratch_bytes; /* scratch memory of a run: DPR_SCRATCH_BYTES, or 0 for a CPU strategy and where none is used */
    /* Returns NULL if the strategy can run problems of this key there; otherwise the reason, as a clause ("needs ...").
     * The planner has checked before that the pair of operation and type is valid and that `side` fits the memory.
     * `probe` may be NULL: the strategy can run every problem. */
    const char *(*probe)(const dpr_key *key, const dpr_caps *caps);
    /* What a run costs from the call to the result. Whatever it states, the planner predicts no run to take less time
     * than memory does. */
    dpr_cost (*cost)(const dpr_key *key, const dpr_caps *caps, dpr_size size);
    /* The kernel that runs this key; NULL for CPU strategies. */
    dpr_kernel (*kernel)(const dpr_key *key);
    /* Launch limits, from how many blocks of the kernel the device holds (1 block for CPU strategies). */
    dpr_launch_limits (*limits)(const dpr_key *key, const dpr_caps *caps, dpr_residency resident);
    /* Enqueues a run (GPU) or does it (CPU). Returns 0 or the cudaError_t; CPU strategies return 0. */
    int (*launch)(const dpr_run *run);
    /* Bytes of workspace that the run needs, for its key, count and limits. NULL: none, as for every CPU strategy. */
    size_t (*workspace_bytes)(const dpr_run *run);
    /* Only for DPR_ROLE_NESTED. Writes what the kernels will launch for the run's count, in one line without a full
     * stop, to `text`, which has `size` bytes. */
    void (*describe)(const dpr_run *run, char *text, size_t size);
} dpr_strategy;

#endif
