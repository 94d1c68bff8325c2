/* One reduction of an array that comes in windows: each window is reduced to a partial result, and these are merged, so
 * that the outcome is that of one reduction of the whole. */
#ifndef DPR_TOOLS_FOLD_H
#define DPR_TOOLS_FOLD_H

#include "npy.h"
#include "value.h"

enum { FOLD_PARTIAL = 256 }; /* bytes of the largest partial result */

typedef struct fold {
    /* Set by the caller. */
    dpr_ctx *ctx; /* where the windows are reduced */
    dpr_ctx *cpu; /* the CPU's */
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
    dpr_divisor divisor;
    const char *strategy; /* NULL: the planner's choice */
    const value *init;    /* NULL: none */

    /* Private. */
    uint64_t elements; /* of the windows so far */
    /* The partial result of the windows so far, and behind it that of a window. */
    _Alignas(16) unsigned char partials[2 * FOLD_PARTIAL];
    dpr_plan *plan; /* for windows of plan_count elements, NULL: none yet */
    size_t plan_count;
    int64_t rank;  /* ARGMIN and ARGMAX of a column-major array: of the winning element (element.h), */
    int64_t index; /* and where it is in row-major order; -1: none yet */
} fold;

/* One window as the caller has it. `in` is what is reduced; `host` the same elements in host memory. */
typedef struct fold_window {
    const void *in, *host;
    size_t count;
} fold_window;

/* Takes the fields that the caller sets; the rest becomes that of no element. */
void fold_start(fold *f);

/* Makes the plan for windows like this one, of which only `count` matters. On an error dpr_last_error() has the
 * sentence. */
dpr_status fold_prepare(fold *f, const fold_window *w);

/* Takes one more window of `array`, in order, after fold_prepare(). On an error dpr_last_error() has the sentence. */
dpr_status fold_add(fold *f, const fold_window *w, const npy_header *array);

/* The outcome for `array`: dpr_result_values(op) values of the type dpr_result_dtype(op, dtype). */
dpr_status fold_end(fold *f, const npy_header *array, value *out);

/* Gives back what the fold holds. */
void fold_free(fold *f);

#endif
