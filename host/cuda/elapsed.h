/* Elapsed time, for waits with a limit. Needs _POSIX_C_SOURCE. */
#ifndef DPR_HOST_CUDA_ELAPSED_H
#define DPR_HOST_CUDA_ELAPSED_H

#include <time.h>

static inline struct timespec dpr_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

/* Nanoseconds since `then`. */
static inline long dpr_ns_since(struct timespec then) {
    const struct timespec now = dpr_now();
    return (now.tv_sec - then.tv_sec) * 1000000000L + (now.tv_nsec - then.tv_nsec);
}

#endif
