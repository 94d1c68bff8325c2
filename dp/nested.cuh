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

/* As launch_admitted(), from a kernel of a run. */
template <class Launch> __device__ bool launch_nested(const dpr_nested_args &args, Launch launch) {
    return launch_admitted(admission_of(args), launch);
}

/* The same with the credit by which the kernel itself was launched, for one that follows it. */
template <class Launch> __device__ bool launch_on(const dpr_nested_args &args, Launch launch) {
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
