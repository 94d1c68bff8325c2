/* How threads read the elements of a segment if memory keeps them waiting: many at a time. */
#ifndef DPR_CORE_SEGMENTS_READ_CUH
#define DPR_CORE_SEGMENTS_READ_CUH

#include "segments_values.cuh"

namespace dpr {

/* `Together`: the compiler keeps a lane's loads together. Otherwise it may move them to where they are used, behind
 * others that are waited for; whether it does depends on the code around. */
template <class M, bool Together = false> class segment_reader {
    using T = typename M::storage;
    using X = partial<M>;
    using R = running<M>;
    using unit = packet<T>;

    const T *array;

    /* The value of up to `N` packs of elements, of type `Pack`, at places 0, step ..., before place `left`. Element 0
     * of the first pack has this index in the array. */
    template <unsigned N, class Pack>
    static __device__ typename M::acc add(const Pack *packs, unsigned left, unsigned step, uint64_t index) {
        constexpr unsigned size = sizeof(Pack) / sizeof(T);
        Pack p[N];
#pragma unroll
        for (unsigned k = 0; k < N; ++k)
            p[k] = k * step < left ? packs[k * step] : Pack();
        if constexpr (Together)
            __syncwarp(__activemask()); /* no load moves behind it; lanes with fewer elements are not here */
        /* Chains of additions are short, so that few of them round. */
        constexpr unsigned chains = M::exchanges_lanes ? size : 1;
        typename R::type a[chains];
        typename X::type x[chains];
#pragma unroll
        for (unsigned c = 0; c < chains; ++c)
            a[c] = R::identity();
#pragma unroll
        for (unsigned k = 0; k < N; ++k)
            if (k * step < left) {
#pragma unroll
                for (unsigned e = 0; e < size; ++e)
                    if constexpr (cuda::std::is_same_v<Pack, T>)
                        a[0] = R::add(a[0], p[k], k * step);
                    else
                        a[e % chains] = R::add(a[e % chains], p[k][e], k * step * size + e);
            }
#pragma unroll
        for (unsigned c = 0; c < chains; ++c)
            x[c] = R::value(a[c], index);
        return X::unpack(reduce_array<M>(x));
    }

    /* The value of packs `lane`, `lane + step` ... of `count`, `N` of which are loaded at a time. */
    template <unsigned N, class Pack>
    static __device__ typename M::acc add_all(const Pack *packs, unsigned count, unsigned lane, unsigned step,
                                              uint64_t index) {
        constexpr unsigned size = sizeof(Pack) / sizeof(T);
        typename M::acc a = M::identity();
#pragma unroll 1
        for (unsigned i = lane; i < count; i += N * step)
            a = M::merge(a, add<N>(packs + i, count - i, step, index + i * size));
        return a;
    }

  public:
    explicit __device__ segment_reader(const void *in) : array(static_cast<const T *>(in)) {}

    /* The value of element number `i`. */
    __device__ typename X::type at(uint64_t i) const {
        return X::of_element(array[i], i);
    }

    /* The value of elements `lane`, `lane + step` ... of `count` elements from number `begin` on. `N` of them are
     * loaded at a time. */
    template <unsigned N>
    __device__ typename X::type read(uint64_t begin, unsigned count, unsigned lane, unsigned step) const {
        return X::pack(add_all<N>(array + begin, count, lane, step, begin));
    }

    /* The value of a thread's share of these elements, which at least 32 threads read. They are read as vectors, `N` at
     * a time, where they lie on boundaries of vectors. */
    template <unsigned N>
    __device__ typename X::type read_vectors(uint64_t begin, unsigned count, unsigned lane, unsigned step) const {
        const T *const first = array + begin;
        const unsigned bytes = reinterpret_cast<uintptr_t>(first) % sizeof(unit);
        if constexpr (alignof(T) < sizeof(T)) {
            if (bytes % sizeof(T) != 0)
                return read<N>(begin, count, lane, step);
        }
        const unsigned before = (sizeof(unit) - bytes) % sizeof(unit) / sizeof(T),
                       head = before < count ? before : count, units = (count - head) / unit::size,
                       rest = count - units * unit::size;
        const unsigned at = lane < head ? lane : lane + units * unit::size;
        T other = {};
        if (lane < rest)
            other = first[at];
        typename M::acc a = add_all<N>(reinterpret_cast<const unit *>(first + head), units, lane, step, begin + head);
        if (lane < rest)
            a = M::merge(a, X::unpack(X::of_element(other, begin + at)));
        return X::pack(a);
    }
};

} // namespace dpr

#endif
