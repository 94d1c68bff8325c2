/* Text of unknown length built in a caller's buffer. */
#ifndef DPR_HOST_PLAN_TEXT_H
#define DPR_HOST_PLAN_TEXT_H

#include "dpr.h"

typedef struct dpr_text {
    char *buffer; /* NULL: only count */
    size_t size;  /* bytes at `buffer` */
    size_t used;  /* bytes the text needs so far, without its terminating zero; may exceed `size` */
} dpr_text;

void dpr_text_add(dpr_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The protocol of dpr_plan_explain(). Calls `write` to count the bytes and sets *len to their number, the terminating
 * zero included. Then calls it again to fill `text`, unless that is NULL. DPR_ERR_BUFFER_TOO_SMALL if *len was less. */
dpr_status dpr_text_fill(void (*write)(dpr_text *text, const void *subject), const void *subject, char *text,
                         size_t *len);

#endif
