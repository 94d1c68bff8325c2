/* What launches from kernels cost on a GPU, beside launches by the host, in graphs and of graphs.
 *
 * Each figure is the difference of two times, of more launches and of fewer, so that what starts and ends a measurement
 * is in neither. Times are between two events in a stream, behind work that keeps the device busy while the host
 * launches; of launches by the host, by its clock until the stream is idle. The launches take turns, as subjects do in
 * timing.h. After each time the kernels' account is looked at: how many came to their end.
 *
 * Launches that are pending at a time are at most half of the device's pool, as overrunning it can hang the device. All
 * waits are bounded; but what a device that hangs does to the process is the driver's business, so that a process of
 * its own is best for this. */
#ifndef DPR_BENCH_NESTED_H
#define DPR_BENCH_NESTED_H

#include "timing.h"

/* The launches.   X(ID, name, text) */
#define BENCH_LAUNCH_LIST(X)                                                                                           \
    X(EMPTY, "empty", "a kernel that does nothing, in a stream")                                                       \
    X(HOST, "host", "one of many such kernels that the host launches back to back")                                    \
    X(GRAPH_NODE, "graph.node", "one such kernel of a graph's chain of them")                                          \
    X(GRAPH, "graph", "one of many launches of a graph of one such kernel, back to back")                              \
    X(FIRST_TAIL, "first.tail", "a kernel that tail-launches one, over one that does nothing")                         \
    X(FIRST_FORGET, "first.forget", "a kernel that launches one and forgets it, over one that does nothing")           \
    X(CHAIN_TAIL, "chain.tail", "a level of a chain in which each kernel tail-launches the next")                      \
    X(CHAIN_FORGET, "chain.forget", "a level of a chain in which each kernel launches the next and forgets it")        \
    X(FAN_FORGET, "fan.forget", "one of many launches from many blocks, fire-and-forget")                              \
    X(FAN_BLOCK, "fan.block", "one of many launches from many blocks, each into its block's stream (NULL)")            \
    X(FAN_TAIL, "fan.tail", "one of many tail launches from many blocks, which run one after another")                 \
    X(DEVICE_GRAPH, "device_graph", "a graph of one kernel that a kernel launches, fire-and-forget")                   \
    X(DEVICE_GRAPH_TAIL, "device_graph.tail", "a graph of one kernel that launches itself again when it is done")

#define BENCH_LAUNCH_ENUM(ID, name, text) BENCH_LAUNCH_##ID,
typedef enum bench_launch { BENCH_LAUNCH_LIST(BENCH_LAUNCH_ENUM) BENCH_LAUNCHES } bench_launch;

/* The launch's name, and what it is in one line; NULL past the end. Static storage. */
const char *bench_launch_name(size_t launch);
const char *bench_launch_text(size_t launch);

/* Of one of them. */
typedef struct bench_cost {
    bench_summary us; /* microseconds of one; n is 0 where it was not measured */
    int settled;      /* 1: the median is as certain as the rule has it */
    char why[160];    /* why it was not measured, as a clause; "": it was */
} bench_cost;

typedef struct bench_costs {
    size_t pending;        /* launches from kernels that may be pending: the pool */
    size_t loaded_bytes;   /* device memory that loading kernels that launch kernels has taken */
    size_t reserved_bytes; /* and what was taken when the first of them had run, for the pool and all that goes with it:
                              as cudaMemGetInfo() shows it, which counts other programs, too */
    int length;            /* of the chains of kernels, at most */
    int blocks, each;      /* of the fan-outs: blocks, and launches from each of them */
    int hung;              /* 1: the device did not end its work in time; exit() may not return */
    bench_cost of[BENCH_LAUNCHES];
} bench_costs;

typedef struct bench_costs_asked {
    int device;                           /* CUDA ordinal */
    size_t pending;                       /* the pool's size is set to this; 0: it stays as it is */
    unsigned char wanted[BENCH_LAUNCHES]; /* 1: is measured */
    bench_rule rule;
} bench_costs_asked;

/* Measures, on a device that this process has not used before: the pool's size cannot be relied on to change later.
 * What is not wanted has n = 0 and no reason. 0, or -1 when nothing could be measured, with the reason in `why`.
 *
 * Makes the device the calling thread's current one. */
int bench_costs_measure(const bench_costs_asked *asked, bench_costs *out, char why[BENCH_WHY]);

/* Zeroed pinned memory that every GPU reaches; NULL if there is none. To be given to bench_pinned_free(). */
void *bench_pinned(size_t bytes);
void bench_pinned_free(void *memory);

#endif
