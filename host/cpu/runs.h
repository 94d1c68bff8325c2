/* Runs of equal consecutive keys. */
#ifndef DPR_HOST_CPU_RUNS_H
#define DPR_HOST_CPU_RUNS_H

#include <stddef.h>
#include <stdint.h>

/* Finds the runs of `count` keys, at least 1, of 1, 2, 4 or 8 bytes: their number, and where each begins; `count`
 * stands after the last. Uses at most `threads` threads. The caller frees what is returned; NULL if there is no
 * memory for it. */
int64_t *dpr_runs_find(const void *keys, size_t key_bytes, size_t count, int threads, uint64_t *runs);

/* Copies the key of each run. */
void dpr_runs_keys(const void *keys, size_t key_bytes, const int64_t *begins, uint64_t runs, void *to);

#endif
