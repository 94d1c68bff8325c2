/* Tables over all pairs of operation and element type.
 *
 * The includer defines DPR_PAIR_DEFINE(OP, DTYPE, NAN), which defines the function DPR_PAIR_NAME(OP, DTYPE, NAN) of one
 * pair by calling an inlined template with these constants. DPR_PAIRS then defines the functions of all pairs, and
 * DPR_PAIRS_TABLE initialises a table [dpr_nan][dpr_op][dpr_dtype] of them. Types without NaNs have one function for
 * both policies. Pairs without a meaning also have functions, which nobody calls. */
#ifndef DPR_HOST_CPU_PAIRS_H
#define DPR_HOST_CPU_PAIRS_H

#include "lists.h"

/* DPR_KIND_OF_<DTYPE>, DPR_DOMAIN_OF_<OP> and DPR_KERNEL_OF_<OP> are constants, so that the compiler drops a template
 * that a pair does not use before inlining it. */
#define DPR_ENUM_KIND(A, NAME, number, name, storage, align, kind, ...) DPR_KIND_OF_##NAME = DPR_KIND_##kind,
#define DPR_ENUM_DOMAIN(A, NAME, number, name, domain, ...) DPR_DOMAIN_OF_##NAME = DPR_DOMAIN_##domain,
#define DPR_ENUM_KERNEL(A, NAME, number, name, domain, result, values, init, kernel, ...)                              \
    DPR_KERNEL_OF_##NAME = DPR_KERNEL_##kernel,
enum { DPR_DTYPE_LIST(DPR_ENUM_KIND, _) };
enum { DPR_OP_LIST(DPR_ENUM_DOMAIN, _) };
enum { DPR_OP_LIST(DPR_ENUM_KERNEL, _) };
#define DPR_PAIR_IS_VALID(OP, DTYPE) ((int)DPR_DOMAIN_OF_##OP & (int)DPR_KIND_OF_##DTYPE)

#define DPR_PAIR_NAME(OP, DTYPE, NAN) pair_##OP##_##DTYPE##_##NAN

#define DPR_PAIR_WITHOUT_NAN(OP, DTYPE) DPR_PAIR_DEFINE(OP, DTYPE, PROPAGATE)
#define DPR_PAIR_WITH_NAN(OP, DTYPE)                                                                                   \
    DPR_PAIR_DEFINE(OP, DTYPE, PROPAGATE)                                                                              \
    DPR_PAIR_DEFINE(OP, DTYPE, IGNORE)
#define DPR_ENTRY_WITHOUT_NAN(OP, DTYPE) [DPR_ROW(DPR_##DTYPE)] = DPR_PAIR_NAME(OP, DTYPE, PROPAGATE),
#define DPR_ENTRY_WITH_NAN(OP, DTYPE) [DPR_ROW(DPR_##DTYPE)] = DPR_PAIR_NAME(OP, DTYPE, IGNORE),

#define DPR_BY_KIND_BOOL(WHAT) WHAT##_WITHOUT_NAN
#define DPR_BY_KIND_SINT(WHAT) WHAT##_WITHOUT_NAN
#define DPR_BY_KIND_UINT(WHAT) WHAT##_WITHOUT_NAN
#define DPR_BY_KIND_FLOAT(WHAT) WHAT##_WITH_NAN
#define DPR_BY_KIND_COMPLEX(WHAT) WHAT##_WITH_NAN

#define DPR_PAIR(OP, DTYPE, number, name, storage, align, kind, ...) DPR_BY_KIND_##kind(DPR_PAIR)(OP, DTYPE)
#define DPR_PROPAGATE_ENTRY(OP, DTYPE, ...) DPR_ENTRY_WITHOUT_NAN(OP, DTYPE)
#define DPR_IGNORE_ENTRY(OP, DTYPE, number, name, storage, align, kind, ...) DPR_BY_KIND_##kind(DPR_ENTRY)(OP, DTYPE)

#define DPR_PAIR_ROW(A, OP, ...) DPR_DTYPE_LIST(DPR_PAIR, OP)
#define DPR_PROPAGATE_ROW(A, OP, ...) [DPR_ROW(DPR_##OP)] = {DPR_DTYPE_LIST(DPR_PROPAGATE_ENTRY, OP)},
#define DPR_IGNORE_ROW(A, OP, ...) [DPR_ROW(DPR_##OP)] = {DPR_DTYPE_LIST(DPR_IGNORE_ENTRY, OP)},

#define DPR_PAIRS DPR_OP_LIST(DPR_PAIR_ROW, _)
#define DPR_PAIRS_TABLE                                                                                                \
    { [DPR_NAN_PROPAGATE] = {DPR_OP_LIST(DPR_PROPAGATE_ROW, _)}, [DPR_NAN_IGNORE] = {DPR_OP_LIST(DPR_IGNORE_ROW, _)}, }

#endif
