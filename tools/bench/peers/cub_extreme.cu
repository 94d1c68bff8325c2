#include "cub.cuh"

namespace {

template <bool Least> struct extreme_call {
    template <dpr_dtype D> static constexpr bool exists = peers::is_ordered<D>;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        auto *const to = static_cast<peers::element_of<D> *>(out);
        if constexpr (Least)
            return cub::DeviceReduce::Min(scratch, bytes, peers::elements<D>(in), to, uint64_t{count}, stream);
        else
            return cub::DeviceReduce::Max(scratch, bytes, peers::elements<D>(in), to, uint64_t{count}, stream);
    }
};

} // namespace

peers_cub_table peers_cub_min = {DPR_DTYPE_LIST(PEERS_ENTRY, extreme_call<true>)};
peers_cub_table peers_cub_max = {DPR_DTYPE_LIST(PEERS_ENTRY, extreme_call<false>)};
