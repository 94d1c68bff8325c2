#include "fold.h"

#include <math.h>
#include <string.h>

static int is_arg(dpr_op op) {
    return op == DPR_ARGMIN || op == DPR_ARGMAX;
}

/* Floating-point sums and products of windows are kept in F64, so that rounding them adds nothing to the error and a
 * product of a window may leave the range of F32. */
static int is_narrow(dpr_op op, dpr_dtype dtype) {
    return (op == DPR_SUM || op == DPR_PROD)
           && (dtype == DPR_F16 || dtype == DPR_BF16 || dtype == DPR_F32 || dtype == DPR_C64);
}

static dpr_dtype carry_type(const fold *f) {
    if (is_narrow(f->op, f->dtype))
        return f->dtype == DPR_C64 ? DPR_C128 : DPR_F64;
    return dpr_result_dtype(f->op, f->dtype);
}

/* How results of windows become one. */
static dpr_op carry_op(dpr_op op) {
    return op == DPR_COUNT ? DPR_SUM : op;
}

static dpr_status make_plan(dpr_ctx *ctx, size_t count, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                            dpr_plan **out) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.op = op;
    problem.dtype = dtype;
    problem.count = count;
    problem.options = options;
    return dpr_plan_create(ctx, &problem, out);
}

/* Reduces host memory on a CPU context. By a plan, as one knows where its arrays lie: dpr_reduce_ex() would ask the
 * driver, which takes a good part of a second to start. */
static dpr_status reduce_with(dpr_ctx *cpu, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                              const dpr_options *options) {
    dpr_plan *plan;
    dpr_status status = make_plan(cpu, count, dtype, op, options, &plan);
    if (status != DPR_OK)
        return status;
    status = dpr_plan_run(plan, in, out, NULL);
    dpr_plan_destroy(plan);
    return status;
}

static dpr_status reduce(dpr_ctx *cpu, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                         dpr_nan nan) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.nan = nan;
    return reduce_with(cpu, in, out, count, dtype, op, &options);
}

/* ---- Types ------------------------------------------------------------------------------------------------------ */

/* A combined result in the type the user gets; the inverse of value_widen() for results, which are F32 or C64. */
static void narrow(dpr_dtype result, const value *from, value *to) {
    if (result == DPR_C64)
        to->c64 = (dpr_c64){(float)from->c128.re, (float)from->c128.im};
    else
        to->f32 = (float)from->f64;
}

static int is_finite(dpr_dtype result, const value *v) {
    return result == DPR_C64 ? isfinite(v->c64.re) && isfinite(v->c64.im) : isfinite(v->f32);
}

/* ---- Results of windows ----------------------------------------------------------------------------------------- */

static dpr_status compress(fold *f) {
    value one;
    dpr_status status = reduce(f->cpu, f->partials, &one, f->used, carry_type(f), carry_op(f->op), DPR_NAN_PROPAGATE);
    if (status != DPR_OK)
        return status;
    f->partials[0] = one;
    f->used = 1;
    return DPR_OK;
}

static dpr_status push(fold *f, const value *v) {
    size_t size = dpr_dtype_size(carry_type(f));
    if (f->used == FOLD_PARTIALS) {
        dpr_status status = compress(f);
        if (status != DPR_OK)
            return status;
    }
    memcpy((unsigned char *)f->partials + f->used * size, v->bytes, size);
    f->used++;
    return DPR_OK;
}

/* Reduces the window in the wider type, piece by piece. */
static dpr_status add_widened(fold *f, const fold_window *w) {
    enum { PIECE = 4096 };
    double wide[2 * PIECE];
    dpr_dtype carry = carry_type(f);
    for (size_t at = 0; at < w->count; at += PIECE) {
        size_t n = w->count - at < PIECE ? w->count - at : PIECE;
        value v;
        value_widen(f->dtype, (const unsigned char *)w->host + at * dpr_dtype_size(f->dtype), wide, n);
        dpr_status status = reduce(f->cpu, wide, &v, n, carry, f->op, f->nan);
        if (status == DPR_OK)
            status = push(f, &v);
        if (status != DPR_OK)
            return status;
    }
    return DPR_OK;
}

