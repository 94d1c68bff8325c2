/* coop.cluster: the blocks of a thread-block cluster send the partial results of their warps to the shared memory of
 * the cluster's first block, where a transaction barrier counts their bytes. With one cluster that is all: no partial
 * result goes through L2. Several clusters combine theirs as the blocks of flat.lastblock do. */
#include <algorithm>

#include "cluster.cuh"
#include "cost_link.h"

namespace dpr {
namespace {

struct cluster_family {
    template <class M> static constexpr kernel_entry entry() { return cluster_kernel<M>; }
};

/* With code for partial results each run would take 0.2 us longer on an H200, and with code for means sums of F32 3 to
 * 16 % longer. */
const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (key->f.partial)
        return "its kernels write no partial results";
    if (dpr_is_divided_sum(key))
        return "its kernels write no means";
    return caps->gpu.cluster_launch && caps->gpu.cc_major >= 9 ? nullptr : "needs thread-block clusters";
}

size_t blocks_for(size_t vectors) {
    return (vectors + cluster_threads - 1) / cluster_threads;
}

/* Clusters of `cluster` blocks for an array: so many that each thread still has at least four vectors, as far as
 * `most_blocks` allow, but at least one. */
size_t clusters_for(size_t vectors, size_t cluster, size_t most_blocks) {
    const size_t wanted = blocks_for(vectors) / 4 / cluster;
    return std::max(std::min(wanted, most_blocks / cluster), size_t{1});
}

/* Several clusters meet as the blocks of flat.lastblock do, which is assumed to take as long as there. They read long
 * arrays more slowly than other strategies do, because blocks of 512 threads have fewer loads in flight: 3.29 TB/s on
 * an H200 with 128 SMs in clusters (tests/results/h200-gpu.json), which is 13 bytes a clock for each of these SMs. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const size_t cluster = dpr_largest_cluster(&caps->gpu, largest_cluster);
    const size_t sms = caps->gpu.sm_count, in_vector = vector_bytes / dpr_dtypes[key->f.dtype].size;
    const size_t clusters = clusters_for(size.elements / in_vector + 1, cluster, sms);
    double ends = dpr_seeks_index(key) ? 1.10e-6 : 0.47e-6; /* seconds in addition to reading, on an H200 */
    double rate = 1.05 * static_cast<double>(clusters * cluster) * dpr_array_sm_rate(key, &caps->gpu);
    if (clusters > 1) {
        const double all_clusters = 13e3 * static_cast<double>(caps->gpu.sm_clock_khz * (sms - sms % cluster));
        ends += dpr_seeks_index(key) ? 1.75e-6 : 0.78e-6;
        rate = std::min(rate, all_clusters);
    }
    return {DPR_LAUNCH_SECONDS + ends + dpr_last_look(key), dpr_array_bytes(key, size), rate};
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<cluster_family>::of(key), cluster_threads, 0, 2, largest_cluster, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    dpr_launch_limits limits = dpr_block_per_sm(caps, resident, cluster_threads, most_partials);
    limits.cluster = resident.cluster;
    return limits;
}

/* Launches one cluster as large as the array needs, of at least two blocks and at most the limit, or several of the
 * largest ones for a longer array. */
int launch(const dpr_run *run) {
    const size_t vectors = dpr_run_bytes(run) / vector_bytes + 1, blocks = blocks_for(vectors);
    const size_t largest = static_cast<size_t>(run->limits.cluster);
    const size_t clusters = clusters_for(vectors, largest, static_cast<size_t>(run->limits.max_blocks));
    dpr_launch launch = {};
    launch.entry = kernel(&run->key).entry;
    launch.threads = cluster_threads;
    launch.cluster = static_cast<unsigned>(blocks < 2 ? 2 : blocks < largest ? blocks : largest);
    launch.blocks = launch.cluster * static_cast<unsigned>(clusters);
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_coop_cluster;
const dpr_strategy dpr_coop_cluster = {
    .name = "coop.cluster",
    .text = "blocks of a cluster meet in shared memory: for what a dozen SMs soon read",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
