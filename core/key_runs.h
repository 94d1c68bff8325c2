/* Runs of equal consecutive keys on a GPU (key_runs.cu). This is no strategy of the registry, but it is launched as a
 * run of one: first to count the runs, then to write them. */
#ifndef DPR_CORE_KEY_RUNS_H
#define DPR_CORE_KEY_RUNS_H

#include "args.h"
#include "words.h"

/* Words of `counts`: a ticket, which is 0 before each launch and after it; how many runs begin before each part of the
 * keys; and how many there are. */
enum { DPR_RUNS_BLOCKS = 1024, DPR_RUNS_WARPS = 8, DPR_RUNS_WORDS = 2 + DPR_RUNS_BLOCKS * DPR_RUNS_WARPS };

/* The run, and where it writes in device memory. */
typedef struct dpr_keys_run {
    dpr_run run;      /* the first member. `in` has `count` keys (at least 1) of the key's type; if runs are counted,
                         `out` receives their number, a uint64_t */
    uint64_t *counts; /* DPR_RUNS_WORDS words: those that are counted are read when runs are written */
    void *begins;     /* NULL: runs are counted. Otherwise receives where each begins, and `count` behind the last, as
                         numbers of type dpr_key_runs_type() */
    void *unique;     /* NULL, or receives the key of each */
} dpr_keys_run;

/* The type of the numbers for so many keys: half the memory, where that is enough. */
DPR_INLINE dpr_dtype dpr_key_runs_type(uint64_t count) {
    return count <= UINT32_MAX ? DPR_U32 : DPR_I64;
}

/* The kernel's arguments. */
typedef struct dpr_key_runs_args {
    dpr_kernel_args run;
    uint64_t *counts;
    void *begins;
    void *unique;
    uint32_t key_bytes;
} dpr_key_runs_args;

#endif
