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

/* CUB has had the form with two outputs and 64-bit indices since version 3. */
constexpr bool has_wide_index = CUB_VERSION >= 300000;

template <bool Least> struct arg_call {
    template <dpr_dtype D> static constexpr bool exists = has_wide_index &&peers::is_ordered<D>;

    template <dpr_dtype D>
    static int run(void *scratch, size_t bytes, const void *in, void *out, size_t count, dpr_stream stream) {
        const auto *from = peers::elements<D>(in);
        auto *const value = reinterpret_cast<peers::element_of<D> *>(static_cast<unsigned char *>(out) + 16);
        auto *const index = static_cast<int64_t *>(out);
        const auto n = static_cast<int64_t>(count);
        if constexpr (Least)
            return cub::DeviceReduce::ArgMin(scratch, bytes, from, value, index, n, stream);
        else
            return cub::DeviceReduce::ArgMax(scratch, bytes, from, value, index, n, stream);
    }
};

} // namespace

peers_cub_table peers_cub_min = {DPR_DTYPE_LIST(PEERS_ENTRY, extreme_call<true>)};
peers_cub_table peers_cub_max = {DPR_DTYPE_LIST(PEERS_ENTRY, extreme_call<false>)};
peers_cub_table peers_cub_argmin = {DPR_DTYPE_LIST(PEERS_ENTRY, arg_call<true>)};
peers_cub_table peers_cub_argmax = {DPR_DTYPE_LIST(PEERS_ENTRY, arg_call<false>)};
