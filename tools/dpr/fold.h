/* One reduction of an array that comes in windows: each window is reduced through the public API, and the results of
 * the windows are combined so that the outcome is that of one reduction of the whole. */
#ifndef DPR_TOOLS_FOLD_H
#define DPR_TOOLS_FOLD_H

#include "npy.h"
#include "value.h"

/* When so many results of windows are there, they are combined to one. In a sum, each of them then goes through one
 * more rounding in F64 for every FOLD_RESULTS windows that follow. */
enum { FOLD_RESULTS = 256 };

typedef struct fold {
    /* Set by the caller. */
    dpr_ctx *ctx; /* where the windows are reduced */
    dpr_ctx *cpu; /* where their results are combined */
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
    const char *strategy; /* NULL: the planner's choice */
    const value *init;    /* NULL: none */

    /* Private. */
    uint64_t elements;           /* of the windows so far */
    value results[FOLD_RESULTS]; /* memory for `count` results, one next to the other, in the type of carry_type() */
    size_t count;
    dpr_plan *plan; /* for windows of plan_count elements, NULL: none yet */
    size_t plan_count;
    int whole;     /* 1: the plan is for the whole array and combines `init` */
    int64_t rank;  /* ARGMIN, ARGMAX: of the winning element (cpu/element.h), */
    int64_t index; /* and where it is; -1: none yet */
} fold;

/* One window as the caller has it. `in` is what is reduced; `host` the same elements in host memory. */
typedef struct fold_window {
    const void *in, *host;
    size_t count;
    int whole; /* 1: it is the whole array */
} fold_window;

/* Takes the fields that the caller sets; the rest becomes that of no element. */
void fold_start(fold *f);

/* Makes the plan for windows like this one, of which only `count` and `whole` matter. On an error dpr_last_error() has
 * the sentence. */
dpr_status fold_prepare(fold *f, const fold_window *w);

/* Takes one more window of `array`, in order, after fold_prepare(). On an error dpr_last_error() has the sentence. */
dpr_status fold_add(fold *f, const fold_window *w, const npy_header *array);

/* The outcome, of the type dpr_result_dtype(op, dtype). */
dpr_status fold_end(fold *f, value *out);

/* Gives back what the fold holds. */
void fold_free(fold *f);

#endif
