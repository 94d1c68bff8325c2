/* What CUB accumulates for many results, as dpr does, and of which types. */
#ifndef DPR_PEERS_CUB_FOLDS_CUH
#define DPR_PEERS_CUB_FOLDS_CUH

#include <cuda/functional>
#include <cuda/std/limits>

#include "cub.cuh"

namespace peers {

struct sum {
    template <dpr_dtype D> using type = sum_of<D>;
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

} // namespace peers

#endif
