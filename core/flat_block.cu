/* flat.block: one block reads the whole array. It has the least latency of all strategies, for arrays that one SM reads
 * quickly. */
#include "cost_link.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

template <class M>
__global__ void __launch_bounds__(most_threads, 1) block_kernel(const __grid_constant__ dpr_kernel_args args) {
    const thread_slice<M> mine = begin<M>(args);
    const auto x = reduce_block<M>(reduce_slice<M>(args, mine));
    if (threadIdx.x == 0)
        write_result<M>(args, mine.d.count, partial<M>::unpack(x));
}

struct block_family {
    template <class M> static constexpr kernel_entry entry() { return block_kernel<M>; }
};

using strategy = block_per_sm<block_family, 1>;

dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double ends = dpr_seeks_index(key) ? 0.34e-6 : 0;
    return {DPR_LAUNCH_SECONDS + ends, dpr_array_bytes(key, size), dpr_array_sm_rate(key, &caps->gpu)};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency) {
    dpr_launch_limits limits = {};
    limits.threads = strategy::threads;
    limits.max_blocks = 1;
    limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return limits;
}

int launch(const dpr_run *run) {
    using family = instances<block_family>;
    const dpr_launch launch = dpr_spread(family::of(&run->key), 32, family::in_flight(&run->key), run);
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_block;
const dpr_strategy dpr_flat_block = {
    .name = "flat.block",
    .text = "one block reads everything: least latency, for small arrays",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .probe = dpr::strategy::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
