/* Captured machines: capabilities as text, so that `dpr plan --machine FILE` and the tests see another machine.
 *
 * One `key = value` a line; # starts a comment, but not in a name. Keys are `gpu_name`, `cpu_name`, gpu.<field> and
 * cpu.<field> of the lists in core/caps.h. A machine without gpu_name has no GPU. */
#ifndef DPR_HOST_MACHINE_H
#define DPR_HOST_MACHINE_H

#include "caps.h"
#include "dpr.h"

/* Reads the zero-terminated text. Unknown keys, missing fields and malformed values are DPR_ERR_INVALID_OPTION, with
 * the line number in dpr_last_error(). */
dpr_status dpr_machine_parse(const char *text, dpr_caps *out);

/* Writes the text, at most *len bytes with the terminating zero; as dpr_plan_explain() does. */
dpr_status dpr_machine_format(const dpr_caps *caps, char *text, size_t *len);

#endif
