/* The calling thread's last error. */
#ifndef DPR_CORE_ERROR_H
#define DPR_CORE_ERROR_H

#include "dpr.h"

/* Keeps the formatted sentence for dpr_last_error() and returns `status`, so that a check reads `return
 * dpr_fail(DPR_ERR_..., "count is %zu, ...", count)`. A sentence names the argument and its value, and has no full
 * stop. It is cut after 511 bytes. */
dpr_status dpr_fail(dpr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* dpr_fail() for a failure that the cudaError_t `error` caused, for dpr_last_cuda_error(). */
dpr_status dpr_fail_cuda(int error, dpr_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What dpr_last_error() and dpr_last_cuda_error() return, for work within a call that may fail without the call's
 * failing. */
enum { DPR_SENTENCE_BYTES = 512 };
typedef struct dpr_kept_error {
    int cuda;
    char sentence[DPR_SENTENCE_BYTES];
} dpr_kept_error;
void dpr_error_keep(dpr_kept_error *out);
void dpr_error_put_back(const dpr_kept_error *kept);

/* Whether a struct whose first member is its size may have this size: no version's is larger than a page. */
int dpr_is_struct_size(size_t size);

/* Copies a caller's struct, whose first field is its size, to a struct of `own_size` bytes. The caller's header may
 * have fewer or more fields than this version; fields that it lacks are set to 0. Errors name
 * the argument `what`, of type `type`: DPR_ERR_NULL_POINTER; DPR_ERR_INVALID_OPTION if the size cannot be a struct's,
 * or if a field that this version does not know is not 0. */
dpr_status dpr_adopt(const char *what, const char *type, const void *from, void *to, size_t own_size);

/* Checks the struct that a caller wants filled in, whose first member is its size: DPR_ERR_NULL_POINTER if it is NULL,
 * DPR_ERR_INVALID_OPTION if no struct has its size. `what` is the argument's name, and `init` the macro that callers
 * start from. */
dpr_status dpr_check_out(const char *what, const void *out, const char *init);

/* Fills in the caller's struct, which dpr_check_out() has checked, from one of this version's with `own_size` bytes:
 * as many bytes as both have, without the first member. Returns DPR_OK. */
dpr_status dpr_fill_out(void *out, const void *from, size_t own_size);

#endif
