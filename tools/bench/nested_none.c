/* A build without CUDA launches nothing. */
#include <stdio.h>

#include "nested.h"

int bench_costs_measure(const bench_costs_asked *asked, bench_costs *out, char why[BENCH_WHY]) {
    (void)asked, (void)out;
    snprintf(why, BENCH_WHY, "this build of dpr has no CUDA");
    return -1;
}

void *bench_pinned(size_t bytes) {
    (void)bytes;
    return NULL;
}

void bench_pinned_free(void *memory) {
    (void)memory;
}
