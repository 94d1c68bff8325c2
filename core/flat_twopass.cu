/* flat.twopass: every block leaves its partial result in scratch memory, and a second kernel of one block, launched
 * while the first still runs, waits for its end and folds them. Blocks wait for nobody. */
#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

constexpr int fold_threads = 256;

template <class M> __device__ typename exchange<M>::type *partials_of(const dpr_kernel_args &args) {
    return static_cast<typename exchange<M>::type *>(args.scratch);
}

template <class M>
__global__ void __launch_bounds__(most_threads, 1) twopass_kernel(const __grid_constant__ dpr_kernel_args args) {
    const share<M> mine = begin<M>(args);
    const auto x = reduce_block<M>(reduce_share<M>(args, mine));
    if (threadIdx.x == 0)
        partials_of<M>(args)[blockIdx.x] = x;
}

template <class M>
__global__ void __launch_bounds__(fold_threads) fold_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = exchange<M>;
    let_next_launch();
    wait_for_work_before();
    typename X::type *partials = partials_of<M>(args), x = X::identity();
    for (unsigned i = threadIdx.x; i < args.partials; i += fold_threads) {
        x = X::combine(x, partials[i]);
        memset(&partials[i], 0, sizeof partials[i]);
    }
    x = reduce_block<M>(x);
    if (threadIdx.x == 0)
        write_result<M>(args, elements(args), X::unpack(x));
}

struct fold_family {
    template <class M> static constexpr kernel_entry entry() { return fold_kernel<M>; }
};

struct twopass_family {
    template <class M> static constexpr kernel_entry entry() { return twopass_kernel<M>; }
};

using strategy = block_per_sm<twopass_family, most_partials>;

double cost(const dpr_key *key, const dpr_caps *caps, size_t count) {
    const double ends = dpr_seeks_index(key) ? 2.10e-6 : 1.40e-6; /* beside reading, on an H200 */
    return DPR_LAUNCH_SECONDS + ends + dpr_key_bytes(key, count) / dpr_memory_rate(&caps->gpu);
}

int launch(const dpr_run *run) {
    dpr_launch launch = strategy::spread(run);
    const int error = dpr_launch_run(&launch, run);
    if (error)
        return error;
    launch.entry = instances<fold_family>::of(&run->key);
    launch.partials = launch.blocks;
    launch.blocks = 1;
    launch.threads = fold_threads;
    return dpr_launch_run(&launch, run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_twopass;
const dpr_strategy dpr_flat_twopass = {
    .name = "flat.twopass",
    .text = "all SMs read; a second, dependent launch folds the partial results",
    .side = DPR_ON_GPU,
    .block_sizes = 0,
    .probe = dpr::strategy::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .shape = dpr::strategy::shape,
    .launch = dpr::launch,
    .work_bytes = nullptr,
    .describe = nullptr,
};
