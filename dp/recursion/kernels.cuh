/* The table of a policy's kernels, for the library. */
#ifndef DPR_DP_KERNELS_CUH
#define DPR_DP_KERNELS_CUH

#include "persistent.cuh"
#include "phases.cuh"

namespace dpr {
namespace recursion {

inline int function_of(const void *kernel, void **function) {
    return static_cast<int>(cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(function), kernel));
}

template <class P> const void *persistent_kernel() {
    if constexpr (has_teams<P>)
        return reinterpret_cast<const void *>(persistent_teams<P>);
    else
        return reinterpret_cast<const void *>(persistent<P>);
}

template <class P> int find_persistent(unsigned shared_bytes, void **function) {
    constexpr unsigned permitted = 48 << 10; /* to every kernel */
    const void *kernel = persistent_kernel<P>();
    cudaError_t error = cudaSuccess;
    if (shared_bytes > permitted)
        error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    return error == cudaSuccess ? function_of(kernel, function) : static_cast<int>(error);
}

template <class P> int find_phase(void **function, size_t *stack_bytes) {
    const auto *kernel = reinterpret_cast<const void *>(phase_kernel<P>);
    cudaFuncAttributes attributes = {};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    *stack_bytes = attributes.localSizeBytes;
    return error == cudaSuccess ? function_of(kernel, function) : static_cast<int>(error);
}

#ifdef __CUDACC_RDC__
constexpr bool relocatable = true;
#else
constexpr bool relocatable = false;
#endif

static_assert(sizeof(dpr_recursion_args) + most_data_bytes + sizeof(unsigned) + 16 <= 4096, "they fit parameters");

template <class P>
const dpr_recursion_kernels kernels = {
    find_persistent<P>,    find_phase<P>, sizeof(node<P>), sizeof(slot<P>), sizeof(header<P>),
    count_most_lanes<P>(), has_teams<P>,  team_bytes<P>,   relocatable,     folds<P>};

} // namespace recursion
} // namespace dpr

#endif
