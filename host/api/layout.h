/* The layout of a problem's elements. */
#ifndef DPR_HOST_API_LAYOUT_H
#define DPR_HOST_API_LAYOUT_H

#include "dpr.h"

/* How the elements lie in memory. Dimensions that can be joined have become one, and none has an extent of 1 unless it
 * is the only one, so an array without gaps has one dimension with a stride of 1, whatever its shape was. */
typedef struct dpr_layout {
    int dimensions;                       /* at least 1 */
    uint64_t extent[DPR_MOST_DIMENSIONS]; /* elements, the slowest dimension first */
    int64_t stride[DPR_MOST_DIMENSIONS];  /* elements from one to the next */
    uint64_t elements;                    /* of all dimensions together */
} dpr_layout;

/* Makes *out of the problem's dimensions, of which it has at least one. Errors: DPR_ERR_INVALID_OPTION,
 * DPR_ERR_NULL_POINTER or DPR_ERR_SIZE, with a sentence on the member of `problem` that is wrong. */
dpr_status dpr_layout_make(const dpr_problem *problem, dpr_layout *out);

/* True if the elements lie one behind the other in the order of their indices. */
static inline int dpr_layout_is_array(const dpr_layout *layout) {
    return layout->dimensions == 1 && layout->stride[0] == 1;
}

#endif
