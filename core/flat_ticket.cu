/* flat.ticket: every block leaves its partial result in scratch memory and takes a ticket; the block with the last one
 * folds the partials in block order. One launch, and nothing is assumed of the order in which blocks start. */
#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

constexpr int largest_exchange = 16; /* bytes */

template <class M>
__global__ void __launch_bounds__(most_threads, 1) ticket_kernel(const __grid_constant__ dpr_kernel_args args) {
    static_assert(sizeof(typename exchange<M>::type) <= largest_exchange);
    const share<M> mine = begin<M>(args);
    finish_by_ticket<M, folded_by::warp>(args, mine.d.count, reduce_block<M>(reduce_share<M>(args, mine)));
}

struct ticket_family {
    template <class M> static constexpr kernel_entry entry() { return ticket_kernel<M>; }
};

using strategy = block_per_sm<ticket_family, most_tickets(largest_exchange)>;

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
    .block_sizes = 0,
    .probe = dpr::strategy::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .shape = dpr::strategy::shape,
    .launch = dpr::strategy::launch,
    .work_bytes = nullptr,
    .describe = nullptr,
};
