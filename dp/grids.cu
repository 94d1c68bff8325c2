/* The grids that reduce arrays for the caller's kernels, and the table by which these find them. */
#include "finish.cuh"
#include "launcher.cuh"
#include "leaf.cuh"
#include "run_launches.cuh"

namespace dpr {
namespace {

/* Folds the blocks' values in the first warp of the block that arrives last. All threads call it. Returns true in the
 * one thread that has the result, in `x`. */
template <class M> __device__ bool meet_in_slot(dpr_launch_slot &slot, typename partial<M>::type &x) {
    using X = partial<M>;
    static_assert(sizeof(typename X::type) <= DPR_LAUNCH_PARTIAL_BYTES);
    auto *partials = reinterpret_cast<typename X::type *>(slot.partials);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = x;
    if (!last_to_arrive(&slot.ticket) || threadIdx.x >= 32)
        return false;
    typename M::acc a = M::identity();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += 32)
        a = M::merge(a, X::unpack(partials[i]));
    x = reduce_warp<M>(X::pack(a));
    return threadIdx.x == 0;
}

template <class M> __device__ bool reduce_for_launcher(const dpr_nested_args &args) {
    dpr_launch_slot &slot = *static_cast<dpr_launch_slot *>(args.slot);
    typename partial<M>::type x = fold_block<M>(reduce_leaf<M>(args, args.run.count));
    if (gridDim.x > 1 ? !meet_in_slot<M>(slot, x) : threadIdx.x != 0)
        return false;
    write_result<M>(args.run, args.run.count, partial<M>::unpack(x));
    return true;
}

template <dpr_op O, dpr_dtype D, int N> constexpr reduce_grid grid() {
    if constexpr (has_code<O, D, N>)
        return reduce_for_launcher<monoid<O, D, static_cast<dpr_nan>(N)>>;
    else
        return nullptr;
}

} // namespace
} // namespace dpr

#define DPR_GRIDS_OF_TYPE(OP, DTYPE, ...)                                                                              \
    {dpr::grid<DPR_##OP, DPR_##DTYPE, 0>(), dpr::grid<DPR_##OP, DPR_##DTYPE, 1>()},
#define DPR_GRIDS_OF_OP(A, OP, ...) {DPR_DTYPE_LIST(DPR_GRIDS_OF_TYPE, OP)},

__device__ dpr::launch_table dpr_launch_table = {dpr_go_on, {DPR_OP_LIST(DPR_GRIDS_OF_OP, _)}};
