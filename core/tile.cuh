/* Reading an array by a grid, and reducing the values of a warp's or a block's threads. */
#ifndef DPR_CORE_TILE_CUH
#define DPR_CORE_TILE_CUH

#include "args.h"
#include "monoid.cuh"
#include "reader.cuh"

namespace dpr {

/* ---- What one thread accumulates ---- */

/* The lanes of one thread within one tile: independent accumulators, which are folded in a fixed order. */
template <class M> struct lane_set {
    using storage = typename M::storage;
    typename M::lane l[M::lanes];

    __device__ lane_set() {
#pragma unroll
        for (int i = 0; i < M::lanes; ++i)
            l[i] = M::lane_identity();
    }

    /* Starts from one vector of floats. */
    __device__ explicit lane_set(const packet<storage> &p) : lane_set() {
#pragma unroll
        for (int e = 0; e < p.size; ++e)
            l[e % M::lanes] = e < M::lanes ? M::lane_from(p[e]) : M::add(l[e % M::lanes], p[e]);
    }

    /* Adds a vector. Its number within the tile does not matter. */
    __device__ void add(const packet<storage> &p, unsigned) {
        if constexpr (M::adds_words) {
#pragma unroll
            for (int i = 0; i < p.words; ++i)
                l[i % M::lanes] = M::add_word(l[i % M::lanes], p.w[i]);
        } else {
#pragma unroll
            for (int e = 0; e < p.size; ++e)
                l[e % M::lanes] = M::add(l[e % M::lanes], p[e]);
        }
    }

    __device__ void join(const lane_set &other) {
#pragma unroll
        for (int i = 0; i < M::lanes; ++i)
            l[i] = M::join(l[i], other.l[i]);
    }

    /* Folds all lanes as a tree, so that rounding errors grow only with its depth. */
    __device__ typename M::lane total() {
#pragma unroll
        for (int half = M::lanes / 2; half > 0; half /= 2) {
#pragma unroll
            for (int i = 0; i < half; ++i)
                l[i] = M::join(l[i], l[i + half]);
        }
        if constexpr (M::adds_words)
            l[0] = M::settle(l[0]);
        return l[0];
    }

    template <class IndexOf> __device__ typename M::acc fold_into(typename M::acc a, IndexOf) {
        return M::fold(a, total());
    }
};

template <class M>
using tile_of = cuda::std::conditional_t<cuda::std::is_void_v<typename M::tile>, lane_set<M>, typename M::tile>;

/* Adds `K` vectors (a power of two), which are numbered from `first` on within the tile. Floats are added as a tree.
 * Otherwise vectors come in falling order, on which arg_tile (monoid.cuh) relies. */
template <int K, class M, class P> __device__ void add_vectors(tile_of<M> &t, const P *p, unsigned first) {
    if constexpr (M::takes_all) {
        t.template add_all<K>(p);
    } else if constexpr (cuda::std::is_void_v<typename M::tile> && M::exchanges_lanes) {
        lane_set<M> s[K];
#pragma unroll
        for (int k = 0; k < K; ++k)
            s[k] = lane_set<M>(p[k]);
#pragma unroll
        for (int half = K / 2; half > 0; half /= 2) {
#pragma unroll
            for (int k = 0; k < half; ++k)
                s[k].join(s[k + half]);
        }
        t.join(s[0]);
    } else {
#pragma unroll
        for (int k = K - 1; k >= 0; --k)
            t.add(p[k], first + k);
    }
}

/* The values that threads and blocks exchange, and their operations. */
template <class M> struct partial {
    using lane = typename M::lane;
    using acc = typename M::acc;
    using type = cuda::std::conditional_t<M::exchanges_lanes, lane, acc>;

    static __device__ type identity() {
        if constexpr (M::exchanges_lanes)
            return M::lane_identity();
        else
            return M::identity();
    }

    static __device__ type pack(acc a) {
        if constexpr (M::exchanges_lanes)
            return M::to_lane(a);
        else
            return a;
    }

    static __device__ acc unpack(type x) {
        if constexpr (M::exchanges_lanes)
            return M::fold(M::identity(), x);
        else
            return x;
    }

    static __device__ type combine(type a, type b) {
        if constexpr (M::exchanges_lanes)
            return M::join(a, b);
        else
            return M::merge(a, b);
    }

    /* The value of one element. Only ARGMIN and ARGMAX use the index. */
    static __device__ type of_element(typename M::storage x, uint64_t index) {
        if constexpr (M::holds_index)
            return M::of_element(x, index);
        else if constexpr (M::exchanges_lanes)
            return M::add(M::lane_identity(), x);
        else
            return M::fold(M::identity(), M::add(M::lane_identity(), x));
    }
};

/* ---- Reading ---- */

__device__ inline unsigned thread_of_grid() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline unsigned threads_of_grid() {
    return gridDim.x * blockDim.x;
}

/* The part of the array that one thread of the grid reads: vectors in its block's full tiles, one vector in each row of
 * the rest, which lies after all tiles, and at most one element before the vectors and one after them. The slice
 * follows from the arguments alone, so that little is left to calculate when the work before has ended. */
template <class M> struct thread_slice {
    using Reader = reader_of<M>;
    using place = typename Reader::place;
    static constexpr unsigned vectors = M::vectors;
    static_assert(vectors >= 2 && (vectors & (vectors - 1)) == 0);
    Reader d;
    place first_of_tiles, first_of_rest;
    uint64_t tiles;     /* tiles of each block; of each tile a thread reads `vectors` vectors, blockDim.x apart */
    uint64_t tile_step; /* vectors from one tile of the block to its next */
    unsigned rows;      /* rows of the rest, each as wide as the grid, so that every thread has one vector in each */
    bool has_last;      /* this thread also has a vector in the last, shorter row */

    __device__ explicit thread_slice(const dpr_kernel_args &args) : d(args) { divide(args, args.rounds); }

    /* The slice of the first `n` elements only. */
    __device__ thread_slice(const dpr_kernel_args &args, uint64_t n) : d(args, n) {
        const unsigned threads = threads_of_grid();
        const uint64_t rounds = __umul64hi(d.vectors, args.reciprocal); /* rounded down, or one less */
        divide(args, d.vectors - rounds * threads < threads ? rounds : rounds + 1);
    }

    /* Prefetches up to `most` of the thread's first vectors to L2. One thread in eight does it, for a line of 128
     * bytes. It is only a hint, so it may come before the elements are written. */
    __device__ void read_ahead(unsigned most) const {
        if (threadIdx.x % 8 != 0)
            return;
        const unsigned rest = rows + has_last, with_tile = tiles > 0 ? rest + vectors : rest;
        place q = first_of_rest;
#pragma unroll 1
        for (unsigned i = 0; i < with_tile && i < most; ++i) {
            if (i == rest)
                q = first_of_tiles;
            d.prefetch(q);
            q += i < rest ? threads_of_grid() : blockDim.x;
        }
    }

  private:
    __device__ void divide(const dpr_kernel_args &args, uint64_t rounds) {
        const uint64_t tile = vectors * blockDim.x;
        const bool runs = args.reading & DPR_READ_RUNS;
        tiles = rounds / vectors;
        tile_step = runs ? tile : tile * gridDim.x;
        first_of_tiles = d.body() + (runs ? tiles * blockIdx.x : blockIdx.x) * tile + threadIdx.x;
        first_of_rest = d.body() + tiles * tile * gridDim.x + thread_of_grid();
        rows = static_cast<unsigned>(rounds) % vectors;
        has_last = rounds * threads_of_grid() + thread_of_grid() < d.vectors;
    }
};

/* Waits until the work before this kernel in its stream is done. Before this call a kernel must not read what others
 * write, and must not write anything. */
__device__ inline void wait_for_work_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Lets the next kernel in the stream be launched. */
__device__ inline void let_next_launch() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* The grid brings `bytes` bytes of device memory to L2. It is only a hint, so it may come before they are written. */
__device__ inline void prefetch_lines(const void *from, uint64_t bytes) {
    constexpr uint64_t line = 128;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(from), end = begin + bytes;
    if (bytes == 0)
        return;
#pragma unroll 1
    for (uintptr_t at = begin / line * line + thread_of_grid() * line; at < end; at += threads_of_grid() * line)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/* Number of elements to reduce. Called after wait_for_work_before(). */
__device__ inline uint64_t elements(const dpr_kernel_args &args) {
    if (!args.device_count)
        return args.count;
    const uint64_t count = *args.device_count;
    return count < args.count ? count : args.count;
}

/* The beginning of every kernel that reads the array by vectors. */
template <class M> __device__ thread_slice<M> begin(const dpr_kernel_args &args) {
    let_next_launch();
    thread_slice<M> mine(args);
    mine.read_ahead(args.prefetch);
    /* Without this, the compiler moves the calculation to where its results are used, after the wait. */
    reader_of<M>::keep(mine.first_of_rest);
    wait_for_work_before();
    if (args.device_count)
        mine = thread_slice<M>(args, elements(args));
    return mine;
}

/* Reduces this thread's slice of an array whose elements lie across the boundaries of vectors: each element is read by
 * itself, and neighbouring threads read neighbours. */
template <class M> __device__ typename partial<M>::type reduce_split_slice(const reader_of<M> &d, uint64_t count) {
    typename M::acc a = M::identity();
#pragma unroll 4
    for (uint64_t i = thread_of_grid(); i < count; i += threads_of_grid())
        a = M::fold(a, M::add(M::lane_identity(), d.element(i)));
    return partial<M>::pack(a);
}

/* Reduces the full tiles of `mine`: a slice, or a leaf (dp/leaf.cuh), which also has a reader `d`, first_of_tiles,
 * tiles and tile_step. */
template <class M, bool Streaming, class Share> __device__ typename M::acc reduce_tiles(const Share &mine) {
    using P = packet<typename M::storage>;
    constexpr unsigned vectors = M::vectors;
    typename M::acc a = M::identity();
    auto first = mine.first_of_tiles;
#pragma unroll 1
    for (uint64_t left = mine.tiles; left > 0; --left) {
        P p[vectors];
        auto q = first;
        /* Calculates each address from the one before: one instruction a load. */
#pragma unroll
        for (unsigned v = 0; v < vectors; ++v) {
            p[v] = mine.d.template load<Streaming>(q);
            q += blockDim.x;
        }
        tile_of<M> t;
        add_vectors<vectors, M>(t, p, 0);
        a = t.fold_into(a, [&](unsigned v) { return mine.d.index(first + v * blockDim.x); });
        first += mine.tile_step;
    }
    return a;
}

/* Reads a thread's vectors in the rest: half a tile of them, a quarter and so on, as the bits of `rows` say, so that a
 * short array takes few instructions, and all loads are in flight at once. */
template <class M> struct rest_of_tile {
    using P = packet<typename M::storage>;
    static constexpr int vectors = M::vectors;
    const unsigned rows;
    const bool has_last;
    P p[vectors];

    template <class Slice>
    __device__ explicit rest_of_tile(const Slice &mine) : rows(mine.rows), has_last(mine.has_last) {
        auto q = mine.first_of_rest;
        const unsigned stride = threads_of_grid();
#pragma unroll
        for (int k = vectors / 2, i = 0; k > 0; i += k, k /= 2) {
            if (rows & k) {
#pragma unroll
                for (int j = 0; j < k; ++j) {
                    p[i + j] = mine.d.template load<false>(q);
                    q += stride;
                }
            }
        }
        if (has_last)
            p[vectors - 1] = mine.d.template load<false>(q);
        /* Without this, the compiler moves loads to where they are used, behind others that are waited for. */
        __syncwarp();
        if constexpr (sizeof(typename M::storage) < sizeof(uint32_t)) {
            /* Without this, it also moves the first operation on an element, a shift, up to the load. */
#pragma unroll
            for (int v = 0; v < vectors; ++v)
                asm volatile("" : "+r"(p[v].w[0]), "+r"(p[v].w[1]), "+r"(p[v].w[2]), "+r"(p[v].w[3]));
        }
    }

    /* Calls f(size, packets) for the largest part of the rest that the thread has, if there is one. */
    template <class F> __device__ void most(F f) const {
        if (!most_rows<vectors / 2>(f) && has_last)
            f(cuda::std::integral_constant<int, 1>(), p + vectors - 1);
    }

    /* Adds the vectors to a tile of operation O. */
    template <class O> __device__ void add_to(tile_of<O> &t) const {
        if (has_last)
            add_vectors<1, O>(t, p + vectors - 1, rows);
        add_rows<1, O>(t);
    }

  private:
    template <int K, class F> __device__ bool most_rows(F f) const {
        if (rows & K) {
            f(cuda::std::integral_constant<int, K>(), p + vectors - 2 * K);
            return true;
        }
        if constexpr (K > 1)
            return most_rows<K / 2>(f);
        return false;
    }

    /* Adds the vectors of `K` rows, if the rest has such a part, then those of twice as many rows, and so on. */
    template <int K, class O> __device__ void add_rows(tile_of<O> &t) const {
        if constexpr (K < vectors) {
            if (rows & K)
                add_vectors<K, O>(t, p + vectors - 2 * K, rows & ~(2u * K - 1));
            add_rows<2 * K, O>(t);
        }
    }
};

/* This thread's elements before the first vector and after the last one, at most one each. They are loaded while
 * vectors are read. */
template <class Reader> struct unaligned_ends {
    const Reader &d;
    bool has_first = false, has_last = false;
    typename Reader::element_type first, last;

    __device__ explicit unaligned_ends(const Reader &of) : d(of) {
        if (d.ends) {
            const uint64_t thread = thread_of_grid(), tail = d.tail() + thread;
            has_first = thread < d.head;
            has_last = tail < d.count;
            if (has_first)
                first = d.element(thread);
            if (has_last)
                last = d.element(tail);
        }
    }

    /* Combines a value of operation M with those of these elements. */
    template <class M> __device__ typename partial<M>::type with(typename partial<M>::type x) const {
        using X = partial<M>;
        if (d.ends) {
            if (has_first)
                x = X::combine(x, X::of_element(first, thread_of_grid()));
            if (has_last)
                x = X::combine(x, X::of_element(last, d.tail() + thread_of_grid()));
        }
        return x;
    }
};

/* Reduces the part of the array that belongs to this thread of the grid. */
template <class M>
__device__ typename partial<M>::type reduce_slice(const dpr_kernel_args &args, const thread_slice<M> &mine) {
    using X = partial<M>;
    using Reader = reader_of<M>;
    if constexpr (Reader::may_be_split) {
        if (mine.d.is_split())
            return reduce_split_slice<M>(mine.d, mine.d.count);
    }
    const unaligned_ends<Reader> e(mine.d);
    const rest_of_tile<M> rest(mine);
    tile_of<M> t;
    rest.template add_to<M>(t);
    const auto of_tiles = [&] {
        return args.reading & DPR_READ_STREAMING ? reduce_tiles<M, true>(mine) : reduce_tiles<M, false>(mine);
    };
    const bool tiles = mine.tiles > 0;
    if constexpr (M::exchanges_lanes) {
        const typename M::lane l = t.total();
        return e.template with<M>(tiles ? X::pack(M::fold(of_tiles(), l)) : l);
    } else {
        const auto index_of = [&](unsigned v) { return mine.d.index(mine.first_of_rest + v * threads_of_grid()); };
        const typename M::acc a = t.fold_into(M::identity(), index_of);
        return e.template with<M>(X::pack(tiles ? M::merge(of_tiles(), a) : a));
    }
}

/* ---- Warps and blocks ---- */

/* A value as 32-bit words, for shuffles, tagged words and asynchronous stores. */
template <class X> struct words_of {
    static_assert(sizeof(X) % sizeof(uint32_t) == 0);
    static constexpr int size = sizeof(X) / sizeof(uint32_t);
    uint32_t w[size];

    __device__ words_of() {}
    __device__ explicit words_of(const X &x) { memcpy(w, &x, sizeof x); }

    __device__ X value() const {
        X x;
        memcpy(&x, w, sizeof x);
        return x;
    }
};

template <class X> __device__ X shuffle_down(X x, int delta) {
    words_of<X> words(x);
#pragma unroll
    for (int i = 0; i < words.size; ++i)
        words.w[i] = __shfl_down_sync(~0u, words.w[i], delta);
    return words.value();
}

#if __CUDA_ARCH__ >= 800
constexpr bool has_redux = true;
#else
constexpr bool has_redux = false;
#endif

template <warp_op Op, class X> __device__ X redux(X x) {
    if constexpr (Op == warp_op::min)
        return __reduce_min_sync(~0u, x);
    else if constexpr (Op == warp_op::max)
        return __reduce_max_sync(~0u, x);
    else if constexpr (Op == warp_op::band)
        return __reduce_and_sync(~0u, x);
    else if constexpr (Op == warp_op::bor)
        return __reduce_or_sync(~0u, x);
    else
        return __reduce_xor_sync(~0u, x);
}

/* Reduces `N` values as a tree. */
template <class M, int N> __device__ typename partial<M>::type reduce_array(typename partial<M>::type (&x)[N]) {
#pragma unroll
    for (int step = 1; step < N; step *= 2) {
#pragma unroll
        for (int i = 0; i + step < N; i += 2 * step)
            x[i] = partial<M>::combine(x[i], x[i + step]);
    }
    return x[0];
}

/* Reduces the values of a warp. All of its threads call it; the result is valid in lane 0. */
template <class M> __device__ typename partial<M>::type reduce_warp(typename partial<M>::type x) {
    if constexpr (has_redux && M::in_hardware != warp_op::none) {
        return redux<M::in_hardware>(x);
    } else {
#pragma unroll
        for (int delta = 16; delta > 0; delta /= 2)
            x = partial<M>::combine(x, shuffle_down(x, delta));
        return x;
    }
}

/* Combines the values of 2^log_group neighbouring lanes. All lanes of the warp call it; the result is valid in the
 * first lane of each group. Not unrolled: for shuffles that may be divergent, the compiler makes much code. */
template <class M> __device__ typename partial<M>::type reduce_group(typename partial<M>::type x, unsigned log_group) {
#pragma unroll 1
    for (unsigned delta = 1u << log_group >> 1; delta > 0; delta /= 2)
        x = partial<M>::combine(x, shuffle_down(x, delta));
    return x;
}

/* Reduces the values of a block. All of its threads call it, a multiple of 32; the result is valid in thread 0.
 * `of_warp` is shared memory for one value a warp. */
template <class M>
__device__ typename partial<M>::type reduce_block(typename partial<M>::type x, typename partial<M>::type *of_warp) {
    using X = partial<M>;
    const unsigned warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
    x = reduce_warp<M>(x);
    if (blockDim.x == 32)
        return x;
    if (in_warp == 0)
        of_warp[warp] = x;
    __syncthreads();
    if (warp == 0)
        x = reduce_warp<M>(in_warp < blockDim.x / 32 ? of_warp[in_warp] : X::identity());
    return x;
}

/* As above, with shared memory of its own. Between two calls there must be a barrier of the block. */
template <class M> __device__ typename partial<M>::type reduce_block(typename partial<M>::type x) {
    __shared__ typename partial<M>::type of_warp[32];
    return reduce_block<M>(x, of_warp);
}

} // namespace dpr

#endif
