/* What dpr bench and dpr_peers are asked for on the command line, as far as both have it. */
#ifndef DPR_TOOLS_BENCH_ASKED_H
#define DPR_TOOLS_BENCH_ASKED_H

#include <signal.h>

#include "bench_results.h"
#include "cli.h"
#include "outfile.h"

enum { AXIS_COUNTS = 1024, AXIS_SET = 64 };

/* Numbers of elements, ascending, each once. */
typedef struct axis_counts {
    int n;
    uint64_t at[AXIS_COUNTS];
} axis_counts;

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

/* ---- Arguments of options (cli.h) ------------------------------------------------------------------------------- */

/* These return CLI_OK, or CLI_USAGE after a message. The comment has the type of *out. */

/* axis_counts: a list of counts and of ranges LOW:HIGH:xFACTOR, LOW:HIGH:+STEP, LOW:HIGH (factor 4), in the numbers of
 * cli_count(). HIGH is in the range only if a step meets it. */
int axis_parse_counts(const char *text, void *out);

/* A set of the names name(0), name(1), ... (NULL past the end, at most AXIS_SET): in[i] is 1 for those in the list. A
 * word is a name, a family "PREFIX.*", or "all", which is every name. */
int axis_parse_set(const char *text, const char *(*name)(size_t i), unsigned char in[AXIS_SET]);

/* Makes `member` the only one of a set that is empty. */
void axis_default(unsigned char in[AXIS_SET], int member);

/* How many members a set has, and its first, which there must be. */
int axis_members(const unsigned char in[AXIS_SET]);
int axis_first(const unsigned char in[AXIS_SET]);

/* double: a time: 60s, 1.5m, 1h, 500ms; without a unit, seconds. More than 0. */
int axis_parse_seconds(const char *text, void *out);

/* double: a share: 1%, 0.5%; without a sign also percent. More than 0, at most 100. *out is a fraction. */
int axis_parse_share(const char *text, void *out);

/* Sets of names as options (cli.h) for members of it, which are arrays of AXIS_SET. */
int asked_take_ops(const char *text, void *in);
int asked_take_dtypes(const char *text, void *in);
int asked_take_modes(const char *text, void *in);
int asked_take_caches(const char *text, void *in); /* also "both" */

/* Options for a bench_asked: strategies, and sizes of the pool of pending launches. */
int asked_take_strategies(const char *text, void *asked);
int asked_take_pools(const char *text, void *asked);

/* ---- What is asked for ------------------------------------------------------------------------------------------- */

/* Whether calls in a graph with a cold cache are all that is asked for, or nothing is, which leaves that open. */
int asked_is_cold_graph(const bench_asked *a);

/* Has measure(user) fill *results, writes the report to a->file, and frees the results. The first SIGINT or SIGTERM
 * sets *a->stop; the second has its usual effect. Returns the exit code, for which measure() returns its part. */
int asked_run(bench_asked *a, bench_results *results, int (*measure)(void *user), void *user);

#endif
