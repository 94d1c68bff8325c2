/* How demonstrations reduce segments one by one: a thread, a warp or a block reduces each. */
#ifndef DPR_CORE_SEGMENTS_TEAMS_CUH
#define DPR_CORE_SEGMENTS_TEAMS_CUH

#include "segments.cuh"

namespace dpr {

/* The threads that reduce a segment together. */
enum class team { thread, warp, block };

template <team Team> struct members {
    static __device__ unsigned size() {
        return Team == team::thread ? 1 : Team == team::warp ? 32 : static_cast<unsigned>(blockDim.x);
    }
    static __device__ unsigned lane() { return threadIdx.x % size(); }

    /* The number of the calling thread's team in the grid, and how many teams the grid has. */
    static __device__ uint64_t number() { return thread_of_grid() / size(); }
    static __device__ uint64_t count() { return threads_of_grid() / size(); }
};

/* Combines the values of a team. All of its threads call it; the result is valid in the first one. */
template <class M, team Team> __device__ typename partial<M>::type reduce_team(typename partial<M>::type x) {
    if constexpr (Team == team::warp)
        x = reduce_warp<M>(x);
    if constexpr (Team == team::block)
        x = reduce_block<M>(x);
    return x;
}

/* The value of a range of elements, valid in the first thread of the team. All of its threads call it, and between two
 * calls by a block there must be a barrier. */
template <class M, team Team>
__device__ typename partial<M>::type reduce_range(const dpr_segment_args &args, segment_range r) {
    const auto *in = static_cast<const typename M::storage *>(args.run.in);
    return reduce_team<M, Team>(reduce_share<M>(in, r.first, r.count, members<Team>::lane(), members<Team>::size()));
}

/* Reduces segment `i` and writes its result. All threads of a team call it. */
template <class M, team Team> __device__ void reduce_segment(const dpr_segment_args &args, uint64_t i) {
    const segment_range r = range_of(args.list, i);
    const auto x = reduce_range<M, Team>(args, r);
    if (members<Team>::lane() == 0)
        write_segment<M>(args, i, r.first, r.count, partial<M>::unpack(x));
    if constexpr (Team == team::block)
        __syncthreads();
}

/* The teams of the grid take turns at `n` segments: those with the numbers number_of(0), number_of(1) ... */
template <class M, team Team, class Numbers>
__device__ void reduce_each(const dpr_segment_args &args, uint64_t n, Numbers number_of) {
    for (uint64_t k = members<Team>::number(); k < n; k += members<Team>::count())
        reduce_segment<M, Team>(args, number_of(k));
}

} // namespace dpr

#endif
