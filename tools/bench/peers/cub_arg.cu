#include "cub.cuh"

namespace {

using peers::element_of;
using peers::elements;

/* CUB has had the form with two outputs and 64-bit indices since version 3. */
#if CUB_VERSION >= 300000
constexpr bool has_wide_index = true;
#else
constexpr bool has_wide_index = false;
#endif

template <dpr_dtype D> element_of<D> *value_at(void *out) {
    return reinterpret_cast<element_of<D> *>(static_cast<unsigned char *>(out) + 16);
}

template <dpr_dtype D> struct argmin_call {
    static constexpr bool exists = has_wide_index && peers::is_ordered<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::ArgMin(scratch, *bytes, elements<D>(in), value_at<D>(out),
                                         static_cast<int64_t *>(out), static_cast<int64_t>(count), stream);
    }
};

template <dpr_dtype D> struct argmax_call {
    static constexpr bool exists = has_wide_index && peers::is_ordered<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::ArgMax(scratch, *bytes, elements<D>(in), value_at<D>(out),
                                         static_cast<int64_t *>(out), static_cast<int64_t>(count), stream);
    }
};

} // namespace

peers_cub_call *const peers_cub_argmin[] = {DPR_DTYPE_LIST(PEERS_ENTRY, argmin_call)};
peers_cub_call *const peers_cub_argmax[] = {DPR_DTYPE_LIST(PEERS_ENTRY, argmax_call)};
