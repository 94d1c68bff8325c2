/* Data whose results are exact in any order, and results of segments and along axes to compare with.
 *
 * Elements are whole numbers of one byte: small ones for sums, more for MIN, MAX and operations on bits. An array is
 * the endless repetition of one block, whose second half has the first one's numbers with the other sign, if the type
 * has one: so sums stay small, and are exact in F32 however long they are. The number of elements in a block is no
 * power of two, so that rows of an array differ. Results are made with integers, by code of its own. */
#ifndef DPR_TOOLS_BENCH_EXACT_H
#define DPR_TOOLS_BENCH_EXACT_H

#include "bench_shapes.h"
#include "value.h"

/* Bytes of a block; a whole number of elements of any type, and an even one. */
enum { EXACT_BLOCK = 251 * 256 };

typedef struct bench_exact {
    dpr_op op;
    dpr_dtype dtype, result_dtype;
    size_t result_bytes;  /* of one result */
    size_t period;        /* elements of a block */
    unsigned char *block; /* EXACT_BLOCK bytes; NULL: nothing is made */
    signed char *re, *im; /* the numbers of its elements */
    value elements[256];  /* the element of each number, from -128 on */
    value of_nothing;     /* the result of an empty segment */
} bench_exact;

/* Whether the operation has a meaning for the type, and results that are exact. A mean is an exact sum, divided in
 * F64. */
int exact_can(dpr_op op, dpr_dtype dtype);

/* Bytes of a result. */
size_t exact_result_bytes(dpr_op op, dpr_dtype dtype);

/* Makes the block for a pair that exact_can(). `cpu` is a context of the CPU. exact_free() is due in any case. DPR_OK
 * or DPR_ERR_OUT_OF_MEMORY. */
dpr_status exact_make(bench_exact *e, dpr_ctx *cpu, dpr_op op, dpr_dtype dtype);
void exact_free(bench_exact *e);

/* Writes the a->results results of an array, of e->result_bytes each. Segments have their offsets. */
void exact_expect(const bench_exact *e, const shape_array *a, void *out);

#endif
