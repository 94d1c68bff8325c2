#include "cub.cuh"

namespace {

template <typename Truth, dpr_dtype D> struct is_nonzero {
    __host__ __device__ Truth operator()(peers::element_of<D> x) const {
        if constexpr (D == DPR_F16 || D == DPR_BF16)
            return static_cast<float>(x) != 0;
        else
            return x != 0;
    }
};

/* Folds the elements' truths, which `Truth` is the type of, beginning with `Init`. */
template <typename Truth, typename Fold, int Init> struct truth_call {
    /* The types whose truths are worth a comparison: that keeps the build short. */
    template <dpr_dtype D> static constexpr bool exists = D == DPR_BOOL || D == DPR_U8 || D == DPR_I32 || D == DPR_F32;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::TransformReduce(scratch, bytes, peers::elements<D>(in), static_cast<Truth *>(out),
                                                  uint64_t{count}, Fold{}, is_nonzero<Truth, D>{}, Truth{Init}, stream);
    }
};

using count_call = truth_call<int64_t, ::cuda::std::plus<int64_t>, 0>;
using all_call = truth_call<bool, ::cuda::std::logical_and<bool>, 1>;
using any_call = truth_call<bool, ::cuda::std::logical_or<bool>, 0>;

} // namespace

peers_cub_table peers_cub_count = {DPR_DTYPE_LIST(PEERS_ENTRY, count_call)};
peers_cub_table peers_cub_all = {DPR_DTYPE_LIST(PEERS_ENTRY, all_call)};
peers_cub_table peers_cub_any = {DPR_DTYPE_LIST(PEERS_ENTRY, any_call)};
