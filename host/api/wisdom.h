/* The process's wisdom. */
#ifndef DPR_HOST_API_WISDOM_H
#define DPR_HOST_API_WISDOM_H

#include "plan/wisdom.h"

/* The wisdom that the process has; NULL if there is no memory. The first call reads the files that the process reads by
 * itself. The caller gives it back with dpr_wisdom_release(). */
const dpr_wisdom *dpr_wisdom_current(void);

/* Gives the process's wisdom back, for dpr_shutdown(). The next call reads the files again. */
void dpr_wisdom_drop(void);

/* Adds a time to the process's wisdom. Errors: those of dpr_wisdom_single(), and DPR_ERR_WISDOM if there is no room. */
dpr_status dpr_wisdom_learn(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key,
                            uint64_t count, double seconds);

#endif
