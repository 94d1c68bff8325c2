/* Nested launches and graphs that launch themselves, kept apart in a process. On an H100 (driver 580, CUDA 13.0) they do
 * not go together: with runs of the engines `graph` and `naive` in four streams, the context was lost to
 * cudaErrorLaunchFailure within two seconds, and no kernel was at fault. Neither engine alone failed in ten thousands of
 * runs. */
#ifndef DPR_DP_APART_H
#define DPR_DP_APART_H

/* Begins a run that is over before dpr_apart_end_nested(). Waits for runs of graphs to end. */
void dpr_apart_begin_nested(void);
void dpr_apart_end_nested(void);

/* From now on nested launches may be pending at any time, because nobody says when they are done. */
void dpr_apart_nested_forever(void);

/* The same for a run in a stream, where the caller must not wait. Returns how many of `launches` it may make: none while
 * a graph runs. */
unsigned dpr_apart_launches(unsigned launches);

/* Begins a run of a graph, and returns 1. Waits for runs with nested launches to end. Returns 0 if that may be never:
 * then no graph may launch itself, and there is nothing to end. */
int dpr_apart_begin_graph(void);
void dpr_apart_end_graph(void);

#endif
