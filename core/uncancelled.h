/* Sections that a cancelled thread must not leave half-way.
 *
 * A request to cancel a thread takes effect at the thread's next cancellation point: open(), read(), close(),
 * pthread_join(), pthread_cond_wait() and most other calls that can block. In the middle of such a section the thread
 * would leave locks held and files open. While a request is held back it stays pending; it takes effect at a
 * cancellation point of the caller's own code. Holding takes several nanoseconds, so the code that every call passes
 * through does not hold; it has no cancellation points instead. */
#ifndef DPR_CORE_UNCANCELLED_H
#define DPR_CORE_UNCANCELLED_H

#include <pthread.h>

/* Holds back requests to cancel the calling thread. Returns what dpr_cancel_release() needs. Pairs may be nested. */
static inline int dpr_cancel_hold(void) {
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

/* Ends the section. It is no cancellation point itself. */
static inline void dpr_cancel_release(int before) {
    (void)pthread_setcancelstate(before, NULL);
}

#endif
