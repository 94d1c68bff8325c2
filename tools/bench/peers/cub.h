/* CUB's reductions, by operation and element type: cub_*.cu. */
#ifndef DPR_PEERS_CUB_H
#define DPR_PEERS_CUB_H

#include "lists.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues a reduction of `count` elements of device memory, whose result goes to `out`. With `scratch` NULL it only
 * sets *scratch_bytes, to what the same call will need. Of ARGMIN and ARGMAX the value goes to out + 16 bytes. Returns
 * the cudaError_t. */
typedef int peers_cub_call(void *scratch, size_t *scratch_bytes, const void *in, void *out, size_t count,
                           dpr_stream stream);

/* By element type, NULL where CUB's result would be another than dpr's. */
extern peers_cub_call *const peers_cub_sum[DPR_DTYPE_COUNT];
extern peers_cub_call *const peers_cub_min[DPR_DTYPE_COUNT], *const peers_cub_max[DPR_DTYPE_COUNT];
extern peers_cub_call *const peers_cub_argmin[DPR_DTYPE_COUNT], *const peers_cub_argmax[DPR_DTYPE_COUNT];
extern peers_cub_call *const peers_cub_all[DPR_DTYPE_COUNT], *const peers_cub_any[DPR_DTYPE_COUNT];
extern peers_cub_call *const peers_cub_count[DPR_DTYPE_COUNT];

/* Sums of elements that a transform iterator widens, which keeps CUB from vector loads. NULL where nothing is widened.
 */
extern peers_cub_call *const peers_cub_sum_transform[DPR_DTYPE_COUNT];

/* Sums of 32-bit integers modulo 2^32: the low half of dpr's result. NULL for other types. */
extern peers_cub_call *const peers_cub_sum_native[DPR_DTYPE_COUNT];

/* CUB_VERSION: 300001 is 3.0.1. */
int peers_cub_version(void);

#ifdef __cplusplus
}
#endif

#endif
