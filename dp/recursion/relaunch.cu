/* The kernels that measure what a graph takes that launches itself again. They belong to the module of nested launches,
 * because their launches need its code. */
#include "relaunch.h"

#include "arena.cuh"
#include "run_launches.cuh"

namespace dpr {
namespace recursion {
namespace {

/* It lies in the run's scratch memory, so it is zero between runs. */
struct relaunch_state {
    uint64_t began, ended; /* the beginning of the first round, and of the one after the last that counts */
    uint32_t rounds;       /* that are done */
};
static_assert(sizeof(relaunch_state) <= DPR_SCRATCH_BYTES);

__device__ relaunch_state &state_of(const dpr_relaunch_args &args) {
    return *static_cast<relaunch_state *>(args.run.scratch);
}

} // namespace
} // namespace recursion
} // namespace dpr

/* The graph's first kernel has as many blocks as a phase has at least, and one of its threads looks at the clock. */
extern "C" __global__ void dpr_relaunch_round(const __grid_constant__ dpr_relaunch_args args) {
    auto &state = dpr::recursion::state_of(args);
    if (dpr::recursion::thread_in_grid() != 0)
        return;
    if (state.rounds == 0)
        state.began = dpr::recursion::time_now();
    if (state.rounds == args.rounds)
        state.ended = dpr::recursion::time_now();
}

/* The graph's second kernel, of one thread. The graph ends, because each round is counted. */
extern "C" __global__ void dpr_relaunch_again(const __grid_constant__ dpr_relaunch_args args) {
    const bool another =
        dpr::recursion::state_of(args).rounds++ < args.rounds && dpr::recursion::time_now() < args.deadline;
    if constexpr (dpr::makes_launches)
        if (another)
            (void)cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

/* Comes after all rounds, or alone, and leaves the scratch memory zero. */
extern "C" __global__ void dpr_relaunch_tell(const __grid_constant__ dpr_relaunch_args args) {
    using namespace dpr::recursion;
    if (threadIdx.x != 0)
        return;
    relaunch_state &state = state_of(args);
    const uint64_t now = time_now(), took = state.ended > state.began ? state.ended - state.began : 0;
    const uint32_t times[] = {static_cast<uint32_t>(took < UINT32_MAX ? took : UINT32_MAX), static_cast<uint32_t>(now),
                              static_cast<uint32_t>(now >> 32)};
    static_assert(sizeof times == sizeof(dpr_relaunch_times), "its words");
    dpr_recursion_args to = {};
    to.mailbox = static_cast<uint64_t *>(args.run.out);
    to.tag = args.run.tag;
    state = {};
    __threadfence_system();
    post(to, 0, times, sizeof times / sizeof *times);
}
