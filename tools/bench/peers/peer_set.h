/* What is timed at a case, as the timing engine's subjects: dpr, and its peers. */
#ifndef DPR_PEERS_PEER_SET_H
#define DPR_PEERS_PEER_SET_H

#include <cuda_runtime_api.h>

#include "bench_walk.h"
#include "peer_kernels.h"
#include "peers_report.h"

/* Whose subjects are timed next to dpr's. */
typedef enum peer_group {
    PEER_CUB,
    PEER_CUBLAS,
    PEER_COPY,
    PEER_LAUNCH,
    PEER_CUSPARSE, /* of segments alone */
    PEER_GROUPS
} peer_group;

/* "cub", "cublas", "copy", "launch", "cusparse"; NULL past the end. Static storage. */
const char *peer_group_name(size_t group);

/* Bytes of memory that libraries may use: for CUB a hundred times what it needs on an H200, a partial result for each
 * block; for cuBLAS what it recommends on devices of compute capability 9.0. */
enum { PEER_CUB_SCRATCH = 16 << 20, PEER_CUBLAS_SCRATCH = 32 << 20 };

typedef struct peer_set peer_set;
typedef struct peer_routine peer_routine; /* of cuBLAS */

/* One subject: the callbacks' `user`. */
typedef struct peer {
    bench_caller caller; /* its strategy is NULL for peers */
    peer_set *set;

    dpr_plan *plan;                    /* dpr's */
    peers_cub_call *reduce;            /* CUB's */
    const peer_routine *routine;       /* cuBLAS's */
    peers_cub_segments_call *segments; /* CUB's, for segments and for keys */
    peers_cub_by_key_call *by_key;
    peers_cub_axes_call *reduce_axes; /* CUB's, along axes */
    peers_axes axes;
} peer;

struct peer_set {
    bench_walk *walk;       /* from case to case; its `user` is the set */
    peers_results *results; /* for the libraries' versions */
    axis_set groups;        /* those of peer_group that are asked for */

    /* Subjects of the case. */
    peer peers[BENCH_SUBJECTS];

    /* What they share. */
    cudaStream_t stream; /* of the peers' blocking calls */
    void *cub_scratch, *cublas_scratch;
    void *result;  /* device memory for a result */
    void *mailbox; /* pinned memory for one */
    unsigned char *copies;
    size_t copies_bytes, copies_at;
    cudaFunction_t kernel;        /* the launch's */
    int programmatic;             /* 1: it may be launched ahead of the work before it */
    struct cublasContext *cublas; /* NULL: none */
    cudaStream_t cublas_stream;   /* that it works in */
    struct peer_sparse *sparse;   /* cuSPARSE; NULL: none */
    int32_t *keys, *unique_keys;  /* device memory: of the case's elements and segments */
    void *ones;                   /* device memory: as many as a result has elements, and a zero behind them */
};

/* Allocates what subjects share, on the device of the walk's context, which becomes the current one. Copies of the
 * largest array need half of that, and get at most an eighth of the device's memory.
 *
 * 0, or -1. peer_set_close() is due in any case, before walk_close(). */
int peer_set_open(peer_set *s, char why[BENCH_WHY]);
void peer_set_close(peer_set *s);

/* Makes the subjects of the walk's case: bench_walk.prepare. The first is the planner's choice; it, the strategies that
 * are asked for, and the peers have all that they need allocated. */
int peer_set_prepare(bench_walk *w, char why[BENCH_WHY]);

/* ---- For the files that add subjects ---------------------------------------------------------------------------- */

/* Adds a subject of the case, whose results, if it has any, are checked against what the walk expects. There is always
 * room for those of peers. */
peer *peer_add(peer_set *s, bench_subject subject);

/* Takes note of an error. Returns it as a callback does. */
int peer_note(peer *p, cudaError_t error);

/* Waits for the stream of the peers' blocking calls after a call that returned `code`. Returns the first error. */
int peer_wait(peer *p, int code);

/* 0, or -1 with what the error is of, and its text. */
int peer_check(cudaError_t error, const char *what, char why[BENCH_WHY]);

/* Has *at be device memory with `bytes` of the host's memory `from`, or zeros if that is NULL. What was there is freed.
 * 0, or -1 after a note; *at is NULL then. */
int peer_memory(void **at, size_t bytes, const void *from);

/* A group of subjects. */
typedef struct peer_group_calls {
    int (*open)(peer_set *s, char why[BENCH_WHY]); /* makes what its subjects share, notes the version: 0, or -1 */
    void (*add)(peer_set *s);                      /* adds what there is for the case, if there is anything */
    void (*add_segments)(peer_set *s);             /* the same for a case with segments; NULL: there is nothing */
    void (*add_axes)(peer_set *s);                 /* the same for one along axes */
    void (*close)(peer_set *s);                    /* NULL: there is nothing to do */
} peer_group_calls;

extern const peer_group_calls peer_cub, peer_cublas, peer_launch, peer_cusparse;

/* CUB's for segments and for runs of keys, and dpr's for these; and CUB's along axes. */
void peer_cub_segments(peer_set *s);
void peer_cub_axes(peer_set *s);

#endif
