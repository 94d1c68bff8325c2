/* What `dpr reduce --offsets` does: each segment of an array is reduced by itself. */
#ifndef DPR_TOOLS_SEGMENTS_H
#define DPR_TOOLS_SEGMENTS_H

#include "jobs.h"

typedef struct segments_asked {
    const char *offsets; /* the file that says where segments begin */
    const char *output;  /* where the results go, as a .npy file; NULL: the first ones are shown */
} segments_asked;

/* Reduces the segments of the array in a file by the operation of `a`. `raw` as in source_open(). CLI_OK, or the exit
 * code after a message. */
int segments_reduce(asked *a, const segments_asked *s, const char *file, const dpr_dtype *raw);

#endif
