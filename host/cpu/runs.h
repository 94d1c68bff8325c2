/* Runs of equal consecutive keys. */
#ifndef DPR_HOST_CPU_RUNS_H
#define DPR_HOST_CPU_RUNS_H

#include <stddef.h>
#include <stdint.h>

typedef struct dpr_runs {
    const void *keys;
    size_t key_bytes; /* 1, 2, 4 or 8 */
    size_t count;     /* of keys */
    int threads;      /* at most, that look at them; 1 to DPR_THREADS_MAX */
    uint64_t number;  /* of runs; 1 if there are no keys */
    void *begins;     /* where each begins, and then `count`: number + 1 numbers of type dpr_key_runs_type(count) */
} dpr_runs;

/* Finds `number` and `begins`, which the caller frees. Returns 0 if there is no memory for them; `number` is right
 * then, too. */
int dpr_runs_find(dpr_runs *r);

/* Copies the keys of the first `runs` runs. */
void dpr_runs_keys(const dpr_runs *r, uint64_t runs, void *to);

#endif
