/* The contract between the planner and a strategy.
 *
 * A strategy is one const dpr_strategy at the bottom of its own file, named dpr_<family>_<name>, and one line of
 * host/plan/strategies.def. It sees core/ only. `probe`, `cost` and `shape` are pure: the same arguments give the same
 * answer, nothing is allocated, launched or asked of the hardware. `launch` neither allocates nor synchronises, except
 * that a CPU strategy is done when it returns, and that cpu.threads starts its pool of threads when there is none. */
#ifndef DPR_CORE_STRATEGY_H
#define DPR_CORE_STRATEGY_H

#include "caps.h"
#include "dpr.h"

/* Everything but the count that a choice depends on: eight bytes, compared and hashed as one word. */
typedef union dpr_key {
    struct {
        uint8_t op, dtype;
        unsigned mode : 4;
        unsigned gpu_only : 4; /* 1: the call must run in a stream, so CPU strategies are out */
        uint8_t nan;
        uint8_t in_memory; /* dpr_memory, never AUTO */
        uint8_t block;     /* log2 of the threads a block; 0: the strategy's own choice */
        uint8_t depth;     /* nested launches below each other, at most; 0: as many as the device takes */
        uint8_t strategy;  /* 0: the planner's choice; i + 1: strategy i of the registry by name */
    } f;
    uint64_t word;
} dpr_key;

/* An initial value in the result type, as the kernels and loops take it. */
typedef struct dpr_init {
    unsigned char bytes[16]; /* the value, at the front */
    int32_t present;         /* 0: there is none */
} dpr_init;

typedef struct dpr_module dpr_module;

/* Before a module's first kernel is loaded in the current CUDA context, which is of device `ordinal`: DPR_OK if there
 * is room, else a status with its sentence. */
typedef dpr_status dpr_admit(const dpr_module *module, int ordinal);

/* Kernels that are loaded when the first of them is needed, and not with the program: a fat binary in read-only data.
 */
struct dpr_module {
    const char *name;
    const void *image;
    dpr_admit *admit; /* NULL: always */
};

/* One kernel of a strategy, as the occupancy calculation and the launch see it. */
typedef struct dpr_kernel {
    const void
        *entry;  /* host address of the __global__ function; of a module's kernel its name, always at one address */
    int threads; /* largest block size it is launched with */
    int shared_bytes; /* dynamic shared memory a block */
    int min_blocks;   /* blocks an SM that its launch bounds promise on every device: what the planner assumes of a
                         machine it cannot ask */
    int cluster;      /* blocks a cluster, at most 16; 0: no clusters */
    const dpr_module *module; /* NULL: of the program's own */
} dpr_kernel;

/* What a kernel uses. */
typedef struct dpr_kernel_use {
    int threads;      /* a block */
    int registers;    /* a thread */
    int shared_bytes; /* a block, static and dynamic together */
} dpr_kernel_use;

/* What a device holds of a kernel at a time. */
typedef struct dpr_residency {
    int blocks;  /* on the whole device */
    int cluster; /* blocks a cluster: as the kernel asks, or 8 where the device has no room for more; 0: no clusters */
} dpr_residency;

/* The launch's limits on one device, found when planning. The grid of one launch follows from it and the count. */
typedef struct dpr_shape {
    int threads;           /* a block, at most; for a CPU strategy the worker threads */
    int max_blocks;        /* on the whole device; for a CPU strategy 1 */
    int cluster;           /* blocks a cluster; 0: no clusters */
    size_t scratch_bytes;  /* device memory a run in flight needs: DPR_SCRATCH_BYTES or 0 */
    size_t cached_bytes;   /* input up to this size may stay in L2 from one run to the next */
    int max_depth;         /* nested launches below each other; 0: its kernels launch none */
    double launch_seconds; /* a level of nested launches, from the start of a kernel to that of the next */
    int measured;          /* whether that was measured on the device; else it is an assumption */
} dpr_shape;

/* Scratch memory of one run in flight. Zeroed once; every run leaves it zero again. */
enum { DPR_SCRATCH_BYTES = 8192 };

