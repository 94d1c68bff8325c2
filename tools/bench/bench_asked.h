/* What dpr bench and dpr_peers are asked for on the command line, as far as both have it. */
#ifndef DPR_TOOLS_BENCH_ASKED_H
#define DPR_TOOLS_BENCH_ASKED_H

#include <signal.h>

#include "bench_axes.h"
#include "cli.h"
#include "outfile.h"

enum { ASKED_POOLS = 16 };

typedef struct bench_asked {
    axis_counts counts; /* n is 0: the default */
    /* in[i] is 1 for those that are asked for: numbers of ops.def, dtypes.def, bench_mode (none: the default),
     * bench_cache, and strategies of this build. */
    unsigned char ops[AXIS_SET], dtypes[AXIS_SET], modes[AXIS_SET], caches[AXIS_SET], strategies[AXIS_SET];
    int strategies_named; /* 1: those that cannot run are worth a note */
    int ladder;           /* 1: all strategies of a GPU at one size; of dpr bench alone */
    int nested;           /* 1: what launches from kernels cost; of dpr bench alone, and so is what belongs to it: */
    int depth;            /* nested launches below each other, at most; 0: as many as the device is known to take */
    int pool_count;       /* 0: the default */
    uint64_t pools[ASKED_POOLS]; /* sizes of the pool of pending launches, in the order given */
    int device;
    int block;       /* threads a block, of strategies that let it be chosen; 0: their own choice */
    double budget;   /* seconds */
    double accuracy; /* of medians, a fraction */
    const char *commit;
    int quiet;                         /* 1: no live line and no notes */
    outfile *file;                     /* kept up to date */
    const volatile sig_atomic_t *stop; /* becomes the number of the signal when the measurement should end */
} bench_asked;

/* Sets of names as options (cli.h) for members of it, which are arrays of AXIS_SET. */
int asked_take_ops(const char *text, void *in);
int asked_take_dtypes(const char *text, void *in);
int asked_take_modes(const char *text, void *in);
int asked_take_caches(const char *text, void *in); /* also "both" */

/* Options for a bench_asked: strategies, and sizes of the pool of pending launches. */
int asked_take_strategies(const char *text, void *asked);
int asked_take_pools(const char *text, void *asked);

/* Whether calls in a graph with a cold cache are all that is asked for, or nothing is, which leaves that open. */
int asked_is_cold_graph(const bench_asked *a);

/* The first SIGINT or SIGTERM from here on sets *a->stop; the second has its usual effect. */
void asked_catch_signals(bench_asked *a);

#endif
