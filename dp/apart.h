/* Nested launches and graphs that launch themselves, kept apart in a process. On an H100 (driver 580, CUDA 13.0) they
 * do not go together: with runs of the engines `graph` and `naive` in four streams, the context was lost to
 * cudaErrorLaunchFailure within two seconds, and no kernel had raised an exception. 17 700 runs of `graph` alone, and
 * 100 000 of `naive` and `host`, did not fail. */
#ifndef DPR_DP_APART_H
#define DPR_DP_APART_H

/* Kinds of runs. A run of DPR_APART_NONE waits for nobody, and nobody waits for it. */
typedef enum dpr_apart { DPR_APART_NONE, DPR_APART_NESTED, DPR_APART_GRAPH, DPR_APART_KINDS } dpr_apart;

/* How dpr_apart_begin() ended. */
typedef enum dpr_apart_turn {
    DPR_APART_REFUSED, /* a graph must not launch itself: nested launches may be pending at any time */
    DPR_APART_BEGUN,   /* the run may make its launches */
    DPR_APART_LATE     /* its turn did not come in time */
} dpr_apart_turn;

/* Begins a run. Waits at most `seconds` for its turn: until no run of the other kind is in flight, and none waits whose
 * turn comes first. The kinds take turns, so no kind keeps the other out by going on and on. dpr_apart_end() is for
 * runs that have begun, when all their launches are done. */
dpr_apart_turn dpr_apart_begin(dpr_apart kind, double seconds);
void dpr_apart_end(dpr_apart kind);

/* Whether no run of either kind is in flight, or waits for its turn. */
int dpr_apart_is_quiet(void);

/* From now on nested launches may be pending at any time, because nobody says when they are done. Waits for graphs. */
void dpr_apart_nested_forever(void);

/* The same for a run that is about to make up to `launches` nested launches, where the caller must not wait. Returns
 * how many it may make: none while a graph runs. */
unsigned dpr_apart_launches(unsigned launches);

#endif
