#include "lists.h"

#define DPR_OP_ROW(A, NAME, number, NAME_TEXT, DOMAIN, RESULT, VALUES, INIT, KERNEL, TEXT)                             \
    [DPR_ROW(number)] = {"DPR_" #NAME,        NAME_TEXT, TEXT,       DPR_DOMAIN_##DOMAIN,                              \
                         DPR_RESULT_##RESULT, VALUES,    DPR_##INIT, DPR_KERNEL_##KERNEL},
const dpr_op_row dpr_ops[DPR_OP_COUNT] = {DPR_OP_LIST(DPR_OP_ROW, _)};

#define DPR_DTYPE_ROW(A, NAME, number, NAME_TEXT, STORAGE, ALIGN, KIND, WIDE, NPY, TEXT)                               \
    [DPR_ROW(number)] = {"DPR_" #NAME, NAME_TEXT, TEXT, NPY, sizeof(STORAGE), ALIGN, DPR_KIND_##KIND, DPR_##WIDE},
const dpr_dtype_row dpr_dtypes[DPR_DTYPE_COUNT] = {DPR_DTYPE_LIST(DPR_DTYPE_ROW, _)};
