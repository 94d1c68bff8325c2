/* Fills the CPU's caches with other data, by reading on all cores, so that none of them has the buffers' lines in a
 * cache of its own. */
#ifndef DPR_BENCH_HOST_CACHE_H
#define DPR_BENCH_HOST_CACHE_H

#include <stddef.h>

#include "timing.h"

typedef struct host_cache {
    dpr_ctx *ctx; /* for reading */
    unsigned char *other;
    size_t bytes, made; /* of the other data; those that are written */
} host_cache;

/* Bytes of the data that fills caches of so many bytes. */
size_t host_cache_needs(uint64_t cache_bytes);

/* Takes memory for it. 0, or -1 with a clause in `why`; host_cache_close() is due in any case. */
int host_cache_open(uint64_t cache_bytes, host_cache *out, char why[BENCH_WHY]);
void host_cache_close(host_cache *c);

/* Writes the next piece of the data. 0 if all is written. */
int host_cache_make(host_cache *c);

/* Writes what is not written yet, and reads all. *seconds is how long the reading took. */
dpr_status host_cache_fill(host_cache *c, double *seconds);

#endif
