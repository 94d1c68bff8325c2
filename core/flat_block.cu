/* flat.block: one block reads the whole array. The least latency there is, for arrays that one SM reads in no time. */
#include "cost.h"
#include "finish.cuh"
#include "launch.h"

namespace dpr {
namespace {

constexpr int block_threads = 1024;

template <class M>
__global__ void __launch_bounds__(block_threads, 1) block_kernel(const __grid_constant__ dpr_kernel_args args) {
    const uint64_t count = begin<M>(args);
    const auto x = reduce_block<M>(reduce_share<M>(args, count));
    if (threadIdx.x == 0)
        write_result<M>(args, count, exchange<M>::unpack(x));
}

struct block_family {
    template <class M> static constexpr kernel_entry entry() { return block_kernel<M>; }
};

const char *probe(const dpr_key *, const dpr_caps *caps) {
    return caps->gpu.max_threads_per_block < block_threads ? "needs blocks of 1024 threads" : nullptr;
}

double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    const double ends = dpr_seeks_index(key) ? 0.45e-6 : 0;
    return DPR_LAUNCH_SECONDS + ends + dpr_key_bytes(key, count) / dpr_sm_rate(key, &caps->gpu);
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<block_family>::of(key), block_threads, 0, 1, 0};
}

dpr_shape shape(const dpr_key *, const dpr_caps *caps, dpr_residency) {
    dpr_shape shape = {};
    shape.threads = block_threads;
    shape.max_blocks = 1;
    shape.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return shape;
}

int launch(const dpr_run *run) {
    using family = instances<block_family>;
    const dpr_launch launch = dpr_spread(family::of(&run->key), family::in_flight(&run->key), run);
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_block;
const dpr_strategy dpr_flat_block = {
    .name = "flat.block",
    .text = "one block reads everything: least latency, for small arrays",
    .side = DPR_ON_GPU,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .shape = dpr::shape,
    .launch = dpr::launch,
};
