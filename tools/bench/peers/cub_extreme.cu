#include "cub.cuh"

namespace {

using peers::element_of;
using peers::elements;

template <dpr_dtype D> struct min_call {
    static constexpr bool exists = peers::is_ordered<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::Min(scratch, *bytes, elements<D>(in), static_cast<element_of<D> *>(out),
                                      uint64_t{count}, stream);
    }
};

template <dpr_dtype D> struct max_call {
    static constexpr bool exists = peers::is_ordered<D>;

    static int run(void *scratch, size_t *bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        return cub::DeviceReduce::Max(scratch, *bytes, elements<D>(in), static_cast<element_of<D> *>(out),
                                      uint64_t{count}, stream);
    }
};

} // namespace

peers_cub_call *const peers_cub_min[] = {DPR_DTYPE_LIST(PEERS_ENTRY, min_call)};
peers_cub_call *const peers_cub_max[] = {DPR_DTYPE_LIST(PEERS_ENTRY, max_call)};
