/* Kernels that ask for reductions (dpr_nested.cuh), for test_gpu_nest.c. In builds with CUDA. */
#ifndef DPR_TESTS_NEST_KERNELS_H
#define DPR_TESTS_NEST_KERNELS_H

#include "dpr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As dpr::outcome. */
typedef enum nest_outcome { NEST_LAUNCHED, NEST_IN_LINE, NEST_LEFT, NEST_WAITING } nest_outcome;

/* A reduction that a kernel asks for, in device memory. */
typedef struct nest_call {
    const void *in; /* device memory */
    uint64_t count;
    uint64_t result[2]; /* room for one of any type */
    uint32_t outcome;   /* nest_outcome */
    uint32_t followed;  /* continuations that found the result that they were told */
    uint32_t misled;    /* and that found another */
    unsigned ticket;    /* 0 before the call, and after it */
} nest_call;

typedef enum nest_form { NEST_AT_ONCE, NEST_AFTER_GRID } nest_form;

/* The pairs of operation and type there are kernels for, with what they do with NaN. */
typedef struct nest_pair {
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
} nest_pair;

const nest_pair *nest_pairs(size_t *count);

/* Each enqueues one kernel and returns the cudaError_t of the launch. */

/* `n` threads, in blocks of 128, ask for one call each; after the grid they do only if one block has them all. */
int nest_ask(const dpr_nest *nest, const nest_pair *pair, nest_form form, nest_call *calls, unsigned n,
             dpr_stream stream);

/* A grid, of 66 by 2 by 2 blocks, writes 0, 1, 2... to call->in, and asks for their sum after the grid. The outcome is
 * that of the block that came last. */
int nest_ask_for_written(const dpr_nest *nest, nest_call *call, dpr_stream stream);

/* `n` threads ask for sums of I32 arrays; the continuation of each asks for it again, which is the call's result. */
int nest_ask_twice(const dpr_nest *nest, nest_call *calls, unsigned n, int64_t *sums, dpr_stream stream);

/* `n` threads ask for sums of I32 arrays; the continuation that comes last asks for the sum of these sums, as *total.
 */
int nest_ask_in_two_steps(const dpr_nest *nest, nest_call *calls, unsigned n, int64_t *sums, unsigned *arrived,
                          nest_call *total, dpr_stream stream);

/* Which of the sums that a continuation asks for are gone on from: all of them, or one, which it asks for first or last
 * of all. */
typedef enum nest_side { NEST_EVEN, NEST_DEEP_FIRST, NEST_DEEP_LAST } nest_side;

/* Each of `threads` threads asks for the sum of in[0] and in[1], and so does each continuation, `fan` times, until
 * `depth` levels are done. Adds all results up in sums[0] and counts them in sums[1]. Needs no other memory. */
int nest_go_down(const dpr_nest *nest, const int32_t *in, unsigned threads, unsigned depth, unsigned fan,
                 nest_side side, int64_t *sums, dpr_stream stream);

/* How many sums one thread asks for. */
static inline uint64_t nest_calls_below(unsigned depth, unsigned fan, nest_side side) {
    uint64_t calls = 1, of_level = 1;
    for (unsigned level = 1; level <= depth; level++) {
        of_level = side == NEST_EVEN ? of_level * fan : fan;
        calls += of_level;
    }
    return calls;
}

#ifdef __cplusplus
}
#endif

#endif
