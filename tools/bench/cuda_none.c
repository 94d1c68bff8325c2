/* A build without CUDA has no device but the CPU. */
#include <stdio.h>

#include "backend.h"

static bench_status none_open(int ordinal, size_t pool_bytes, void **state, bench_room *room, char *why) {
    (void)ordinal, (void)pool_bytes, (void)state, (void)room;
    snprintf(why, BENCH_WHY, "this build of dpr has no CUDA");
    return BENCH_BROKEN;
}

static size_t none_most(int ordinal) {
    (void)ordinal;
    return 0;
}

void bench_cuda_versions(int *driver, int *runtime) {
    *driver = *runtime = 0;
}

/* Nothing else is called, as open() fails. */
const bench_backend bench_cuda = {.most = none_most, .open = none_open};
