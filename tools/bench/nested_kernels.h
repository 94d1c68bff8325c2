/* The kernels whose launches are timed (nested.cu, nested_graphs.cu), and what they take. */
#ifndef DPR_BENCH_NESTED_KERNELS_H
#define DPR_BENCH_NESTED_KERNELS_H

/* What the kernels of one run leave in device memory. */
typedef struct bench_account {
    unsigned ran;    /* launches that came to their end */
    int error;       /* cudaError_t of the first that failed */
    unsigned wanted; /* set by the host: how often a graph shall run that launches itself */
} bench_account;

/* The streams of a kernel. */
typedef enum bench_nested_stream { BENCH_FORGET, BENCH_BLOCK_STREAM, BENCH_TAIL } bench_nested_stream;

/* bench_nested_chain: a kernel of one thread that launches itself `left` times, each from within the one before. */
typedef struct bench_chain_args {
    bench_account *account;
    unsigned adds; /* to `ran`, by the last one */
    unsigned left;
    bench_nested_stream stream;
} bench_chain_args;

/* bench_nested_fan: each block, of one thread, launches `each` kernels. */
typedef struct bench_fan_args {
    bench_account *account;
    unsigned each;
    bench_nested_stream stream;
} bench_fan_args;

/* bench_graph_launch: a kernel of one thread, in a graph, that launches graphs. */
typedef struct bench_graph_args {
    bench_account *account;
    const void *graphs; /* device memory with `count` handles, cudaGraphExec_t, of graphs that were uploaded */
    unsigned count;
} bench_graph_args;

#endif
