#include "peer_axes.h"

typedef struct dimensions {
    int n;
    uint32_t extents[DPR_MOST_DIMENSIONS];
    int64_t strides[DPR_MOST_DIMENSIONS];
} dimensions;

/* Appends one, which makes the last one longer if the two lie as one. */
static void append(dimensions *to, uint32_t extent, int64_t stride) {
    if (extent == 1)
        return;
    const int is_longer = to->n > 0 && to->strides[to->n - 1] == stride * extent;
    const int i = is_longer ? to->n - 1 : to->n++;
    to->extents[i] = is_longer ? to->extents[i] * extent : extent;
    to->strides[i] = stride;
}

int peer_axes(const shape_array *a, peers_axes *out) {
    dimensions kept = {0}, reduced = {0};
    if (a->elements > UINT32_MAX)
        return -1;
    for (int d = 0; d < a->shape->dimensions; d++)
        append(a->shape->reduced >> d & 1 ? &reduced : &kept, (uint32_t)a->extents[d], a->strides[d]);
    int at = PEERS_AXES_DIMENSIONS - kept.n - reduced.n;
    if (at < 0)
        return -1;
    *out = (peers_axes){.results = a->results,
                        .length = a->elements / a->results,
                        .kept = kept.n,
                        .reduced = reduced.n,
                        .extents = {1, 1, 1}};
    for (int d = 0; d < kept.n; d++, at++) {
        out->extents[at] = kept.extents[d];
        out->strides[at] = kept.strides[d];
    }
    for (int d = 0; d < reduced.n; d++, at++) {
        out->extents[at] = reduced.extents[d];
        out->strides[at] = reduced.strides[d];
    }
    out->are_rows = reduced.n == 1 && reduced.strides[0] == 1 && kept.n <= 1
                    && (kept.n == 0 || kept.strides[0] == reduced.extents[0]);
    return 0;
}
