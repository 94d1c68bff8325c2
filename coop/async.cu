/* coop.async: a block copies stages of the array to shared memory by cg::memcpy_async(), one stage ahead of the one
 * that it reads there, so that threads do not wait for the data that they need next. Copies are of 16 bytes from
 * 16-byte boundaries; from compute capability 8.0 on they bypass L1 and registers. Elements before the first boundary
 * and after the last one are read directly. Blocks combine their partial results as in flat.lastblock. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>

#include "demonstration.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

namespace cg = cooperative_groups;

constexpr int stage_vectors = 2; /* vectors of a stage for each thread */
constexpr int stages = 2;

/* The stages of one block: every gridDim.x-th stage of the array's whole vectors. */
template <class T> struct stage_walk {
    using P = packet<T>;
    array_view<T> d;

    __device__ unsigned vectors() const { return stage_vectors * blockDim.x; }
    __device__ uint64_t first(uint64_t i) const { return (blockIdx.x + i * gridDim.x) * vectors(); }
    __device__ bool has(uint64_t i) const { return first(i) < d.vectors; }

    __device__ unsigned size(uint64_t i) const {
        const uint64_t left = d.vectors - first(i);
        return left < vectors() ? static_cast<unsigned>(left) : vectors();
    }

    /* Starts to copy stage `i`. All threads of the block call it. If there is no such stage it copies nothing, but it
     * still counts for wait_prior(). */
    __device__ void fetch(const cg::thread_block &block, P *shared, uint64_t i) const {
        const size_t bytes = has(i) ? size(i) * sizeof(P) : 0;
        const P *from = d.body() + (has(i) ? first(i) : 0);
        cg::memcpy_async(block, shared + i % stages * vectors(), from, cuda::aligned_size_t<vector_bytes>(bytes));
    }
};

template <class M> __device__ typename M::acc reduce_stages(const stage_walk<typename M::storage> &walk) {
    using P = packet<typename M::storage>;
    extern __shared__ __align__(16) unsigned char shared[];
    P *stage = reinterpret_cast<P *>(shared);
    const auto block = cg::this_thread_block();
    typename M::acc a = M::identity();
    walk.fetch(block, stage, 0);
    for (uint64_t i = 0; walk.has(i); ++i) {
        walk.fetch(block, stage, i + 1);
        cg::wait_prior<1>(block);
        tile_of<M> t;
#pragma unroll
        for (int v = stage_vectors - 1; v >= 0; --v) {
            const unsigned at = v * blockDim.x + threadIdx.x;
            if (at < walk.size(i))
                t.add(stage[i % stages * walk.vectors() + at], v);
        }
        a = t.fold_into(a, [](unsigned) { return uint64_t{0}; });
        block.sync(); /* before this stage is overwritten */
    }
    cg::wait(block);
    return a;
}

template <class M>
__global__ void __launch_bounds__(most_threads, 1) async_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = partial<M>;
    static_assert(sizeof(typename X::type) <= demonstrated_bytes);
    const thread_slice<M> mine = begin<M>(args);
    const unaligned_ends<reader_of<M>> e(mine.d);
    const auto own = X::pack(reduce_stages<M>(stage_walk<typename M::storage>{mine.d}));
    const auto x = reduce_block<M>(e.template with<M>(own));
    meet<M, true>(args, mine.d.count, x, blockIdx.x, gridDim.x - 1);
}

struct async_form : demonstrated_form {
    template <class M> static constexpr kernel_entry entry() {
        if constexpr (is_demonstrated<M>)
            return async_kernel<M>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<async_form>::of(key); }
    static int shared_bytes(const dpr_key *) { return stages * stage_vectors * vector_bytes; }
};

using async =
    demonstration<async_form, 4 * stage_vectors, stages * stage_vectors * vector_bytes, demonstrated_partials>;

} // namespace
} // namespace dpr

DPR_DEMONSTRATION(coop_async, "coop.async", dpr::async, 1.0,
                  "cg::memcpy_async() copies a stage to shared memory while another is read")
