/* Which pairs of operation and type have a meaning, at compile time. */
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

} // namespace dpr

#endif
