/* What the files cub_*.cu share. */
#ifndef DPR_PEERS_CUB_CUH
#define DPR_PEERS_CUB_CUH

#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>

#include "element.cuh"
#include "peer_kernels.h"

namespace peers {

/* An element as CUB takes it. */
template <dpr_dtype D> struct element { using type = dpr::storage_of<D>; };
template <> struct element<DPR_F16> { using type = __half; };
template <> struct element<DPR_BF16> { using type = __nv_bfloat16; };
template <dpr_dtype D> using element_of = typename element<D>::type;
template <dpr_dtype D> using sum_of = dpr::storage_of<dpr::element<D>::wide>;

template <dpr_dtype D> constexpr bool is_ordered = (dpr::element<D>::kind & DPR_DOMAIN_ORDERED) != 0;

template <dpr_dtype D> const element_of<D> *elements(const void *in) {
    return static_cast<const element_of<D> *>(in);
}

/* Returns &Call::run<D> if Call::exists<D>, otherwise nullptr. */
template <typename Call, dpr_dtype D> constexpr auto entry() {
    if constexpr (Call::template exists<D>)
        return &Call::template run<D>;
    else
        return nullptr;
}

} // namespace peers

/* For DPR_DTYPE_LIST(PEERS_ENTRY, type): the table of a type with such members. */
#define PEERS_ENTRY(Call, NAME, ...) peers::entry<Call, DPR_##NAME>(),

#endif
