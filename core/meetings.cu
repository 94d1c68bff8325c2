#include "meetings.h"

#include <cooperative_groups.h>

#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

constexpr int largest_partial = 16; /* bytes */

template <class M> __device__ typename partial<M>::type *partials_of(const dpr_kernel_args &args) {
    return static_cast<typename partial<M>::type *>(args.scratch);
}

/* The partial results of a round lie after those of the round before, so that a block that is ahead does not overwrite
 * what others still read. */
template <class M>
__device__ void meet_in_grid(const dpr_kernel_args &args, uint64_t count, typename partial<M>::type x) {
    using X = partial<M>;
    const auto grid = cooperative_groups::this_grid();
    auto *partials = partials_of<M>(args);
    for (unsigned n = gridDim.x; n > 1; n = (n + blockDim.x - 1) / blockDim.x) {
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

/* Folds the partial results that the blocks of the launch before have stored. */
template <class M> __device__ void meet_now(const dpr_kernel_args &args) {
    using X = partial<M>;
    let_next_launch();
    wait_for_work_before();
    typename X::type *partials = partials_of<M>(args), x = X::identity();
    for (unsigned i = threadIdx.x; i < args.partials; i += blockDim.x) {
        x = X::combine(x, partials[i]);
        memset(&partials[i], 0, sizeof partials[i]);
    }
    x = reduce_block<M>(x);
    if (threadIdx.x == 0)
        write_result<M>(args, elements(args), X::unpack(x));
}

template <class M>
__global__ void __launch_bounds__(most_threads, 1) meetings_kernel(const __grid_constant__ dpr_kernel_args args) {
    static_assert(sizeof(typename partial<M>::type) <= largest_partial);
    if (args.meeting == DPR_MEET_NOW) {
        meet_now<M>(args);
        return;
    }
    const thread_slice<M> mine = begin<M>(args);
    const auto x = reduce_block<M>(reduce_slice<M>(args, mine));
    if (args.meeting == DPR_MEET_BY_TICKET)
        finish_by_ticket<M, folded_by::warp>(args, mine.d.count, x);
    else if (args.meeting == DPR_MEET_IN_GRID)
        meet_in_grid<M>(args, mine.d.count, x);
    else if (threadIdx.x == 0)
        partials_of<M>(args)[blockIdx.x] = x;
}

struct meetings_family {
    template <class M> static constexpr kernel_entry entry() { return meetings_kernel<M>; }
};

using strategy = block_per_sm<meetings_family, most_partials>;
static_assert(most_partials <= most_tickets(largest_partial));

} // namespace
} // namespace dpr

const char *dpr_meeting_probe(const dpr_key *key, const dpr_caps *caps) {
    return dpr::strategy::probe(key, caps);
}

dpr_kernel dpr_meeting_kernel(const dpr_key *key) {
    return dpr::strategy::kernel(key);
}

dpr_launch_limits dpr_meeting_limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    return dpr::strategy::limits(key, caps, resident);
}

dpr_launch dpr_meeting_spread(const dpr_run *run, uint32_t meeting) {
    dpr_launch launch = dpr::strategy::spread(run);
    launch.meeting = meeting;
    return launch;
}
