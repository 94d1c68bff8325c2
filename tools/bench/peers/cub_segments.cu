#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/functional>
#include <cuda/std/limits>

#include "cub.cuh"

namespace {

using peers::element_of;
using peers::elements;

/* What CUB accumulates, as dpr does. */
struct sum {
    template <dpr_dtype D> using type = peers::sum_of<D>;
    template <dpr_dtype D> using fold = ::cuda::std::plus<type<D>>;
    template <dpr_dtype D> static constexpr type<D> of_nothing() { return type<D>{0}; }
};

struct greatest {
    template <dpr_dtype D> using type = element_of<D>;
    template <dpr_dtype D> using fold = ::cuda::maximum<type<D>>;
    template <dpr_dtype D> static constexpr type<D> of_nothing() {
        using limits = ::cuda::std::numeric_limits<type<D>>;
        return limits::has_infinity ? -limits::infinity() : limits::lowest();
    }
};

/* The types that cuSPARSE has, and one of integers: that keeps the build short. */
template <dpr_dtype D> constexpr bool is_compared = D == DPR_F32 || D == DPR_F64 || D == DPR_I32;

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
