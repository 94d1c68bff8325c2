#include "peer_axes.h"

typedef struct dimensions {
    int n;
    uint32_t extents[DPR_MOST_DIMENSIONS];
    int64_t strides[DPR_MOST_DIMENSIONS];
} dimensions;

/* Appends the dimensions that are reduced, or those that are not. One that lies as one with that before it makes it
 * longer. */
static void append(dimensions *to, const shape_array *a, uint32_t reduced) {
    const int first = to->n;
    for (int d = 0; d < a->shape->dimensions; d++) {
        const uint32_t extent = (uint32_t)a->extents[d];
        if ((a->shape->reduced >> d & 1) != reduced || extent == 1)
            continue;
        const int is_longer = to->n > first && to->strides[to->n - 1] == a->strides[d] * extent;
        const int i = is_longer ? to->n - 1 : to->n++;
        to->extents[i] = is_longer ? to->extents[i] * extent : extent;
        to->strides[i] = a->strides[d];
    }
}

int peer_axes(const shape_array *a, peers_axes *out) {
    dimensions all = {0};
    if (a->elements > UINT32_MAX)
        return -1;
    append(&all, a, 0);
    const int kept = all.n;
    append(&all, a, 1);
    if (all.n > PEERS_AXES_DIMENSIONS)
        return -1;
    *out = (peers_axes){.results = a->results,
                        .length = a->elements / a->results,
                        .kept = kept,
                        .reduced = all.n - kept,
                        .extents = {1, 1, 1}};
    for (int i = 0, at = PEERS_AXES_DIMENSIONS - all.n; i < all.n; i++, at++) {
        out->extents[at] = all.extents[i];
        out->strides[at] = all.strides[i];
    }
    out->are_rows =
        kept <= 1 && all.n == kept + 1 && all.strides[kept] == 1 && (kept == 0 || all.strides[0] == all.extents[1]);
    return 0;
}
