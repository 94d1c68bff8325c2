/* ladder.*: the reduction kernels of the literature (J. Cheng, M. Grossman and T. McKercher, Professional CUDA C
 * Programming, 2014, chapter 3), one rung after the other. Each block folds tiles in shared memory as its rung says,
 * and the block that is done last adds up the results of all blocks. */
#include "demonstration.cuh"
#include "ladder.cuh"
#include "strided.cuh"

namespace dpr {
namespace {

/* Bytes of elements that a block takes for each of its threads at a time. They make several tiles of `Elements`
 * elements a thread, which the block folds side by side. A step has as many loop instructions and barriers for one tile
 * as for all, so more tiles take fewer of these: on an H200 unroll2 reads i32 at a third of the memory's rate with one
 * tile, at two thirds with four and at nine tenths with eight. There are registers for 64 bytes. */
template <unsigned Elements> constexpr unsigned bytes_at_once = Elements < 2 ? 32 : 64;

/* Folds tiles, and adds their results to the first thread's total. */
template <class M, class Fold, unsigned Tiles>
__device__ void fold_tiles(tiles_of<M, Tiles> &tiles, typename M::acc &total) {
    tiles.store();
    __syncthreads();
    Fold::fold(tiles);
    if (threadIdx.x == 0)
        total = M::merge(total, partial<M>::unpack(reduce_array<M>(tiles.own)));
}

/* The kernel of a rung. Blocks go from tile to tile; a tile has `Elements` elements a thread, blockDim.x apart. The
 * literature has a block for each tile. Here there are as many blocks as the device holds, so that scratch memory has
 * room for their results. In every rung a block folds several tiles at once, and loads the next ones' elements
 * meanwhile. */
template <class M, unsigned Elements, class Fold>
__global__ void __launch_bounds__(most_threads, 1) ladder_kernel(const __grid_constant__ dpr_kernel_args args) {
    using X = partial<M>;
    static_assert(sizeof(typename X::type) == (is_sum_of_i32<M> ? demonstrated_bytes : sizeof(typename M::storage)));
    constexpr unsigned side_by_side = bytes_at_once<Elements> / (Elements * sizeof(typename M::storage)),
                       each = side_by_side * Elements;
    extern __shared__ __align__(16) unsigned char shared[];
    tiles_of<M, side_by_side> tiles{reinterpret_cast<typename X::type *>(shared)};
    let_next_launch();
    wait_for_work_before();
    const uint64_t count = elements(args), step = each * blockDim.x;
    const auto *in = static_cast<const typename M::storage *>(args.in);
    uint64_t first = blockIdx.x * step;
    strided<M, each> mine;
    bool whole = first + step <= count;
    if (whole)
        mine.load(in, first + threadIdx.x, blockDim.x);
    typename M::acc total = M::identity();
    while (whole) {
        mine.sums(tiles.own);
        first += gridDim.x * step;
        whole = first + step <= count;
        if (whole)
            mine.load(in, first + threadIdx.x, blockDim.x);
        fold_tiles<M, Fold>(tiles, total);
    }
    if (first < count) {
        sums_of_last<M, each>(tiles.own, in, first + threadIdx.x, blockDim.x, count);
        fold_tiles<M, Fold>(tiles, total);
    }
    finish_by_ticket<M, folded_by::block>(args, count, X::pack(total));
}

/* Code that rungs of `Elements` elements a thread share. */
template <unsigned Elements> struct rung_form : demonstrated_form {
    /* Each tile has one word a thread: of the element's size, or of 8 bytes for sums of 32-bit integers. */
    static int shared_bytes(const dpr_key *key) {
        const int element = dpr_dtypes[key->f.dtype].size;
        const int word = dpr_key_op(key) == DPR_SUM && dpr_key_dtype(key) == DPR_I32 ? demonstrated_bytes : element;
        return static_cast<int>(bytes_at_once<Elements> / Elements) / element * word;
    }
};

/* A rung whose kernel is the same for all block sizes. */
template <unsigned Elements, class Fold> struct rung : rung_form<Elements> {
    template <class M> static constexpr kernel_entry entry() {
        if constexpr (is_demonstrated<M>)
            return ladder_kernel<M, Elements, Fold>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<rung>::of(key); }
};

/* A rung that has a kernel for each block size. */
template <unsigned Elements> struct rung_of_sizes : rung_form<Elements> {
    template <unsigned Block> static const void *of_block(const dpr_key *key) {
        if (static_cast<int>(Block) == block_of(key))
            return rung<Elements, fold_complete_of<Block>>::of(key);
        if constexpr (Block < most_threads)
            return of_block<2 * Block>(key);
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return of_block<32>(key); }
};

template <class Rung, unsigned Elements>
using on_ladder = demonstration<Rung, bytes_at_once<Elements>, most_tickets(demonstrated_bytes)>;
template <unsigned Elements, class Fold> using step = on_ladder<rung<Elements, Fold>, Elements>;

using neighbored = step<1, fold_neighbored>;
using neighbored_less = step<1, fold_neighbored_less>;
using interleaved = step<1, fold_interleaved>;
using unroll2 = step<2, fold_interleaved>;
using unroll4 = step<4, fold_interleaved>;
using unroll8 = step<8, fold_interleaved>;
using unroll_warps8 = step<8, fold_unroll_warps>;
using complete_unroll_warps8 = step<8, fold_complete>;
using complete_unroll = on_ladder<rung_of_sizes<8>, 8>;

} // namespace
} // namespace dpr

DPR_DEMONSTRATION(ladder_neighbored, "ladder.neighbored", dpr::neighbored, 0.21,
                  "threads add their neighbours, ever further apart: every warp diverges")
DPR_DEMONSTRATION(ladder_neighbored_less, "ladder.neighbored_less", dpr::neighbored_less, 0.18,
                  "the same pairs by threads side by side: whole warps are done early")
DPR_DEMONSTRATION(ladder_interleaved, "ladder.interleaved", dpr::interleaved, 0.59,
                  "pairs half a tile apart: neighbouring threads read neighbours")
DPR_DEMONSTRATION(ladder_unroll2, "ladder.unroll2", dpr::unroll2, 0.92,
                  "as interleaved, after each thread has added two elements: half as many tiles")
DPR_DEMONSTRATION(ladder_unroll4, "ladder.unroll4", dpr::unroll4, 0.96,
                  "as interleaved, after each thread has added four elements")
DPR_DEMONSTRATION(ladder_unroll8, "ladder.unroll8", dpr::unroll8, 0.99,
                  "as interleaved, after each thread has added eight elements")
DPR_DEMONSTRATION(ladder_unroll_warps8, "ladder.unroll_warps8", dpr::unroll_warps8, 0.995,
                  "as unroll8, but the last steps by one warp, without barriers of the block")
DPR_DEMONSTRATION(ladder_complete_unroll_warps8, "ladder.complete_unroll_warps8", dpr::complete_unroll_warps8, 0.995,
                  "as unroll_warps8, every step written out, the block size asked at run time")
DPR_DEMONSTRATION(ladder_complete_unroll, "ladder.complete_unroll", dpr::complete_unroll, 1.0,
                  "as complete_unroll_warps8, the block size known to the compiler")
