/* Shapes of arrays for tests of reductions along axes. */
#ifndef DPR_TESTS_AXES_SHAPES_H
#define DPR_TESTS_AXES_SHAPES_H

#include "data.h"
#include "support.h"

typedef struct axes_shape {
    dpr_axes axes;
    uint64_t extents[DPR_MOST_DIMENSIONS];
    int64_t strides[DPR_MOST_DIMENSIONS], out_strides[DPR_MOST_DIMENSIONS];
} axes_shape;

static inline int is_reduced(const axes_shape *s, int d) {
    return (int)(s->axes.reduced >> d & 1);
}

/* The product of the extents of reduced dimensions, or of those that are kept. */
static inline uint64_t axes_product(const axes_shape *s, int reduced) {
    uint64_t n = 1;
    for (int d = 0; d < s->axes.dimensions; d++)
        n *= is_reduced(s, d) == reduced ? s->extents[d] : 1;
    return n;
}

/* Sets strides without gaps, the last dimension running fastest. Returns the number of elements or results. */
static inline int64_t set_strides(const axes_shape *s, int kept_only, int64_t *strides) {
    int64_t step = 1;
    for (int d = s->axes.dimensions - 1; d >= 0; d--) {
        strides[d] = step;
        step *= kept_only && is_reduced(s, d) ? 1 : (int64_t)s->extents[d];
    }
    return step;
}

/* A shape of at most `most` elements. Its strides are not set. */
static inline void choose_shape(axes_shape *s, uint32_t most, uint64_t *seed) {
    const dpr_axes init = DPR_AXES_INIT;
    s->axes = init;
    s->axes.dimensions = 1 + (int)data_below(seed, DPR_MOST_DIMENSIONS);
    s->axes.extents = s->extents;
    s->axes.reduced = data_below(seed, 1u << s->axes.dimensions);
    for (int d = 0; d < DPR_MOST_DIMENSIONS; d++)
        s->extents[d] = 1;
    for (uint32_t left = most, tries = 0; left > 1 && tries < 2 * (uint32_t)s->axes.dimensions; tries++) {
        const uint32_t d = data_below(seed, (uint32_t)s->axes.dimensions),
                       n = 1 + data_below(seed, left < 90 ? left : 90);
        if (s->extents[d] == 1) {
            s->extents[d] = n;
            left /= n;
        }
    }
}

/* Turns round the strides of some dimensions, and sets others to 0. Returns the place of the first element. */
static inline int64_t twist(axes_shape *s, uint64_t *seed) {
    int64_t first = 0;
    s->axes.strides = s->strides;
    for (int d = 0; d < s->axes.dimensions; d++) {
        const uint32_t how = data_below(seed, 5);
        if (how == 0)
            s->strides[d] = 0;
        if (how == 1) {
            first += s->strides[d] * (int64_t)(s->extents[d] - 1);
            s->strides[d] = -s->strides[d];
        }
    }
    return first;
}

/* Swaps dimensions' strides of elements, or of results. */
static inline void transpose(const axes_shape *s, int64_t *strides, int kept_only, uint64_t *seed) {
    int order[DPR_MOST_DIMENSIONS];
    int64_t step = 1;
    for (int d = 0; d < s->axes.dimensions; d++) {
        const int k = (int)data_below(seed, (uint32_t)d + 1);
        order[d] = order[k];
        order[k] = d;
    }
    for (int i = 0; i < s->axes.dimensions; i++) {
        strides[order[i]] = step;
        step *= kept_only && is_reduced(s, order[i]) ? 1 : (int64_t)s->extents[order[i]];
    }
}

#endif
