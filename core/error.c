#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

static _Thread_local dpr_kept_error last;

/* A sentence may quote a file or an argument, and a terminal would obey control characters in it. */
static void replace_controls(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        const int is_c1 = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0; /* U+0080 to U+009F as UTF-8 */
        if (is_c1 || *c < 0x20 || *c == 0x7F)
            *c = '?';
        if (is_c1)
            *++c = '?';
    }
}

static void keep(int error, const char *format, va_list values) {
    vsnprintf(last.sentence, sizeof last.sentence, format, values);
    replace_controls(last.sentence);
    last.cuda = error;
    if (DPR_LOGS(ERROR))
        dpr_log(DPR_LOG_ERROR, "%s", last.sentence);
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

void dpr_error_keep(dpr_kept_error *out) {
    *out = last;
}

void dpr_error_put_back(const dpr_kept_error *kept) {
    last = *kept;
}

int dpr_is_struct_size(size_t size) {
    return size >= sizeof size && size % sizeof size == 0 && size <= 4096;
}

dpr_status dpr_adopt(const char *what, const char *type, const void *from, void *to, size_t own_size) {
    size_t size;
    if (!from)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", what);
    memcpy(&size, from, sizeof size);
    /* A garbage size must not let the loop leave the caller's memory. */
    if (!dpr_is_struct_size(size))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "%s->size is %zu; it should be sizeof(%s)", what, size, type);
    const unsigned char *bytes = from;
    for (size_t i = own_size; i < size; i++) {
        if (bytes[i] != 0)
            return dpr_fail(DPR_ERR_INVALID_OPTION,
                            "%s->size is %zu, and a field past byte %zu, which this version "
                            "does not know, is set",
                            what, size, own_size);
    }
    memset(to, 0, own_size);
    memcpy(to, from, size < own_size ? size : own_size);
    return DPR_OK;
}

dpr_status dpr_check_out(const char *what, const void *out, const char *init) {
    const size_t *given = out;
    if (!given)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", what);
    if (!dpr_is_struct_size(*given))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "%s->size is %zu, which is no struct's: start from %s", what, *given,
                        init);
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
    return last.sentence;
}

int dpr_last_cuda_error(void) {
    return last.cuda;
}
