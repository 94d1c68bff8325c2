#include <cub/device/device_segmented_reduce.cuh>

#include "cub_folds.cuh"

namespace {

using peers::elements;
using peers::greatest;
using peers::is_compared;
using peers::sum;

template <typename Op, typename Offset> struct segments_call {
    template <dpr_dtype D> static constexpr bool exists = is_compared<D>;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, const void *offsets, void *out, uint64_t segments,
                   dpr_stream stream) {
        using type = typename Op::template type<D>;
        const auto *const begins = static_cast<const Offset *>(offsets);
        return cub::DeviceSegmentedReduce::Reduce(
            scratch, bytes, elements<D>(in), static_cast<type *>(out), static_cast<int64_t>(segments), begins,
            begins + 1, typename Op::template fold<D>{}, Op::template of_nothing<D>(), stream);
    }
};

template <typename Op> struct by_key_call {
    template <dpr_dtype D> static constexpr bool exists = is_compared<D>;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const int32_t *keys, const void *in, int32_t *unique, void *out,
                   int64_t *runs, uint64_t count, dpr_stream stream) {
        using type = typename Op::template type<D>;
        return cub::DeviceReduce::ReduceByKey(scratch, bytes, keys, unique, elements<D>(in), static_cast<type *>(out),
                                              runs, typename Op::template fold<D>{}, static_cast<int64_t>(count),
                                              stream);
    }
};

using sum_32 = segments_call<sum, int32_t>;
using sum_64 = segments_call<sum, int64_t>;
using max_32 = segments_call<greatest, int32_t>;
using max_64 = segments_call<greatest, int64_t>;

} // namespace

peers_cub_segments_table peers_cub_segments_sum = {{DPR_DTYPE_LIST(PEERS_ENTRY, sum_32)},
                                                   {DPR_DTYPE_LIST(PEERS_ENTRY, sum_64)}};
peers_cub_segments_table peers_cub_segments_max = {{DPR_DTYPE_LIST(PEERS_ENTRY, max_32)},
                                                   {DPR_DTYPE_LIST(PEERS_ENTRY, max_64)}};
peers_cub_by_key_table peers_cub_by_key_sum = {DPR_DTYPE_LIST(PEERS_ENTRY, by_key_call<sum>)};
peers_cub_by_key_table peers_cub_by_key_max = {DPR_DTYPE_LIST(PEERS_ENTRY, by_key_call<greatest>)};
