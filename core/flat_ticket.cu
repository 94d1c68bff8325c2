/* flat.ticket: every block leaves its partial result in scratch memory and takes a ticket; the block with the last one
 * folds the partials in block order. One launch, no host, and the same bits every time. */
#include <cuda/atomic>

#include "cost.h"
#include "finish.cuh"
#include "launch.h"

namespace dpr {
namespace {

constexpr int block_threads = 512;
constexpr int blocks_per_sm_promised = 2; /* 64 registers a thread on 64 K registers an SM */

/* Largest accumulator: a key or an F64 beside another. */
constexpr int partial_bytes = 16;
constexpr int most_blocks = (DPR_SCRATCH_BYTES - DPR_SCRATCH_ZEROED) / partial_bytes;

/* Takes a ticket after this block's partial is in memory; true in every thread of the block that took the last one, and
 * then all partials are visible to all its threads. */
__device__ bool last_to_arrive(unsigned *ticket) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrivals(*ticket);
        last = arrivals.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
    }
    __syncthreads();
    return last;
}

template <class M>
__global__ void __launch_bounds__(block_threads, blocks_per_sm_promised)
    ticket_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = exchange<M>;
    static_assert(sizeof(typename X::type) <= partial_bytes);
    unsigned *ticket = static_cast<unsigned *>(args.scratch);
    auto *partials = reinterpret_cast<typename X::type *>(static_cast<char *>(args.scratch) + DPR_SCRATCH_ZEROED);

    typename M::acc a = reduce_block<M, block_threads>(reduce_share<M>(args.in, args.count));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = X::pack(a);
    if (!last_to_arrive(ticket))
        return;
    a = M::identity();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += block_threads)
        a = M::merge(a, X::unpack(partials[i]));
    a = reduce_block<M, block_threads>(a);
    if (threadIdx.x == 0) {
        *ticket = 0; /* the scratch memory is ready for the next run in this stream */
        write_result<M>(args, a);
    }
}

struct ticket_family {
    template <class M> static constexpr kernel_entry entry() { return ticket_kernel<M>; }
};

const char *probe(const dpr_key *, const dpr_caps *caps) {
    return caps->gpu.max_threads_per_block < block_threads ? "needs blocks of 512 threads" : nullptr;
}

/* On an H200 the kernel takes 2.65 us more than an empty one beside reading: loading, two folds, the ticket between. */
double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    return DPR_LAUNCH_SECONDS + 2.65e-6 + dpr_key_bytes(key, count) / dpr_memory_rate(&caps->gpu);
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<ticket_family>::of(key), block_threads, 0, blocks_per_sm_promised};
}

dpr_shape shape(const dpr_key *, const dpr_caps *caps, int blocks_per_sm) {
    const int fit = static_cast<int>(caps->gpu.sm_count) * blocks_per_sm;
    return {block_threads, fit < most_blocks ? fit : most_blocks, block_threads * vector_bytes, DPR_SCRATCH_BYTES};
}

int launch(const dpr_run *run) {
    const dpr_kernel k = kernel(&run->key);
    const size_t bytes = run->count * dpr_dtypes[run->key.f.dtype].size;
    const size_t wanted = bytes / run->shape.block_bytes + 1;
    const size_t most = static_cast<size_t>(run->shape.max_blocks);
    return dpr_launch(&k, static_cast<unsigned>(wanted < most ? wanted : most), run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_ticket;
const dpr_strategy dpr_flat_ticket = {
    .name = "flat.ticket",
    .text = "all SMs read; the block that finishes last folds the partial results",
    .side = DPR_ON_GPU,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .shape = dpr::shape,
    .launch = dpr::launch,
};
