/* How threads read the elements of a segment if memory keeps them waiting: many at a time. */
#ifndef DPR_CORE_SEGMENTS_READ_CUH
#define DPR_CORE_SEGMENTS_READ_CUH

#include "segments_values.cuh"

namespace dpr {

template <class M> class segment_reader {
    using T = typename M::storage;
    using X = partial<M>;
    using R = running<M>;
    using unit = packet<T>;

    const T *array;

    /* The value of up to `N` packs of elements, of type `Pack`, at places first, first + step ... Element 0 of the
     * first pack has this index in the array. */
    template <unsigned N, class Pack>
    static __device__ typename M::acc add(const Pack *packs, uint64_t first, uint64_t end, unsigned step,
                                          uint64_t index) {
        constexpr unsigned size = sizeof(Pack) / sizeof(T);
        Pack p[N];
#pragma unroll
        for (unsigned k = 0; k < N; ++k)
            if (first + k * step < end)
                p[k] = packs[first + k * step];
        /* Chains of additions are short, so that few of them round. */
        constexpr unsigned chains = M::exchanges_lanes ? size : 1;
        typename R::type a[chains];
        typename X::type x[chains];
#pragma unroll
        for (unsigned c = 0; c < chains; ++c)
            a[c] = R::identity();
#pragma unroll
        for (unsigned k = 0; k < N; ++k)
            if (first + k * step < end) {
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

  public:
    explicit __device__ segment_reader(const void *in) : array(static_cast<const T *>(in)) {}

    /* The value of elements `lane`, `lane + step` ... of `count` elements from number `begin` on, of which `N` are
     * loaded at a time. */
    template <unsigned N>
    __device__ typename X::type read(uint64_t begin, uint64_t count, unsigned lane, unsigned step) const {
        typename M::acc a = M::identity();
#pragma unroll 1
        for (uint64_t i = lane; i < count; i += N * step)
            a = M::merge(a, add<N>(array + begin, i, count, step, begin + i));
        return X::pack(a);
    }

    /* The value of a thread's share of these elements. They are read as vectors, `N` at a time, where they lie on
     * boundaries of vectors. */
    template <unsigned N>
    __device__ typename X::type read_vectors(uint64_t begin, uint64_t count, unsigned lane, unsigned step) const {
        const unsigned bytes = reinterpret_cast<uintptr_t>(array + begin) % sizeof(unit),
                       head = (sizeof(unit) - bytes) % sizeof(unit) / sizeof(T);
        if (unit::size == 1 || bytes % sizeof(T) != 0 || count < 2 * unit::size)
            return read<N>(begin, count, lane, step);
        const unit *units = reinterpret_cast<const unit *>(array + begin + head);
        const uint64_t n = (count - head) / unit::size, rest = count - n * unit::size;
        typename M::acc a = M::identity();
#pragma unroll 1
        for (uint64_t i = lane; i < n; i += N * step)
            a = M::merge(a, add<N>(units, i, n, step, begin + head + i * unit::size));
#pragma unroll 1
        for (uint64_t i = lane; i < rest; i += step) {
            const uint64_t at = begin + (i < head ? i : i + n * unit::size);
            a = M::merge(a, X::unpack(X::of_element(array[at], at)));
        }
        return X::pack(a);
    }
};

} // namespace dpr

#endif
