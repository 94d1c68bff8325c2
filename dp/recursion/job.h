/* A run of a recursion on the GPU, on the host: sizes, memory, launch and report (job.c), for the engines. */
#ifndef DPR_DP_JOB_H
#define DPR_DP_JOB_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "apart.h"
#include "engines.h"
#include "strategy.h"

/* Tasks for which one warp has room if few are to be expected: more than that, because similar runs have other numbers
 * of tasks. */
enum { DPR_TINY_NODES = 1024 };

/* Where the parts of a run's workspace begin, and its size. */
typedef struct dpr_job_layout {
    size_t block, roots, out, sums, spans, chunks, nodes, bytes;
} dpr_job_layout;

/* What a launch of a run needs. `in` of the run points to it. */
typedef struct dpr_job {
    const dpr_recursion_call *call;
    dpr_recursion_args args; /* all but pointers */
    dpr_job_layout at;
    unsigned threads;    /* a block */
    unsigned blocks;     /* an SM */
    size_t shared_bytes; /* a block */
    int roots_on_host, out_on_host;
    int at_once;       /* 1: the first warp of one block tries to solve the roots, without a workspace */
    int unsolved;      /* 1: it tried in vain, and nothing is written */
    void *results;     /* host memory for results that fit no mailbox, or NULL */
    void *spans;       /* host memory for args.most_spans spans, or NULL */
    void *function;    /* CUfunction: the policy's kernel of a run that is enqueued; NULL: launch() finds it */
    void *condition;   /* CUfunction: the kernel that ends the loop of phases (loop.h), or NULL */
    dpr_apart apart;   /* what its launches are */
    int begun;         /* 1: dpr_apart_end() ends it. 0: it is a graph that must not launch itself */
    unsigned launches; /* by the host */
    double began;      /* dpr_recursion_now() before the launches */
    int is_given_up;   /* 1: kernels of it may be in flight for ever */
} dpr_job;

/* Why no engine of the GPU can run the call, as a clause; NULL if some may. */
const char *dpr_job_refusal(const dpr_recursion_call *call);

/* Returns the status of a call that found or launched the policy's kernels. If CUDA had none for the device, this is
 * DPR_ERR_STRATEGY_UNABLE, with a sentence that says so. */
dpr_status dpr_job_explain(const dpr_recursion_call *call, dpr_status status);

/* Finds out whether kernels reach roots and results. */
dpr_status dpr_job_places(dpr_job *job);

/* Bytes of shared memory besides stacks of a block that works on phases: a word of its own, and its team's memory. */
size_t dpr_job_fixed_bytes(const dpr_recursion *recursion);

/* Chooses lanes and stacks for blocks of at most `most_threads` threads and `shared` bytes of shared memory, of which
 * stacks get what is left of `fixed`. Policies with teams have blocks of all these threads, and one lane. Returns 0 if
 * a task's children do not fit, otherwise the threads a block. Sets *slots. */
unsigned dpr_job_threads(const dpr_recursion *recursion, unsigned most_threads, size_t shared, size_t fixed,
                         unsigned *slots);

/* Whether so few tasks are to be expected that one block solves them sooner than a grid whose blocks wait for each
 * other. */
int dpr_job_is_small(const dpr_job *job);

/* Whether they are so few that one warp solves them sooner than a block, and neither roots nor results need memory. */
int dpr_job_is_tiny(const dpr_job *job);

/* Sets sizes, given threads and args.slots. `fixed` as above. */
void dpr_job_size(dpr_job *job, size_t fixed);

/* Completes the arguments of a run, and copies roots from the host. */
cudaError_t dpr_job_begin(const dpr_run *run, const dpr_job *job, dpr_recursion_args *args);

/* Puts a kernel into the run's stream, with `params` as its parameters. */
cudaError_t dpr_job_launch(const dpr_run *run, const dpr_job *job, void *function, unsigned blocks, int cooperative,
                           void **params);

/* Whether the run's outcome is in the mailbox. */
int dpr_job_has_ended(const dpr_run *run);

/* Waits until the outcome is in the mailbox, or nothing is left to do in the stream. Gives up, with cudaErrorNotReady,
 * if the call has a limit of time and kernels have had twice as long, and a second. */
cudaError_t dpr_job_await(const dpr_run *run, const dpr_job *job);

/* Waits until nothing of the run is in flight. */
cudaError_t dpr_job_wait(const dpr_run *run);

/* Copies results that fit no mailbox, and spans, to the host. Returns the error of the first copy, after which nothing
 * of the run is in flight unless it is given up. */
cudaError_t dpr_job_end(const dpr_run *run, const dpr_job *job, const dpr_recursion_args *args);

/* Runs the job as a strategy that is in no list. Writes results and report, unless job->unsolved is set. */
dpr_status dpr_job_run(dpr_job *job, const dpr_strategy *strategy, dpr_recursion_report *report);

/* Finds the kernels of a run that is enqueued, because a stream may be being captured when they are launched: calls
 * `load` in the device's home. */
dpr_status dpr_job_load(dpr_job *job, cudaError_t (*load)(dpr_job *));

/* Enqueues the job as a strategy that is in no list, with memory that belongs to the stream, or to the graph that is
 * being captured. Kernels write `outcome`. */
dpr_status dpr_job_enqueue(const dpr_job *job, const dpr_strategy *strategy, dpr_recursion_outcome *outcome);

/* Enqueues an outcome of zeros, for a call without roots. */
dpr_status dpr_job_enqueue_nothing(const dpr_recursion_call *call, dpr_recursion_outcome *outcome);

/* Bytes of the workspace: a strategy's workspace_bytes(). */
size_t dpr_job_workspace_bytes(const dpr_run *run);

#endif
