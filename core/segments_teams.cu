/* segments.thread, segments.warp and segments.block: a thread, a warp or a block reduces each segment, whatever its
 * length. If threads do, the lanes of a warp read far from each other. If blocks do, threads read neighbouring
 * elements, but most of them have none in short segments. */
#include "segments_demonstration.cuh"
#include "segments_teams.cuh"

namespace dpr {
namespace {

template <class M, team Team>
__global__ void __launch_bounds__(most_threads, 1) team_kernel(const __grid_constant__ dpr_segment_args args) {
    let_next_launch();
    wait_for_work_before();
    reduce_each<M, Team>(args, dpr_segment_count(&args.list), [](uint64_t i) { return i; });
}

template <team Team> struct team_form : demonstrated_form {
    template <class M> static constexpr segment_entry entry() {
        if constexpr (is_demonstrated<M>)
            return team_kernel<M, Team>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<team_form, segment_entry>::of(key); }
};

template <team Team> struct by_teams : of_segments<team_form<Team>> {
    static int launch(const dpr_run *run) {
        const int threads = run->limits.threads, teams = Team == team::thread ? threads
                                                         : Team == team::warp ? threads / 32
                                                                              : 1;
        return launch_for_segments<team_form<Team>>(run, run->segments->count, static_cast<uint64_t>(teams), {});
    }
};

using by_threads = by_teams<team::thread>;
using by_warps = by_teams<team::warp>;
using by_blocks = by_teams<team::block>;

} // namespace
} // namespace dpr

DPR_SEGMENTS_DEMONSTRATION(segments_thread, "segments.thread", dpr::by_threads, 0.2, 0, 0, nullptr,
                           "a thread for each segment")
DPR_SEGMENTS_DEMONSTRATION(segments_warp, "segments.warp", dpr::by_warps, 0.8, 0.2e-9, 0, nullptr,
                           "a warp for each segment")
DPR_SEGMENTS_DEMONSTRATION(segments_block, "segments.block", dpr::by_blocks, 0.9, 4e-9, 0, nullptr,
                           "a block for each segment")
