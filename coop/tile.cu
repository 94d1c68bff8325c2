/* coop.tile: cooperative groups' own reduction. Tiles of 32 threads reduce by cg::reduce(), and the first tile of each
 * block reduces the results of its tiles. Blocks combine their partial results as in flat.lastblock. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "demonstration.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

namespace cg = cooperative_groups;

/* The group operation that combines what threads exchange; void if there is none. */
template <dpr_op Op> struct group_op { template <class T> using of = void; };
template <> struct group_op<DPR_SUM> { template <class T> using of = cg::plus<T>; };
template <> struct group_op<DPR_MIN> { template <class T> using of = cg::less<T>; };
template <> struct group_op<DPR_MAX> { template <class T> using of = cg::greater<T>; };
template <> struct group_op<DPR_BAND> { template <class T> using of = cg::bit_and<T>; };
template <> struct group_op<DPR_BOR> { template <class T> using of = cg::bit_or<T>; };
template <> struct group_op<DPR_BXOR> { template <class T> using of = cg::bit_xor<T>; };

/* A monoid's operation for cooperative groups. */
template <class M> struct grouped;
template <dpr_op O, dpr_dtype D, dpr_nan N> struct grouped<monoid<O, D, N>> {
    template <class T> using op = typename group_op<O>::template of<T>;
    static constexpr bool is_bitwise =
        (O == DPR_BAND || O == DPR_BOR || O == DPR_BXOR) && sizeof(storage_of<D>) >= sizeof(uint32_t);
};

template <class M>
__global__ void __launch_bounds__(most_threads, 1) tile_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = partial<M>;
    using op = typename grouped<M>::template op<typename X::type>;
    static_assert(sizeof(typename X::type) <= demonstrated_bytes);
    __shared__ typename X::type of_tile[most_threads / 32];
    const thread_slice<M> mine = begin<M>(args);
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<32>(block);
    typename X::type x = cg::reduce(tile, reduce_slice<M>(args, mine), op());
    if (tile.thread_rank() == 0)
        of_tile[tile.meta_group_rank()] = x;
    block.sync();
    if (tile.meta_group_rank() == 0) {
        const unsigned rank = tile.thread_rank();
        x = cg::reduce(tile, rank < tile.meta_group_size() ? of_tile[rank] : X::identity(), op());
    }
    meet<M, true>(args, mine.d.count, x, blockIdx.x, gridDim.x - 1);
}

struct tile_form : demonstrated_form {
    template <class M> static constexpr kernel_entry entry() {
        if constexpr (is_demonstrated<M> || grouped<M>::is_bitwise)
            return tile_kernel<M>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<tile_form>::of(key); }
    static const char *why_not(const dpr_key *) {
        return "it is there to show sums, minima and maxima of i32, i64, f32 and f64, and bit operations of 32 and 64 "
               "bits";
    }
};

using tiles = demonstration<tile_form, vector_bytes, demonstrated_partials>;

} // namespace
} // namespace dpr

DPR_DEMONSTRATION(coop_tile, "coop.tile", dpr::tiles, 1.0,
                  "tiles of 32 threads reduce by cg::reduce(); blocks meet as in flat.lastblock")
