/* flat.ticket: every block leaves its partial result in scratch memory and takes a ticket; the block with the last one
 * folds the partials in block order. One launch, and nothing is assumed of the order in which blocks start. */
#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

/* Scratch memory: the ticket, and from here on the partials. */
constexpr int partials_at = 128;
constexpr int partial_bytes = 16; /* of the largest exchange type */
constexpr int partials_fit = (DPR_SCRATCH_BYTES - partials_at) / partial_bytes;

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
__global__ void __launch_bounds__(most_threads, 1) ticket_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = exchange<M>;
    static_assert(sizeof(typename X::type) <= partial_bytes);
    const share<M> mine = begin<M>(args);
    unsigned *ticket = static_cast<unsigned *>(args.scratch);
    auto *partials = reinterpret_cast<typename X::type *>(static_cast<char *>(args.scratch) + partials_at);

    typename X::type x = reduce_block<M>(reduce_share<M>(args, mine));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = x;
    if (!last_to_arrive(ticket) || threadIdx.x >= 32)
        return;
    typename M::acc a = M::identity();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += 32) {
        a = M::merge(a, X::unpack(partials[i]));
        memset(&partials[i], 0, sizeof partials[i]);
    }
    x = reduce_warp<M>(X::pack(a));
    if (threadIdx.x == 0) {
        *ticket = 0;
        write_result<M>(args, mine.d.count, X::unpack(x));
    }
}

struct ticket_family {
    template <class M> static constexpr kernel_entry entry() { return ticket_kernel<M>; }
};

using strategy = block_per_sm<ticket_family, partials_fit>;

double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    const double ends = dpr_seeks_index(key) ? 2.20e-6 : 1.75e-6; /* beside reading, on an H200 */
    return DPR_LAUNCH_SECONDS + ends + dpr_key_bytes(key, count) / dpr_memory_rate(&caps->gpu);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_ticket;
const dpr_strategy dpr_flat_ticket = {
    .name = "flat.ticket",
    .text = "all SMs read; the block that finishes last folds the partial results",
    .side = DPR_ON_GPU,
    .probe = dpr::strategy::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .shape = dpr::strategy::shape,
    .launch = dpr::strategy::launch,
};
