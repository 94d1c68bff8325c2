/* Captured machines: capabilities as text, so that `dpr plan --machine FILE` and the tests see another machine.
 *
 * One `key = value` a line; # starts a comment, but not in a name. Keys are `gpu_name`, `cpu_name`, gpu.<field> and
 * cpu.<field> of the lists in core/caps.h. A machine without gpu_name has no GPU. */
#ifndef DPR_HOST_PLAN_MACHINE_H
#define DPR_HOST_PLAN_MACHINE_H

#include "caps.h"
#include "dpr.h"

/* Reads the zero-terminated text. Unknown keys, missing fields, malformed values and those out of a field's range are
 * DPR_ERR_INVALID_OPTION, with the line number in dpr_last_error(). */
dpr_status dpr_machine_parse(const char *text, dpr_caps *out);

/* Writes the text, at most *len bytes with the terminating zero; as dpr_plan_explain() does. */
dpr_status dpr_machine_format(const dpr_caps *caps, char *text, size_t *len);

/* Moves every field that is out of its range to the nearer end of it. For capabilities of this machine: drivers have
 * reported 0 as the memory clock and bus of devices of compute capability 11.0, and costs are divided by these. */
void dpr_machine_confine(dpr_caps *caps);

#endif
