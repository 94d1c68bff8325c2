/* What is timed at a case, as the timing engine's subjects: dpr, and its peers. */
#ifndef DPR_PEERS_PEER_SET_H
#define DPR_PEERS_PEER_SET_H

#include <cuda_runtime_api.h>

#include "bench_axes.h"
#include "bench_caller.h"
#include "cub.h"

/* Whose subjects come along, beside dpr's. */
typedef enum peer_group { PEER_CUB, PEER_CUBLAS, PEER_COPY, PEER_LAUNCH, PEER_GROUPS } peer_group;

/* "cub", "cublas", "copy", "launch"; NULL past the end. Static storage. */
const char *peer_group_name(size_t group);

typedef struct peer_set peer_set;
typedef struct peer_cublas peer_cublas;
typedef struct peer_routine peer_routine; /* of cuBLAS */

/* One subject: the callbacks' `user`. */
typedef struct peer {
    bench_caller caller; /* its strategy is NULL for peers */
    peer_set *set;

    /* dpr's. */
    dpr_plan *plan;
    /* CUB's. */
    peers_cub_call *reduce;
    size_t scratch_bytes;
    /* cuBLAS's. */
    const peer_routine *routine;
    /* The launch's. */
    cudaFunction_t kernel;
    int programmatic;
} peer;

struct peer_set {
    /* Subjects of the case. */
    int n;
    bench_subject subjects[BENCH_SUBJECTS];
    peer peers[BENCH_SUBJECTS];
    bench_case at;
    const known *known;    /* what the buffers hold */
    known_result expected; /* of what is added next */

    /* What they share. */
    dpr_ctx *ctx;
    unsigned char strategies[AXIS_SET], groups[AXIS_SET];
    cudaStream_t stream; /* of the peers' blocking calls */
    void *scratch;       /* CUB's temporary storage */
    size_t scratch_bytes;
    void *result;  /* device memory for a result */
    void *mailbox; /* pinned memory for one */
    unsigned char *copies;
    size_t copies_bytes, copies_at;
    peer_cublas *cublas; /* NULL: none */
};

/* Allocates what subjects share, on the context's device, which becomes the current one.
 *
 * @param strategies  in[i] is 1 for those of dpr that come along, beside the planner's choice.
 * @param groups      the same, of peer_group.
 * @param largest     bytes of the largest array: copies of it need half of that, and get at most an eighth of the
 *                    device's memory.
 *
 * 0, or -1. peer_set_close() is due in any case; the context must outlive the set. */
int peer_set_open(peer_set *s, dpr_ctx *ctx, const unsigned char strategies[AXIS_SET],
                  const unsigned char groups[AXIS_SET], size_t largest, char why[BENCH_WHY]);
void peer_set_close(peer_set *s);

/* Makes the subjects of a case, whose buffers hold `data`, of which the result is `expected`: the first is PEERS_OURS.
 * All that they need is allocated. 0, or -1. */
int peer_set_at(peer_set *s, const bench_case *at, const known *data, const known_result *expected,
                char why[BENCH_WHY]);

/* ---- For the files that add subjects ---------------------------------------------------------------------------- */

/* A subject of the case whose results are checked against `expected`, and that has no callbacks for calls yet; NULL
 * where there is no room. */
bench_subject *peer_add(peer_set *s, const char *name);

/* Whether calls of the case are blocking. */
int peer_is_blocking(const peer_set *s);

/* Takes note of an error. Returns it as a callback does. */
int peer_note(peer *p, cudaError_t error);

/* Peers may round as they like: results may be off by so many times what pairwise summation may, which is still far
 * less than a missing tile. */
#define PEER_SLACK 16

/* Each adds what there is for the case, and nothing if there is nothing. 0, or -1. */
int peer_add_cub(peer_set *s, char why[BENCH_WHY]);
int peer_add_cublas(peer_set *s, char why[BENCH_WHY]);
int peer_add_copy(peer_set *s, char why[BENCH_WHY]);
int peer_add_launch(peer_set *s, char why[BENCH_WHY]);

/* "" where this build has no cuBLAS. 0, or -1. */
int peer_cublas_open(peer_set *s, char why[BENCH_WHY]);
void peer_cublas_close(peer_set *s);
void peer_cublas_version(const peer_set *s, char text[32]);
void peer_cub_version(char text[32]);

#endif
