/* Runs of equal consecutive keys on a GPU (key_runs.cu). The kernel is launched through a dpr_strategy that is not in
 * the registry: once to count the runs, and once to write them. */
#ifndef DPR_CORE_KEY_RUNS_H
#define DPR_CORE_KEY_RUNS_H

#include "args.h"
#include "words.h"

/* 64-bit words of `counts`: the number of runs that are written, which is 0 if there are more than there is room for;
 * for each part of the keys, the number of runs that begin before it. */
enum {
    DPR_RUNS_BLOCKS = 1024,
    DPR_RUNS_WARPS = 8,
    DPR_RUNS_WRITTEN = 0,
    DPR_RUNS_PARTS = 1,
    DPR_RUNS_WORDS = DPR_RUNS_PARTS + DPR_RUNS_BLOCKS * DPR_RUNS_WARPS
};

/* The run, and where it writes in device memory. */
typedef struct dpr_keys_run {
    dpr_run run;      /* the first member. `in` has `count` keys of the key's type, or as many as *device_count says; if
                         runs are counted, `out` receives their number, a uint64_t */
    uint64_t *counts; /* DPR_RUNS_WORDS words, which the launch that counts writes and the one that writes reads */
    uint64_t room;    /* the most runs that are written */
    void *begins;     /* NULL: the launch counts. Otherwise it writes the index at which each run begins, and then
                         `count`: numbers of type dpr_key_runs_type(), one more than there are runs */
    void *unique;     /* NULL, or receives the key of each */
} dpr_keys_run;

/* The type of `begins` for `count` keys: U32 takes half the memory of I64. */
DPR_INLINE dpr_dtype dpr_key_runs_type(uint64_t count) {
    return count <= UINT32_MAX ? DPR_U32 : DPR_I64;
}

/* Bytes of `begins`, a multiple of 8, because keys of up to 8 bytes may follow. */
DPR_INLINE size_t dpr_key_runs_bytes(uint64_t count, uint64_t runs) {
    const size_t number = dpr_key_runs_type(count) == DPR_U32 ? 4 : 8;
    return ((size_t)(runs + 1) * number + 7) / 8 * 8;
}

/* The kernel's arguments. */
typedef struct dpr_key_runs_args {
    dpr_kernel_args run;
    uint64_t *counts;
    uint64_t room;
    void *begins;
    void *unique;
    uint32_t key_bytes;
} dpr_key_runs_args;

#endif
