/* Capabilities as a list of numbers, and captured machines: capabilities as text, so that `dpr plan --machine FILE` and
 * the tests see another machine.
 *
 * Each line is `key = value`; # starts a comment, except in a name. Keys are `gpu_name`, `cpu_name`, gpu.<field> and
 * cpu.<field> of the lists in core/caps.h. A machine without gpu_name has no GPU. */
#ifndef DPR_HOST_PLAN_CAPS_TEXT_H
#define DPR_HOST_PLAN_CAPS_TEXT_H

#include "caps.h"
#include "dpr.h"

/* The number of the machine's capabilities. */
size_t dpr_caps_count(const dpr_caps *caps);

/* Fills in all of capability i except its size; i is less than dpr_caps_count(). */
void dpr_caps_entry(const dpr_caps *caps, size_t i, dpr_capability *out);

/* Reads the zero-terminated text. Unknown keys, missing fields, malformed values and values out of a field's range give
 * DPR_ERR_INVALID_OPTION; dpr_last_error() names the line, or the field that is missing. */
dpr_status dpr_caps_parse(const char *text, dpr_caps *out);

/* Writes the zero-terminated text of a machine, by the protocol of dpr_plan_explain(). */
dpr_status dpr_caps_format(const dpr_caps *caps, char *text, size_t *len);

/* Moves every field that is out of its range to the nearer end of the range. This is for capabilities that a driver
 * reports: drivers have reported 0 as the memory clock and bus of devices of compute capability 11.0, and costs are
 * divided by these. */
void dpr_caps_confine(dpr_caps *caps);

#endif
