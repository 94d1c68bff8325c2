/* The library's kernels as the fake devices run them. */
#ifndef DPR_TESTS_FAKE_KERNEL_H
#define DPR_TESTS_FAKE_KERNEL_H

#include <cuda_runtime_api.h>

#include "args.h"

/* One launch. */
typedef struct fake_launch {
    const dpr_strategy *strategy; /* NULL: one that only follows up on the launch before, which did it all */
    dpr_key key;
    dpr_kernel_args args;
} fake_launch;

/* Finds which kernel is launched with which arguments; NULL, or what is wrong with the launch. A function that no
 * strategy declares may follow another kernel in a stream, as the further kernel of a strategy that launches several.
 */
const char *fake_kernel_prepare(const cudaLaunchConfig_t *config, const void *entry, void **arguments,
                                int follows_kernel, fake_launch *out);

/* Whether the kernel may start before the work ahead of it in its stream is done. */
int fake_kernel_is_programmatic(const cudaLaunchConfig_t *config);

/* Whether `entry` is a kernel of the library. */
int fake_kernel_known(const void *entry);

/* Computes the result with the CPU, after a look at where the arguments point to. NULL, or what is wrong. Device memory
 * must be exposed. */
const char *fake_kernel_run(const fake_launch *launch);

#endif