/* A mailbox is where the host waits for a result without asking the driver: DPR_MAIL_WORDS words of 8 bytes, zero at
 * first. The kernel stores each 4 bytes of the result (the last padded with zeros) in the lower half of a word and the
 * run's tag in the upper half; the result is complete when all of its words carry the tag. */
enum { DPR_MAIL_WORDS = 4 };

typedef struct dpr_run dpr_run;
typedef struct dpr_launch dpr_launch; /* args.h */
typedef struct dpr_kernel_args dpr_kernel_args;

/* Puts a kernel into the run's stream. Returns the cudaError_t. */
typedef int dpr_enqueue(const dpr_run *run, const dpr_launch *launch, dpr_kernel_args *args);

/* One run. */
struct dpr_run {
    const void *in;
    void
        *out; /* where the strategy reaches it: device, pinned or managed memory on a GPU, any host memory on the CPU */
    size_t count;                 /* 0 gives the identity, of ARGMIN and ARGMAX -1 */
    const uint64_t *device_count; /* NULL, or memory that the device reaches with the number of elements, read when the
                                     run gets there: it is at most `count`, which counts instead where it is more */
    dpr_key key;
    dpr_init init;
    dpr_shape shape;
    void *scratch;      /* shape.scratch_bytes of device memory that no other run in flight uses, or NULL */
    void *work;         /* work_bytes() of device memory that nobody has prepared, aligned to 256 bytes, or NULL */
    dpr_nested *report; /* where the last kernel leaves what nested launches came to: `nested`, or memory of the run's
                           own where that is pageable, or NULL */
    dpr_nested *nested; /* NULL, or where the caller wants that */
    int max_pending;    /* as in dpr_options */
    uint32_t launches;  /* nested launches that the run may make, at most */
    uint32_t tag;       /* 0: `out` is one element of the result type; else it is a mailbox, and this its tag */
    int sms;            /* SMs that the shape was made for */
    int programmatic;   /* 1: the kernel may be launched before the work ahead of it in the stream is done, as it waits
                           for that itself (programmatic dependent launch) */
    dpr_stream stream;
    dpr_enqueue *enqueue; /* for strategies on a GPU */
    void *enqueuer;       /* enqueue()'s own */
};

/* Nested launches that a run makes at most, on a device whose pool of pending launches has `pending` places, if its
 * caller asks for `max_pending` (dpr_options). */
static inline uint32_t dpr_launches_of(size_t pending, int max_pending) {
    const uint32_t places = pending < UINT32_MAX ? (uint32_t)pending : UINT32_MAX;
    if (max_pending == DPR_NO_LAUNCHES)
        return 0;
    return max_pending > 0 && (uint32_t)max_pending < places ? (uint32_t)max_pending : places;
}

typedef enum { DPR_ON_CPU, DPR_ON_GPU } dpr_side;

typedef struct dpr_strategy {
    const char *name; /* "family.name" */
    const char *text; /* one line for lists and help */
    dpr_side side;
    int block_sizes; /* 1: a demonstration, which runs with any of the key's block sizes; 0: with its own alone */
    /* NULL if the strategy can run problems of this key there, else why not, as a clause ("needs ..."). The planner has
     * seen to it before that the pair of operation and type is valid and that `side` fits the memory. May be NULL: it
     * can run every one. */
    const char *(*probe)(const dpr_key *key, const dpr_caps *caps);
    /* Predicted seconds from call to result for `count` elements. */
    double (*cost)(const dpr_key *key, const dpr_caps *caps, size_t count);
    /* The kernel that runs this key; NULL for CPU strategies. */
    dpr_kernel (*kernel)(const dpr_key *key);
    /* Launch limits, given what the device holds of the kernel (1 block for CPU strategies). */
    dpr_shape (*shape)(const dpr_key *key, const dpr_caps *caps, dpr_residency resident);
    /* Enqueues a run (GPU) or does it (CPU). 0 or the cudaError_t; CPU strategies return 0. */
    int (*launch)(const dpr_run *run);
    /* Device memory that the run needs beside scratch memory. NULL: none, and then its kernels launch no others. */
    size_t (*work_bytes)(const dpr_run *run);
    /* With work_bytes: what its kernels will launch for the run's count, in a line without a full stop. */
    void (*describe)(const dpr_run *run, char *text, size_t size);
} dpr_strategy;

#endif
