/* Launches from the kernels of a run, which the run's account counts. */
#ifndef DPR_DP_RUN_LAUNCHES_CUH
#define DPR_DP_RUN_LAUNCHES_CUH

#include "finish.cuh"
#include "launch_table.cuh"

extern "C" __device__ dpr::launch_table dpr_launch_table;
extern "C" __global__ void dpr_go_on(const __grid_constant__ dpr_nested_args args);

namespace dpr {

/* A run's account. It lies in the run's scratch memory, so it is zero between runs. */
struct run_account {
    unsigned ticket; /* the ticket of the grid that runs */
    unsigned taken; /* launches that the run's kernels have taken, of the dpr_nested_args.launches that they may make */
    dpr_launch_report report;
};
static_assert(sizeof(run_account) <= DPR_SCRATCH_BYTES);

__device__ inline run_account &account_of(const dpr_nested_args &args) {
    return *static_cast<run_account *>(args.run.scratch);
}

/* Counts sub-trees that this kernel does itself. */
__device__ inline void note_in_line(const dpr_nested_args &args, unsigned sub_trees = 1) {
    note_in_line(&account_of(args).report, sub_trees);
}

__device__ inline void note_refusal(const dpr_nested_args &args) {
    note_refusal(&account_of(args).report);
}

/* Takes up to `wanted` of the launches that the run may make, and returns how many it has taken. The device may still
 * refuse them when they are made. */
__device__ inline unsigned take_launches(const dpr_nested_args &args, unsigned wanted) {
    return makes_launches ? take_free(&account_of(args).taken, wanted, args.launches) : 0;
}

/* Launches a grid whose arguments are `args`, except that it is one level deeper, and what change(next) sets; `stream`
 * says when it starts. Returns true if it was launched. The arguments are written where the launch reads them, because
 * a copy of the caller's would lie in local memory. */
template <class Change>
__device__ bool launch_next(const dpr_nested_args &args, unsigned blocks, unsigned threads, cudaStream_t stream,
                            Change change) {
    return launch_noted(&account_of(args).report, args.depth, [&] {
        return launch_filled(dpr_go_on, blocks, threads, stream, [&](dpr_nested_args &next) {
            next = args;
            next.depth = args.depth + 1;
            change(next);
        });
    });
}

/* Writes as much of the report as the caller has room for, and zeroes the account. One thread of a run's last kernel
 * calls it. */
__device__ inline void close_account(const dpr_nested_args &args) {
    run_account &account = account_of(args);
    const auto *from = reinterpret_cast<const uint32_t *>(&account.report);
    auto *to = reinterpret_cast<uint32_t *>(args.report);
#pragma unroll
    for (unsigned i = 0; i < sizeof account.report / sizeof *to; ++i) {
        if (i * sizeof *to < args.report_bytes)
            to[i] = from[i];
    }
    account = {};
}

} // namespace dpr

#endif
