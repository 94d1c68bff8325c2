/* The arguments of every reduction kernel, passed by value, and its launch. */
#ifndef DPR_CORE_ARGS_H
#define DPR_CORE_ARGS_H

#include "strategy.h"

/* How a kernel may read its input. */
enum {
    DPR_READ_STREAMING = 1, /* the array is larger than L2: its lines need not stay there */
    DPR_READ_ENDS = 2,      /* there are elements before the first whole vector of 16 bytes or after the last one */
    DPR_READ_RUNS = 4       /* each block reads neighbouring tiles; otherwise blocks take turns at the tiles */
};

struct dpr_kernel_args {
    const void *in;
    void *out;
    uint64_t count;
    uint64_t vectors;    /* whole vectors (16 bytes on a 16-byte boundary) among the `count` elements */
    uint64_t rounds;     /* vectors that every thread of the grid reads at least */
    uint64_t reciprocal; /* (2^64 - 1) / threads of the grid: divides by multiplication when the device has the count */
    const uint64_t *device_count; /* as in dpr_run */
    void *scratch;                /* DPR_SCRATCH_BYTES of zeros, or NULL if the kernel needs none */
    uint32_t head;                /* elements before the first whole vector */
    uint32_t reading;             /* DPR_READ_* */
    uint32_t prefetch;            /* vectors that a thread may prefetch to L2 while the work before is still running */
    uint32_t tag;                 /* as in dpr_run */
    uint32_t partials;            /* for a second pass: number of partial results to fold */
    dpr_init init;    /* if `present` is DPR_MEAN_WANTED, it has no value. If it is DPR_PARTIAL_WANTED, it has the label
                         and first index of a partial result instead: a branch and arguments of their own would cost a
                         short run (flat.twopass) up to 4 % on an H200 */
    uint32_t meeting; /* how partial results are combined, for kernels that have several ways (meetings.h) */
    void *workspace;  /* as in dpr_run; kernels of dp.* get what is behind its DPR_REPORT_BYTES (nested_args.h) */
};

/* What dpr_kernel_args.init has instead of a value. */
typedef struct dpr_wanted {
    uint64_t label, first_index; /* as in dpr_run */
} dpr_wanted;

/* The arguments of the kernel that merges partial results. */
typedef struct dpr_merge_args {
    dpr_kernel_args run;
    uint64_t label;
} dpr_merge_args;

/* Which segments a launch of segments.group, segments.split or segments.bins reduces. */
enum {
    DPR_SEGMENTS_ALL,   /* all of them: none can be long */
    DPR_SEGMENTS_SHORT, /* the first launch: those that are not long; it lists the others. segments.bins lists all */
    DPR_SEGMENTS_LONG   /* the second launch: the listed ones; in segments.group, if the list had no room, all that are
                           long */
};

/* What strategies for segments tell their kernels. segments.group sets all members but `log_slice`
 * (segments_rounds.cuh); segments.small sets all but `which`, or `log_size` alone for segments_alone.cuh;
 * segments.split `which` and `room`; and segments.bins `which`. */
typedef struct dpr_segment_groups {
    uint32_t log_size; /* logarithm of the threads for a segment, to the base 2 */
    uint32_t which;    /* DPR_SEGMENTS_* */
    uint32_t room;     /* places in the list of long segments; for the values of slices in segments.small */
    union {
        uint32_t slices;   /* of all long segments together, about: each has at least one, so there may be more */
        uint32_t ordinary; /* in segments.small: the elements that a block's segments have at least, on average, unless
                              other segments are long */
    };
    uint32_t longest;   /* the most elements of a segment that is not long */
    uint32_t log_slice; /* logarithm of the elements of a slice, to the base 2 */
} dpr_segment_groups;

/* How many bytes of each array a grid may bring to L2 while the work before is still running: all of them, or none. */
typedef struct dpr_segment_ahead {
    uint64_t elements, begins, ends;
} dpr_segment_ahead;

/* The arguments of kernels of segments. */
typedef struct dpr_segment_args {
    dpr_kernel_args run; /* `out` has a result for each segment */
    dpr_segment_list list;
    dpr_segment_ahead ahead;
    dpr_segment_groups groups; /* for segments.small and kernels that need two launches */
    uint32_t op;               /* the operation, a row of dpr_ops, for kernels that run several (segments_group.h) */
    void *done;                /* as in dpr_run, with the tag of `run` */
} dpr_segment_args;

/* An operation with an accumulator of its own in the kernels of flat_fused.cu: its row in dpr_ops; where its words
 * begin among those of a thread in shared memory (`state`); and where they begin in a row of `partials` (`word`). */
typedef struct dpr_fused_op {
    uint16_t row, state, word;
} dpr_fused_op;

/* The arguments of these kernels. */
typedef struct dpr_fused_args {
    dpr_kernel_args run;
    void *out[DPR_FUSED_MOST];  /* the place of each result; not used if the run has a mailbox */
    uint8_t op[DPR_FUSED_MOST]; /* the operation of each result, a row of dpr_ops */
    uint32_t results;           /* number of results */
    uint32_t ops;       /* set of the rows in run_op; all other results follow from these operations' accumulators */
    uint32_t running;   /* number of operations in run_op */
    uint32_t log_share; /* logarithm of the warps of a block that merge accumulators of one operation, to the base 2 */
    dpr_fused_op run_op[DPR_FUSED_MOST];
    uint32_t words;       /* of a row, which holds the accumulators of one block, one for each operation in run_op */
    uint32_t state_words; /* of a thread's accumulators in shared memory */
    uint64_t *partials;   /* if there are several blocks, a row for each: in workspace if the run has any; otherwise in
                             scratch memory, where they are zero between runs */
} dpr_fused_args;

/* A launch without the kernel's arguments. */
struct dpr_launch {
    const void *entry;        /* as in dpr_kernel */
    const dpr_module *module; /* as in dpr_kernel */
    unsigned blocks, threads;
    int shared_bytes;  /* dynamic shared memory a block, in bytes */
    unsigned cluster;  /* blocks a cluster; 0: no clusters */
    int cooperative;   /* 1: a cooperative launch, whose grid can synchronise */
    unsigned partials; /* as in dpr_kernel_args */
    uint32_t meeting;  /* as in dpr_kernel_args */
};

#endif
