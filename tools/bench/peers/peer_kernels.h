/* What dpr is compared with on the device: CUB's reductions (cub_*.cu), and a kernel that reads nothing. */
#ifndef DPR_PEERS_PEER_KERNELS_H
#define DPR_PEERS_PEER_KERNELS_H

#include "lists.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues a reduction of `count` elements of device memory, whose result goes to `out`. Of ARGMIN and ARGMAX the value
 * goes to out + 16 bytes. Returns the cudaError_t, which is an error if the call needs more scratch memory. */
typedef int peers_cub_call(void *scratch, size_t scratch_bytes, const void *in, void *out, size_t count,
                           dpr_stream stream);

/* Calls by element type, NULL where CUB's result would be another than dpr's. */
typedef peers_cub_call *const peers_cub_table[DPR_DTYPE_COUNT];
extern peers_cub_table peers_cub_sum, peers_cub_min, peers_cub_max, peers_cub_argmin, peers_cub_argmax;
extern peers_cub_table peers_cub_all, peers_cub_any, peers_cub_count;

/* Sums of elements that a transform iterator widens, which keeps CUB from vector loads. NULL where nothing is widened.
 */
extern peers_cub_table peers_cub_sum_transform;

/* Sums of 32-bit integers modulo 2^32: the low half of dpr's result. NULL for other types. */
extern peers_cub_table peers_cub_sum_native;

/* Enqueues a reduction of `segments` segments, whose offsets lie in device memory, too. Otherwise as peers_cub_call. */
typedef int peers_cub_segments_call(void *scratch, size_t scratch_bytes, const void *in, const void *offsets, void *out,
                                    uint64_t segments, dpr_stream stream);

/* Calls by the offsets' type, I32 and I64, and by element type. */
typedef peers_cub_segments_call *const peers_cub_segments_table[2][DPR_DTYPE_COUNT];
extern peers_cub_segments_table peers_cub_segments_sum, peers_cub_segments_max;

/* Enqueues a reduction of runs of equal keys, of which there is one for each element; the number of runs goes to
 * `runs`. Everything lies in device memory. Otherwise as peers_cub_call. */
typedef int peers_cub_by_key_call(void *scratch, size_t scratch_bytes, const int32_t *keys, const void *in,
                                  int32_t *unique, void *out, int64_t *runs, uint64_t count, dpr_stream stream);
typedef peers_cub_by_key_call *const peers_cub_by_key_table[DPR_DTYPE_COUNT];
extern peers_cub_by_key_table peers_cub_by_key_sum, peers_cub_by_key_max;

/* Results of an array along axes, each of `length` elements. Dimensions of results come first, and then those that are
 * reduced; where there are fewer than these, the first ones have extent 1. */
enum { PEERS_AXES_DIMENSIONS = 3 };
typedef struct peers_axes {
    uint64_t results, length;
    int kept, reduced; /* dimensions, without those of extent 1 */
    uint32_t extents[PEERS_AXES_DIMENSIONS];
    int64_t strides[PEERS_AXES_DIMENSIONS]; /* in elements */
    int are_rows;                           /* 1: element j of result i is number i * length + j of the array */
} peers_axes;

/* Enqueues a reduction along axes of fewer than 2^32 elements. Otherwise as peers_cub_call. */
typedef int peers_cub_axes_call(void *scratch, size_t scratch_bytes, const void *in, void *out, const peers_axes *axes,
                                dpr_stream stream);
typedef peers_cub_axes_call *const peers_cub_axes_table[DPR_DTYPE_COUNT];
extern peers_cub_axes_table peers_cub_axes_sum, peers_cub_axes_max;

/* CUB_VERSION: 300001 is 3.0.1. */
int peers_cub_version(void);

/* Host address of a kernel of one thread that reads nothing, as cudaGetFuncBySymbol() takes it. It waits for the work
 * before it, if it was launched ahead of that. Its parameter is a uint64_t *, where it stores 1 for the host to see, or
 * NULL. */
const void *peers_post_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
