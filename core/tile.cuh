/* How a grid reads an array and how the threads of a block meet. */
#ifndef DPR_CORE_TILE_CUH
#define DPR_CORE_TILE_CUH

#include "monoid.cuh"

namespace dpr {

/* Bytes a thread loads at a time. */
constexpr int vector_bytes = 16;

/* One element as it is loaded: complex types need all 16 bytes' alignment only within a vector. */
template <class T> struct alignas(vector_bytes) packet {
    static constexpr int size = vector_bytes / sizeof(T);
    T x[size];
};

/* Streaming loads: every element is read once. */
template <class T> __device__ packet<T> load_packet(const packet<T> *p) {
    return bits_as<packet<T>>(__ldcs(reinterpret_cast<const uint4 *>(p)));
}

/* The lanes of one thread within one tile, and their fold in a fixed order. */
template <class M> struct lane_set {
    using storage = typename M::storage;
    using words = packet<uint32_t>;
    typename M::lane l[M::lanes];

    __device__ lane_set() {
#pragma unroll
        for (int i = 0; i < M::lanes; ++i)
            l[i] = M::lane_identity();
    }

    /* Vector v of the tile: the slots from v * size on. */
    __device__ void add(const packet<storage> &p, int v) {
        if constexpr (M::by_word) {
            const auto w = bits_as<words>(p);
#pragma unroll
            for (int i = 0; i < words::size; ++i)
                l[i % M::lanes] = M::add_word(l[i % M::lanes], w.x[i]);
        } else {
#pragma unroll
            for (int e = p.size - 1; e >= 0; --e)
                l[(v * p.size + e) % M::lanes] = M::add(l[(v * p.size + e) % M::lanes], p.x[e], v * p.size + e);
        }
    }

    /* As a tree, so that rounding errors grow with its depth. */
    template <class IndexOf> __device__ typename M::acc fold_into(typename M::acc a, IndexOf index_of) {
#pragma unroll
        for (int half = M::lanes / 2; half > 0; half /= 2) {
#pragma unroll
            for (int i = 0; i < half; ++i)
                l[i] = M::join(l[i], l[i + half]);
        }
        return M::fold(a, l[0], index_of);
    }
};

/* The accumulator with one element. */
template <class M> __device__ typename M::acc with_element(typename M::acc a, typename M::storage x, uint64_t index) {
    return M::fold(a, M::add(M::lane_identity(), x, 0), [=](uint32_t) { return index; });
}

/* Complex elements may be aligned to their parts alone, and then no element is on a vector's boundary. Each is read by
 * itself, neighbouring threads reading neighbours. */
template <class M> __device__ typename M::acc reduce_share_of_parts(const typename M::storage *data, uint64_t count) {
    const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    typename M::acc a = M::identity();
#pragma unroll 4
    for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < count; i += threads)
        a = with_element<M>(a, data[i], i);
    return a;
}

/* The part of in[0 .. count-1] that belongs to this thread of the grid: whole tiles of vectors from the first 16-byte
 * boundary on, then, with all loads in flight at once, the last partial tile and the elements before the first boundary
 * and after the last vector. */
template <class M> __device__ typename M::acc reduce_share(const void *in, uint64_t count) {
    using T = typename M::storage;
    using P = packet<T>;
    constexpr int vectors = M::vectors;
    const T *data = static_cast<const T *>(in);
    if constexpr (alignof(T) < sizeof(T)) {
        if (reinterpret_cast<uintptr_t>(in) % sizeof(T) != 0)
            return reduce_share_of_parts<M>(data, count);
    }
    const uint64_t before = (-reinterpret_cast<uintptr_t>(in) % vector_bytes) / sizeof(T);
    const uint64_t head = before < count ? before : count;
    const uint64_t packets = (count - head) / P::size;
    const P *body = reinterpret_cast<const P *>(data + head);
    const uint64_t thread = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x;
    const uint64_t tile = static_cast<uint64_t>(blockDim.x) * vectors;
    uint64_t at = blockIdx.x * tile + threadIdx.x;
    typename M::acc a = M::identity();
    const auto index_of = [&](uint32_t slot) {
        return head + (at + slot / P::size * blockDim.x) * P::size + slot % P::size;
    };

    for (; at + (vectors - 1) * blockDim.x < packets; at += tile * gridDim.x) {
        P p[vectors];
#pragma unroll
        for (int v = 0; v < vectors; ++v)
            p[v] = load_packet(body + at + v * blockDim.x);
        lane_set<M> s;
#pragma unroll
        for (int v = vectors - 1; v >= 0; --v)
            s.add(p[v], v);
        a = s.fold_into(a, index_of);
    }

    const uint64_t tail = head + packets * P::size + thread;
    P p[vectors - 1];
    T first, last;
#pragma unroll
    for (int v = 0; v < vectors - 1; ++v) {
        if (at + v * blockDim.x < packets)
            p[v] = load_packet(body + at + v * blockDim.x);
    }
    if (thread < head)
        first = data[thread];
    if (tail < count)
        last = data[tail];
    lane_set<M> s;
#pragma unroll
    for (int v = vectors - 2; v >= 0; --v) {
        if (at + v * blockDim.x < packets)
            s.add(p[v], v);
    }
    a = s.fold_into(a, index_of);
    if (thread < head)
        a = with_element<M>(a, first, thread);
    if (tail < count)
        a = with_element<M>(a, last, tail);
    return a;
}

/* What the threads of a block exchange, and how it combines. */
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
            return M::fold(M::identity(), x, [](uint32_t) { return uint64_t{0}; });
        else
            return x;
    }

    static __device__ type combine(type a, type b) {
        if constexpr (M::narrow_exchange)
            return M::join(a, b);
        else
            return M::merge(a, b);
    }
};

template <class T> __device__ T shuffle_down(T value, int delta) {
    constexpr int words = sizeof(T) / sizeof(uint32_t);
    static_assert(sizeof(T) % sizeof(uint32_t) == 0);
    uint32_t w[words];
    memcpy(w, &value, sizeof value);
#pragma unroll
    for (int i = 0; i < words; ++i)
        w[i] = __shfl_down_sync(~0u, w[i], delta);
    memcpy(&value, w, sizeof value);
    return value;
}

/* Valid in lane 0. All lanes of the warp take part. */
template <class M> __device__ typename exchange<M>::type reduce_warp(typename exchange<M>::type x) {
#pragma unroll
    for (int delta = 16; delta > 0; delta /= 2)
        x = exchange<M>::combine(x, shuffle_down(x, delta));
    return x;
}

/* Valid in thread 0. All threads of the block take part; blockDim.x is Threads. May be called again after a barrier. */
template <class M, int Threads> __device__ typename M::acc reduce_block(typename M::acc a) {
    using X = exchange<M>;
    constexpr int warps = Threads / 32;
    static_assert(Threads % 32 == 0 && warps <= 32);
    __shared__ typename X::type of_warp[warps];
    const int warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
    typename X::type x = reduce_warp<M>(X::pack(a));
    if (in_warp == 0)
        of_warp[warp] = x;
    __syncthreads();
    if (warp == 0)
        x = reduce_warp<M>(in_warp < warps ? of_warp[in_warp] : X::identity());
    return X::unpack(x);
}

} // namespace dpr

#endif
