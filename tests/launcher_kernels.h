/* Kernels that ask for reductions (dpr_nested.cuh), for test_gpu_launcher.c. In builds with CUDA. */
#ifndef DPR_TESTS_LAUNCHER_KERNELS_H
#define DPR_TESTS_LAUNCHER_KERNELS_H

#include "dpr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As dpr::outcome. */
typedef enum launcher_outcome { LAUNCHER_LAUNCHED, LAUNCHER_IN_LINE, LAUNCHER_LEFT, LAUNCHER_WAITING } launcher_outcome;

/* A reduction that a kernel asks for, in device memory. */
typedef struct launcher_call {
    const void *in; /* device memory */
    uint64_t count;
    uint64_t result[2]; /* room for one of any type */
    uint32_t outcome;   /* launcher_outcome */
    uint32_t followed;  /* continuations that found the result that they were told */
    uint32_t misled;    /* and that found another */
    unsigned ticket;    /* 0 before the call, and after it */
} launcher_call;

typedef enum launcher_form { LAUNCHER_AT_ONCE, LAUNCHER_AFTER_GRID } launcher_form;

/* The pairs of operation and type there are kernels for, with what they do with NaN. */
typedef struct launcher_pair {
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
} launcher_pair;

const launcher_pair *launcher_pairs(size_t *count);

/* Each enqueues one kernel and returns the cudaError_t of the launch. */

/* `n` threads, in blocks of 128, ask for one call each; after the grid they do only if one block has them all. */
int launcher_ask(const dpr_launcher *launcher, const launcher_pair *pair, launcher_form form, launcher_call *calls,
                 unsigned n, dpr_stream stream);

/* A grid, of 66 by 2 by 2 blocks, writes 0, 1, 2... to call->in, and asks for their sum after the grid. The outcome is
 * that of the block that came last. */
int launcher_ask_for_written(const dpr_launcher *launcher, launcher_call *call, dpr_stream stream);

/* `n` threads ask for sums of I32 arrays; the continuation of each asks for it again, which is the call's result. */
int launcher_ask_twice(const dpr_launcher *launcher, launcher_call *calls, unsigned n, int64_t *sums,
                       dpr_stream stream);

/* `n` threads ask for sums of I32 arrays; the continuation that comes last asks for the sum of these sums, as *total.
 */
int launcher_ask_in_two_steps(const dpr_launcher *launcher, launcher_call *calls, unsigned n, int64_t *sums,
                              unsigned *arrived, launcher_call *total, dpr_stream stream);

/* Which of the sums that a continuation asks for are gone on from: all of them, or one, which it asks for first or last
 * of all. */
typedef enum launcher_side { LAUNCHER_EVEN, LAUNCHER_DEEP_FIRST, LAUNCHER_DEEP_LAST } launcher_side;

/* Each of `threads` threads asks for the sum of in[0] and in[1], and so does each continuation, `fan` times, until
 * `depth` levels are done. Adds all results up in sums[0] and counts them in sums[1]. Needs no other memory. */
int launcher_go_down(const dpr_launcher *launcher, const int32_t *in, unsigned threads, unsigned depth, unsigned fan,
                     launcher_side side, int64_t *sums, dpr_stream stream);

/* How many sums one thread asks for. */
static inline uint64_t launcher_calls_below(unsigned depth, unsigned fan, launcher_side side) {
    uint64_t calls = 1, of_level = 1;
    for (unsigned level = 1; level <= depth; level++) {
        of_level = side == LAUNCHER_EVEN ? of_level * fan : fan;
        calls += of_level;
    }
    return calls;
}

#ifdef __cplusplus
}
#endif

#endif
