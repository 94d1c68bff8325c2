/* An array in a file, seen as a row of windows: mapped where that is possible, read into a buffer where it is not
 * (pipes, big-endian and misaligned data). Generated arrays are one window. */
#ifndef DPR_TOOLS_SOURCE_H
#define DPR_TOOLS_SOURCE_H

#include <sys/stat.h>

#include "npy.h"

typedef struct source {
    npy_header array;  /* of a raw file: one dimension; count is UINT64_MAX until the end of a pipe is reached */
    int ignored;       /* 1, after the last window: bytes follow the array that are not part of it */
    int generated;     /* 1: it is in no file */
    char why[NPY_WHY]; /* why there is no array, a clause */

    /* Private. */
    int fd;
    struct stat at_start; /* of a regular file */
    int regular, ended, mapped;
    uint64_t given;        /* elements handed out */
    size_t window;         /* elements of a window */
    unsigned char *buffer; /* a window that is read */
    char *map;             /* a window that is mapped, from the begin of its first page on */
    size_t map_bytes;
    uint64_t data;                         /* place of the first element in a regular file */
    unsigned char begin[NPY_PREFIX_BYTES]; /* read to find a header: [used, held) is still to be handed out */
    size_t used, held;
} source;

/* Opens the array of a file ("-": standard input). `raw` is the element type of a file without header, NULL: only .npy;
 * `window` the bytes of a window, at least 1. 0, or -1 with s->why; source_close() is due in either case. */
int source_open(source *s, const char *file, const dpr_dtype *raw, size_t window);

/* Makes a source of pseudo-random elements (value.h), which `bytes` is a whole number of. 0, or -1 with s->why. */
int source_generate(source *s, dpr_dtype dtype, uint64_t bytes);

/* The next window: 1 with *in (valid until the next call) and *count elements, at least 1; 0 at the end; -1 with
 * s->why. Results of a window are worth nothing if the next call gives -1: the file may have changed while they were
 * computed. */
int source_next(source *s, const void **in, size_t *count);

void source_close(source *s);

#endif
