/* What a caller asked for, checked once: the part that dpr_reduce() and plans share. */
#ifndef DPR_HOST_API_REQUEST_H
#define DPR_HOST_API_REQUEST_H

#include "lists.h"
#include "strategy.h"

typedef struct dpr_request {
    const dpr_op_info *op;
    const dpr_dtype_info *dtype;
    const dpr_dtype_info *result;
    size_t count;
    dpr_key key; /* op, dtype, mode, nan, block, depth and strategy are set */
    dpr_init init;
    int max_pending;    /* of nested launches, as in dpr_options */
    dpr_nested *nested; /* where the caller wants to know what they came to, or NULL */
} dpr_request;

/* Checks everything but pointers. `options` may be NULL. After a failure *out means nothing. */
dpr_status dpr_request_make(dpr_op op, dpr_dtype dtype, size_t count, const dpr_options *options, dpr_request *out);

/* Makes *out a run of the request, which lacks its arrays and what the choice says. */
void dpr_request_run(const dpr_request *request, dpr_run *out);

/* Checks `in` and `out` for NULL and alignment. */
dpr_status dpr_request_check(const dpr_request *request, const void *in, const void *out);

/* Copies a size-first struct of the caller's, made for a version of the header with fewer or more fields, to one of
 * `own_size` bytes; fields the caller does not have are 0. DPR_ERR_INVALID_OPTION, naming `what`, for a size that is
 * no struct's, and if fields that this version does not know are not 0. */
dpr_status dpr_request_adopt(const char *what, const void *from, void *to, size_t own_size);

#endif
