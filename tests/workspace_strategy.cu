/* test.workspace: a block for every 4096 elements stores its partial result in the workspace, and a second launch, of
 * one block, folds them. */
#include "workspace_strategy.h"

#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

using sum = monoid<DPR_SUM, DPR_I32, DPR_NAN_PROPAGATE>;
using partial_sum = partial<sum>;

constexpr int block_threads = 256;
constexpr size_t block_elements = 4096, most_blocks = 65536;

__global__ void __launch_bounds__(block_threads) store_partials(const __grid_constant__ dpr_kernel_args args) {
    const thread_slice<sum> mine = begin<sum>(args);
    const auto x = reduce_block<sum>(reduce_slice<sum>(args, mine));
    if (threadIdx.x == 0)
        static_cast<partial_sum::type *>(args.workspace)[blockIdx.x] = x;
}

__global__ void __launch_bounds__(block_threads) fold_partials(const __grid_constant__ dpr_kernel_args args) {
    const auto *partials = static_cast<const partial_sum::type *>(args.workspace);
    let_next_launch();
    wait_for_work_before();
    partial_sum::type x = partial_sum::identity();
    for (unsigned i = threadIdx.x; i < args.partials; i += blockDim.x)
        x = partial_sum::combine(x, partials[i]);
    x = reduce_block<sum>(x);
    if (threadIdx.x == 0)
        write_result<sum>(args, elements(args), partial_sum::unpack(x));
}

const char *probe(const dpr_key *key, const dpr_caps *) {
    return dpr_key_op(key) == DPR_SUM && dpr_key_dtype(key) == DPR_I32 ? nullptr : "it is there to show sums of i32";
}

dpr_cost cost(const dpr_key *key, const dpr_caps *, dpr_size size) {
    return {2 * DPR_LAUNCH_SECONDS, dpr_array_bytes(key, size), 0};
}

dpr_kernel kernel(const dpr_key *) {
    return {reinterpret_cast<const void *>(store_partials), block_threads, 0, 1, 0, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency) {
    dpr_launch_limits limits = {};
    limits.threads = block_threads;
    limits.max_blocks = most_blocks;
    limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return limits;
}

size_t blocks_of(const dpr_run *run) {
    return run->count / block_elements < most_blocks ? run->count / block_elements + 1 : most_blocks;
}

size_t workspace_bytes(const dpr_run *run) {
    return blocks_of(run) * sizeof(partial_sum::type);
}

int launch(const dpr_run *run) {
    dpr_launch launch = {};
    launch.entry = kernel(&run->key).entry;
    launch.blocks = static_cast<unsigned>(blocks_of(run));
    launch.threads = block_threads;
    const int error = dpr_launch_run(&launch, run);
    if (error)
        return error;
    launch.partials = launch.blocks;
    launch.entry = reinterpret_cast<const void *>(fold_partials);
    launch.blocks = 1;
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy test_workspace_strategy = {
    .name = "test.workspace",
    .text = "partial results in the workspace; a second, dependent launch folds them",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
    .workspace_bytes = dpr::workspace_bytes,
};
