/* dp.tree, on the host: the tree's shape, and the launches of its leaves and of its end. */
#include <stdio.h>

#include "means.h"
#include "nested_host.h"

enum { THREADS = DPR_NESTED_THREADS };

#define NAME(KERNEL, OP, DTYPE, NAN) "dpr_" #KERNEL "_" #OP "_" #DTYPE "_" #NAN
#define NAMES_OF_TYPE(OP, DTYPE, ...)                                                                                  \
    [DPR_ROW(DPR_##DTYPE)] = {{NAME(tree, OP, DTYPE, 0), NAME(tree, OP, DTYPE, 1)},                                    \
                              {NAME(end_tree, OP, DTYPE, 0), NAME(end_tree, OP, DTYPE, 1)}},
#define NAMES_OF_OP(A, OP, ...) [DPR_ROW(DPR_##OP)] = {DPR_DTYPE_LIST(NAMES_OF_TYPE, OP)},

typedef enum tree_kernel { LEAVES, END, KERNELS } tree_kernel;

static const char *entry(tree_kernel kernel, const dpr_key *key) {
    static const char names[DPR_OP_COUNT][DPR_DTYPE_COUNT][KERNELS][2][32] = {DPR_OP_LIST(NAMES_OF_OP, _)};
    const int has_nan = dpr_dtypes[key->f.dtype].kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX);
    return names[dpr_kernel_row(key)][key->f.dtype][kernel][has_nan ? key->f.nan : 0];
}

static const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (caps->gpu.max_threads_per_block < THREADS)
        return "its blocks have too many threads";
    return dpr_nested_probe(key, &caps->gpu);
}

/* Seconds for each child of a node, which a block folds: an estimate. */
static const double seconds_a_child = 0.4e-9;

/* Returns the nearest of 1 us, 4 us, 16 us and so on by ratio, and 0 for 0. So the tree, and the order in which floats
 * are added, do not depend on the few per cent by which times differ from one measurement to the next. */
static double coarse(double seconds) {
    double step = 1e-6;
    while (seconds > 2 * step)
        step *= 4;
    return seconds > 0 ? step : 0;
}

static dpr_tree tree_of(size_t bytes, int max_depth, double launch_seconds) {
    return dpr_tree_of(bytes / 16, DPR_TREE_UNIT, (uint32_t)max_depth, coarse(launch_seconds), seconds_a_child);
}

/* Assumes one level above the leaves or, if that would have too many children, two. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double bytes = dpr_array_bytes(key, size), leaves = bytes / (16 * DPR_TREE_UNIT),
                 tail = dpr_tail_seconds(&caps->gpu);
    const double children = seconds_a_child * (leaves < DPR_TREE_MOST_LEAVES ? leaves : DPR_TREE_MOST_LEAVES);
    const int one_level = children < tail || key->f.depth == 1;
    const double above = leaves > 1 ? dpr_first_nested_seconds(&caps->gpu) + tail + (one_level ? children : tail) : 0;
    return (dpr_cost){
        .latency = 2 * DPR_LAUNCH_SECONDS + 2e-6 + above, .bytes = bytes, .rate = 0.9 * dpr_memory_rate(&caps->gpu)};
}

static dpr_kernel kernel(const dpr_key *key) {
    return (dpr_kernel){.entry = entry(LEAVES, key),
                        .threads = THREADS,
                        .shared_bytes = DPR_FOLD_BYTES,
                        .min_blocks = 2,
                        .module = &dpr_dp_module};
}

static dpr_launch_limits limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)resident;
    return dpr_nested_limits(key, caps, THREADS, DPR_TREE_MOST_LEAVES, dpr_tail_seconds(&caps->gpu));
}

static dpr_tree tree_of_run(const dpr_run *run) {
    return tree_of(dpr_run_bytes(run), run->limits.max_depth, run->limits.launch_seconds);
}

static size_t workspace_bytes(const dpr_run *run) {
    const dpr_tree tree = tree_of_run(run);
    return DPR_REPORT_BYTES + (dpr_tree_partials(&tree) + 1) * DPR_PARTIAL_BYTES;
}

static void describe(const dpr_run *run, char *text, size_t size) {
    const dpr_tree tree = tree_of_run(run);
    if (tree.levels > 1)
        snprintf(text, size, "%u leaves of %llu KiB, and %u level%s of up to %u children a node above, a launch each",
                 tree.leaves, (unsigned long long)tree.leaf * 16 / 1024, tree.levels - 1, tree.levels == 2 ? "" : "s",
                 tree.fan);
    else
        snprintf(text, size, "one leaf, and no launches");
}

static int launch(const dpr_run *run) {
    const dpr_tree tree = tree_of_run(run);
    dpr_launch launch = {.entry = entry(LEAVES, &run->key),
                         .module = &dpr_dp_module,
                         .blocks = tree.leaves,
                         .threads = THREADS,
                         .shared_bytes = DPR_FOLD_BYTES};
    dpr_nested_args args = dpr_nested_args_of(&launch, run);
    args.tree = tree;
    const int error = run->enqueue(run, &launch, &args.run);
    if (error)
        return error;
    launch.entry = entry(END, &run->key);
    launch.blocks = 1;
    launch.threads = 32;
    launch.shared_bytes = 0;
    args.first = dpr_tree_partials(&tree);
    return run->enqueue(run, &launch, &args.run);
}

const dpr_strategy dpr_dp_tree = {
    .name = "dp.tree",
    .text = "leaves read; then a launch from the device for each level of nodes above",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_NESTED,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = probe,
    .cost = cost,
    .kernel = kernel,
    .limits = limits,
    .launch = launch,
    .workspace_bytes = workspace_bytes,
    .describe = describe,
};
