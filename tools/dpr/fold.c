#include "fold.h"

#include <math.h>
#include <string.h>

static int is_arg(dpr_op op) {
    return op == DPR_ARGMIN || op == DPR_ARGMAX;
}

/* Floating-point sums and products of windows are kept in F64, so that rounding them adds nothing to the error and a
 * product of a window may leave the range of F32. */
static dpr_dtype carry_type(const fold *f) {
    const dpr_dtype result = dpr_result_dtype(f->op, f->dtype);
    if (f->op != DPR_SUM && f->op != DPR_PROD)
        return result;
    return result == DPR_F32 ? DPR_F64 : result == DPR_C64 ? DPR_C128 : result;
}

static int is_widened(const fold *f) {
    return carry_type(f) != dpr_result_dtype(f->op, f->dtype);
}

/* ---- Calls of the library --------------------------------------------------------------------------------------- */

static dpr_options options_of(const fold *f, int whole) {
    return (dpr_options){
        .size = sizeof(dpr_options), .nan = f->nan, .strategy = f->strategy, .init = whole ? f->init : NULL};
}

static dpr_status make_plan(dpr_ctx *ctx, size_t count, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                            dpr_plan **out) {
    const dpr_problem problem = {.size = sizeof problem, .op = op, .dtype = dtype, .count = count, .options = options};
    return dpr_plan_create(ctx, &problem, out);
}

/* Reduces host memory on a CPU context. By a plan, because one knows where its arrays lie: dpr_reduce_ex() would ask
 * the driver, which takes a good part of a second to start. */
static dpr_status reduce(dpr_ctx *cpu, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                         const dpr_options *options) {
    dpr_plan *plan;
    dpr_status status = make_plan(cpu, count, dtype, op, options, &plan);
    if (status != DPR_OK)
        return status;
    status = dpr_plan_run(plan, in, out, NULL);
    dpr_plan_destroy(plan);
    return status;
}

/* ---- Results of windows ----------------------------------------------------------------------------------------- */

/* Reduces the results of the windows to one, which takes their place. */
static dpr_status combine(fold *f) {
    const dpr_options options = DPR_OPTIONS_INIT;
    const dpr_op op = f->op == DPR_COUNT ? DPR_SUM : f->op;
    value all = {{0}};
    const dpr_status status = reduce(f->cpu, f->results, &all, f->count, carry_type(f), op, &options);
    if (status == DPR_OK) {
        f->results[0] = all;
        f->count = 1;
    }
    return status;
}

/* Adds the result at `from`, which is of the type `type`. */
static dpr_status push(fold *f, dpr_dtype type, const void *from) {
    const dpr_status status = f->count < FOLD_RESULTS ? DPR_OK : combine(f);
    void *to = (unsigned char *)f->results + f->count * dpr_dtype_size(carry_type(f));
    if (status != DPR_OK)
        return status;
    if (is_widened(f))
        value_widen(type, from, to, 1);
    else
        memcpy(to, from, dpr_dtype_size(type));
    f->count++;
    return DPR_OK;
}

/* Reduces the window in the wider type, piece by piece. */
static dpr_status add_widened(fold *f, const fold_window *w) {
    enum { PIECE = 4096 };
    double wide[2 * PIECE];
    const dpr_options options = {.size = sizeof options, .nan = f->nan};
    const dpr_dtype carry = carry_type(f);
    dpr_status status = DPR_OK;
    for (size_t at = 0; at < w->count && status == DPR_OK; at += PIECE) {
        const size_t n = w->count - at < PIECE ? w->count - at : PIECE;
        value v;
        value_widen(f->dtype, (const unsigned char *)w->host + at * dpr_dtype_size(f->dtype), wide, n);
        status = reduce(f->cpu, wide, &v, n, carry, f->op, &options);
        if (status == DPR_OK)
            status = push(f, carry, &v);
    }
    return status;
}

