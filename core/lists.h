/* The lists as constants for the rest of the library: columns of ops.def and dtypes.def that dpr.h does not publish,
 * and the lists' lengths. */
#ifndef DPR_CORE_LISTS_H
#define DPR_CORE_LISTS_H

#include "dpr.h"

/* The version, as dpr_version() returns it. */
#define DPR_TEXT_OF_(x) #x
#define DPR_TEXT_OF(x) DPR_TEXT_OF_(x)
#define DPR_VERSION_TEXT                                                                                               \
    DPR_TEXT_OF(DPR_VERSION_MAJOR) "." DPR_TEXT_OF(DPR_VERSION_MINOR) "." DPR_TEXT_OF(DPR_VERSION_PATCH)

/* Domains of operations (ops.def) as sets of dpr_kind. */
enum {
    DPR_DOMAIN_BITS = DPR_KIND_BOOL | DPR_KIND_SINT | DPR_KIND_UINT,
    DPR_DOMAIN_ORDERED = DPR_DOMAIN_BITS | DPR_KIND_FLOAT,
    DPR_DOMAIN_ANY = DPR_DOMAIN_ORDERED | DPR_KIND_COMPLEX
};
typedef enum {
    DPR_RESULT_WIDE,
    DPR_RESULT_REAL,
    DPR_RESULT_MEAN,
    DPR_RESULT_MEASURE,
    DPR_RESULT_SAME,
    DPR_RESULT_INDEX,
    DPR_RESULT_NUMBER,
    DPR_RESULT_TRUTH
} dpr_result_rule;

/* Columns `init` and `kernel`. */
enum { DPR_NO_INIT, DPR_INIT };
enum { DPR_KERNEL_OWN, DPR_KERNEL_FUSED };

/* The number of an operation or a type is one of these plus its row in dpr_ops or dpr_dtypes, so the row is the
 * number's low byte. */
enum { DPR_FIRST_OP = 0x100, DPR_FIRST_DTYPE = 0x200 };
#define DPR_ROW(number) ((uint8_t)((number)&0xff))

#define DPR_COUNT_ONE(A, ...) +1
enum {
    DPR_OP_COUNT = 0 DPR_OP_LIST(DPR_COUNT_ONE, _),
    DPR_DTYPE_COUNT = 0 DPR_DTYPE_LIST(DPR_COUNT_ONE, _),
    DPR_STATUS_COUNT = 0 DPR_STATUS_LIST(DPR_COUNT_ONE, _)
};
#undef DPR_COUNT_ONE

typedef struct dpr_op_row {
    const char *id, *name, *text;
    int domain; /* set of dpr_kind */
    dpr_result_rule result;
    int values;     /* of the result */
    int takes_init; /* 1: it may start from an initial value */
    int fused_only; /* 1: only kernels that get operations as arguments run it (ops.def) */
} dpr_op_row;

typedef struct dpr_dtype_row {
    const char *id, *name, *text;
    const char *npy; /* "" if NumPy has no such type */
    uint8_t size, align;
    int kind;       /* dpr_kind */
    dpr_dtype wide; /* result type of a sum or product */
} dpr_dtype_row;

#ifdef __cplusplus
extern "C" {
#endif
extern const dpr_op_row dpr_ops[DPR_OP_COUNT];
extern const dpr_dtype_row dpr_dtypes[DPR_DTYPE_COUNT];
#ifdef __cplusplus
}
#endif

#endif
