/* How a grid reads an array and how the threads of a block meet. */
#ifndef DPR_CORE_TILE_CUH
#define DPR_CORE_TILE_CUH

#include "args.h"
#include "monoid.cuh"

namespace dpr {

/* ---- What one thread accumulates ---- */

/* The lanes of one thread within one tile, and their fold in a fixed order. */
template <class M> struct lane_set {
    using storage = typename M::storage;
    typename M::lane l[M::lanes];

    __device__ lane_set() {
#pragma unroll
        for (int i = 0; i < M::lanes; ++i)
            l[i] = M::lane_identity();
    }

    /* A vector; which one of the tile does not matter. */
    __device__ void add(const packet<storage> &p, unsigned) {
        if constexpr (M::by_word) {
#pragma unroll
            for (int i = 0; i < p.words; ++i)
                l[i % M::lanes] = M::add_word(l[i % M::lanes], p.w[i]);
        } else {
#pragma unroll
            for (int e = 0; e < p.size; ++e)
                l[e % M::lanes] = M::add(l[e % M::lanes], p[e]);
        }
    }

    /* All lanes, as a tree, so that rounding errors grow with its depth. */
    __device__ typename M::lane total() {
#pragma unroll
        for (int half = M::lanes / 2; half > 0; half /= 2) {
#pragma unroll
            for (int i = 0; i < half; ++i)
                l[i] = M::join(l[i], l[i + half]);
        }
        if constexpr (M::by_word)
            l[0] = M::settle(l[0]);
        return l[0];
    }

    template <class IndexOf> __device__ typename M::acc fold_into(typename M::acc a, IndexOf) {
        return M::fold(a, total());
    }
};

template <class M>
using tile_of = cuda::std::conditional_t<cuda::std::is_void_v<typename M::tile>, lane_set<M>, typename M::tile>;

/* What threads and blocks exchange, and how it combines. */
template <class M> struct exchange {
    using lane = typename M::lane;
    using acc = typename M::acc;
    using type = cuda::std::conditional_t<M::narrow_exchange, lane, acc>;

    static __device__ type identity() {
        if constexpr (M::narrow_exchange)
            return M::lane_identity();
        else
            return M::identity();
    }

    static __device__ type pack(acc a) {
        if constexpr (M::narrow_exchange)
            return M::lower(a);
        else
            return a;
    }

    static __device__ acc unpack(type x) {
        if constexpr (M::narrow_exchange)
            return M::fold(M::identity(), x);
        else
            return x;
    }

    static __device__ type combine(type a, type b) {
        if constexpr (M::narrow_exchange)
            return M::join(a, b);
        else
            return M::merge(a, b);
    }

    /* One element, whose index matters to some. */
    static __device__ type of_element(typename M::storage x, uint64_t index) {
        if constexpr (M::located)
            return M::of_element(x, index);
        else if constexpr (M::narrow_exchange)
            return M::add(M::lane_identity(), x);
        else
            return M::fold(M::identity(), M::add(M::lane_identity(), x));
    }
};

/* ---- Reading ---- */

/* An array as it is read: `head` elements before the first 16-byte boundary, whole vectors, and what is left. */
template <class T> struct division {
    const T *data;
    uint64_t count, vectors;
    uint32_t head;
    bool ends; /* some elements are not in whole vectors */

    /* The host has divided the array, unless the count is known on the device alone. */
    __device__ division(const dpr_kernel_args &args, uint64_t n)
        : data(static_cast<const T *>(args.in)), count(n), vectors(args.vectors), head(args.head),
          ends(args.reading & DPR_READ_ENDS) {
        if (args.device_count) {
            head = n < head ? static_cast<uint32_t>(n) : head;
            vectors = (n - head) / packet<T>::size;
            ends = head > 0 || tail() < n;
        }
    }

    __device__ const packet<T> *body() const { return reinterpret_cast<const packet<T> *>(data + head); }
    __device__ uint64_t tail() const { return head + vectors * packet<T>::size; }
};

template <bool Streaming, class T> __device__ packet<T> load_packet(const packet<T> *p) {
    const uint4 *q = reinterpret_cast<const uint4 *>(p);
    return bits_as<packet<T>>(Streaming ? __ldcs(q) : __ldg(q));
}

__device__ inline uint64_t thread_of_grid() {
    return blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x;
}

__device__ inline unsigned threads_of_grid() {
    return gridDim.x * blockDim.x;
}

/* Bytes for each block that are on their way to L2 while the work before is ending: enough to have memory busy until
 * the loop runs. */
constexpr unsigned ahead_bytes = 32768;

/* Brings the first vectors of this thread's share to L2: one thread in eight, for a line of 128 bytes. Only a hint, so
 * it may come before the elements are written. */
template <class M> __device__ void read_ahead(const dpr_kernel_args &args) {
    const division<typename M::storage> d(args, args.count);
    uint64_t at = thread_of_grid();
    if (threadIdx.x % 8 != 0)
        return;
    for (unsigned bytes = 0; bytes < ahead_bytes && at < d.vectors; bytes += blockDim.x * vector_bytes) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(d.body() + at));
        at += threads_of_grid();
    }
}

