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

/* Checks the struct that a caller wants filled in, whose first member is its size: DPR_ERR_NULL_POINTER if it is NULL,
 * DPR_ERR_INVALID_OPTION if it has less than `size` bytes. `init` names the macro that callers start from. */
dpr_status dpr_check_out(const void *out, size_t size, const char *init);

#endif
