/* What a call or a plan reduces: one array, segments of it, runs of keys, or an array along axes. */
#ifndef DPR_HOST_API_SHAPE_H
#define DPR_HOST_API_SHAPE_H

#include "lists.h"
#include "plan/keys.h"
#include "strategy.h"

typedef enum dpr_shape_kind { DPR_SHAPE_ARRAY, DPR_SHAPE_SEGMENTS, DPR_SHAPE_AXES } dpr_shape_kind;

typedef struct dpr_shape {
    dpr_shape_kind kind;
    uint64_t results; /* 1 for one array; 0: there is nothing to do, and the list or the layout is empty */
    dpr_segment_list segments;
    dpr_keys keys;        /* if they have a type, `segments` has the greatest number of runs, and no begins */
    dpr_axes_layout axes; /* also of one array whose elements do not lie one behind the other */
    int has_ends;         /* 1: the list of segments has begins and ends; 0: offsets */
    int check;            /* dpr_segments.check */
    int in_has_gaps;      /* 1: elements may not lie one behind the other; only for axes */
    int out_has_gaps;     /* 1: results may not */
} dpr_shape;

/* The shape of one array without gaps. */
static inline dpr_shape dpr_shape_of_array(void) {
    return (dpr_shape){.results = 1};
}

static inline int dpr_shape_is_array(const dpr_shape *shape) {
    return shape->kind == DPR_SHAPE_ARRAY;
}

/* Checks what a caller gives, and makes a shape of it. *elements, of which there may be 0, is set for axes and
 * dimensions. The sentences of errors name the member that is wrong. */
dpr_status dpr_shape_of_segments(const dpr_segments *given, dpr_shape *out);
dpr_status dpr_shape_of_axes(const dpr_axes *given, const dpr_op_row *op, dpr_shape *out, uint64_t *elements);

/* The same for problem->dimensions, of which there is at least one. All of them are reduced. */
dpr_status dpr_shape_of_dimensions(const dpr_problem *problem, dpr_shape *out, uint64_t *elements);

/* Makes the shape of the runs of `count` keys. It has the lesser of `count` and keys->room results, but at least one,
 * because a shape without results has nothing to be planned. */
dpr_shape dpr_shape_of_keys(const dpr_keys *keys, uint64_t count);

/* Fails if this is no type of keys; the sentence names `what`. Fails with DPR_ERR_SIZE if `count` keys, or as many
 * results, may not fit the address space. */
dpr_status dpr_shape_check_keys(const char *what, dpr_dtype dtype, uint64_t count);

/* Sets the list's count to the number of segments that is in memory which the host reaches. */
void dpr_shape_take_number(dpr_segment_list *list);

/* Checks the pointer to an argument's elements for NULL and alignment. */
dpr_status dpr_shape_check_pointer(const char *name, const void *at, dpr_dtype dtype);

/* Sets the fields of the key that depend on the shape. */
void dpr_shape_key(const dpr_shape *shape, dpr_key *key);

/* Sets the shape's fields of a run, which point into *shape. */
void dpr_shape_run(const dpr_shape *shape, dpr_run *run);

#endif
