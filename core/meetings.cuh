/* The kernel of flat.ticket, flat.twopass and coop.grid (meetings.h). */
#ifndef DPR_CORE_MEETINGS_CUH
#define DPR_CORE_MEETINGS_CUH

#include <cooperative_groups.h>

#include "family.cuh"
#include "finish.cuh"
#include "meetings.h"

namespace dpr {

/* The partial results of a round lie after those of the round before, so that a block that is ahead does not overwrite
 * what others still read. */
template <class M>
__device__ void meet_in_grid(const dpr_kernel_args &args, uint64_t count, typename partial<M>::type x) {
    using X = partial<M>;
    const auto grid = cooperative_groups::this_grid();
    typename X::type *partials = rows_of<M>(args, args.scratch);
    for (unsigned n = gridDim.x; n > 1; n = (n + blockDim.x - 1) / blockDim.x) {
        if (threadIdx.x == 0 && blockIdx.x < n)
            partials[blockIdx.x] = x;
        grid.sync();
        const unsigned i = thread_of_grid();
        x = X::identity();
        if (i < n) {
            x = partials[i];
            clear_row<M>(&partials[i]);
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
    typename X::type *partials = rows_of<M>(args, args.scratch), x = X::identity();
    for (unsigned i = threadIdx.x; i < args.partials; i += blockDim.x) {
        x = X::combine(x, partials[i]);
        clear_row<M>(&partials[i]);
    }
    x = reduce_block<M>(x);
    if (threadIdx.x == 0)
        write_result<M>(args, elements(args), X::unpack(x));
}

template <class M>
static __global__ void __launch_bounds__(most_threads, 1)
    meetings_kernel(const __grid_constant__ dpr_kernel_args args) {
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
        rows_of<M>(args, args.scratch)[blockIdx.x] = x;
}

} // namespace dpr

#endif
