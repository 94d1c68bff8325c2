/* The operations that one call computes. */
#ifndef DPR_TOOLS_BENCH_OPS_H
#define DPR_TOOLS_BENCH_OPS_H

#include "dpr.h"

/* One operation, or a set of them in one pass over the array. A set may have an operation twice, as in dpr.h. */
typedef struct bench_ops {
    int n; /* 1 to DPR_FUSED_MOST */
    dpr_op at[DPR_FUSED_MOST];
} bench_ops;

static inline bench_ops ops_of(dpr_op op) {
    return (bench_ops){.n = 1, .at = {op}};
}

/* Whether both have the same operations in the same order. */
int ops_same(const bench_ops *a, const bench_ops *b);

/* Whether the operation is a member. */
int ops_have(const bench_ops *ops, dpr_op op);

/* The first member that has no meaning for the type; DPR_OP_NONE if all have one. */
dpr_op ops_unsupported(const bench_ops *ops, dpr_dtype dtype);

/* Names of the members with '+' between them: "sum", "sum+var". The text is returned. */
enum { OPS_TEXT = 128 };
const char *ops_name(const bench_ops *ops, char text[OPS_TEXT]);

/* Reads such a text. CLI_OK, or CLI_USAGE after a message. */
int ops_parse(const char *text, bench_ops *out);

#endif
