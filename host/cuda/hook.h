/* What a family of strategies needs of every device, beyond what each strategy and module has functions for
 * (core/strategy.h).
 *
 * A build with CUDA has one such family, that of nested launches (dp/hook.c); strategies.def names its hook. The runs
 * of strategies with work_bytes() are the family's. */
#ifndef DPR_HOST_CUDA_HOOK_H
#define DPR_HOST_CUDA_HOOK_H

#include "device.h"

struct CUgraph_st;

typedef struct dpr_hook {
    /* Puts what the family goes by on a device that is not open, or of which it has no better knowledge, into the
     * device's capabilities. */
    void (*assume)(dpr_gpu_caps *gpu);

    /* The family's state on a device, whose home is the current context; a cudaError_t. After an error close() is
     * called with what is in *state, which is NULL at first. */
    int (*open)(const dpr_home *home, void **state);
    /* After the device's work. Gives back host memory, and if the home is still `there` what it had in the home.
     * `state` may be NULL. */
    void (*close)(void *state, int there);

    /* Puts the limits of the open device into its capabilities, and what is assumed for these. */
    void (*limit)(const void *state, dpr_gpu_caps *gpu);
    /* Sets how many launches from kernels may be pending on the device, until it is closed. */
    dpr_status (*allow)(void *state, size_t pending);
    /* Measures, once, what runs of the family cost on the device, if they work there. In its home, relaxed (home.h). */
    dpr_status (*measure)(void *state, dpr_device *device, const dpr_gpu_caps *gpu);
    /* Puts what was measured so far into the capabilities. */
    void (*read)(const void *state, dpr_gpu_caps *gpu);

    /* Around the launch of a run that is captured to `graph` unless that is NULL: what the run needs, and what is to
     * follow it, if it was `launched`. begin() sets run->work if it goes well; end() is called if it did. A
     * cudaError_t. */
    int (*begin)(void *state, const dpr_strategy *strategy, dpr_run *run, struct CUgraph_st *graph);
    int (*end)(dpr_run *run, int launched, struct CUgraph_st *graph);
} dpr_hook;

#endif
