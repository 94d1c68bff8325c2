/* How a grid reduces an array along axes. The host divides the work, from the layout alone, and the kernels follow it.
 * Plain functions, so that the division is tested without a GPU. */
#ifndef DPR_CORE_AXES_H
#define DPR_CORE_AXES_H

#include "args.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPR_AXES_THREADS = 256,                   /* of every block */
    DPR_AXES_TICKETS = DPR_SCRATCH_BYTES / 4, /* tiles that several blocks may share: each has a ticket */
    DPR_AXES_GROUP_UNITS = 4,                 /* elements of a result that a lane of its group reads at a time */
    DPR_AXES_PART_BYTES = 8192                /* of the elements of a tile, that are worth a block of their own */
};

/* How threads read elements. */
typedef enum dpr_axes_form {
    DPR_AXES_ELEMENTS, /* one by one */
    DPR_AXES_COLUMNS,  /* an element of each of several neighbouring results at a time */
    DPR_AXES_VECTORS,  /* 16 bytes at a time, of one result */
    DPR_AXES_GROUPS    /* results of few elements: each by a group of up to 32 lanes, which read elements or vectors */
} dpr_axes_form;

/* How many neighbouring results a unit of DPR_AXES_COLUMNS has, for elements of so many bytes: 16 bytes of them, but at
 * most 4 results, because a thread has an accumulator for each. */
#define DPR_AXES_UNIT_RESULTS(element) ((element) <= 4 ? 4 : 16 / (element))

/* A divisor and (2^64 - 1) / divisor: kernels divide by multiplication. */
typedef struct dpr_axes_divisor {
    uint64_t n, reciprocal;
} dpr_axes_divisor;

/* An axis in bytes. `weight` is the distance of two neighbours' indices in the result of ARGMIN and ARGMAX. */
typedef struct dpr_axes_axis {
    dpr_axes_divisor extent;
    uint64_t weight;
    int64_t in, out;
} dpr_axes_axis;

/* How a group of lanes goes from one of its results to the next: by so many columns of the tile, and by so many bytes
 * in the array and in the results. Where this leads past `all_columns`, the wrap is added; if a tile has one row, it
 * never does. */
typedef struct dpr_axes_step {
    uint32_t columns, all_columns;
    int64_t in, out, wrap_in, wrap_out;
} dpr_axes_step;

/* A digit of a thread's number: thread / step % count. The two inverses are 2^16 / step and 2^16 / count, rounded up,
 * which are exact enough to divide numbers below 256. */
typedef struct dpr_axes_lanes {
    uint32_t count, step, of_count, of_step;
} dpr_axes_lanes;

/* The division. A tile has the results of tile_columns units along column_axis, times those of tile_rows indices along
 * row_axis; tiles go on along the other kept axes. A unit is what a thread reads at a time: elements of in_unit
 * neighbouring results, a vector of one, or an element.
 *
 * The elements of a result are divided among the threads that have its place in the tile, and among `parts` blocks,
 * which leave partial results in workspace. A thread walks along walk_axis, with several units in flight, for each
 * index of the other reduced axes, which are the rest. */
typedef struct dpr_axes_plan {
    uint32_t form;                    /* dpr_axes_form */
    uint32_t tile_columns, tile_rows; /* of a tile, in units and in indices */
    uint32_t in_unit;                 /* COLUMNS: results; otherwise 1 */
    uint32_t walk_parts, parts;       /* of the walk; all */
    uint32_t log_group;               /* GROUPS: logarithm of the lanes of a result, to the base 2 */
    uint32_t in_vectors;              /* GROUPS: 1 if lanes read vectors, one of each result; 0: elements */
    uint32_t units;                   /* GROUPS: vectors or elements of a result */
    uint32_t column_reciprocal;       /* GROUPS: 2^32 / tile_columns, rounded up, if a tile has several rows */
    uint32_t has_edges;               /* VECTORS: 1 if rows may begin or end between the boundaries of vectors */
    int32_t other_count, rest_count;  /* axes of the list below: first those that are kept, then those of the rest */
    dpr_axes_lanes x, y, walk, rest, slice;          /* `slice` numbers the threads of a result */
    dpr_axes_divisor walk_lanes;                     /* walk.count */
    dpr_axes_divisor column_tiles, row_tiles, tiles; /* along the two axes; all */
    dpr_axes_step step;                              /* GROUPS */
    uint64_t each, row_length;                       /* elements of a result; VECTORS: of a row */
    int64_t in_first, out_first; /* bytes from the places that the run has to those where all indices are 0 */
    dpr_axes_axis column_axis, row_axis, walk_axis;
    dpr_axes_axis axes[DPR_MOST_DIMENSIONS];
    uint64_t rest_extent;            /* product */
    uint64_t walk_share, rest_share; /* indices of a part */
} dpr_axes_plan;

/* The memory that has a run's elements. */
typedef struct dpr_axes_block {
    const void *first;
    uint64_t bytes; /* 0: with more room than the elements take, so there are gaps */
} dpr_axes_block;

/* The arguments of the kernels. */
typedef struct dpr_axes_args {
    dpr_kernel_args run;
    dpr_axes_plan plan;
    dpr_axes_block ahead; /* what the grid may bring to L2 while the work before is still running */
    uint32_t op;          /* the operation, a row of dpr_ops, for kernels that run several (axes_measures.h) */
} dpr_axes_args;

/* How many blocks the device holds at a time: of the kernel for DPR_AXES_COLUMNS, and of the strategy's own, by which
 * groups are divided, too. */
typedef struct dpr_axes_blocks {
    uint64_t of_columns, others;
} dpr_axes_blocks;

/* Divides a run. The form of operations that are FUSED (ops.def) is always DPR_AXES_ELEMENTS. */
void dpr_axes_divide(const dpr_run *run, dpr_axes_blocks blocks, dpr_axes_plan *plan);

dpr_axes_block dpr_axes_find_block(const dpr_run *run);

/* Results of a tile, counted up to its edge. */
static inline uint64_t dpr_axes_tile_results(const dpr_axes_plan *plan) {
    return (uint64_t)plan->tile_columns * plan->tile_rows * plan->in_unit;
}

#ifdef __cplusplus
}
#endif

#endif
