#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

int dpr_is_struct_size(size_t size) {
    return size >= sizeof size && size % sizeof size == 0 && size <= 4096;
}

dpr_status dpr_check_out(const void *out, const char *init) {
    const size_t *given = out;
    if (!given)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (!dpr_is_struct_size(*given))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "out->size is %zu, which is no struct's: start from %s", *given, init);
    return DPR_OK;
}

dpr_status dpr_fill_out(void *out, const void *from, size_t own_size) {
    size_t given;
    memcpy(&given, out, sizeof given);
    const size_t bytes = given < own_size ? given : own_size;
    memcpy((char *)out + sizeof given, (const char *)from + sizeof given, bytes - sizeof given);
    return DPR_OK;
}

const char *dpr_last_error(void) {
    return last_error;
}

int dpr_last_cuda_error(void) {
    return last_cuda_error;
}
