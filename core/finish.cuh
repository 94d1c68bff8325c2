/* How results leave the device, and the table of a kernel's instances over all operations and types. */
#ifndef DPR_CORE_FINISH_CUH
#define DPR_CORE_FINISH_CUH

#include <utility>

#include "args.h"
#include "tile.cuh"

namespace dpr {

/* Writes the result of the whole array. One thread calls it. */
template <class M> __device__ void write_result(const dpr_kernel_args &args, typename M::acc a) {
    using R = typename M::result;
    if (args.init.present) {
        R init;
        memcpy(&init, args.init.bytes, sizeof init);
        a = M::merge(a, M::lift(init));
    }
    *static_cast<R *>(args.out) = M::finish(a);
}

using kernel_entry = void (*)(dpr_kernel_args);

constexpr bool domain_has(dpr_op op, int kind) {
    constexpr int domains[] = {
#define DPR_DOMAIN(A, NAME, name, DOMAIN, result, text) DPR_DOMAIN_##DOMAIN,
        DPR_OP_LIST(DPR_DOMAIN, _)
#undef DPR_DOMAIN
    };
    return domains[op] & kind;
}

/* Family::entry<M>() for every valid pair and NaN policy. The policy makes no difference to types without NaN, which
 * have one instance for both. */
template <class Family> struct instances {
    static constexpr int size = DPR_OP_COUNT * DPR_DTYPE_COUNT * 2;

    static constexpr int index(int op, int dtype, int nan) { return (op * DPR_DTYPE_COUNT + dtype) * 2 + nan; }

    template <int I> static constexpr kernel_entry entry() {
        constexpr dpr_op op = static_cast<dpr_op>(I / 2 / DPR_DTYPE_COUNT);
        constexpr dpr_dtype dtype = static_cast<dpr_dtype>(I / 2 % DPR_DTYPE_COUNT);
        constexpr int kind = element<dtype>::kind;
        constexpr bool has_nan = kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX);
        if constexpr (domain_has(op, kind))
            return Family::template entry<monoid<op, dtype, has_nan && I % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE>>();
        else
            return nullptr;
    }

    template <int... I> static constexpr kernel_entry table(std::integer_sequence<int, I...>, int at) {
        constexpr kernel_entry entries[] = {entry<I>()...};
        return entries[at];
    }

    /* The kernel of a key, as the host launches it; NULL for a pair without a meaning. */
    static const void *of(const dpr_key *key) {
        const int at = index(key->f.op, key->f.dtype, key->f.nan);
        return reinterpret_cast<const void *>(table(std::make_integer_sequence<int, size>(), at));
    }
};

} // namespace dpr

#endif