static dpr_status add_plain(fold *f, const fold_window *w, const value *result) {
    if (!is_narrow(f->op, f->dtype))
        return push(f, result);
    /* The window may have left the range of F32 where the whole array does not, and an initial value may cancel all but
     * what rounding the window to F32 drops. */
    dpr_dtype type = dpr_result_dtype(f->op, f->dtype);
    if (!w->whole && (f->init || f->op == DPR_PROD || !is_finite(type, result)))
        return add_widened(f, w);
    value v;
    value_widen(type, result->bytes, &v.f64, 1);
    return push(f, &v);
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

/* Whether two elements tie in the order of MIN and MAX. */
static int ties(dpr_dtype dtype, const value *a, const void *b) {
    value other = {{0}};
    memcpy(other.bytes, b, dpr_dtype_size(dtype));
    if (dtype == DPR_BOOL)
        return !a->bytes[0] == !other.bytes[0];
    return memcmp(a->bytes, other.bytes, dpr_dtype_size(dtype)) == 0
           || (value_is_nan(dtype, a) && value_is_nan(dtype, &other));
}

/* The lowest row-major index among the elements of a column-major window that tie with the one at `first`, which comes
 * before all others in memory. */
static int64_t lowest_index(const fold *f, const fold_window *w, const npy_header *array, size_t first,
                            const value *winner) {
    size_t size = dpr_dtype_size(f->dtype);
    int64_t lowest = INT64_MAX;
    for (size_t i = first; i < w->count; i++) {
        if (!ties(f->dtype, winner, (const unsigned char *)w->host + i * size))
            continue;
        int64_t index = row_major(array, f->elements + i);
        if (index < lowest)
            lowest = index;
    }
    return lowest;
}

/* 1 if a comes before b, 0 if they tie, -1 if b comes before a. */
static int compare(const fold *f, const value *a, const value *b, dpr_status *status) {
    size_t size = dpr_dtype_size(f->dtype);
    if (ties(f->dtype, a, b->bytes))
        return 0;
    value pair[2];
    int64_t index = 0;
    memcpy(pair, a->bytes, size);
    memcpy((unsigned char *)pair + size, b->bytes, size);
    *status = reduce(f->cpu, pair, &index, 2, f->dtype, f->op, DPR_NAN_PROPAGATE);
    return index == 0 ? 1 : -1;
}

static dpr_status add_index(fold *f, const fold_window *w, const npy_header *array, int64_t at) {
    if (at < 0) /* nothing but NaN, and they are ignored */
        return DPR_OK;
    size_t size = dpr_dtype_size(f->dtype);
    value winner = {{0}};
    memcpy(winner.bytes, (const unsigned char *)w->host + (size_t)at * size, size);
    int64_t index = (int64_t)f->elements + at;
    if (array->fortran && array->dims > 1)
        index = lowest_index(f, w, array, (size_t)at, &winner);
    dpr_status status = DPR_OK;
    int order = f->index < 0 ? -1 : compare(f, &f->best, &winner, &status);
    if (status == DPR_OK && (order < 0 || (order == 0 && index < f->index))) {
        f->best = winner;
        f->index = index;
    }
    return status;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

void fold_start(fold *f) {
    f->elements = 0;
    f->used = 0;
    f->index = -1;
}

static dpr_options options_of(const fold *f, int whole) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.nan = f->nan;
    options.strategy = f->strategy;
    options.init = whole ? f->init : NULL;
    return options;
}

dpr_status fold_prepare(fold *f, const fold_window *w, const char **strategy) {
    if (!f->plan || f->plan_count != w->count || f->whole != w->whole) {
        dpr_options options = options_of(f, w->whole);
        dpr_plan *plan;
        dpr_status status = make_plan(f->ctx, w->count, f->dtype, f->op, &options, &plan);
        if (status != DPR_OK)
            return status;
        dpr_plan_destroy(f->plan);
        f->plan = plan;
        f->plan_count = w->count;
        f->whole = w->whole;
    }
    *strategy = dpr_plan_strategy(f->plan);
    return DPR_OK;
}

/* What fails here fails again in fold_add(), which reports it. Its call has another key than the plan, so that on a GPU
 * it is planned by a call of its own. */
void fold_warm_up(const fold *f, const fold_window *w) {
    static _Alignas(64) unsigned char zeros[1 << 20];
    size_t count = sizeof zeros / dpr_dtype_size(f->dtype);
    value unused;
    dpr_options options = options_of(f, 0);
    if (dpr_ctx_device(f->ctx) == DPR_DEVICE_CPU) {
        options.strategy = dpr_plan_strategy(f->plan);
        (void)reduce_with(f->ctx, zeros, &unused, count, f->dtype, f->op, &options);
        return;
    }
    count = w->count < count ? w->count : count;
    (void)dpr_reduce_ex(f->ctx, w->in, &unused, count, f->dtype, f->op, &options);
    if (f->strategy)
        return;
    options.strategy = dpr_plan_strategy(f->plan); /* of the whole window, which may not be that of its beginning */
    (void)dpr_reduce_ex(f->ctx, w->in, &unused, count, f->dtype, f->op, &options);
}

dpr_status fold_add(fold *f, const fold_window *w, const npy_header *array) {
    value result;
    const char *strategy;
    dpr_options options = options_of(f, w->whole);
    dpr_status status = fold_prepare(f, w, &strategy);
    if (status != DPR_OK)
        return status;
    if (dpr_ctx_device(f->ctx) == DPR_DEVICE_CPU)
        status = dpr_plan_run(f->plan, w->in, &result, NULL);
    else
        status = dpr_reduce_ex(f->ctx, w->in, &result, w->count, f->dtype, f->op, &options);
    if (status == DPR_OK)
        status = is_arg(f->op) ? add_index(f, w, array, result.i64) : add_plain(f, w, &result);
    if (status == DPR_OK)
        f->elements += w->count;
    return status;
}

void fold_free(fold *f) {
    dpr_plan_destroy(f->plan);
    f->plan = NULL;
}

/* The initial value is one more result at the end, unless the plan has combined it. */
static dpr_status add_init(fold *f, dpr_dtype result) {
    if (!f->init || f->whole || (f->nan == DPR_NAN_IGNORE && value_is_nan(result, f->init)))
        return DPR_OK;
    value v = *f->init;
    if (is_narrow(f->op, f->dtype))
        value_widen(result, f->init->bytes, &v.f64, 1);
    return push(f, &v);
}

dpr_status fold_end(fold *f, value *out) {
    dpr_dtype result = dpr_result_dtype(f->op, f->dtype);
    if (f->elements == 0) {
        dpr_options options = DPR_OPTIONS_INIT;
        options.nan = f->nan;
        options.init = f->init;
        return reduce_with(f->cpu, NULL, out, 0, f->dtype, f->op, &options);
    }
    if (is_arg(f->op)) {
        out->i64 = f->index;
        return DPR_OK;
    }
    dpr_status status = add_init(f, result);
    if (status == DPR_OK && f->used > 1)
        status = compress(f);
    if (status != DPR_OK)
        return status;
    if (is_narrow(f->op, f->dtype))
        narrow(result, &f->partials[0], out);
    else
        *out = f->partials[0];
    return DPR_OK;
}
