#ifndef DPR_DP_CLOCK_H
#define DPR_DP_CLOCK_H

/* Seconds of a clock that never goes back. */
double dpr_recursion_now(void);

#endif
