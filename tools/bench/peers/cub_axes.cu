#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cub_folds.cuh"

namespace {

using peers::elements;
using peers::greatest;
using peers::is_compared;
using peers::sum;

/* Where a result's elements begin among all. */
struct begin_of {
    uint64_t length;
    __host__ __device__ int64_t operator()(int64_t result) const { return result * static_cast<int64_t>(length); }
};

/* An element by its number among all, those of a result one behind the other. */
template <typename T> struct strided {
    const T *at;
    peers_axes axes;

    __host__ __device__ T operator()(int64_t number) const {
        auto rest = static_cast<uint32_t>(number);
        int64_t offset = 0;
        for (int d = PEERS_AXES_DIMENSIONS - 1; d > 0; --d) {
            const uint32_t left = rest / axes.extents[d];
            offset += static_cast<int64_t>(rest - left * axes.extents[d]) * axes.strides[d];
            rest = left;
        }
        return at[offset + static_cast<int64_t>(rest) * axes.strides[0]];
    }
};

template <typename Op> struct axes_call {
    template <dpr_dtype D> static constexpr bool exists = is_compared<D>;

    /* CUB has a function for segments of one length since 3.1; before, it reads where they begin. */
    template <dpr_dtype D, typename Input>
    static int reduce(void *scratch, size_t bytes, Input in, void *out, const peers_axes *axes, dpr_stream stream) {
        using type = typename Op::template type<D>;
        const auto results = static_cast<int64_t>(axes->results);
        const typename Op::template fold<D> fold{};
#if CUB_VERSION >= 300100
        if (axes->length <= INT32_MAX)
            return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, static_cast<type *>(out), results,
                                                      static_cast<int>(axes->length), fold,
                                                      Op::template of_nothing<D>(), stream);
#endif
        const auto begins =
            thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), begin_of{axes->length});
        return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, static_cast<type *>(out), results, begins,
                                                  begins + 1, fold, Op::template of_nothing<D>(), stream);
    }

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, const peers_axes *axes, dpr_stream stream) {
        if (axes->are_rows)
            return reduce<D>(scratch, bytes, elements<D>(in), out, axes, stream);
        const strided<peers::element_of<D>> at{elements<D>(in), *axes};
        return reduce<D>(scratch, bytes, thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), at),
                         out, axes, stream);
    }
};

} // namespace

peers_cub_axes_table peers_cub_axes_sum = {DPR_DTYPE_LIST(PEERS_ENTRY, axes_call<sum>)};
peers_cub_axes_table peers_cub_axes_max = {DPR_DTYPE_LIST(PEERS_ENTRY, axes_call<greatest>)};
