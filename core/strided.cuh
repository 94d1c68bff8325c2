/* A thread's elements of an array, a stride apart, so that neighbouring threads read neighbours. */
#ifndef DPR_CORE_STRIDED_CUH
#define DPR_CORE_STRIDED_CUH

#include "tile.cuh"

namespace dpr {

/* Returns the index `k` strides after `at`. */
__device__ inline uint64_t strides_on(uint64_t at, unsigned k, unsigned stride) {
    return at + k * static_cast<uint64_t>(stride);
}

/* Adds `N` values up to `Sums` sums, each of neighbouring values and by a tree. */
template <class M, unsigned N, unsigned Sums>
__device__ void sums_of(const typename partial<M>::type (&x)[N], typename partial<M>::type (&out)[Sums]) {
    constexpr unsigned each = N / Sums;
#pragma unroll
    for (unsigned j = 0; j < Sums; ++j) {
        typename partial<M>::type part[each];
#pragma unroll
        for (unsigned k = 0; k < each; ++k)
            part[k] = x[j * each + k];
        out[j] = reduce_array<M>(part);
    }
}

/* `Elements` such elements. Their loads are in flight from load() until sums() needs them. */
template <class M, unsigned Elements> struct strided {
    using X = partial<M>;
    typename M::storage e[Elements];

    __device__ void load(const typename M::storage *in, uint64_t at, unsigned stride) {
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k)
            e[k] = in[strides_on(at, k, stride)];
    }

    /* Adds the elements up to `Sums` sums, each of neighbouring elements. */
    template <unsigned Sums> __device__ void sums(typename X::type (&out)[Sums]) const {
        typename X::type x[Elements];
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k)
            x[k] = X::of_element(e[k], 0);
        sums_of<M>(x, out);
    }
};

/* As strided::sums(), of the elements whose index is below `count`. */
template <class M, unsigned Elements, unsigned Sums>
__device__ void sums_of_last(typename partial<M>::type (&out)[Sums], const typename M::storage *in, uint64_t at,
                             unsigned stride, uint64_t count) {
    using X = partial<M>;
    typename X::type x[Elements];
#pragma unroll
    for (unsigned k = 0; k < Elements; ++k) {
        const uint64_t i = strides_on(at, k, stride);
        x[k] = i < count ? X::of_element(in[i], 0) : X::identity();
    }
    sums_of<M>(x, out);
}

} // namespace dpr

#endif
