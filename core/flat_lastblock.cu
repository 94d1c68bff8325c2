/* flat.lastblock: every block but the last posts its partial result as tagged words, which need no fence, and is done.
 * The last block, which starts after all others have started, polls until it has seen them all. A run takes one launch
 * and one trip through L2, and gives the same bits every time. */
#include "cost_link.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

template <class M>
__global__ void __launch_bounds__(most_threads, 1) lastblock_kernel(const __grid_constant__ dpr_kernel_args args) {
    const thread_slice<M> mine = begin<M>(args);
    const auto x = reduce_block<M>(reduce_slice<M>(args, mine));
    meet<M>(args, mine.d.count, x, blockIdx.x, gridDim.x - 1);
}

struct lastblock_family {
    template <class M> static constexpr kernel_entry entry() { return lastblock_kernel<M>; }
};

using strategy = block_per_sm<lastblock_family, most_partials>;

dpr_cost cost(const dpr_key *key, const dpr_caps *, dpr_size size) {
    const double ends = dpr_seeks_index(key) ? 1.75e-6 : 0.78e-6; /* seconds in addition to reading, on an H200 */
    return {DPR_LAUNCH_SECONDS + ends + dpr_last_look(key), dpr_array_bytes(key, size), 0};
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_lastblock;
const dpr_strategy dpr_flat_lastblock = {
    .name = "flat.lastblock",
    .text = "all SMs read and post partial results; the last block gathers them",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::strategy::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .limits = dpr::strategy::limits,
    .launch = dpr::strategy::launch,
};
