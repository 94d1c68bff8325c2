/* What dpr bench and dpr_peers are asked for on the command line, as far as both have it. */
#ifndef DPR_TOOLS_BENCH_ASKED_H
#define DPR_TOOLS_BENCH_ASKED_H

#include <signal.h>

#include "bench_results.h"
#include "cli.h"
#include "outfile.h"

enum { AXIS_COUNTS = 1024, AXIS_SET = 64 };

/* Members of a list of at most AXIS_SET: bit i is set for member i. */
typedef uint64_t axis_set;

/* Numbers of elements, ascending, each once. */
typedef struct axis_counts {
    int n;
    uint64_t at[AXIS_COUNTS];
} axis_counts;

/* Operations, and sets of them for one pass, in the order in which they are asked for, each once. */
typedef struct axis_ops {
    int n;
    bench_ops at[AXIS_SET];
} axis_ops;

/* Sizes of the pool of pending launches, at most. */
enum { ASKED_POOLS = 16 };

typedef struct bench_asked {
    axis_counts counts;          /* n is 0: the default */
    axis_ops ops;                /* n is 0: the default */
    bench_shapes segments, axes; /* arrays with many results, of dpr bench and dpr_peers; n is 0: none */
    dpr_dtype offsets;           /* of segments */
    /* Those that are asked for: rows of dtypes.def (DPR_ROW), bench_mode (none: the default), bench_cache, and
     * strategies of this build. */
    axis_set dtypes, modes, caches, strategies;
    int strategies_named; /* 1: those that cannot run are worth a note */
    int ladder;           /* 1: all strategies of a GPU at one size; of dpr bench alone */
    int nested;           /* 1: what launches from kernels cost; of dpr bench alone, and so is what belongs to it: */
    int depth;            /* nested launches below each other, at most; 0: as many as the device is known to take */
    axis_counts pools;    /* sizes of the pool of pending launches, ASKED_POOLS at most; n is 0: the default */
    int device;
    dpr_memory memory; /* of arrays: DPR_MEMORY_AUTO, or another than the device's usual kind; not of dpr_peers */
    int block;         /* threads a block, of strategies that let it be chosen; 0: their own choice */
    double budget;     /* seconds */
    double accuracy;   /* of medians, a fraction */
    const char *commit;
    int quiet;                         /* 1: no live line and no notes */
    outfile *file;                     /* kept up to date */
    int (*show)(void *user);           /* what is on standard output after the report: an exit code; NULL: nothing */
    const volatile sig_atomic_t *stop; /* becomes the number of the signal when the measurement should end */
} bench_asked;

/* ---- Arguments of options (cli.h) ------------------------------------------------------------------------------- */

/* These return CLI_OK, or CLI_USAGE after a message. The comment has the type of *out. */

/* axis_counts: a list of counts and of ranges LOW:HIGH:xFACTOR, LOW:HIGH:+STEP, LOW:HIGH (factor 4), in the numbers of
 * cli_count(). HIGH is in the range only if a step meets it. */
int axis_parse_counts(const char *text, void *out);

/* axis_names: a set of the names name(0), name(1), ... (NULL past the end). A word is a name, a family "PREFIX.*", or
 * "all", which is every name. */
typedef struct axis_names {
    const char *(*name)(size_t i);
    axis_set *set;
} axis_names;
int axis_take_names(const char *text, void *names);

static inline axis_set axis_one(int member) {
    return UINT64_C(1) << member;
}

static inline int axis_has(axis_set set, size_t member) {
    return member < AXIS_SET && (set >> member & 1);
}

/* How many members a set has, and its first, which there must be. */
static inline int axis_members(axis_set set) {
    return __builtin_popcountll(set);
}
static inline int axis_first(axis_set set) {
    return __builtin_ctzll(set);
}

/* Makes `member` the only one of a set that is empty. */
static inline void axis_default(axis_set *set, int member) {
    *set = *set ? *set : axis_one(member);
}

/* double: a time: 60s, 1.5m, 1h, 500ms; without a unit, seconds. More than 0. */
int axis_parse_seconds(const char *text, void *out);

/* double: a share: 1%, 0.5%; without a sign also percent. More than 0, at most 100. *out is a fraction. */
int axis_parse_share(const char *text, void *out);

/* axis_ops: operations, sets such as "sum+var", or "all" operations. */
int asked_take_ops(const char *text, void *out);

/* Adds an item that is not there yet. CLI_OK, or CLI_USAGE after a message if there is no room. */
int axis_add_ops(axis_ops *a, const bench_ops *ops);

/* Makes SUM the only item of a list that is empty. */
void asked_default_op(axis_ops *a);

/* dpr_dtype: a type of offsets. */
int asked_take_offsets(const char *text, void *out);

/* Array i with many results, of those that are asked for; NULL past the end. */
const bench_shape *asked_shape(const bench_asked *a, int i);

/* "--segments" or "--axes", which asks for them; NULL: neither does. */
const char *asked_shape_option(const bench_asked *a);

/* Whether they can be measured: CLI_OK, or CLI_USAGE after a message. */
int asked_check_shapes(const bench_asked *a);

/* axis_set: names of bench_cache; also "both". */
int asked_take_caches(const char *text, void *out);

/* bench_asked: its strategies. */
int asked_take_strategies(const char *text, void *asked);

/* axis_counts: sizes of the pool of pending launches. */
int asked_take_pools(const char *text, void *out);

/* ---- The program ------------------------------------------------------------------------------------------------ */

/* Whether the measurement should end. */
static inline int asked_stopped(const bench_asked *a) {
    return a->stop && *a->stop;
}

/* Lets the first SIGINT, SIGTERM or SIGHUP set *a->stop; the second has its usual effect. An ignored SIGHUP stays so.
 */
void asked_catch_signals(bench_asked *a);

/* Has measure(user) fill *results, writes the report to a->file, calls a->show(user), and frees the results, with
 * asked_catch_signals(). Returns the exit code, for which measure() and a->show() return their parts. */
int asked_run(bench_asked *a, bench_results *results, int (*measure)(void *user), void *user);

#endif