/* Begins every kernel: lets the next one of the stream be launched, and waits until what came before this one is done.
 * Nothing that others write may be read before, and nothing written. Returns the number of elements. */
template <class M> __device__ uint64_t begin(const dpr_kernel_args &args) {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    if (args.reading & DPR_READ_AHEAD)
        read_ahead<M>(args);
    cudaGridDependencySynchronize();
#endif
    if (!args.device_count)
        return args.count;
    const uint64_t count = *args.device_count;
    return count < args.count ? count : args.count;
}

/* Complex elements may be aligned to their parts alone, and then no element is on a vector's boundary. */
template <class T> __device__ bool is_split(const void *in) {
    return reinterpret_cast<uintptr_t>(in) % sizeof(T) != 0;
}

/* The share of such an array: each element is read by itself, neighbouring threads reading neighbours. */
template <class M>
__device__ typename exchange<M>::type reduce_split_share(const typename M::storage *data, uint64_t count) {
    typename M::acc a = M::identity();
#pragma unroll 4
    for (uint64_t i = thread_of_grid(); i < count; i += threads_of_grid())
        a = M::fold(a, M::add(M::lane_identity(), data[i]));
    return exchange<M>::pack(a);
}

/* Whole tiles: the accumulator with every so many-th vector from `at` on, while there are M::vectors of them. */
template <class M, bool Streaming>
__device__ typename M::acc reduce_tiles(const division<typename M::storage> &d, uint64_t &at) {
    using P = packet<typename M::storage>;
    constexpr int vectors = M::vectors;
    const uint64_t stride = threads_of_grid();
    typename M::acc a = M::identity();
    for (; at + (vectors - 1) * stride < d.vectors; at += vectors * stride) {
        const P *q = d.body() + at;
        P p[vectors];
#pragma unroll
        for (int v = 0; v < vectors; ++v)
            p[v] = load_packet<Streaming>(q + v * stride);
        tile_of<M> s;
#pragma unroll
        for (int v = vectors - 1; v >= 0; --v)
            s.add(p[v], v);
        a = s.fold_into(a, [&](unsigned v) { return d.head + (at + v * stride) * P::size; });
    }
    return a;
}

/* What is left of a thread's vectors, fewer than M::vectors: in halves, quarters... of a tile, as many as there are, so
 * that few instructions are spent on a short array, and all loads in flight at once. */
template <class M> struct rest_of_tile {
    using P = packet<typename M::storage>;
    static constexpr int vectors = M::vectors;
    P p[vectors - 1];
    bool has[vectors]; /* by the part's size, a power of two */

    /* `left` is how many vectors of the array there are from this thread's first on. */
    __device__ void load(const P *q, unsigned left, unsigned stride) {
#pragma unroll
        for (int k = vectors / 2, i = 0; k > 0; i += k, k /= 2) {
            has[k] = (k - 1) * stride < left;
            if (has[k]) {
#pragma unroll
                for (int j = 0; j < k; ++j)
                    p[i + j] = load_packet<false>(q + j * stride);
                q += k * stride;
                left -= left < k * stride ? left : k * stride;
            }
        }
    }

    /* Later vectors first. */
    __device__ void add_to(tile_of<M> &s) const {
#pragma unroll
        for (int k = 1, i = vectors - 2; k < vectors; k *= 2, i -= k) {
            if (has[k]) {
                unsigned before = 0;
#pragma unroll
                for (int larger = 2 * k; larger < vectors; larger *= 2)
                    before += has[larger] ? larger : 0;
#pragma unroll
                for (int j = k - 1; j >= 0; --j)
                    s.add(p[i + j], before + j);
            }
        }
    }
};

