/* The library's kernels as the fake devices run them. */
#ifndef DPR_TESTS_FAKE_KERNEL_H
#define DPR_TESTS_FAKE_KERNEL_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "fake_recursion.h"
#include "key_reduce.h"
#include "key_runs.h"
#include "nested_args.h"

/* One launch. */
typedef struct fake_launch {
    const dpr_strategy *strategy; /* NULL: one that only follows up on the launch before, which did it all */
    dpr_key key;
    dpr_nested_args args;       /* of a kernel that is of no module, args.run and args.workspace alone */
    dpr_fused_args fused;       /* of a kernel that runs any operations */
    uint64_t label;             /* of a kernel that merges partial results */
    dpr_key_runs_args key_runs; /* of the kernel that finds runs of keys */
    dpr_keyed_args keyed;       /* of one that reduces them */
    dpr_segment_list segments;  /* of a kernel of segments, whose key has some */
    void *done;                 /* and the mailbox for its end */
    dpr_probe_args probe;       /* of the kernel that measures costs of recursions */
    dpr_relaunch_args relaunch; /* of the kernel that tells what rounds of a graph have taken; its tag is 0 otherwise */
    int of_module;              /* it may launch others */
    int to_come;                /* further kernels of this run; the last gives the result */
    cudaStream_t stream;
    size_t workspace_bytes;
    fake_recursion_launch recursion; /* of a recursion's kernel, which is of no strategy */
    const void *asked;               /* the arena of the kernel that asks whether a loop goes on (loop.h), */
    cuuint64_t loop;                 /* and the loop's number */
} fake_launch;

/* Finds which kernel is launched with which arguments; NULL, or what is wrong with the launch. A function that no
 * strategy declares may follow another kernel in a stream, as the further kernel of a strategy that launches several; a
 * kernel of a module must be of a run that has begun in the stream, by its workspace. */
const char *fake_kernel_prepare(const cudaLaunchConfig_t *config, const void *entry, void **arguments,
                                int follows_kernel, fake_launch *out);

/* cudaSuccess, or the error of a launch whose blocks these SMs have no room for at a time. */
cudaError_t fake_kernel_fits(const cudaLaunchConfig_t *config, int sms);

/* Whether the kernel may start before the work ahead of it in its stream is done. */
int fake_kernel_is_programmatic(const cudaLaunchConfig_t *config);

/* Whether `entry` is a kernel of the program's own, or of a module of the library. */
int fake_kernel_known(const void *entry);
int fake_kernel_is_of_module(const void *entry);

/* The entry, which is its name, of a kernel that a strategy declares to be in the module of that image; or NULL. */
const char *fake_kernel_named(const void *image, const char *name);

/* Computes the result with the CPU, and what nested launches came to, after a look at where the arguments point to.
 * NULL, or what is wrong. Device memory must be exposed. */
const char *fake_kernel_run(const fake_launch *launch);

/* How long it takes. */
double fake_kernel_ns(const fake_launch *launch);

#endif
