/* dp.recursive, dp.nosync and dp.recursive2: the recursions of the literature (J. Cheng, M. Grossman and T. McKercher,
 * Professional CUDA C Programming, 2014, chapter 3: gpuRecursiveReduce and what follows it). In them a block halves its
 * words, and a launched kernel goes on. Each block of the first kernel has a tile of the array. After the first halving
 * the tile's words are in the workspace, where they are halved in place. */
#include "demonstration.cuh"
#include "launcher.cuh"
#include "pairs.h"
#include "run_launches.cuh"

namespace dpr {
namespace {

/* The words of a tile in the workspace. After those of all tiles, dp.recursive has one word for each depth of each
 * tile, in which a launch returns its value. */
template <class M> struct tile_words {
    using X = partial<M>;
    using T = typename X::type;
    static_assert(sizeof(T) <= DPR_RECURSIVE_BYTES);
    T *w;

    __device__ tile_words(const dpr_nested_args &args, unsigned tile)
        : w(static_cast<T *>(args.run.workspace) + static_cast<uint64_t>(tile) * (args.block / 2)) {}

    static __device__ T *returned(const dpr_nested_args &args, unsigned tile) {
        return static_cast<T *>(args.run.workspace) + static_cast<uint64_t>(args.tiles) * (args.block / 2)
               + static_cast<uint64_t>(tile) * DPR_RECURSIVE_DEPTHS;
    }

    /* The word that begins with `element`, which is number `at` of the array. A word has every element whose distance
     * from this one is a multiple of the number of words of all tiles. An empty array has one word without elements. */
    static __device__ T of_array(const dpr_nested_args &args, uint64_t count, typename M::storage element,
                                 uint64_t at) {
        const auto *in = static_cast<const typename M::storage *>(args.run.in);
        const uint64_t step = static_cast<uint64_t>(args.tiles) * args.block;
        if (at + step >= count)
            return at < count ? X::of_element(element, at) : X::identity();
        typename M::acc a = M::fold(M::identity(), M::add(M::lane_identity(), element));
#pragma unroll 4
        for (at += step; at < count; at += step)
            a = M::fold(a, M::add(M::lane_identity(), in[at]));
        return X::pack(a);
    }

    /* Does the first halving, from the array to the workspace, with one thread for each word that is left. */
    __device__ void halve_array(const dpr_nested_args &args, uint64_t count, unsigned tile, unsigned words) const {
        const auto *in = static_cast<const typename M::storage *>(args.run.in);
        const unsigned i = threadIdx.x, s = dpr_halved(words);
        const uint64_t at = static_cast<uint64_t>(tile) * args.block + i;
        if (i >= s)
            return;
        const bool paired = i + s < words;
        const typename M::storage first = at < count ? in[at] : typename M::storage{};
        const typename M::storage second = paired ? in[at + s] : first;
        const T x = of_array(args, count, first, at);
        w[i] = paired ? X::combine(x, of_array(args, count, second, at + s)) : x;
    }

    __device__ void halve(unsigned words) const {
        const unsigned s = dpr_halved(words);
        for (unsigned i = threadIdx.x; i + s < words; i += blockDim.x)
            w[i] = X::combine(w[i], w[i + s]);
        __syncthreads();
    }

    /* Does the halvings that launches would have done. */
    __device__ void halve_to_one(unsigned words) const {
        for (; words > 1; words = dpr_halved(words))
            halve(words);
    }
};

/* ---- dp.recursive and dp.nosync: each block launches one kernel, for its own tile ---- */

/* What follows the wait for a child. In the literature there is nothing to do; here the value that the child has
 * returned is passed on. `depth` is that of the launch that waits. */
template <class M> __device__ void pass_on(const dpr_nested_args &args) {
    auto *returned = tile_words<M>::returned(args, args.tile);
    const unsigned depth = args.depth - 1;
    returned[depth] = returned[depth + 1];
}

/* Number of launches for a tile of which the first kernel has left `words` words: one for each halving and, except for
 * the first of them, one that waits. */
template <bool Waits> __device__ unsigned launches_of_tile(const dpr_nested_args &args, unsigned words) {
    const unsigned levels = min(dpr_halvings(words), args.max_depth);
    return Waits && levels > 0 ? 2 * levels - 1 : levels;
}

template <class M, bool Waits> __device__ void recurse(const dpr_nested_args &args);

/* Launches a child that goes on with the `words` words of the tile, and passes it what is left of the `chain` launches.
 * Returns true if it was launched. Sets `waits` if a continuation was launched that waits for the child. Thread 0 calls
 * it. */
template <class M, bool Waits>
__device__ bool launch_child(const dpr_nested_args &args, unsigned tile, unsigned words, unsigned chain, bool &waits) {
    const bool first = args.depth == 0;
    /* A first kernel has no waiting launch: tail launches of a grid of several blocks would take turns. */
    const unsigned launches = Waits && !first ? 2 : 1;
    if (chain < launches) {
        note_refusal(args);
        return false;
    }
    const auto launch = [&](continuation go_on, unsigned threads, cudaStream_t stream) {
        return launch_next(args, 1, threads, stream, [&](dpr_nested_args &child) {
            child.go_on = reinterpret_cast<void *>(go_on);
            child.tile = tile;
            child.words = words;
            child.chain = chain - launches;
        });
    };
    if constexpr (Waits) {
        waits = !first && launch(pass_on<M>, 1, cudaStreamTailLaunch);
        if (!first && !waits)
            return false;
    }
    return launch(recurse<M, Waits>, words, cudaStreamFireAndForget);
}

template <class M, bool Waits> __device__ void recurse(const dpr_nested_args &args) {
    __shared__ bool launched, waits;
    const bool first = args.depth == 0;
    const unsigned tile = first ? blockIdx.x : args.tile;
    const tile_words<M> mine(args, tile);
    unsigned words = args.words;
    if (first) {
        const uint64_t count = elements(args.run);
        words = dpr_words_of_tile(count, args.block, tile);
        mine.halve_array(args, count, tile, words);
        __syncthreads();
    } else {
        mine.halve(words);
    }
    words = dpr_halved(words);
    if (threadIdx.x == 0) {
        waits = launched = false;
        if (words > 1 && args.depth < args.max_depth) {
            const unsigned chain = first ? take_launches(args, launches_of_tile<Waits>(args, words)) : args.chain;
            launched = launch_child<M, Waits>(args, tile, words, chain, waits);
        }
        if (words > 1 && !launched)
            note_in_line(args);
    }
    __syncthreads();
    if (!launched)
        mine.halve_to_one(words);
    if constexpr (Waits) {
        /* Returns the value. It goes to the child's word if a continuation waits, or in the first kernel, because
         * fold_tiles() reads that word. */
        if (!launched && threadIdx.x == 0)
            mine.returned(args, tile)[waits || first ? args.depth + 1 : args.depth] = mine.w[0];
    }
}

/* ---- dp.recursive2: one launch for all tiles ---- */

/* For a launched level: threads of a block (such blocks start sooner than those of DPR_NESTED_THREADS would); pairs of
 * words that a thread adds at a time; and pairs that a block does. */
constexpr unsigned level_threads = 256, pairs_of_thread = 2, pairs_of_block = pairs_of_thread * level_threads;
static_assert(level_threads <= DPR_NESTED_THREADS);

/* Neighbouring tiles that a block halves together. */
struct tile_range {
    unsigned first, end;
    unsigned words, last_words; /* words that tiles have left, and that the last tile with elements has left */
    unsigned filled;            /* tiles of the array that have elements; further ones have one word from the start */
};

/* Halves the words of all tiles of the range. All threads of the block call it. */
template <class M> __device__ void halve_together(const dpr_nested_args &args, tile_range &tiles) {
    using X = partial<M>;
    using T = typename X::type;
    const unsigned log = dpr_halvings(tiles.words) - 1, places = (tiles.end - tiles.first) << log;
    for (unsigned from = threadIdx.x; from < places; from += pairs_of_thread * blockDim.x) {
        T *w[pairs_of_thread], x[pairs_of_thread], y[pairs_of_thread]; /* all are read before the first is written */
#pragma unroll
        for (unsigned k = 0; k < pairs_of_thread; ++k) {
            const unsigned place = from + k * blockDim.x;
            const unsigned tile = tiles.first + (place >> log), i = place & ((1u << log) - 1);
            const unsigned words = tile + 1 == tiles.filled ? tiles.last_words : tiles.words, s = dpr_halved(words);
            w[k] = place < places && i + s < words ? tile_words<M>(args, tile).w + i : nullptr;
            x[k] = w[k] ? w[k][0] : X::identity();
            y[k] = w[k] ? w[k][s] : X::identity();
        }
#pragma unroll
        for (unsigned k = 0; k < pairs_of_thread; ++k)
            if (w[k])
                *w[k] = X::combine(x[k], y[k]);
    }
    __syncthreads();
    tiles.words = dpr_halved(tiles.words);
    tiles.last_words = dpr_halved(tiles.last_words);
}

/* The tile of a block of the first kernel, after the first halving. The count on the device may be smaller, so that
 * some tiles have no elements. */
__device__ tile_range tile_of_first(const dpr_nested_args &args) {
    const uint64_t count = elements(args.run);
    const unsigned filled = dpr_tiles_filled(count, args.block, args.tiles);
    return {min(blockIdx.x, filled), min(blockIdx.x + 1, filled), dpr_halved(dpr_words_of_tile(count, args.block, 0)),
            dpr_halved(dpr_words_of_tile(count, args.block, filled - 1)), filled};
}

/* The tiles of a block of a launched level, before the level halves them. */
__device__ tile_range tiles_of_level(const dpr_nested_args &args) {
    const unsigned each = dpr_tiles_together(args.words, pairs_of_block), from = blockIdx.x * each;
    return {from, min(from + each, args.filled), args.words, args.last_words, args.filled};
}

template <class M> constexpr uint32_t pair_number = 0;
template <dpr_op O, dpr_dtype D, dpr_nan N>
constexpr uint32_t pair_number<monoid<O, D, N>> = (DPR_ROW(O) * DPR_DTYPE_COUNT + DPR_ROW(D)) * 2 + N;

/* Launches the level that goes on with `tiles`. Returns true if it was launched. Thread 0 calls it. */
__device__ bool launch_level(const dpr_nested_args &args, const tile_range &tiles, uint32_t pair) {
    const unsigned chain =
        args.depth == 0 ? take_launches(args, min(dpr_halvings(tiles.words), args.max_depth)) : args.chain;
    if (chain == 0) {
        note_refusal(args);
        return false;
    }
    const unsigned each = dpr_tiles_together(tiles.words, pairs_of_block);
    const unsigned places = min(each, tiles.filled) << (dpr_halvings(tiles.words) - 1); /* places of a block */
    return launch_next(args, (tiles.filled - 1) / each + 1, (places - 1) / pairs_of_thread + 1, cudaStreamFireAndForget,
                       [&](dpr_nested_args &next) {
                           next.go_on = nullptr;
                           next.pair = pair;
                           next.chain = chain - 1;
                           next.words = tiles.words;
                           next.last_words = tiles.last_words;
                           next.filled = tiles.filled;
                       });
}

/* Called by thread 0 when its block has halved `mine`. Returns the tiles with which the block has to go on itself, or
 * none. If the run may not launch, every block has to go on with its own tiles. If a launch is refused or fails, only
 * the last block to be done learns of it, and goes on with all tiles. */
__device__ tile_range end_of_level(const dpr_nested_args &args, const tile_range &mine, uint32_t pair) {
    const tile_range none = {0, 0, 1, 1, 1};
    if (mine.words == 1)
        return none;
    if (args.depth == args.max_depth || args.launches == 0) {
        note_in_line(args, mine.end - mine.first);
        if (args.launches == 0 && blockIdx.x == 0)
            note_refusal(args);
        return mine;
    }
    run_account &account = account_of(args);
    if (gridDim.x > 1 && !take_ticket(&account.ticket, gridDim.x))
        return none;
    account.ticket = 0;
    const tile_range all = {0, mine.filled, mine.words, mine.last_words, mine.filled};
    if (launch_level(args, all, pair))
        return none;
    note_in_line(args, mine.filled);
    return all;
}

template <class M> __device__ void recurse_level(const dpr_nested_args &args) {
    __shared__ tile_range in_line;
    tile_range mine;
    if (args.depth == 0) {
        const uint64_t count = elements(args.run);
        tile_words<M>(args, blockIdx.x)
            .halve_array(args, count, blockIdx.x, dpr_words_of_tile(count, args.block, blockIdx.x));
        __syncthreads();
        if (threadIdx.x == 0) /* no other thread needs it */
            mine = tile_of_first(args);
    } else {
        mine = tiles_of_level(args);
        halve_together<M>(args, mine);
    }
    if (threadIdx.x == 0)
        in_line = end_of_level(args, mine, pair_number<M>);
    __syncthreads();
    for (tile_range rest = in_line; rest.words > 1;)
        halve_together<M>(args, rest);
}

/* ---- The end of all three ---- */

/* The second kernel that the host launches. It starts when the first one, and all that was launched below it, is
 * done. */
template <class M> __device__ void fold_tiles(const dpr_nested_args &args) {
    using X = partial<M>;
    const bool returned = args.words != 0; /* dp.recursive: the words in which launches have returned values */
    typename M::acc a = M::identity();
#pragma unroll 4
    for (unsigned tile = threadIdx.x; tile < args.tiles; tile += blockDim.x)
        a = M::merge(a, X::unpack(returned ? tile_words<M>::returned(args, tile)[1] : tile_words<M>(args, tile).w[0]));
    const typename X::type x = reduce_block<M>(X::pack(a));
    if (threadIdx.x == 0) {
        close_account(args);
        write_result<M>(args.run, elements(args.run), X::unpack(x));
    }
}

} // namespace

/* ---- The kernels, by the names that the host asks for ---- */

/* dp.recursive2 has few registers, because its first kernel has many short blocks: the more of them an SM holds, the
 * sooner it is done. Sums of F64 would spill with as few. */
#define DPR_LEVEL_REGISTERS(OP, DTYPE) (DPR_##OP == DPR_SUM && DPR_##DTYPE == DPR_F64 ? 40 : 32)
#define DPR_RECURSIVE_KERNELS(OP, DTYPE, NAN)                                                                          \
    using of_##OP##_##DTYPE##_##NAN = monoid<DPR_##OP, DPR_##DTYPE, static_cast<dpr_nan>(NAN)>;                        \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        dpr_recursive_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                           \
        recurse<of_##OP##_##DTYPE##_##NAN, true>(args);                                                                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        dpr_nosync_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                              \
        recurse<of_##OP##_##DTYPE##_##NAN, false>(args);                                                               \
    }                                                                                                                  \
    extern "C" __global__ void __maxnreg__(DPR_LEVEL_REGISTERS(OP, DTYPE))                                             \
        dpr_recursive2_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                          \
        recurse_level<of_##OP##_##DTYPE##_##NAN>(args);                                                                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        dpr_fold_tiles_##OP##_##DTYPE##_##NAN(const __grid_constant__ dpr_nested_args args) {                          \
        fold_tiles<of_##OP##_##DTYPE##_##NAN>(args);                                                                   \
    }

DPR_DEMONSTRATED_PAIRS(DPR_RECURSIVE_KERNELS)

} // namespace dpr

/* The levels of dp.recursive2 are called here directly: a level hardly takes longer than a call by address, some 4 us
 * on an H200. */
extern "C" __global__ void __launch_bounds__(DPR_NESTED_THREADS)
    dpr_go_on(const __grid_constant__ dpr_nested_args args) {
    if (args.slot) { /* end_launch() is called here, where the stack of go_on is free again for the continuation */
        if (reinterpret_cast<dpr::reduce_grid>(args.go_on)(args))
            dpr::nested::end_launch(*static_cast<dpr_launch_slot *>(args.slot), args.run.out);
        return;
    }
    if (args.go_on) {
        reinterpret_cast<dpr::continuation>(args.go_on)(args);
        return;
    }
    switch (args.pair) {
#define DPR_LEVEL(OP, DTYPE, NAN)                                                                                      \
    case dpr::pair_number<dpr::of_##OP##_##DTYPE##_##NAN>:                                                             \
        dpr::recurse_level<dpr::of_##OP##_##DTYPE##_##NAN>(args);                                                      \
        break;
        DPR_DEMONSTRATED_PAIRS(DPR_LEVEL)
    }
}
