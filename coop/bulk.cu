/* coop.bulk: the copy engine (TMA) copies stages of the array to shared memory, where barriers count the bytes that
 * have arrived. The threads read them there, so that loads in flight take no registers. Blocks combine their partial
 * results as in flat.lastblock. */
#include <cuda/ptx>

#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

constexpr int block_threads = 512;
constexpr int stage_vectors = 2; /* vectors of a stage for each thread */
constexpr int stage_bytes = block_threads * stage_vectors * vector_bytes;
constexpr int stages = 8;

/* Shared memory of a block. */
struct ring {
    alignas(128) unsigned char stage[stages][stage_bytes];
    uint64_t full[stages];  /* all bytes of the stage have arrived */
    uint64_t empty[stages]; /* every warp has read the stage */
};

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* The stages of one block: every gridDim.x-th stage of the array's whole vectors. */
template <class T> struct stage_walk {
    array_view<T> d;
    uint64_t stage; /* vectors of one stage */

    __device__ explicit stage_walk(const array_view<T> &of) : d(of), stage(block_threads * stage_vectors) {}

    __device__ uint64_t first(uint64_t i) const { return (blockIdx.x + i * gridDim.x) * stage; }
    __device__ bool has(uint64_t i) const { return first(i) < d.vectors; }

    __device__ unsigned size(uint64_t i) const {
        const uint64_t left = d.vectors - first(i);
        return static_cast<unsigned>(left < stage ? left : stage);
    }

    /* Starts to copy stage `i`. One thread calls it. */
    __device__ void fetch(ring &r, uint64_t i) const {
        namespace ptx = cuda::ptx;
        const unsigned slot = i % stages, bytes = size(i) * vector_bytes;
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &r.full[slot], bytes);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, r.stage[slot], d.body() + first(i), bytes,
                           &r.full[slot]);
    }
};

__device__ inline void wait_for(uint64_t *barrier, unsigned round) {
    while (!cuda::ptx::mbarrier_try_wait_parity(barrier, round % 2)) {}
}

__device__ inline void open_ring(ring &r) {
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) {
            cuda::ptx::mbarrier_init(&r.full[s], 1);
            cuda::ptx::mbarrier_init(&r.empty[s], block_threads / 32);
        }
        /* The copy engine accesses the barriers through another proxy than the stores that initialised them. */
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    __syncthreads();
}

/* Reduces the whole vectors from shared memory. Each warp frees a stage after it has loaded it into registers, and the
 * first thread refills the stage when all warps have. */
template <class M> __device__ typename M::acc reduce_stages(ring &r, const stage_walk<typename M::storage> &walk) {
    using P = packet<typename M::storage>;
    typename M::acc a = M::identity();
    if (threadIdx.x == 0) {
        for (uint64_t i = 0; i < stages && walk.has(i); ++i)
            walk.fetch(r, i);
    }
    for (uint64_t i = 0; walk.has(i); ++i) {
        const unsigned slot = i % stages, round = static_cast<unsigned>(i / stages), size = walk.size(i);
        const P *stage = reinterpret_cast<const P *>(r.stage[slot]);
        P p[stage_vectors];
        wait_for(&r.full[slot], round);
#pragma unroll
        for (int v = 0; v < stage_vectors; ++v) {
            if (v * block_threads + threadIdx.x < size)
                p[v] = stage[v * block_threads + threadIdx.x];
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            cuda::ptx::mbarrier_arrive(&r.empty[slot]);
        if (threadIdx.x == 0 && walk.has(i + stages)) {
            wait_for(&r.empty[slot], round);
            walk.fetch(r, i + stages);
        }
        tile_of<M> s;
#pragma unroll
        for (int v = stage_vectors - 1; v >= 0; --v) {
            if (v * block_threads + threadIdx.x < size)
                s.add(p[v], v);
        }
        a = s.fold_into(
            a, [&](unsigned v) { return walk.d.head + (walk.first(i) + v * block_threads + threadIdx.x) * P::size; });
    }
    return a;
}

template <class M> __device__ void reduce_by_bulk_copies(const dpr_kernel_args &args, ring &r) {
    using T = typename M::storage;
    open_ring(r);
    const thread_slice<M> mine = begin<M>(args);
    typename partial<M>::type x;
    bool split = false;
    if constexpr (reader_of<M>::may_be_split) {
        split = mine.d.is_split();
        if (split)
            x = reduce_split_slice<M>(mine.d, mine.d.count);
    }
    if (!split)
        x = unaligned_ends<reader_of<M>>(mine.d).template with<M>(
            partial<M>::pack(reduce_stages<M>(r, stage_walk<T>(mine.d))));
    x = reduce_block<M>(x);
    meet<M>(args, mine.d.count, x, blockIdx.x, gridDim.x - 1);
}

#else

template <class M> __device__ void reduce_by_bulk_copies(const dpr_kernel_args &, ring &) {
    __trap(); /* probe() refuses devices without the copy engine */
}

#endif

template <class M>
__global__ void __launch_bounds__(block_threads, 1) bulk_kernel(const __grid_constant__ dpr_kernel_args args) {
    extern __shared__ __align__(128) unsigned char shared[];
    reduce_by_bulk_copies<M>(args, *reinterpret_cast<ring *>(shared));
}

struct bulk_family {
    template <class M> static constexpr kernel_entry entry() { return bulk_kernel<M>; }
};

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (caps->gpu.cc_major < 9)
        return "needs bulk asynchronous copies (compute capability 9.0)";
    if (key->f.in_memory != DPR_MEMORY_DEVICE)
        return "copies from device memory alone";
    return caps->gpu.shared_per_block_optin < static_cast<int64_t>(sizeof(ring)) ? "needs more shared memory a block"
                                                                                 : nullptr;
}

dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double ends = dpr_seeks_index(key) ? 1.85e-6 : 0.85e-6; /* seconds in addition to reading, on an H200 */
    return {DPR_LAUNCH_SECONDS + ends, dpr_array_bytes(key, size), dpr_memory_rate(&caps->gpu) / 1.05};
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<bulk_family>::of(key), block_threads, sizeof(ring), 1, 0, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    return dpr_block_per_sm(caps, resident, block_threads, most_partials);
}

int launch(const dpr_run *run) {
    const size_t wanted = dpr_run_bytes(run) / stage_bytes + 1, most = static_cast<size_t>(run->limits.max_blocks);
    dpr_launch launch = {};
    launch.entry = kernel(&run->key).entry;
    launch.blocks = static_cast<unsigned>(wanted < most ? wanted : most);
    launch.threads = block_threads;
    launch.shared_bytes = sizeof(ring);
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_coop_bulk;
const dpr_strategy dpr_coop_bulk = {
    .name = "coop.bulk",
    .text = "the copy engine fills shared memory; blocks meet as in flat.lastblock",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
