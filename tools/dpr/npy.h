/* The header of a .npy file (NumPy enhancement proposal 1; versions 1.0, 2.0 and 3.0). Works on bytes in memory and
 * trusts none of them. */
#ifndef DPR_TOOLS_NPY_H
#define DPR_TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "dpr.h"

enum {
    NPY_MAGIC_BYTES = 6,
    NPY_PREFIX_BYTES = 12,                           /* enough to know the header's length, in any version */
    NPY_HEADER_BYTES = NPY_PREFIX_BYTES + 64 * 1024, /* the longest header that is read, prefix included */
    NPY_DIMS = 64,                                   /* as NumPy 2 has it */
    NPY_WHY = 256
};

typedef struct npy_header {
    size_t bytes; /* of the header: the first element's place in the file */
    dpr_dtype dtype;
    int swapped; /* elements are big-endian */
    int fortran; /* elements are in column-major order */
    int dims;
    uint64_t shape[NPY_DIMS];
    uint64_t count; /* product of the shape; count * element size is at most PTRDIFF_MAX */
} npy_header;

/* Whether the bytes begin like a .npy file; `size` may be short. */
int npy_is(const unsigned char *bytes, size_t size);

/* The length of the whole header, in *header_bytes, from its first NPY_PREFIX_BYTES (or the whole file, if that is
 * shorter). 0, or -1 with a clause in `why`. */
int npy_prefix(const unsigned char *bytes, size_t size, size_t *header_bytes, char why[NPY_WHY]);

/* Reads a whole header of `size` bytes. `as` is the type that the user names, for element types that only have a size
 * ('|V2' is how bfloat16 is saved); NULL if there is none. 0, or -1 with a clause in `why`. */
int npy_parse(const unsigned char *bytes, size_t size, const dpr_dtype *as, npy_header *out, char why[NPY_WHY]);

#endif
