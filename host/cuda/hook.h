/* A hook: the functions of a family of strategies that this room calls for every device, in addition to those that each
 * strategy and module has (core/strategy.h).
 *
 * A build with CUDA has one such family, the strategies with nested launches (dp/hook.c), and strategies.def names its
 * hook. A strategy belongs to the family if its role is DPR_ROLE_NESTED. */
#ifndef DPR_HOST_CUDA_HOOK_H
#define DPR_HOST_CUDA_HOOK_H

#include "device.h"

struct dpr_workspaces;

typedef struct dpr_hook {
    /* Puts the family's assumptions about a device that is not open into the device's capabilities. */
    void (*assume)(dpr_gpu_caps *gpu);

    /* Makes the family's state for a device, whose home is the current context. Returns a cudaError_t. *state is NULL
     * before the call; after an error, close() is called with what is in it. */
    int (*open)(const dpr_home *home, void **state);
    /* Called after the device's work. Frees host memory and, if the home is still `there`, what the state holds in it.
     * `state` may be NULL. */
    void (*close)(void *state, int there);

    /* Puts the limits of the open device into its capabilities, and the costs that are assumed for these limits. */
    void (*limit)(const void *state, dpr_gpu_caps *gpu);
    /* Sets how many nested launches may be pending on the device, until it is closed. */
    dpr_status (*allow)(void *state, size_t pending);
    /* Measures once what runs of the family cost, if they work on the device. `work` has the device's workspaces.
     * Called in the device's home, relaxed (home.h). */
    dpr_status (*measure)(void *state, dpr_device *device, struct dpr_workspaces *work, const dpr_gpu_caps *gpu);
    /* Puts the costs that have been measured so far into the capabilities. */
    void (*read)(const void *state, dpr_gpu_caps *gpu);

    /* Called before and after the launch of a run, which has its memory. begin() sets run->launches and, if it is NULL,
     * run->report. end() is called if everything before succeeded, and enqueues what must follow the run; if it fails,
     * the run's kernels still run. Both return a cudaError_t. */
    int (*begin)(dpr_run *run);
    int (*end)(dpr_run *run);
} dpr_hook;

#endif
