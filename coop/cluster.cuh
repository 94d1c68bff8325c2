/* The kernel of coop.cluster. */
#ifndef DPR_COOP_CLUSTER_CUH
#define DPR_COOP_CLUSTER_CUH

#include <cooperative_groups.h>
#include <cuda/ptx>
#include <utility>

#include "family.cuh"
#include "finish.cuh"

namespace dpr {

constexpr int cluster_threads = 512;
constexpr int largest_cluster = 16;

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

constexpr int cluster_warps = cluster_threads / 32; /* of each block */

/* Stores a value in the shared memory of another block of the cluster, and adds its bytes to the barrier there. */
template <class X> __device__ void send(X *to, const X &x, uint64_t *barrier) {
    static_assert(sizeof(X) <= largest_small || sizeof(X) % (2 * sizeof(uint32_t)) == 0);
    const words_of<X> words(x);
    uint32_t *at = reinterpret_cast<uint32_t *>(to);
    if constexpr (words.size == 1)
        cuda::ptx::st_async(at, words.w[0], barrier);
    else if constexpr (sizeof(X) <= largest_small)
        cuda::ptx::st_async(at, words.w, barrier);
    else
        for (int i = 0; i < words.size; i += 2) {
            const uint32_t pair[] = {words.w[i], words.w[i + 1]};
            cuda::ptx::st_async(at + i, pair, barrier);
        }
}

/* The place in a cluster's first block where partial results arrive: those of the cluster's warps, or, if they are
 * large, those of its blocks, because shared memory has no room for more. */
template <class M> struct inbox {
    using X = partial<M>;
    static constexpr unsigned room = largest_cluster * (is_large<M> ? 1 : cluster_warps);
    typename X::type *partials; /* `room` of them, in this block's shared memory */
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

    /* Sends a partial result. One thread of each warp of every block, or of each block, calls it, after the cluster's
     * barrier. */
    __device__ void post(const cooperative_groups::cluster_group &cluster, unsigned slot, typename X::type x) {
        send(cluster.map_shared_rank(partials + slot, 0), x, cluster.map_shared_rank(barrier, 0));
    }

    /* Waits until the first block has received all partial results. One warp of every other block calls it, after it
     * has sent, so that the block stays: what a block sends just before it returns can be lost when the GPU changes to
     * another process, and the first block would wait for it forever (README.md). */
    __device__ static void wait_for_receipt() {
        cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
        cuda::ptx::barrier_cluster_wait();
    }

    /* Waits for all partial results, releases the other blocks, and folds the results in a fixed order. One warp of the
     * first block calls it; the result is valid in lane 0. */
    __device__ typename X::type fold(unsigned expected) {
        while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cluster, barrier, 0)) {}
        cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
        constexpr unsigned each = (room + 31) / 32; /* of a lane */
        typename X::type x[each];
#pragma unroll
        for (unsigned k = 0; k < each; ++k) {
            const unsigned i = k * 32 + threadIdx.x % 32;
            x[k] = i < expected ? partials[i] : X::identity();
        }
        return reduce_warp<M>(reduce_array<M>(x));
    }
};

/* Reduces the values of the threads that send one partial result together: a warp or the whole block. */
template <class M> __device__ typename partial<M>::type reduce_shared(typename partial<M>::type x) {
    if constexpr (is_large<M>) {
        __shared__ typename partial<M>::type of_warp[cluster_warps];
        return reduce_block<M>(x, of_warp);
    } else {
        return reduce_warp<M>(x);
    }
}

template <class M> __device__ void reduce_in_clusters(const dpr_kernel_args &args) {
    using X = partial<M>;
    __shared__ alignas(16) unsigned char partials[inbox<M>::room * sizeof(typename X::type)];
    __shared__ alignas(8) uint64_t barrier;
    inbox<M> box = {reinterpret_cast<typename X::type *>(partials), &barrier};
    const auto cluster = cooperative_groups::this_cluster();
    const unsigned sharing = is_large<M> ? cluster_threads : 32; /* threads that send one partial result */
    const unsigned rank = cluster.block_rank(), of_block = is_large<M> ? 1 : blockDim.x / 32;
    const unsigned expected = cluster.num_blocks() * of_block;
    const bool first = rank == 0 && threadIdx.x == 0;
    if (first)
        box.open();
    auto arrived = cluster.barrier_arrive();
    const thread_slice<M> mine = begin<M>(args);
    const typename X::type x = reduce_shared<M>(reduce_slice<M>(args, mine));
    cluster.barrier_wait(std::move(arrived));
    if (first)
        box.expect(expected);
    if (threadIdx.x % sharing == 0)
        box.post(cluster, rank * of_block + threadIdx.x / sharing, x);
    if (threadIdx.x >= 32)
        return;
    if (rank != 0) {
        box.wait_for_receipt();
        return;
    }
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
static __global__ void __launch_bounds__(cluster_threads, 2)
    cluster_kernel(const __grid_constant__ dpr_kernel_args args) {
    reduce_in_clusters<M>(args);
}

} // namespace dpr

#endif
