/* An array in a file, seen as a row of windows: mapped where that is possible, read into a buffer where it is not
 * (pipes, big-endian and misaligned data). */
#ifndef DPR_TOOLS_SOURCE_H
#define DPR_TOOLS_SOURCE_H

#include <sys/stat.h>

#include "npy.h"

enum { SOURCE_WHY = 512 };

typedef struct source_request {
    const char *file;     /* "-": standard input */
    const dpr_dtype *raw; /* element type of a file without header, NULL: only .npy */
    size_t window;        /* bytes of a window, at least 1 */
} source_request;

typedef struct source {
    npy_header array; /* of a raw file: one dimension; count is UINT64_MAX until the end of a pipe is reached */
    int has_header;
    uint64_t ignored; /* bytes after the array that are not part of it; at least that many in a pipe */
    char why[SOURCE_WHY];

    /* Private. */
    int fd;
    struct stat at_start; /* of a regular file */
    int regular, mapped;
    uint64_t data;    /* place of the first element in a mapped file */
    uint64_t given;   /* elements handed out */
    size_t window;    /* elements of a window */
    void *map;        /* the window in a mapped file, */
    size_t map_bytes; /* and its bytes */
    unsigned char *buffer;
    unsigned char *ahead; /* bytes read to find the header: [ahead_at, ahead_size) are still to be used */
    size_t ahead_at, ahead_size;
} source;

/* Opens the array. 0, or -1 with a clause in s->why; source_close() is due in either case. */
int source_open(source *s, const source_request *request);

/* The next window: 1 with *in (valid until the next call), *count elements, at least 1, and *last when it is known to
 * be the last; 0 at the end; -1 with s->why. */
int source_next(source *s, const void **in, size_t *count, int *last);

/* What the last window was when used, and whether the file is still as it was: 0, or -1 with s->why. Due after each
 * window has been used, before anything of it is believed. */
int source_check(source *s);

void source_close(source *s);

#endif
