/* Choices as lines of the log. */
#ifndef DPR_HOST_PLAN_CHOICE_LOG_H
#define DPR_HOST_PLAN_CHOICE_LOG_H

#include "log.h"
#include "planner.h"

/* Writes the choice, or, if `status` is not DPR_OK, that there is none, with the sentence of dpr_last_error(). */
void dpr_log_choice(dpr_status status, const dpr_key *key, const dpr_choice *choice, const dpr_machine *machine);

/* Adds the key's operations to a line: "sum, mean". */
void dpr_log_add_ops(dpr_log_line *line, const dpr_key *key);

#endif
