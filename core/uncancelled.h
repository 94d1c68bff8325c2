/* Sections that must not be left half-way by a thread that is cancelled.
 *
 * A request to cancel a thread acts at its next cancellation point: open(), read(), close(), pthread_join(),
 * pthread_cond_wait() and most other calls that can block. Inside such a call it would leave locks held and files open.
 * While a request is held back it stays pending, and acts at a cancellation point of the caller's own code. Holding
 * takes several nanoseconds, so what every call passes through has no cancellation points instead. */
#ifndef DPR_CORE_UNCANCELLED_H
#define DPR_CORE_UNCANCELLED_H

#include <pthread.h>

/* Holds back requests to cancel the calling thread. Returns what dpr_cancel_release() needs; pairs may be nested. */
static inline int dpr_cancel_hold(void) {
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

/* Ends the section. Is no cancellation point itself. */
static inline void dpr_cancel_release(int before) {
    (void)pthread_setcancelstate(before, NULL);
}

#endif
