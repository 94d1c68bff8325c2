/* What a policy is to the library: a table of its functions, which DPR_RECURSION() makes. The table is in the user's
 * program and may be older or newer than the library, so it has a version. C11 and C++17. */
#ifndef DPR_DP_RECURSION_H
#define DPR_DP_RECURSION_H

#include <dpr.h>

#ifndef __cplusplus
#include <stdalign.h>
#endif

/* Another layout of what follows, of the kernels' arguments or of the arena takes another number. */
#define DPR_RECURSION_VERSION 10

/* ---- On the CPU ------------------------------------------------------------------------------------------------- */

/* A divided task of which not all children are solved, written out from the stack of a thread. Each child has a slot,
 * which holds its task, and when the child is solved its result. The children before `next` are solved, but that with
 * the number next - 1 if there is an `inner` frame: it is divided, and that is its frame. */
typedef struct dpr_frame {
    struct dpr_frame *inner; /* or NULL */
    void *slots;             /* `count` slots of the policy's slot_bytes */
    uint64_t count, next;
} dpr_frame;

/* A thread's access to the library while it solves a task. */
typedef struct dpr_solver {
    const void *data;    /* the policy's */
    int64_t fuel;        /* tasks that may be solved until refuel() is asked; less than 0 if more were solved */
    uint64_t depth;      /* of the task to be solved */
    uint64_t deepest;    /* depth of the deepest task so far */
    uint64_t cutoff;     /* tasks that cost at most this are solved at once, by the policy's serial(); 0: none */
    int levels;          /* levels of tasks, this one included, that may be solved on the thread's own stack */
    int lowest;          /* the least number of them that were left */
    int asked;           /* 1: another thread asks for refuel() before the fuel is used up; atomic */
    dpr_frame *unsolved; /* stands for a task that was not begun */
    dpr_frame *stop;     /* tells that the run ends with an error */

    /* Sets `fuel`. Returns 0 if all that is on the thread's stack is to be written out. */
    int (*refuel)(struct dpr_solver *solver);
    /* A frame with slots for `count` children; `stop` if there is no memory. */
    dpr_frame *(*frame)(struct dpr_solver *solver, uint64_t count);
    /* Memory of the thread's for `count` slots, to divide a task in; NULL if there is none. */
    void *(*room)(struct dpr_solver *solver, uint64_t count);
    /* Ends the run: divide() returned n. Returns `stop`. */
    dpr_frame *(*wrong)(struct dpr_solver *solver, int n);
} dpr_solver;

/* ---- On the GPU ------------------------------------------------------------------------------------------------- */

/* What the kernels of a policy take besides the policy's data. Sizes are in nodes, slots or tasks. */
typedef struct dpr_recursion_args {
    struct dpr_arena *arena;           /* zero at the beginning, and again at the end */
    struct dpr_recursion_block *block; /* NULL, or where the first kernel writes what launched kernels need */
    void *nodes;                       /* `capacity` nodes */
    void *chunk_memory;                /* `chunks` times chunk_bytes */
    const void *roots;                 /* NULL: few_roots has them */
    void *out;                         /* receives the results, unless there is an error; NULL: they fit the mailbox */
    void *sums;                        /* of a policy that folds: a result for each root */
    struct dpr_recursion_span *spans;  /* `most_spans` spans, which blocks write */
    uint64_t *mailbox;                 /* receives a dpr_recursion_outcome, and the results if they fit behind it */
    uint64_t max_tasks;                /* of the run */
    uint64_t max_ns;                   /* from the run's first kernel on */
    uint64_t cutoff;                   /* as in dpr_solver */
    uint64_t undivided;                /* tasks that cost at most this are left to lanes; 0: none */
    uint32_t tag;                      /* of the mailbox (core/strategy.h); 0: it is the caller's outcome */
    uint32_t count;                    /* roots */
    uint32_t capacity;                 /* nodes: at least `count`, at most 2^31; or none, if first_tasks must do */
    uint32_t frontier;                 /* tasks to have before lanes begin */
    uint32_t slots;                    /* of a lane's stack */
    uint32_t budget;                   /* steps that a lane makes at most, about, when no task is left to take */
    uint32_t chunks;                   /* for stacks that are full while the arena is, too */
    uint32_t chunk_bytes;              /* a multiple of 16 */
    uint32_t max_depth;                /* roots have depth 0 */
    uint32_t threads, shared_bytes;    /* of a block that a kernel launches */
    uint32_t most_blocks;              /* of a grid that a kernel launches */
    uint32_t teams;                    /* 1: a block works on a task */
    uint32_t keeps;                    /* 1: nobody takes what lanes give away, so they keep everything */
    uint32_t most_spans;
    uint32_t first_tasks; /* at most 65535, of which a warp tries to do all before anything else (at_once.cuh) */
    alignas(16) uint64_t few_roots[8]; /* as tasks may be */
} dpr_recursion_args;

