/* The calling thread's last error. */
#ifndef DPR_CORE_ERROR_H
#define DPR_CORE_ERROR_H

#include "dpr.h"

/* Keeps the formatted sentence for dpr_last_error() and returns `status`, so that a check reads `return
 * dpr_fail(DPR_ERR_..., "count is %zu, ...", count)`. A sentence names the argument and its value, and has no full
 * stop. It is cut after 511 bytes. */
dpr_status dpr_fail(dpr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
