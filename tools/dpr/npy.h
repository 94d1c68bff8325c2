/* The header of a .npy file (NumPy enhancement proposal 1; versions 1.0, 2.0 and 3.0). Works on bytes in memory and
 * trusts none of them. */
#ifndef DPR_TOOLS_NPY_H
#define DPR_TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "dpr.h"

enum {
    NPY_PREFIX_BYTES = 12,      /* enough to know the header's length, in any version */
    NPY_TEXT_BYTES = 64 * 1024, /* the longest text of a header that is read */
    NPY_DIMS = 64,              /* as NumPy 2 has it */
    NPY_WHY = 512
};

typedef struct npy_header {
    dpr_dtype dtype;
    int swapped; /* elements are big-endian */
    int fortran; /* elements are in column-major order */
    int dims;
    uint64_t shape[NPY_DIMS];
    uint64_t count; /* product of the shape; count * element size is at most PTRDIFF_MAX */
} npy_header;

/* Writes why a file cannot be used, a clause. Returns -1. */
int npy_fail(char why[NPY_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the bytes begin like a .npy file; `size` may be short. */
int npy_is(const unsigned char *bytes, size_t size);

/* The bytes before the header's text, and of the text, from the first NPY_PREFIX_BYTES of a .npy file (or all of it, if
 * that is shorter). 0, or -1 with `why`. */
int npy_prefix(const unsigned char *bytes, size_t size, size_t *prefix, size_t *text, char why[NPY_WHY]);

/* Reads the header's text of `length` bytes, with a zero after them. `as` is the type that the user names, for element
 * types that only have a size ('|V2' is how bfloat16 is saved); NULL if there is none. 0, or -1 with `why`. */
int npy_parse(const char *text, size_t length, const dpr_dtype *as, npy_header *out, char why[NPY_WHY]);

/* Writes a header of version 1.0 for an array in C order and this machine's byte order. BF16 becomes '|V2', as NumPy
 * saves it. Errors of the file are for the caller to look for. */
void npy_write_header(FILE *f, dpr_dtype dtype, int dims, const uint64_t *shape);

#endif