/* What a block does in a span of time (dpr_recursion_event). */
enum { DPR_SPAN_NONE, DPR_SPAN_DIVIDE, DPR_SPAN_SOLVE };

typedef struct dpr_recursion_span {
    uint64_t begin, end; /* in nanoseconds, by the device's clock */
    uint32_t what,
        worker; /* DPR_SPAN_*; the number of a block, or of another place where one thing is done at a time */
} dpr_recursion_span;

/* In device memory, for kernels of the library, which call the policy's functions (phases.cuh) by their addresses. */
typedef struct dpr_recursion_block {
    dpr_recursion_args args;
    void *act; /* act() of phases.cuh, if the policy's code is relocatable */
    /* the policy's data follow */
} dpr_recursion_block;

/* What act() is to do (phases.cuh). What a launch of a policy's kernel for phases is to do: place the roots and fill
 * the block; a phase; write results and report; the same if all phases are done, and otherwise nothing. */
enum { DPR_ACT_PHASE, DPR_ACT_VISIT, DPR_ACT_ALONE };
enum { DPR_LAUNCH_BEGIN, DPR_LAUNCH_PHASE, DPR_LAUNCH_END, DPR_LAUNCH_END_IF_DUE };

/* The limit that a run has reached: max_tasks, max_ns or max_depth. */
enum { DPR_LIMIT_OF_TASKS, DPR_LIMIT_OF_TIME, DPR_LIMIT_OF_DEPTH };

/* Bytes of results that fit a mailbox behind the report; of a node in shared memory besides its slot (at_once.cuh). */
enum { DPR_RECURSION_LETTER = 64, DPR_TINY_LINK = 8 };

/* A block of `persistent` has as many threads as have room for a stack of DPR_SPARE_SLOTS slots each, with which they
 * seldom have to give frames away, at most DPR_MOST_LANES. More than DPR_LANE_STEP are a multiple of it. */
enum { DPR_MOST_LANES = 1024, DPR_LANE_STEP = 128, DPR_SPARE_SLOTS = 24 };

/* A policy's kernels. Both functions find the CUfunction of a kernel on the current device and return a cudaError_t. */
typedef struct dpr_recursion_kernels {
    int (*persistent)(unsigned shared_bytes, void **function); /* also permits it the dynamic shared memory */
    int (*phase)(void **function, size_t *stack_bytes);        /* also tells what stack a thread of it takes */
    uint32_t node_bytes, slot_bytes, header_bytes;             /* of a node, and of a lane's stack for each slot */
    uint32_t most_lanes;                                       /* of a block of `persistent` */
    uint32_t teams;                                            /* 1: a block works on a task */
    uint32_t team_bytes;                                       /* of shared memory, that a block has besides stacks */
    uint32_t relocatable; /* 1: the code is relocatable, so that other modules can call it */
    uint32_t folds;       /* 1: results are folded, and nothing is joined */
} dpr_recursion_kernels;

/* ---- The table -------------------------------------------------------------------------------------------------- */

struct dpr_recursion {
    size_t size; /* sizeof(dpr_recursion) */
    uint32_t version;
    int32_t most_children;
    const char *name;
    size_t task_bytes, task_align, result_bytes, result_align;
    size_t data_bytes, data_align; /* data_bytes is 0 without data */
    size_t slot_bytes;             /* of a slot on the CPU */

    /* Solves the task in the slot and puts the result there: NULL. Otherwise returns the outermost of the frames that
     * it wrote out, or `unsolved` or `stop`; the slot still has the task. */
    dpr_frame *(*solve)(dpr_solver *solver, void *slot);
    /* Combines the results of a frame's children. The slot has the task, and gets the result. */
    void (*combine)(const void *data, void *slot, const dpr_frame *frame);

    /* What a task costs, in units of the policy's; NULL if it does not say. */
    uint64_t (*cost)(const void *data, const void *task);
    uint64_t cutoff;   /* as in dpr_solver, if the call does not say otherwise */
    int32_t serial;    /* 1: the policy has serial() */
    int32_t host_data; /* 1: engines of the CPU reach what the data point to, also in a context of a GPU */

    const dpr_recursion_kernels *gpu; /* NULL if the policy was not compiled by nvcc */
};

#endif
