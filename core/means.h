/* Means, which kernels of SUM run: they divide the sum where they write the result. */
#ifndef DPR_CORE_MEANS_H
#define DPR_CORE_MEANS_H

#include "lists.h"
#include "strategy.h"

/* Whether a mean of elements of this kind (dpr_kind) and size is their sum, divided by their number. A sum of integers
 * of four and eight bytes may wrap; one of smaller integers does not before 2^47 elements. With DPR_NAN_IGNORE kernels
 * of SUM do not know how many elements count. */
DPR_FACT int dpr_sum_gives_mean(int kind, size_t size, dpr_nan nan) {
    return kind & DPR_DOMAIN_BITS ? size <= 2 : nan == DPR_NAN_PROPAGATE;
}

/* Whether the key is a mean that kernels of SUM run: of one operation, and no partial result, because those of means
 * have other words than those of sums. */
static inline int dpr_is_divided_sum(const dpr_key *key) {
    const dpr_dtype_row *type = &dpr_dtypes[key->f.dtype];
    return dpr_key_op(key) == DPR_MEAN && !key->f.fused && !key->f.partial
           && dpr_sum_gives_mean(type->kind, type->size, (dpr_nan)key->f.nan);
}

/* The row in dpr_ops of the operation whose kernels run the key. */
static inline int dpr_kernel_row(const dpr_key *key) {
    return dpr_is_divided_sum(key) ? DPR_ROW(DPR_SUM) : key->f.op;
}

/* Whether only kernels that get operations as arguments run the key on a GPU (FUSED in ops.def). */
static inline int dpr_runs_as_measure(const dpr_key *key) {
    return dpr_ops[dpr_kernel_row(key)].fused_only;
}

#endif
