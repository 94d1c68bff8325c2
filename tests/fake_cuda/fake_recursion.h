/* The kernels of a test's recursion as the fake devices run them: every root is a base case, which the policy's own
 * solve() solves. A test gives its recursion the table fake_recursion_kernels, sizes of its own in it, and names the
 * recursion in fake_recursion.of. */
#ifndef DPR_TESTS_FAKE_RECURSION_H
#define DPR_TESTS_FAKE_RECURSION_H

#include <cuda_runtime_api.h>

#include "recursion/probe.h"
#include "recursion/recursion.h"
#include "recursion/relaunch.h"

/* What a test decides about the kernels, and what the last launch was. */
typedef struct fake_recursion_state {
    const dpr_recursion *of;
    dpr_recursion_outcome outcome; /* what the kernels report; they write results if it has no error */
    uint32_t phases;               /* launches after which all phases are done */
    cudaError_t missing;           /* what looking for a kernel gives, if not cudaSuccess */
    int is_large;                  /* 1: a warp alone does not solve the roots */
    int is_stuck;                  /* 1: a launch makes the device busy (fake_set_busy()) */
    uint32_t least_capacity;       /* with fewer nodes, but some, a run is out of memory */
    unsigned blocks, threads;      /* of the last launch, */
    int cooperative;               /* whether its blocks may wait for each other, */
    uint32_t capacity, chunks;     /* and its nodes and pieces of stacks */
    dpr_probe_times times;         /* what the kernel that measures costs reports, */
    int probes;                    /* and how often it was launched with rounds */
    uint32_t relaunch_ns;          /* what a graph takes for all rounds in which it launches itself, */
    int relaunches;                /* how often such a graph was measured, */
    int has_no_end;                /* and 1 if its end is not told */
} fake_recursion_state;

extern fake_recursion_state fake_recursion;

/* dpr_recursion_kernels.persistent and .phase. */
int fake_recursion_persistent(unsigned shared_bytes, void **function);
int fake_recursion_phase(void **function, size_t *stack_bytes);

/* ---- For the parts, with the fake's lock held ---- */

enum { FAKE_RECURSION_DATA = 64 };

/* One launch. The arguments are those at the time of the launch. */
typedef struct fake_recursion_launch {
    const void *kernel; /* NULL: the launch is of another kernel */
    dpr_recursion_args args;
    unsigned char data[FAKE_RECURSION_DATA]; /* the policy's */
    unsigned what;                           /* of a kernel for phases: DPR_LAUNCH_* */
} fake_recursion_launch;

/* Whether the kernels that use this arena have phases left. */
int fake_recursion_is_unfinished(const void *arena);

int fake_recursion_has(const void *kernel);

/* Takes a launch's arguments. NULL, or what is wrong with the launch. */
const char *fake_recursion_prepare(const cudaLaunchConfig_t *config, int cooperative, const void *kernel,
                                   void **arguments, fake_recursion_launch *out);

/* Does what the kernel does, after a look at where the arguments point to. NULL, or what is wrong. Device memory must
 * be exposed. */
const char *fake_recursion_run(const fake_recursion_launch *launch);

/* The same for the kernel that measures costs. */
const char *fake_probe_prepare(const cudaLaunchConfig_t *config, int cooperative, const dpr_probe_args *args);
const char *fake_probe_run(const dpr_probe_args *args);

/* The same for the kernel that tells what the rounds of a graph have taken. The graph's own kernels do nothing. */
int fake_relaunch_has(const void *kernel);
const char *fake_relaunch_prepare(const dpr_relaunch_args *args);
const char *fake_relaunch_run(const dpr_relaunch_args *args);

#endif
