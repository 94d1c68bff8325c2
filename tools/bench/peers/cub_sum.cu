#include <thrust/iterator/transform_iterator.h>

#include "cub.cuh"

namespace {

using peers::element_of;
using peers::elements;
using peers::sum_of;

template <typename To> struct widen {
    template <typename From> __host__ __device__ To operator()(From x) const { return static_cast<To>(x); }
};

struct truth {
    __host__ __device__ int64_t operator()(uint8_t x) const { return x != 0; }
};

struct sum_call {
    template <dpr_dtype D> static constexpr bool exists = peers::is_ordered<D>;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        using sum = sum_of<D>;
        const uint64_t n = count;
        sum *const to = static_cast<sum *>(out);
        if constexpr (D == DPR_BOOL)
            return cub::DeviceReduce::TransformReduce(scratch, bytes, elements<D>(in), to, n, ::cuda::std::plus<sum>{},
                                                      truth{}, sum{0}, stream);
        else if constexpr (sizeof(sum) == sizeof(element_of<D>))
            return cub::DeviceReduce::Sum(scratch, bytes, elements<D>(in), to, n, stream);
        else
            return cub::DeviceReduce::Reduce(scratch, bytes, elements<D>(in), to, n, ::cuda::std::plus<sum>{}, sum{0},
                                             stream);
    }
};

struct transform_call {
    template <dpr_dtype D>
    static constexpr bool exists = peers::is_ordered<D> &&D != DPR_BOOL && sizeof(sum_of<D>) > sizeof(element_of<D>);

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        using sum = sum_of<D>;
        const auto wide = thrust::make_transform_iterator(elements<D>(in), widen<sum>{});
        return cub::DeviceReduce::Sum(scratch, bytes, wide, static_cast<sum *>(out), uint64_t{count}, stream);
    }
};

struct native_call {
    template <dpr_dtype D> static constexpr bool exists = D == DPR_I32 || D == DPR_U32;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::Sum(scratch, bytes, elements<D>(in), static_cast<element_of<D> *>(out),
                                      uint64_t{count}, stream);
    }
};

} // namespace

peers_cub_table peers_cub_sum = {DPR_DTYPE_LIST(PEERS_ENTRY, sum_call)};
peers_cub_table peers_cub_sum_transform = {DPR_DTYPE_LIST(PEERS_ENTRY, transform_call)};
peers_cub_table peers_cub_sum_native = {DPR_DTYPE_LIST(PEERS_ENTRY, native_call)};

int peers_cub_version() {
    return CUB_VERSION;
}
