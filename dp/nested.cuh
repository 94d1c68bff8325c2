/* Launches from the kernels of a run: admitted by credits, and noted in the run's account. */
#ifndef DPR_DP_NESTED_CUH
#define DPR_DP_NESTED_CUH

#include "credits.cuh"
#include "finish.cuh"
#include "nested.h"

/* Launches on this device that hold a credit, of all runs: in memory of the module, of which there is one copy. */
extern "C" __device__ unsigned dpr_credits_taken;

namespace dpr {

/* A run's account, in its scratch memory: zero between runs. */
struct nested_account {
    unsigned ticket; /* of the grid that runs */
    unsigned left; /* the depth of a launch that was not made, and which is left to a grid's last block or to the run's
                      last kernel; 0: none */
    dpr_nested report;
};
static_assert(sizeof(nested_account) <= DPR_SCRATCH_BYTES);

__device__ inline nested_account &account_of(const dpr_nested_args &args) {
    return *static_cast<nested_account *>(args.run.scratch);
}

/* Credits of launches that are done, and all that was launched below them. */
__device__ inline void give_credits_back(unsigned credits) {
    give_back(&dpr_credits_taken, credits);
}

/* A sub-tree that this kernel does itself. */
__device__ inline void note_in_line(const dpr_nested_args &args) {
    note_in_line(&account_of(args).report);
}

__device__ inline admission admission_of(const dpr_nested_args &args) {
    return {&dpr_credits_taken, args.credits, &account_of(args).report, args.depth};
}

/* What a launched kernel does. */
using continuation = void (*)(const dpr_nested_args &);

} // namespace dpr

/* The one kernel that kernels launch. On an H200 devices hang, sooner or later, where several launches are pending and
 * their places in the pool were those of other kernels before; with one kernel for all they do not. */
extern "C" __global__ void dpr_go_on(const __grid_constant__ dpr_nested_args args);

namespace dpr {

/* Has `blocks` blocks of `threads` threads go on with `next`, as the stream says. With a credit of its own, or, of a
 * grid that follows this one, with that by which this one was launched. Whether they will. */
template <continuation GoOn>
__device__ bool launch_nested(const dpr_nested_args &args, dpr_nested_args next, unsigned blocks, unsigned threads,
                              cudaStream_t stream, bool on_own_credit) {
    next.depth = args.depth + 1;
    next.go_on = reinterpret_cast<void *>(GoOn);
    const auto launch = [&] { dpr_go_on<<<blocks, threads, DPR_FOLD_BYTES, stream>>>(next); };
    if (!on_own_credit)
        return launch_admitted(admission_of(args), launch);
    const bool launched = launch_noted(admission_of(args), launch);
    if (!launched)
        give_credits_back(1);
    return launched;
}

/* The last kernel of a run leaves the report, and scratch memory as it was. One thread calls it. */
__device__ inline void close_account(const dpr_nested_args &args) {
    nested_account &account = account_of(args);
    *args.report = account.report;
    account = {};
}

} // namespace dpr

#endif
