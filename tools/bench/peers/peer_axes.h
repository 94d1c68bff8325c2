/* Arrays of several dimensions as peers take them. Pure. */
#ifndef DPR_PEERS_PEER_AXES_H
#define DPR_PEERS_PEER_AXES_H

#include "bench_shapes.h"
#include "peer_kernels.h"

/* Dimensions that lie as one become one. 0; -1 if more than PEERS_AXES_DIMENSIONS are left, or the array has 2^32
 * elements or more. */
int peer_axes(const shape_array *a, peers_axes *out);

#endif
