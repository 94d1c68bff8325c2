/* flat.lookback: every block but the last posts its partial result as tagged words, which need no fence, and is done;
 * the last one, which starts when all others have started, looks until it has seen them all. One launch, one trip
 * through L2, and the same bits every time. */
#include "cost.h"
#include "finish.cuh"
#include "launch.h"

namespace dpr {
namespace {

constexpr int block_threads = 1024;

template <class M>
__global__ void __launch_bounds__(block_threads, 1) lookback_kernel(const __grid_constant__ dpr_kernel_args args) {
    const uint64_t count = begin<M>(args);
    const auto x = reduce_block<M>(reduce_share<M>(args, count));
    const unsigned last = gridDim.x - 1;
    if (blockIdx.x != last) {
        if (threadIdx.x == 0)
            post<cuda::thread_scope_device>(tagged_partial<M>(args, blockIdx.x), x, 1);
    } else if (threadIdx.x < 32) {
        gather<M>(args, count, x, last);
    }
}

struct lookback_family {
    template <class M> static constexpr kernel_entry entry() { return lookback_kernel<M>; }
};

const char *probe(const dpr_key *, const dpr_caps *caps) {
    return caps->gpu.max_threads_per_block < block_threads ? "needs blocks of 1024 threads" : nullptr;
}

double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    const double ends = dpr_seeks_index(key) ? 2.20e-6 : 1.05e-6; /* beside reading, on an H200 */
    return DPR_LAUNCH_SECONDS + ends + dpr_key_bytes(key, count) / dpr_memory_rate(&caps->gpu);
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<lookback_family>::of(key), block_threads, 0, 1, 0};
}

dpr_shape shape(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    return dpr_block_per_sm(caps, resident, block_threads, most_partials);
}

int launch(const dpr_run *run) {
    using family = instances<lookback_family>;
    const dpr_launch launch = dpr_spread(family::of(&run->key), family::in_flight(&run->key), run);
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_lookback;
const dpr_strategy dpr_flat_lookback = {
    .name = "flat.lookback",
    .text = "all SMs read and post their partial results; the last block looks back at them and folds",
    .side = DPR_ON_GPU,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .shape = dpr::shape,
    .launch = dpr::launch,
};
