#include "layout.h"

#include "error.h"

static dpr_status check(const dpr_problem *problem) {
    if (problem->dimensions < 0 || problem->dimensions > DPR_MOST_DIMENSIONS)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->dimensions is %d; it should be from 0 to %d",
                        problem->dimensions, DPR_MOST_DIMENSIONS);
    if (!problem->extents)
        return dpr_fail(DPR_ERR_NULL_POINTER, "problem->extents is NULL, and problem->dimensions is %d",
                        problem->dimensions);
    if (problem->device_count)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->device_count is set; it should be NULL, because problem->dimensions is %d",
                        problem->dimensions);
    return DPR_OK;
}

/* The product of the extents. It is 0 if one of them is, however large the others are. */
static dpr_status count_elements(const dpr_problem *problem, uint64_t *out) {
    uint64_t elements = 1;
    int overflow = 0, empty = 0;
    for (int i = 0; i < problem->dimensions; i++) {
        empty |= problem->extents[i] == 0;
        overflow |= __builtin_mul_overflow(elements, problem->extents[i], &elements);
    }
    *out = empty ? 0 : elements;
    if (!empty && (overflow || elements > PTRDIFF_MAX))
        return dpr_fail(DPR_ERR_SIZE,
                        "problem->extents multiply to more than %td elements; an array has at most %td bytes",
                        PTRDIFF_MAX, PTRDIFF_MAX);
    if (problem->count != 0 && problem->count != *out)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->count is %zu; it should be 0 or %llu, the product of problem->extents",
                        problem->count, (unsigned long long)*out);
    return DPR_OK;
}

/* Adds a dimension that runs faster than those before. Joins it with the last of them if all elements of the two are
 * equally far apart. */
static void add_dimension(uint64_t extent, int64_t stride, dpr_layout *layout) {
    const int last = layout->dimensions - 1;
    int64_t step; /* from one beginning of this dimension to the next */
    if (last >= 0 && !__builtin_mul_overflow(stride, extent, &step) && step == layout->stride[last]) {
        layout->extent[last] *= extent;
        layout->stride[last] = stride;
        return;
    }
    layout->extent[layout->dimensions] = extent;
    layout->stride[layout->dimensions++] = stride;
}

dpr_status dpr_layout_make(const dpr_problem *problem, dpr_layout *out) {
    dpr_layout layout = {0};
    dpr_status status = check(problem);
    if (status == DPR_OK)
        status = count_elements(problem, &layout.elements);
    if (status != DPR_OK)
        return status;
    if (problem->strides && layout.elements > 0)
        for (int i = 0; i < problem->dimensions; i++)
            if (problem->extents[i] > 1)
                add_dimension(problem->extents[i], problem->strides[i], &layout);
    if (layout.dimensions == 0)
        add_dimension(layout.elements, 1, &layout);
    *out = layout;
    return DPR_OK;
}
