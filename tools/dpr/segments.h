/* What `dpr reduce --offsets`, `--by` and `--axis` do: each segment of an array, each run of equal keys, or each index
 * of the dimensions that are kept has a result. */
#ifndef DPR_TOOLS_SEGMENTS_H
#define DPR_TOOLS_SEGMENTS_H

#include "jobs.h"

typedef struct segments_asked {
    const char *offsets;                       /* the file that says where segments begin, or NULL */
    const char *by;                            /* the file with a key for each element, or NULL */
    int axes[DPR_MOST_DIMENSIONS], axis_count; /* dimensions to be reduced, negative ones from the last; 0: none */
    int keepdims;                              /* 1: results have reduced dimensions, too, with one index */
    const char *output; /* where the results go, as a .npy file; NULL: the first ones are shown */
} segments_asked;

/* Reduces the array in a file by each operation of `a`; there is one if `output` is set. `raw` as in source_open().
 * CLI_OK, or the exit code after a message. */
int segments_reduce(asked *a, const segments_asked *s, const char *file, const dpr_dtype *raw);

#endif
