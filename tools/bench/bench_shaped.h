/* Arrays with many results: their data, and calls of dpr_reduce_segments() and dpr_reduce_axes().
 *
 * A buffer has the elements from its begin on; segments have offsets behind them, at the next multiple of
 * BENCH_ALIGNMENT, and then come the results (bench_point). */
#ifndef DPR_TOOLS_BENCH_SHAPED_H
#define DPR_TOOLS_BENCH_SHAPED_H

#include "bench_exact.h"
#include "bench_results.h"

/* The array of a case. */
typedef struct bench_shaped {
    bench_exact exact;
    shape_array array;
    unsigned char *expected; /* its results, in host memory */
} bench_shaped;

/* Bytes of the buffer of a case whose results are of `result_bytes` each, about; at most SIZE_MAX / 4. */
size_t shaped_touched(const bench_case *at, dpr_dtype offsets, size_t result_bytes);

/* Makes data of the case's operation and type: 0; or -1 with the reason. shaped_free() is due in any case. */
int shaped_data(bench_shaped *s, dpr_ctx *cpu, const bench_case *at, char why[BENCH_WHY]);

/* Makes the array of a case for which there is data, and sets bytes, mark and array of the point. What the point refers
 * to lasts until the next call. 0; or -1 with the reason. */
int shaped_make(bench_shaped *s, const bench_case *at, dpr_dtype offsets, bench_point *point, char why[BENCH_WHY]);
void shaped_free(bench_shaped *s);

/* Bytes that a call reads and writes: elements, offsets and results, without what is between them. */
uint64_t shaped_bytes(const bench_shaped *s);

/* Where the offsets lie in a buffer. */
size_t shaped_offsets_at(const shape_array *a, dpr_dtype dtype);

/* A blocking call for the array in a buffer; and one that is enqueued in a stream. */
dpr_status shaped_reduce(const shape_array *a, dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                         const dpr_options *options);
dpr_status shaped_enqueue(const shape_array *a, dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                          const dpr_options *options, dpr_stream stream);

#endif
