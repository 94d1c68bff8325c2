/* coop.cluster: the blocks of a thread-block cluster send the partial results of their warps to the shared memory of
 * the cluster's first block, where a transaction barrier counts their bytes. With one cluster that is all: no partial
 * result goes through L2. Several clusters combine theirs as the blocks of flat.lastblock do. */
#include <algorithm>
#include <cooperative_groups.h>
#include <cuda/ptx>

#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

constexpr int block_threads = 512;
constexpr int largest_cluster = 16;

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

constexpr int block_warps = block_threads / 32;

/* Stores a value in the shared memory of another block of the cluster, and adds its bytes to the barrier there. */
template <class X> __device__ void send(X *to, const X &x, uint64_t *barrier) {
    const words_of<X> words(x);
    uint32_t *at = reinterpret_cast<uint32_t *>(to);
    if constexpr (words.size == 1)
        cuda::ptx::st_async(at, words.w[0], barrier);
    else
        cuda::ptx::st_async(at, words.w, barrier);
}

/* The place in a cluster's first block where the partial results of the cluster's warps arrive. */
template <class M> struct inbox {
    using X = partial<M>;
    typename X::type *partials; /* largest_cluster * block_warps, in this block's shared memory */
    uint64_t *barrier;

    /* Initialises the barrier. One thread of the first block calls it, before the cluster's barrier. */
    __device__ void open() {
        cuda::ptx::mbarrier_init(barrier, 1);
        cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }

    /* Tells the barrier how many partial results to expect. The same thread calls it, after the cluster's barrier; some
     * may have arrived by then. */
    __device__ void expect(unsigned expected) {
        cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared,
                                             barrier, expected * static_cast<unsigned>(sizeof *partials));
    }

    /* Sends a partial result. One thread of each warp of every block calls it, after the cluster's barrier. */
    __device__ void post(const cooperative_groups::cluster_group &cluster, unsigned slot, typename X::type x) {
        send(cluster.map_shared_rank(partials + slot, 0), x, cluster.map_shared_rank(barrier, 0));
    }

    /* Waits for all partial results and folds them in a fixed order. One warp of the first block calls it; the result
     * is valid in lane 0. */
    __device__ typename X::type fold(unsigned expected) {
        while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cluster, barrier, 0)) {}
        typename X::type x[largest_cluster * block_warps / 32];
#pragma unroll
        for (unsigned k = 0; k < largest_cluster * block_warps / 32; ++k) {
            const unsigned i = k * 32 + threadIdx.x % 32;
            x[k] = i < expected ? partials[i] : X::identity();
        }
        return reduce_warp<M>(reduce_array<M>(x));
    }
};

template <class M> __device__ void reduce_in_clusters(const dpr_kernel_args &args) {
    using X = partial<M>;
    __shared__ alignas(16) unsigned char partials[largest_cluster * block_warps * sizeof(typename X::type)];
    __shared__ alignas(8) uint64_t barrier;
    inbox<M> box = {reinterpret_cast<typename X::type *>(partials), &barrier};
    const auto cluster = cooperative_groups::this_cluster();
    const unsigned rank = cluster.block_rank(), warps = blockDim.x / 32, expected = cluster.num_blocks() * warps;
    const bool first = rank == 0 && threadIdx.x == 0;
    if (first)
        box.open();
    auto arrived = cluster.barrier_arrive();
    const thread_slice<M> mine = begin<M>(args);
    const typename X::type x = reduce_warp<M>(reduce_slice<M>(args, mine));
    cluster.barrier_wait(std::move(arrived));
    if (first)
        box.expect(expected);
    if (threadIdx.x % 32 == 0)
        box.post(cluster, rank * warps + threadIdx.x / 32, x);
    if (rank != 0 || threadIdx.x >= 32)
        return;
    const typename X::type sum = box.fold(expected);
    meet<M, false, false>(args, mine.d.count, sum, blockIdx.x / cluster.num_blocks(),
                          gridDim.x / cluster.num_blocks() - 1);
}

#else

template <class M> __device__ void reduce_in_clusters(const dpr_kernel_args &) {
    __trap(); /* probe() refuses devices without clusters */
}

#endif

template <class M>
__global__ void __launch_bounds__(block_threads, 2) cluster_kernel(const __grid_constant__ dpr_kernel_args args) {
    reduce_in_clusters<M>(args);
}

struct cluster_family {
    template <class M> static constexpr kernel_entry entry() { return cluster_kernel<M>; }
};

/* With code for partial results each run would take 0.2 us longer on an H200. */
const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (key->f.partial)
        return "its kernels write no partial results";
    return caps->gpu.cluster_launch && caps->gpu.cc_major >= 9 ? nullptr : "needs thread-block clusters";
}

size_t blocks_for(size_t vectors) {
    return (vectors + block_threads - 1) / block_threads;
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
    double rate = 1.05 * static_cast<double>(clusters * cluster) * dpr_sm_rate(key, &caps->gpu);
    if (clusters > 1) {
        const double all_clusters = 13e3 * static_cast<double>(caps->gpu.sm_clock_khz * (sms - sms % cluster));
        ends += dpr_seeks_index(key) ? 1.75e-6 : 0.78e-6;
        rate = std::min(rate, all_clusters);
    }
    return {DPR_LAUNCH_SECONDS + ends, dpr_array_bytes(key, size), rate};
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<cluster_family>::of(key), block_threads, 0, 2, largest_cluster, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    dpr_launch_limits limits = dpr_block_per_sm(caps, resident, block_threads, most_partials);
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
    launch.threads = block_threads;
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
