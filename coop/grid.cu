/* coop.grid: a cooperative launch. Every block leaves its partial result in scratch memory; then, in as many rounds as
 * it takes, the grid synchronises and blocks fold the partials, a block's worth each, until one is left. */
#include "cost.h"
#include "finish.cuh"
#include "launch.h"

#include <cooperative_groups.h>

namespace dpr {
namespace {

constexpr int block_threads = 1024;

template <class M>
__global__ void __launch_bounds__(block_threads, 1) grid_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = exchange<M>;
    const auto grid = cooperative_groups::this_grid();
    const uint64_t count = begin<M>(args);
    auto *partials = static_cast<typename X::type *>(args.scratch);
    typename X::type x = reduce_block<M>(reduce_share<M>(args, count));
    /* The partials of a round lie after those of the round before, so that no block overtakes another. */
    unsigned n = gridDim.x;
    for (; n > 1; n = (n + blockDim.x - 1) / blockDim.x) {
        if (threadIdx.x == 0 && blockIdx.x < n)
            partials[blockIdx.x] = x;
        grid.sync();
        const unsigned i = thread_of_grid();
        x = X::identity();
        if (i < n) {
            x = partials[i];
            memset(&partials[i], 0, sizeof partials[i]);
        }
        if (blockIdx.x * blockDim.x < n)
            x = reduce_block<M>(x);
        partials += n;
    }
    if (thread_of_grid() == 0)
        write_result<M>(args, count, X::unpack(x));
}

struct grid_family {
    template <class M> static constexpr kernel_entry entry() { return grid_kernel<M>; }
};

const char *probe(const dpr_key *, const dpr_caps *caps) {
    if (!caps->gpu.cooperative_launch)
        return "needs cooperative launches";
    return caps->gpu.max_threads_per_block < block_threads ? "needs blocks of 1024 threads" : nullptr;
}

double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    const double ends = dpr_seeks_index(key) ? 3.60e-6 : 2.80e-6; /* beside reading, on an H200 */
    return DPR_LAUNCH_SECONDS + ends + dpr_key_bytes(key, count) / dpr_memory_rate(&caps->gpu);
}

dpr_kernel kernel(const dpr_key *key) {
    return {instances<grid_family>::of(key), block_threads, 0, 1, 0};
}

dpr_shape shape(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    return dpr_block_per_sm(caps, resident, block_threads, most_partials);
}

int launch(const dpr_run *run) {
    using family = instances<grid_family>;
    dpr_launch launch = dpr_spread(family::of(&run->key), family::in_flight(&run->key), run);
    launch.cooperative = 1;
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_coop_grid;
const dpr_strategy dpr_coop_grid = {
    .name = "coop.grid",
    .text = "all SMs read; the grid synchronises and its first block folds the partial results",
    .side = DPR_ON_GPU,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .shape = dpr::shape,
    .launch = dpr::launch,
};
