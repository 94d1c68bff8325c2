#include "error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[512];
static _Thread_local int last_cuda_error;

static void keep(int error, const char *format, va_list values) {
    vsnprintf(last_error, sizeof last_error, format, values);
    last_cuda_error = error;
}

dpr_status dpr_fail(dpr_status status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    keep(0, format, values);
    va_end(values);
    return status;
}

dpr_status dpr_fail_cuda(int error, dpr_status status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    keep(error, format, values);
    va_end(values);
    return status;
}

dpr_status dpr_check_out(const void *out, size_t size, const char *init) {
    const size_t *given = out;
    if (!given)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (*given < size)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "out->size is %zu, less than %zu: start from %s", *given, size, init);
    return DPR_OK;
}

const char *dpr_last_error(void) {
    return last_error;
}

int dpr_last_cuda_error(void) {
    return last_cuda_error;
}
