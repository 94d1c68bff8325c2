/* coop.grid: a cooperative launch. Every block leaves its partial result in scratch memory; then, in as many rounds as
 * it takes, the grid synchronises and blocks fold the partials, a block's worth each, until one is left. */
#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

#include <cooperative_groups.h>

namespace dpr {
namespace {

template <class M>
__global__ void __launch_bounds__(most_threads, 1) grid_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = exchange<M>;
    const auto grid = cooperative_groups::this_grid();
    const share<M> mine = begin<M>(args);
    auto *partials = static_cast<typename X::type *>(args.scratch);
    typename X::type x = reduce_block<M>(reduce_share<M>(args, mine));
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
        write_result<M>(args, mine.d.count, X::unpack(x));
}

struct grid_family {
    template <class M> static constexpr kernel_entry entry() { return grid_kernel<M>; }
};

using strategy = block_per_sm<grid_family, most_partials>;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    return caps->gpu.cooperative_launch ? strategy::probe(key, caps) : "needs cooperative launches";
}

double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    const double ends = dpr_seeks_index(key) ? 3.20e-6 : 2.70e-6; /* beside reading, on an H200 */
    return DPR_LAUNCH_SECONDS + ends + dpr_key_bytes(key, count) / dpr_memory_rate(&caps->gpu);
}

int launch(const dpr_run *run) {
    dpr_launch launch = strategy::spread(run);
    launch.cooperative = 1;
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_coop_grid;
const dpr_strategy dpr_coop_grid = {
    .name = "coop.grid",
    .text = "all SMs read; the grid synchronises, and one block folds partial results",
    .side = DPR_ON_GPU,
    .block_sizes = 0,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .shape = dpr::strategy::shape,
    .launch = dpr::launch,
    .work_bytes = nullptr,
    .describe = nullptr,
};
