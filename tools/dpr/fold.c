#include "fold.h"

static dpr_options options_of(const fold *f, const char *strategy, const value *init) {
    return (dpr_options){
        .size = sizeof(dpr_options), .nan = f->nan, .strategy = strategy, .init = init, .divisor = f->divisor};
}

/* ---- Indices in column-major arrays ----------------------------------------------------------------------------- */

/* Whether elements have another index than their place in the file. */
static int is_reordered(const fold *f, const npy_header *array) {
    return (f->op == DPR_ARGMIN || f->op == DPR_ARGMAX) && array->fortran && array->dims > 1;
}

/* Where the element at place `at` of a column-major array is in row-major order. */
static int64_t row_major(const npy_header *array, uint64_t at) {
    uint64_t index = 0, stride = array->count;
    for (int d = 0; d < array->dims; d++) {
        stride /= array->shape[d];
        index += at % array->shape[d] * stride;
        at /= array->shape[d];
    }
    return (int64_t)index;
}

/* The place of an element of the window in the order of the operation: the least wins. */
static int64_t rank_at(const fold *f, const fold_window *w, size_t at) {
    const unsigned char *host = w->host;
    return dpr_rank_of(f->op, f->dtype, dpr_element_load(f->dtype, host + at * dpr_dtype_size(f->dtype)));
}

/* Takes the lowest row-major index among the elements of the window that tie with the one at `first`, which comes
 * before all others in memory. */
static void add_index(fold *f, const fold_window *w, const npy_header *array, size_t first) {
    const int64_t rank = rank_at(f, w, first);
    if (f->index >= 0 && rank > f->rank)
        return;
    for (size_t i = first; i < w->count; i++) {
        const int64_t index = rank_at(f, w, i) == rank ? row_major(array, f->elements + i) : INT64_MAX;
        if (f->index < 0 || rank < f->rank || index < f->index) {
            f->rank = rank;
            f->index = index;
        }
    }
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* Reduces a window to the second partial result. A CPU context takes a plan, because that knows where its arrays lie:
 * dpr_reduce_partial() would ask the driver, which takes a good part of a second to start. */
static dpr_status reduce_window(fold *f, const fold_window *w, void *partial) {
    const dpr_options options = options_of(f, f->strategy, NULL);
    if (dpr_ctx_device(f->ctx) == DPR_DEVICE_CPU)
        return dpr_plan_run_partial(f->plan, w->in, partial, f->elements, NULL);
    return dpr_reduce_partial(f->ctx, w->in, partial, w->count, f->dtype, f->op, f->elements, &options);
}

static dpr_status make_plan(dpr_ctx *ctx, size_t count, const fold *f, const dpr_options *options, dpr_plan **out) {
    const dpr_problem problem = {
        .size = sizeof problem, .op = f->op, .dtype = f->dtype, .count = count, .options = options};
    return dpr_plan_create(ctx, &problem, out);
}

/* The result of no elements. */
static dpr_status reduce_nothing(const fold *f, value *out) {
    const dpr_options options = options_of(f, NULL, f->init);
    dpr_plan *plan;
    dpr_status status = make_plan(f->cpu, 0, f, &options, &plan);
    if (status != DPR_OK)
        return status;
    status = dpr_plan_run(plan, NULL, out, NULL);
    dpr_plan_destroy(plan);
    return status;
}

void fold_start(fold *f) {
    f->elements = 0;
    f->index = -1;
}

dpr_status fold_prepare(fold *f, const fold_window *w) {
    const dpr_options options = options_of(f, f->strategy, NULL);
    if (f->plan && f->plan_count == w->count)
        return DPR_OK;
    fold_free(f);
    f->plan_count = w->count;
    return make_plan(f->ctx, w->count, f, &options, &f->plan);
}

dpr_status fold_add(fold *f, const fold_window *w, const npy_header *array) {
    const dpr_options options = options_of(f, NULL, NULL);
    unsigned char *window = f->partials + dpr_partial_size(f->op, f->dtype);
    dpr_status status = reduce_window(f, w, f->elements > 0 ? window : f->partials);
    value first;
    if (status == DPR_OK && is_reordered(f, array)) {
        status = dpr_partial_finish(f->elements > 0 ? window : f->partials, 1, f->dtype, f->op, &options, &first);
        if (status == DPR_OK && first.i64 >= 0) /* below 0: all are NaN, and ignored */
            add_index(f, w, array, (size_t)first.i64 - (size_t)f->elements);
    }
    if (status == DPR_OK && f->elements > 0)
        status = dpr_partial_merge(f->partials, 2, f->dtype, f->op, &options, f->partials);
    if (status == DPR_OK)
        f->elements += w->count;
    return status;
}

dpr_status fold_end(fold *f, const npy_header *array, value *out) {
    const dpr_options options = options_of(f, NULL, f->init);
    if (f->elements == 0)
        return reduce_nothing(f, out);
    const dpr_status status = dpr_partial_finish(f->partials, 1, f->dtype, f->op, &options, out);
    if (status == DPR_OK && is_reordered(f, array))
        out->i64 = f->index;
    return status;
}

void fold_free(fold *f) {
    dpr_plan_destroy(f->plan);
    f->plan = NULL;
}
