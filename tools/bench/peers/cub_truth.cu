#include "cub.cuh"

namespace {

using peers::element_of;
using peers::elements;

template <typename Truth, dpr_dtype D> struct is_nonzero {
    __host__ __device__ Truth operator()(element_of<D> x) const {
        if constexpr (D == DPR_F16 || D == DPR_BF16)
            return static_cast<float>(x) != 0;
        else
            return x != 0;
    }
};

/* The types whose truths are worth a comparison: that keeps the build short. */
template <dpr_dtype D> constexpr bool is_compared = D == DPR_BOOL || D == DPR_U8 || D == DPR_I32 || D == DPR_F32;

template <dpr_dtype D> struct count_call {
    static constexpr bool exists = is_compared<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::TransformReduce(scratch, *bytes, elements<D>(in), static_cast<int64_t *>(out),
                                                  uint64_t{count}, ::cuda::std::plus<int64_t>{},
                                                  is_nonzero<int64_t, D>{}, int64_t{0}, stream);
    }
};

template <dpr_dtype D> struct all_call {
    static constexpr bool exists = is_compared<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::TransformReduce(scratch, *bytes, elements<D>(in), static_cast<bool *>(out),
                                                  uint64_t{count}, ::cuda::std::logical_and<bool>{},
                                                  is_nonzero<bool, D>{}, true, stream);
    }
};

template <dpr_dtype D> struct any_call {
    static constexpr bool exists = is_compared<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::TransformReduce(scratch, *bytes, elements<D>(in), static_cast<bool *>(out),
                                                  uint64_t{count}, ::cuda::std::logical_or<bool>{},
                                                  is_nonzero<bool, D>{}, false, stream);
    }
};

} // namespace

peers_cub_call *const peers_cub_count[] = {DPR_DTYPE_LIST(PEERS_ENTRY, count_call)};
peers_cub_call *const peers_cub_all[] = {DPR_DTYPE_LIST(PEERS_ENTRY, all_call)};
peers_cub_call *const peers_cub_any[] = {DPR_DTYPE_LIST(PEERS_ENTRY, any_call)};
