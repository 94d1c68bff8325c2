/* Tells at compile time which pairs of operation and type are valid, and which of them share a kernel. */
#ifndef DPR_CORE_DOMAIN_CUH
#define DPR_CORE_DOMAIN_CUH

#include "lists.h"

namespace dpr {

constexpr bool domain_has(dpr_op op, int kind) {
    constexpr int domains[] = {
#define DPR_DOMAIN(A, NAME, number, name, DOMAIN, ...) DPR_DOMAIN_##DOMAIN,
        DPR_OP_LIST(DPR_DOMAIN, _)
#undef DPR_DOMAIN
    };
    return domains[DPR_ROW(op)] & kind;
}

/* True if the strategies have kernels for the operation (column `kernel` of ops.def). */
constexpr bool has_own_kernels(dpr_op op) {
    constexpr int kernels[] = {
#define DPR_KERNEL(A, NAME, number, name, domain, result, values, init, KERNEL, text) DPR_KERNEL_##KERNEL,
        DPR_OP_LIST(DPR_KERNEL, _)
#undef DPR_KERNEL
    };
    return kernels[DPR_ROW(op)] == DPR_KERNEL_OWN;
}

/* Returns the type whose kernel gives the same bits for `op` as that of `dtype` would: the sign of integers makes no
 * difference to bit operations and to tests for zero, nor does the format of 16-bit floats to such tests. */
constexpr dpr_dtype stand_in(dpr_op op, dpr_dtype dtype, bool ignores_nan) {
    const bool looks_for_zeros = op == DPR_ALL || op == DPR_ANY || op == DPR_COUNT;
    const bool of_bits = looks_for_zeros || op == DPR_BAND || op == DPR_BOR || op == DPR_BXOR;
    switch (dtype) {
    case DPR_BOOL:
        return looks_for_zeros ? DPR_U8 : dtype;
    case DPR_I8:
        return of_bits ? DPR_U8 : dtype;
    case DPR_I16:
        return of_bits ? DPR_U16 : dtype;
    case DPR_I32:
        return of_bits ? DPR_U32 : dtype;
    case DPR_I64:
        return of_bits ? DPR_U64 : dtype;
    case DPR_BF16:
        return looks_for_zeros && !ignores_nan ? DPR_F16 : dtype;
    default:
        return dtype;
    }
}

} // namespace dpr

#endif
