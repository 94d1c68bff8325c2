/* In place of cublas.c where the toolkit has no cuBLAS. */
#include "peer_set.h"

int peer_add_cublas(peer_set *s, char why[BENCH_WHY]) {
    (void)s;
    (void)why;
    return 0;
}

int peer_cublas_open(peer_set *s, char why[BENCH_WHY]) {
    (void)s;
    (void)why;
    return 0;
}

void peer_cublas_close(peer_set *s) {
    (void)s;
}

void peer_cublas_version(const peer_set *s, char text[32]) {
    (void)s;
    text[0] = 0;
}
