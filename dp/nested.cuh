/* Launches from the kernels of a run, noted in the run's account. */
#ifndef DPR_DP_NESTED_CUH
#define DPR_DP_NESTED_CUH

#include "finish.cuh"
#include "launcher.cuh"

extern "C" __device__ dpr::launcher dpr_launcher;
extern "C" __global__ void dpr_go_on(const __grid_constant__ dpr_nested_args args);

namespace dpr {

/* A run's account, in its scratch memory: zero between runs. */
struct nested_account {
    unsigned ticket; /* of the grid that runs */
    unsigned taken;  /* launches that the run's kernels have taken of those that it may make */
    dpr_nested report;
};
static_assert(sizeof(nested_account) <= DPR_SCRATCH_BYTES);

__device__ inline nested_account &account_of(const dpr_nested_args &args) {
    return *static_cast<nested_account *>(args.run.scratch);
}

/* Sub-trees that this kernel does itself. */
__device__ inline void note_in_line(const dpr_nested_args &args, unsigned sub_trees = 1) {
    note_in_line(&account_of(args).report, sub_trees);
}

__device__ inline void note_refusal(const dpr_nested_args &args) {
    note_refusal(&account_of(args).report);
}

/* Takes up to `wanted` of the launches that the run may make: how many. Whether the device admits them shows when they
 * are made. */
__device__ inline unsigned take_launches(const dpr_nested_args &args, unsigned wanted) {
    return makes_launches ? take_free(&account_of(args).taken, wanted, args.launches) : 0;
}

/* Has `blocks` blocks of `threads` threads go on as `next` says, in their place in `stream`. Whether they will. */
__device__ inline bool launch_next(const dpr_nested_args &args, dpr_nested_args &next, unsigned blocks,
                                   unsigned threads, cudaStream_t stream) {
    next.depth = args.depth + 1;
    return launch_noted(&account_of(args).report, args.depth, [&] {
        return launch_filled(dpr_go_on, blocks, threads, stream, [&](dpr_nested_args &filled) { filled = next; });
    });
}

template <continuation GoOn>
__device__ bool launch_nested(const dpr_nested_args &args, dpr_nested_args next, unsigned blocks, unsigned threads,
                              cudaStream_t stream) {
    next.go_on = reinterpret_cast<void *>(GoOn);
    return launch_next(args, next, blocks, threads, stream);
}

/* The last kernel of a run leaves the report, and scratch memory as it was. One thread calls it. */
__device__ inline void close_account(const dpr_nested_args &args) {
    nested_account &account = account_of(args);
    *args.report = account.report;
    account = {};
}

} // namespace dpr

#endif
