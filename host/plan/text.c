#include "text.h"

#include <stdarg.h>
#include <stdio.h>

#include "error.h"

void dpr_text_add(dpr_text *text, const char *format, ...) {
    const int fits = text->buffer && text->used < text->size;
    va_list values;
    va_start(values, format);
    const int n = fits ? vsnprintf(text->buffer + text->used, text->size - text->used, format, values)
                       : vsnprintf(NULL, 0, format, values);
    va_end(values);
    if (n > 0)
        text->used += (size_t)n;
}

dpr_status dpr_text_fill(void (*write)(dpr_text *text, const void *subject), const void *subject, char *text,
                         size_t *len) {
    dpr_text counted = {NULL, 0, 0};
    write(&counted, subject);
    const size_t size = text ? *len : 0, needed = counted.used + 1;
    *len = needed;
    if (!text)
        return DPR_OK;
    if (size < needed)
        return dpr_fail(DPR_ERR_BUFFER_TOO_SMALL, "*len is %zu, the text needs %zu bytes", size, needed);
    dpr_text filled = {text, size, 0};
    write(&filled, subject);
    return DPR_OK;
}
