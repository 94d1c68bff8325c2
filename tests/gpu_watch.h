/* Waiting for a stream with a bound: a device that hangs cannot be cleaned up after, and ends the program. */
#ifndef DPR_TESTS_GPU_WATCH_H
#define DPR_TESTS_GPU_WATCH_H

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu_memory.h"
#include "support.h"

/* Waits until `stream` has come to here, at most `seconds`. `done` is a word of pinned memory. */
static inline void gpu_watch(dpr_stream stream, atomic_uint *done, double seconds, const char *what) {
    const double end = test_now() + seconds;
    atomic_store(done, 0);
    ASSERT_THAT(gpu_fill_async((void *)done, 1, sizeof *done, stream), "%s", gpu_error());
    while (atomic_load(done) == 0) {
        if (test_now() > end) {
            test_fail(__FILE__, __LINE__, "the device hangs, or has failed: %s", what);
            (void)fflush(NULL);
            (void)alarm(5); /* the next call may never return */
            (void)gpu_stream_wait(stream);
            test_fail(__FILE__, __LINE__, "%s", gpu_error());
            (void)fflush(NULL);
            _exit(3);
        }
    }
    EXPECT_THAT(gpu_stream_wait(stream), "%s", gpu_error()); /* what else is in host memory is there after this */
}

#endif
