/* What dpr_peers has measured. Pure. */
#ifndef DPR_PEERS_RESULTS_H
#define DPR_PEERS_RESULTS_H

#include "bench_results.h"

/* The subjects that others are compared with each other. */
#define PEERS_OURS "dpr"
#define PEERS_CUB "cub"

/* One subject at one case. */
typedef struct peers_row {
    bench_row row;       /* `strategy` is the subject's name */
    const char *ran;     /* of dpr's subjects: the strategy that ran. Static storage; NULL for peers */
    bench_summary ratio; /* of a peer: its time over that of PEERS_OURS, from the rounds that both were in; n is 0 where
                            there is none */
} peers_row;

typedef struct peers_results {
    bench_results common; /* all but the rows, which are not used */
    peers_row *rows;      /* those of one case come one after another */
    size_t count;
    char cub[32], cublas[32]; /* versions; "": not measured, or not in this build */
    const char *ended;        /* why it ended before all was measured; NULL: it did not */

    /* Private. */
    size_t room;
} peers_results;

/* Room for one more; NULL when out of memory. */
peers_row *peers_add_row(peers_results *r);
void peers_free(peers_results *r);

/* Rows from `first` on that are of the same case, and of the same operation, type, mode and cache. */
size_t peers_case_rows(const peers_results *r, size_t first);
size_t peers_table_rows(const peers_results *r, size_t first);

/* The row of a subject at a case; NULL if there is none. */
const peers_row *peers_find(const peers_results *r, const bench_case *at, const char *subject);

/* Whether the row has a time and all its results were right. */
int peers_good(const peers_row *row);

/* Rows that failed or had wrong results. */
size_t peers_bad(const peers_results *r);

#endif
