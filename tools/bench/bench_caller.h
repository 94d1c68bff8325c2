/* Calls of dpr as subjects of the timing engine. */
#ifndef DPR_TOOLS_BENCH_CALLER_H
#define DPR_TOOLS_BENCH_CALLER_H

#include "bench_known.h"
#include "bench_results.h"
#include "bench_shaped.h"

/* The name of callers that leave the choice to the planner where nothing tells what it chooses: in arrays with many
 * results. */
#define CALLER_PLANNER "planner"

/* A subject at a case: the callbacks' `user` is one, or begins with one. */
typedef struct bench_caller {
    dpr_ctx *ctx;
    bench_ops ops;
    dpr_dtype dtype;
    size_t count;
    dpr_memory memory;        /* of the array */
    const shape_array *array; /* with many results, all in one call; NULL: one array with one result */
    dpr_options options;
    dpr_launch_options launch; /* goes with `options` */
    known_results expected;
    const char *strategy; /* of dpr that runs; NULL: another library's subject. Static storage */
    int chosen;           /* 1: it is the planner's choice */
    int reads_nothing;    /* 1: it has no rate */
    int unable;           /* 1: a call failed because the strategy cannot run it */
    /* 1: calls leave counters of nested launches behind their result, from where they come to `kernels`. The kernels
     * write them anyway, elsewhere, so calls take no longer for it. */
    int counts_launches;
    bench_kernels kernels;
    char why[256]; /* of a call that failed */
} bench_caller;

/* A caller of dpr at the case, by the strategy of that name; NULL: by the planner's choice. */
bench_caller caller_at(dpr_ctx *ctx, const bench_case *at, const char *strategy);

/* The calls have `block` threads a block, if their strategy, which was named, lets that be chosen; 0 changes nothing.
 */
void caller_set_block(bench_caller *c, int block);

/* Plans the caller's calls and sets its strategy. The plan is for the caller of this function to destroy; NULL: none is
 * wanted. DPR_OK, or an error of dpr_plan_create(). */
dpr_status caller_plan(bench_caller *c, dpr_plan **out);

/* Sets the caller's strategy to the one that runs calls of this mode. DPR_OK, or the error of such calls. */
dpr_status caller_choose(bench_caller *c, bench_mode mode);

/* The problem that the caller's calls solve; it lives as long as the caller. */
dpr_problem caller_problem(bench_caller *c);

/* Bytes from one call's results to the next's (bench_point.result_stride). */
size_t caller_stride(const bench_ops *ops);

/* Runs the caller's plan. Its results are KNOWN_PLACE bytes apart, from `out` on. */
dpr_status caller_run(const bench_caller *c, dpr_plan *plan, const void *in, void *out, dpr_stream stream);

/* Takes note of an error. Returns it as a callback does. */
int caller_note(bench_caller *c, dpr_status status);

/* Callbacks of bench_subject. */
int caller_enqueue(void *user, const void *in, void *out, dpr_stream stream); /* dpr_reduce_async(), _fused_async() */
int caller_call(void *user, const void *in, void *host_out);                  /* dpr_reduce_ex(), dpr_reduce_fused() */
int caller_count_wrong(void *user, const void *results, int n);

#endif