static dpr_status add_result(fold *f, const fold_window *w, const value *result) {
    const dpr_dtype type = dpr_result_dtype(f->op, f->dtype);
    /* The window may have left the range of F32 where the whole array does not, and an initial value may cancel all but
     * what rounding the window to F32 drops. */
    if (!w->whole && is_widened(f)) {
        const dpr_element e = dpr_element_load(type, result);
        if (f->init || f->op == DPR_PROD || !isfinite(e.re) || !isfinite(e.im))
            return add_widened(f, w);
    }
    return push(f, type, result);
}

/* ---- Indices ---------------------------------------------------------------------------------------------------- */

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

/* The lowest row-major index among the elements of a column-major window that tie with the one at `first`, which comes
 * before all others in memory. */
static int64_t lowest_index(const fold *f, const fold_window *w, const npy_header *array, size_t first) {
    const int64_t rank = rank_at(f, w, first);
    int64_t lowest = INT64_MAX;
    for (size_t i = first; i < w->count; i++) {
        if (rank_at(f, w, i) != rank)
            continue;
        const int64_t index = row_major(array, f->elements + i);
        if (index < lowest)
            lowest = index;
    }
    return lowest;
}

static void add_index(fold *f, const fold_window *w, const npy_header *array, int64_t at) {
    if (at < 0) /* nothing but NaN, and they are ignored */
        return;
    const int is_column_major = array->fortran && array->dims > 1;
    const int64_t rank = rank_at(f, w, (size_t)at);
    const int64_t index = is_column_major ? lowest_index(f, w, array, (size_t)at) : (int64_t)f->elements + at;
    if (f->index < 0 || rank < f->rank || (rank == f->rank && index < f->index)) {
        f->rank = rank;
        f->index = index;
    }
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

void fold_start(fold *f) {
    f->elements = 0;
    f->count = 0;
    f->index = -1;
}

dpr_status fold_prepare(fold *f, const fold_window *w) {
    const dpr_options options = options_of(f, w->whole);
    if (f->plan && f->plan_count == w->count && f->whole == w->whole)
        return DPR_OK;
    fold_free(f);
    f->plan_count = w->count;
    f->whole = w->whole;
    return make_plan(f->ctx, w->count, f->dtype, f->op, &options, &f->plan);
}

dpr_status fold_add(fold *f, const fold_window *w, const npy_header *array) {
    value result;
    const dpr_options options = options_of(f, w->whole);
    dpr_status status;
    if (dpr_ctx_device(f->ctx) == DPR_DEVICE_CPU)
        status = dpr_plan_run(f->plan, w->in, &result, NULL);
    else
        status = dpr_reduce_ex(f->ctx, w->in, &result, w->count, f->dtype, f->op, &options);
    if (status == DPR_OK && is_arg(f->op))
        add_index(f, w, array, result.i64);
    else if (status == DPR_OK)
        status = add_result(f, w, &result);
    if (status == DPR_OK)
        f->elements += w->count;
    return status;
}

void fold_free(fold *f) {
    dpr_plan_destroy(f->plan);
    f->plan = NULL;
}

static int is_ignored(const fold *f, dpr_dtype type, const value *v) {
    return f->nan == DPR_NAN_IGNORE && dpr_element_is_nan(type, dpr_element_load(type, v));
}

dpr_status fold_end(fold *f, value *out) {
    const dpr_dtype result = dpr_result_dtype(f->op, f->dtype);
    dpr_status status = DPR_OK;
    if (f->elements == 0) {
        const dpr_options options = {.size = sizeof options, .nan = f->nan, .init = f->init};
        return reduce(f->cpu, NULL, out, 0, f->dtype, f->op, &options);
    }
    if (is_arg(f->op)) {
        out->i64 = f->index;
        return DPR_OK;
    }
    /* The initial value is one more result at the end, unless the plan has combined it. */
    if (f->init && !f->whole && !is_ignored(f, result, f->init))
        status = push(f, result, f->init);
    if (status == DPR_OK && f->count > 1)
        status = combine(f);
    if (status == DPR_OK && is_widened(f))
        value_narrow(result, &f->results[0].f64, out, 1);
    else if (status == DPR_OK)
        *out = f->results[0];
    return status;
}
