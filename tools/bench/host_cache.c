#include "host_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "layout.h"

size_t host_cache_needs(uint64_t cache_bytes) {
    return bench_aligned(2 * (size_t)cache_bytes);
}

int host_cache_open(uint64_t cache_bytes, host_cache *out, char why[BENCH_WHY]) {
    *out = (host_cache){.bytes = host_cache_needs(cache_bytes)};
    out->other = aligned_alloc(BENCH_ALIGNMENT, out->bytes);
    if (out->other && dpr_ctx_create(DPR_DEVICE_CPU, &out->ctx) == DPR_OK)
        return 0;
    if (out->other)
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
    else
        snprintf(why, BENCH_WHY, "no host memory for %zu bytes to fill caches from", out->bytes);
    return -1;
}

void host_cache_close(host_cache *c) {
    dpr_ctx_destroy(c->ctx);
    free(c->other);
}

int host_cache_make(host_cache *c) {
    enum { PIECE = 1 << 20 };
    const size_t left = c->bytes - c->made, piece = left < PIECE ? left : PIECE;
    memset(c->other + c->made, 0, piece);
    c->made += piece;
    return piece > 0;
}

dpr_status host_cache_fill(host_cache *c, double *seconds) {
    int64_t sum;
    while (host_cache_make(c)) {} /* pages that were never written are one page of zeros, which stays in the cache */
    const double begin = seconds_now();
    const dpr_status status = dpr_reduce_ex(c->ctx, c->other, &sum, c->bytes / sizeof(int32_t), DPR_I32, DPR_SUM, NULL);
    *seconds = seconds_now() - begin;
    return status;
}
