/* What a process has on a device to time launches with (nested.c): kernels, graphs, and an account of what ran. */
#ifndef DPR_BENCH_NESTED_STAGE_H
#define DPR_BENCH_NESTED_STAGE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "nested.h"
#include "nested_kernels.h"

/* Launches of a time, more and fewer. In one run of its own graph a kernel may launch 120 graphs that it forgets (CUDA
 * programming guide). */
enum { STAGE_MORE = 72, STAGE_FEWER = 8 };

/* Of a fan-out: blocks at most, and launches from each, more and fewer. */
enum { STAGE_BLOCKS = 64, STAGE_EACH_MORE = 8, STAGE_EACH_FEWER = 1 };

typedef struct bench_stage {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    uint64_t *ticks;        /* of bench_launch_clock() */
    bench_account *account; /* device memory */
    bench_account *seen;    /* pinned: what the account is set to, and what is found in it */
    uint64_t lead_cycles;   /* of the work ahead; grows where the host is slower */
    unsigned expected;      /* launches of the last run that the account counts */
    unsigned length;        /* of a chain of kernels: STAGE_MORE, or half of the pool if that is less */
    unsigned blocks;        /* of fan-outs; 0: the pool is too small */
    int hung;               /* 1: the device has not ended its work in time */
    char no_nesting[160];   /* why kernels launch none; "": they do */
    CUfunction chain, fan, nothing, leaf, launcher, again;
    cudaGraphExec_t nodes[2], launchers[2]; /* [1] is of STAGE_MORE, [0] of STAGE_FEWER */
    cudaGraphExec_t single, repeated, leaves[STAGE_MORE];
    cudaGraphExec_t *handles; /* `leaves` in device memory */
    const char *step;         /* what fails if something does */
} bench_stage;

/* Opens the device with all but what launches from kernels need. What it has is due to stage_close() in any case. */
cudaError_t stage_open(bench_stage *s, const bench_costs_asked *asked, bench_costs *out);

/* Settles how many launches fit the pool, loads the kernels that launch kernels, runs the first, and finds out what
 * both have taken; or sets `no_nesting`. */
void stage_start_nesting(bench_stage *s, bench_costs *out);

/* Loads the kernels of graphs. */
cudaError_t stage_load_graph_kernels(bench_stage *s);

/* After a hang all of it stays with the process. */
void stage_close(bench_stage *s);

/* Waits until the stream is idle, for so long as the device may take. */
cudaError_t stage_wait(bench_stage *s);

/* Enqueue setting the account to nothing, and `wanted`; and its copy to `seen`. */
cudaError_t stage_set_account(bench_stage *s, unsigned wanted);
cudaError_t stage_read_account(bench_stage *s);

/* What an error, or else the account, says of the last run: 0, or -1 with the reason. */
int stage_blame(const bench_stage *s, cudaError_t error, char *why, size_t size);

/* ---- Launches: each enqueues so many ---------------------------------------------------------------------------- */

cudaError_t stage_nothing(bench_stage *s, unsigned times); /* kernels, by the host */
cudaError_t stage_tail_chain(bench_stage *s, unsigned length);
cudaError_t stage_forget_chain(bench_stage *s, unsigned length);
cudaError_t stage_forget_fan(bench_stage *s, unsigned each);
cudaError_t stage_block_fan(bench_stage *s, unsigned each);
cudaError_t stage_tail_fan(bench_stage *s, unsigned each);
cudaError_t stage_nodes(bench_stage *s, unsigned nodes); /* of one graph */
cudaError_t stage_graphs(bench_stage *s, unsigned times);
cudaError_t stage_device_graphs(bench_stage *s, unsigned graphs);
cudaError_t stage_repeated_graph(bench_stage *s, unsigned times);

/* The graphs that the last four need. */
cudaError_t stage_make_nodes(bench_stage *s);
cudaError_t stage_make_single(bench_stage *s);
cudaError_t stage_make_device_graphs(bench_stage *s);
cudaError_t stage_make_repeated_graph(bench_stage *s);

#endif