/* This thread's elements before the first vector and after the last, which are on their way while vectors are read. */
template <class M> struct ends {
    using T = typename M::storage;
    using X = exchange<M>;
    const division<T> &d;
    bool has_first = false, has_last = false;
    T first, last;

    __device__ explicit ends(const division<T> &of) : d(of) {
        if (d.ends) {
            const uint64_t thread = thread_of_grid(), tail = d.tail() + thread;
            has_first = thread < d.head;
            has_last = tail < d.count;
            if (has_first)
                first = d.data[thread];
            if (has_last)
                last = d.data[tail];
        }
    }

    __device__ typename X::type with(typename X::type x) const {
        if (d.ends) {
            if (has_first)
                x = X::combine(x, X::of_element(first, thread_of_grid()));
            if (has_last)
                x = X::combine(x, X::of_element(last, d.tail() + thread_of_grid()));
        }
        return x;
    }
};

/* The part of in[0 .. count-1] that belongs to this thread of the grid: every so many-th vector, and one of the
 * elements beside the vectors. */
template <class M> __device__ typename exchange<M>::type reduce_share(const dpr_kernel_args &args, uint64_t count) {
    using T = typename M::storage;
    using X = exchange<M>;
    const division<T> d(args, count);
    if constexpr (alignof(T) < sizeof(T)) {
        if (is_split<T>(args.in))
            return reduce_split_share<M>(d.data, count);
    }
    const ends<M> e(d);
    const unsigned stride = threads_of_grid();
    uint64_t at = thread_of_grid();
    typename M::acc a = M::identity();
    const bool tiles = at + (M::vectors - 1) * static_cast<uint64_t>(stride) < d.vectors;
    if (tiles)
        a = args.reading & DPR_READ_STREAMING ? reduce_tiles<M, true>(d, at) : reduce_tiles<M, false>(d, at);
    rest_of_tile<M> rest;
    rest.load(d.body() + at, at < d.vectors ? static_cast<unsigned>(d.vectors - at) : 0, stride);
    tile_of<M> s;
    rest.add_to(s);
    typename X::type x;
    if constexpr (M::narrow_exchange) {
        x = s.total();
        if (tiles)
            x = X::combine(X::pack(a), x);
    } else {
        x = s.fold_into(
            a, [&](unsigned v) { return d.head + (at + v * static_cast<uint64_t>(stride)) * packet<T>::size; });
    }
    return e.with(x);
}

/* ---- Meeting ---- */

/* A value as 32-bit words, as shuffles, tagged words and asynchronous stores carry it. */
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

/* Valid in lane 0. All lanes of the warp take part. */
template <class M> __device__ typename exchange<M>::type reduce_warp(typename exchange<M>::type x) {
#pragma unroll
    for (int delta = 16; delta > 0; delta /= 2)
        x = exchange<M>::combine(x, shuffle_down(x, delta));
    return x;
}

/* Valid in thread 0. All threads of the block take part, a multiple of 32. May be called again after a barrier. */
template <class M> __device__ typename exchange<M>::type reduce_block(typename exchange<M>::type x) {
    using X = exchange<M>;
    __shared__ typename X::type of_warp[32];
    const unsigned warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
    x = reduce_warp<M>(x);
    if (in_warp == 0)
        of_warp[warp] = x;
    __syncthreads();
    if (warp == 0)
        x = reduce_warp<M>(in_warp < blockDim.x / 32 ? of_warp[in_warp] : X::identity());
    return x;
}

} // namespace dpr

#endif
