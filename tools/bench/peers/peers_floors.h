/* What dpr has to reach beside CUB, and whether it did. Pure. */
#ifndef DPR_PEERS_FLOORS_H
#define DPR_PEERS_FLOORS_H

#include "peers_results.h"

typedef enum floor_kind {
    FLOOR_RATIO,  /* CUB's time over dpr's: at least */
    FLOOR_RATE,   /* TB/s of the array: at least */
    FLOOR_TIME,   /* microseconds of a call: at most */
    FLOOR_GROWTH, /* time per element over that at half the elements: at most */
    FLOOR_KINDS
} floor_kind;

/* A bound on all counts from `low` to `high`. */
typedef struct floor_rule {
    dpr_op op;
    dpr_dtype dtype;
    bench_mode mode;
    bench_cache cache;
    uint64_t low, high;
    floor_kind kind;
    double bound;
} floor_rule;

/* Rule i; 0, or -1 past the last. */
int floors_rule(size_t i, floor_rule *out);

/* Whether some rule needs the case. */
int floors_want(const bench_case *at);

typedef struct floor_verdict {
    int counts, missed; /* counts that were measured, and those of them that miss the bound */
    int failed;         /* of the missed: dpr or CUB failed or gave wrong results there */
    double worst;       /* of those that did not fail; 0 if there are none */
    uint64_t worst_count;
    double low, high; /* FLOOR_RATIO: the interval of `worst` */
} floor_verdict;

floor_verdict floors_judge(const floor_rule *rule, const bench_results *r);

/* "CUB/dpr", "TB/s", "us", "growth". Static storage. */
const char *floors_kind_text(floor_kind kind);

/* How all rules came out. */
typedef struct floors_tally {
    int held, missed, unmeasured;
} floors_tally;

floors_tally floors_count(const bench_results *r);

#endif
