/* Which pairs of operation and type have a meaning, and which share a kernel, at compile time. */
#ifndef DPR_CORE_DOMAIN_CUH
#define DPR_CORE_DOMAIN_CUH

#include "lists.h"

namespace dpr {

constexpr bool domain_has(dpr_op op, int kind) {
    constexpr int domains[] = {
#define DPR_DOMAIN(A, NAME, name, DOMAIN, result, text) DPR_DOMAIN_##DOMAIN,
        DPR_OP_LIST(DPR_DOMAIN, _)
#undef DPR_DOMAIN
    };
    return domains[op] & kind;
}

/* The type whose kernel does for `dtype` what `op` asks, bit for bit: what integers mean makes no difference to their
 * bits and to whether they are zero. */
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
