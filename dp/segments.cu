/* dp.segments: a warp for each segment. For a long one the warp launches a grid, whose warps reduce the segment's
 * pieces; the last block of that grid to be done combines their values and writes the result. A warp whose launch is
 * refused reduces the pieces one after another, in the same order. */
#include "demonstration.cuh"
#include "pairs.h"
#include "run_launches.cuh"
#include "segments_args.h"
#include "segments_pieces.cuh"

namespace dpr {
namespace {

/* The scratch memory of a run. */
struct segments_scratch {
    run_account account;
    unsigned taken; /* places that long segments have taken */
};
static_assert(sizeof(segments_scratch) <= DPR_SCRATCH_BYTES);

__device__ segments_scratch &scratch_of(const dpr_nested_args &args) {
    return *static_cast<segments_scratch *>(args.run.scratch);
}

__device__ unsigned lane_of_warp() {
    return threadIdx.x % 32;
}
__device__ unsigned warp_of_grid() {
    return thread_of_grid() / 32;
}
__device__ unsigned warps_of_grid() {
    return threads_of_grid() / 32;
}

/* One segment, whose elements are in[0 .. count - 1]. */
template <class M> struct row {
    using X = partial<M>;
    using T = typename X::type;
    static_assert(sizeof(T) <= DPR_PLACE_BYTES);
    const dpr_kernel_args &run;
    const typename M::storage *in;
    uint64_t count;
    typename M::result *out;

    /* The value of a range, valid in lane 0. All lanes of a warp call it. */
    __device__ T reduce(segment_range r) const {
        return reduce_warp<M>(reduce_share<M>(in, r.first, r.count, lane_of_warp(), 32));
    }
    __device__ T reduce_piece(unsigned piece) const { return reduce(range_of_piece({0, count}, piece)); }

    /* Writes the result: `x` is the value of all elements, in lane 0. */
    __device__ void write(T x) const {
        if (lane_of_warp() == 0)
            write_completed<M, false, false>(place_writer{run, out}, count, X::unpack(x));
    }

    /* Reduces the pieces one after another, in the order in which merge_share() combines their values. */
    __device__ void reduce_in_line() const {
        const auto pieces = static_cast<unsigned>(dpr_pieces_of(count));
        typename M::acc mine = M::identity();
        for (unsigned i = 0; i < pieces; ++i) {
            const T x = of_first_lane(reduce_piece(i));
            if (lane_of_warp() == i % 32)
                mine = M::merge(mine, X::unpack(x));
        }
        write(reduce_warp<M>(X::pack(mine)));
    }
};

/* What a launched grid does. The first place that its segment has taken is the grid's ticket; those of the values
 * follow. */
template <class M> __device__ void reduce_long(const dpr_nested_args &args) {
    using T = typename partial<M>::type;
    const row<M> mine = {args.run, static_cast<const typename M::storage *>(args.run.in), args.run.count,
                         static_cast<typename M::result *>(args.run.out)};
    const auto pieces = static_cast<unsigned>(dpr_pieces_of(mine.count));
    auto *ticket = static_cast<unsigned *>(args.run.workspace);
    auto *values = reinterpret_cast<T *>(static_cast<char *>(args.run.workspace) + DPR_PLACE_BYTES);
    for (unsigned i = warp_of_grid(); i < pieces; i += warps_of_grid()) {
        const T x = mine.reduce_piece(i);
        if (lane_of_warp() == 0)
            values[i] = x;
    }
    __syncthreads(); /* the block's values are written */
    if (last_to_arrive(ticket) && threadIdx.x < 32)
        mine.write(reduce_warp<M>(merge_share<M>(values, pieces, threadIdx.x, 32)));
}

/* Takes places for the pieces of a long segment and for a ticket, and a launch. Returns the number of the first place,
 * or no_place. */
__device__ unsigned take_for_launch(const dpr_nested_segments_args &args, uint64_t pieces) {
    const unsigned place = take_places(&scratch_of(args.nested).taken, pieces + 1, args.room);
    const bool taken = place != no_place && take_launches(args.nested, 1) > 0;
    if (!taken)
        note_refusal(args.nested);
    return taken ? place : no_place;
}

/* Launches the grid that reduces a long segment. Returns true if it was launched. One lane of a warp calls it. */
template <class M> __device__ bool launch_long(const dpr_nested_segments_args &args, const row<M> &mine) {
    constexpr unsigned warps = DPR_SEGMENTS_THREADS / 32;
    const auto pieces = static_cast<unsigned>(dpr_pieces_of(mine.count));
    const unsigned place = take_for_launch(args, pieces);
    if (place == no_place)
        return false;
    auto *places = static_cast<char *>(args.nested.run.workspace) + static_cast<uint64_t>(place) * DPR_PLACE_BYTES;
    *reinterpret_cast<unsigned *>(places) = 0; /* the ticket */
    return launch_next(args.nested, min((pieces - 1) / warps + 1, DPR_SEGMENTS_MOST_BLOCKS), DPR_SEGMENTS_THREADS,
                       cudaStreamFireAndForget, [&](dpr_nested_args &next) {
                           next.go_on = reinterpret_cast<void *>(continuation(reduce_long<M>));
                           next.run.in = mine.in;
                           next.run.out = mine.out;
                           next.run.count = mine.count;
                           next.run.workspace = places;
                       });
}

template <class M> __device__ void reduce_one(const dpr_nested_segments_args &args, uint64_t i) {
    const segment_range r = range_of(args.list, i);
    const auto *in = static_cast<const typename M::storage *>(args.nested.run.in);
    const row<M> mine = {args.nested.run, in + r.first, r.count,
                         static_cast<typename M::result *>(args.nested.run.out) + i};
    if (r.count <= DPR_LONGEST_OF_WARP) {
        mine.write(mine.reduce({0, r.count}));
        return;
    }
    bool launched = false;
    if (lane_of_warp() == 0) {
        launched = launch_long(args, mine);
        if (!launched)
            note_in_line(args.nested);
    }
    if (!__any_sync(~0u, launched))
        mine.reduce_in_line();
}

template <class M> __device__ void reduce_rows(const dpr_nested_segments_args &args) {
    const uint64_t segments = dpr_segment_count(&args.list);
    for (uint64_t i = warp_of_grid(); i < segments; i += warps_of_grid())
        reduce_one<M>(args, i);
}

} // namespace

/* ---- The kernels, by the names that the host asks for ---- */

#define DPR_SEGMENTS_KERNEL(OP, DTYPE, NAN)                                                                            \
    extern "C" __global__ void __launch_bounds__(DPR_SEGMENTS_THREADS, 4)                                              \
        dpr_segments_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_segments_args args) {                   \
        reduce_rows<monoid<DPR_##OP, DPR_##DTYPE, static_cast<dpr_nan>(NAN)>>(args);                                   \
    }

DPR_DEMONSTRATED_PAIRS(DPR_SEGMENTS_KERNEL)

} // namespace dpr

/* The second kernel that the host launches, of one thread. It starts when the first one, and all that was launched
 * below it, is done. */
extern "C" __global__ void __launch_bounds__(32)
    dpr_end_segments(const __grid_constant__ dpr_nested_segments_args args) {
    if (threadIdx.x != 0)
        return;
    dpr::close_account(args.nested);
    dpr::scratch_of(args.nested).taken = 0;
}
