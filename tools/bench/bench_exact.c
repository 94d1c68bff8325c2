#include "bench_exact.h"

#include <stdlib.h>
#include <string.h>

/* What has been seen of the elements of one result. MINMAX has the least in `re`, and the greatest in `im`. */
typedef struct tally {
    int64_t re, im;
    int64_t index; /* of the element that ARGMIN and ARGMAX have found */
} tally;

/* ---- Data ------------------------------------------------------------------------------------------------------- */

int exact_can(dpr_op op, dpr_dtype dtype) {
    return dpr_supported(op, dtype) && op != DPR_PROD && (op <= DPR_COUNT || op == DPR_MEAN || op == DPR_MINMAX);
}

static int adds(dpr_op op) {
    return op == DPR_SUM || op == DPR_COUNT || op == DPR_MEAN;
}

static int has_sign(dpr_dtype dtype) {
    return dtype != DPR_BOOL && value_kind(dtype) != DPR_KIND_UINT;
}

/* The number that random bits stand for. Elements that ALL and ANY look for are rare. */
static int number_of(const bench_exact *e, unsigned char bits) {
    if (e->op == DPR_ALL || e->op == DPR_ANY)
        return (bits == 0) != (e->op == DPR_ALL);
    if (e->dtype == DPR_BOOL)
        return bits & 1;
    if (adds(e->op))
        return bits % 4;
    return bits & 127;
}

/* Numbers in the first half, and the opposite ones in the second. */
static void fill_numbers(const bench_exact *e, signed char *numbers, uint64_t first) {
    const size_t half = e->period / 2;
    unsigned char bits[EXACT_BLOCK];
    generate(DPR_U8, first, bits, e->period);
    for (size_t i = 0; i < e->period; i++) {
        const int number = number_of(e, bits[has_sign(e->dtype) ? i % half : i]);
        /* The middle bits decide the sign: neither the first half nor the second has only one of them. */
        const int is_negative = has_sign(e->dtype) && (bits[i % half] >> 4 & 1) != (i >= half);
        numbers[i] = (signed char)(is_negative ? -number : number);
    }
}

/* The element of each number that the type has. */
static void make_elements(bench_exact *e) {
    for (int number = has_sign(e->dtype) ? -128 : 0; number < (e->dtype == DPR_BOOL ? 2 : 128); number++) {
        const double parts[2] = {number, 0};
        unsigned char *bytes = e->elements[number + 128].bytes;
        if (value_kind(e->dtype) & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX))
            value_narrow(e->dtype, parts, bytes, 1);
        else
            memcpy(bytes, &(int64_t){number}, dpr_dtype_size(e->dtype));
    }
}

static void fill_block(bench_exact *e) {
    const size_t size = dpr_dtype_size(e->dtype), part = value_kind(e->dtype) == DPR_KIND_COMPLEX ? size / 2 : size;
    for (size_t i = 0; i < e->period; i++) {
        memcpy(e->block + i * size, e->elements[e->re[i] + 128].bytes, part);
        if (part < size)
            memcpy(e->block + i * size + part, e->elements[e->im[i] + 128].bytes, part);
    }
}

size_t exact_result_bytes(dpr_op op, dpr_dtype dtype) {
    return dpr_result_values(op) * dpr_dtype_size(dpr_result_dtype(op, dtype));
}

dpr_status exact_make(bench_exact *e, dpr_ctx *cpu, dpr_op op, dpr_dtype dtype) {
    const size_t size = dpr_dtype_size(dtype);
    *e = (bench_exact){
        .op = op, .dtype = dtype, .result_dtype = dpr_result_dtype(op, dtype), .period = EXACT_BLOCK / size};
    e->result_bytes = exact_result_bytes(op, dtype);
    e->block = malloc(EXACT_BLOCK);
    e->re = malloc(e->period);
    e->im = calloc(e->period, 1);
    if (!e->block || !e->re || !e->im)
        return DPR_ERR_OUT_OF_MEMORY;
    make_elements(e);
    fill_numbers(e, e->re, 0);
    if (value_kind(dtype) == DPR_KIND_COMPLEX)
        fill_numbers(e, e->im, EXACT_BLOCK);
    fill_block(e);
    e->of_nothing.i64 = -1; /* of ARGMIN and ARGMAX, for which this call is an error */
    (void)dpr_reduce_ex(cpu, e->block, &e->of_nothing, 0, dtype, op, NULL);
    return DPR_OK;
}

void exact_free(bench_exact *e) {
    free(e->block);
    free(e->re);
    free(e->im);
    *e = (bench_exact){.block = NULL};
}

/* ---- Folding ---------------------------------------------------------------------------------------------------- */

static tally neutral(dpr_op op) {
    const int64_t re = op == DPR_ALL                       ? 1
                       : op == DPR_BAND                    ? -1
                       : op == DPR_MIN || op == DPR_ARGMIN ? INT64_MAX
                       : op == DPR_MAX || op == DPR_ARGMAX ? INT64_MIN
                                                           : 0;
    return op == DPR_MINMAX ? (tally){INT64_MAX, INT64_MIN, -1} : (tally){.re = re, .index = -1};
}

/* Adds what was seen later. */
static void join(dpr_op op, tally *t, const tally *more) {
    switch (op) {
    case DPR_BAND:
    case DPR_ALL:
        t->re &= more->re;
        return;
    case DPR_BOR:
    case DPR_ANY:
        t->re |= more->re;
        return;
    case DPR_BXOR:
        t->re ^= more->re;
        return;
    case DPR_MIN:
    case DPR_ARGMIN:
        *t = more->re < t->re ? *more : *t;
        return;
    case DPR_MAX:
    case DPR_ARGMAX:
        *t = more->re > t->re ? *more : *t;
        return;
    case DPR_MINMAX:
        t->re = more->re < t->re ? more->re : t->re;
        t->im = more->im > t->im ? more->im : t->im;
        return;
    default:
        t->re += more->re;
        t->im += more->im;
    }
}

static int counts_truths(dpr_op op) {
    return op == DPR_ALL || op == DPR_ANY || op == DPR_COUNT;
}

/* Folds n elements, `step` of memory from one to the next; the first is at `at` and has this index. */
static void fold(const bench_exact *e, tally *t, uint64_t at, uint64_t step, uint64_t n, int64_t index) {
    const size_t period = e->period, hop = (size_t)(step % period);
    const int is_truth = counts_truths(e->op);
    size_t place = (size_t)(at % period);
    for (uint64_t i = 0; i < n; i++) {
        tally one = {e->re[place], e->im[place], index + (int64_t)i};
        if (is_truth)
            one = (tally){.re = one.re || one.im};
        else if (e->op == DPR_MINMAX)
            one.im = one.re;
        join(e->op, t, &one);
        place += hop;
        place -= place >= period ? period : 0;
    }
}

/* Of `a`, which is not 0, and `b`. */
static size_t common_divisor(size_t a, size_t b) {
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The same for any n: elements repeat after a while, so that long runs take no longer than a block. */
static void fold_run(const bench_exact *e, tally *t, uint64_t at, uint64_t step, uint64_t n, int64_t index) {
    const uint64_t again = e->period / common_divisor(e->period, (size_t)(step % e->period));
    if (n <= again || again == 0) { /* it is not 0, which analyzers do not see */
        fold(e, t, at, step, n, index);
        return;
    }
    const int64_t times = (int64_t)(n / again);
    tally once = neutral(e->op);
    fold(e, &once, at, step, again, index);
    if (adds(e->op))
        once = (tally){once.re * times, once.im * times, -1};
    else if (e->op == DPR_BXOR)
        once.re *= times % 2;
    join(e->op, t, &once);
    fold(e, t, at, step, n % again, index + times * (int64_t)again);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* The sum divided by a divisor, which is 1 if the type is that of integers. */
static void store_sum(dpr_dtype dtype, const tally *t, uint64_t divisor, void *to) {
    const double parts[2] = {(double)t->re / (double)divisor, (double)t->im / (double)divisor};
    if (value_kind(dtype) & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX))
        value_narrow(dtype, parts, to, 1);
    else
        memcpy(to, &t->re, sizeof t->re);
}

/* Writes the result of n elements. */
static void store(const bench_exact *e, const tally *t, uint64_t n, void *to) {
    if (n == 0)
        memcpy(to, e->of_nothing.bytes, e->result_bytes);
    else if (adds(e->op))
        store_sum(e->result_dtype, t, e->op == DPR_MEAN ? n : 1, to);
    else if (e->op == DPR_ARGMIN || e->op == DPR_ARGMAX)
        memcpy(to, &t->index, sizeof t->index);
    else if (e->op == DPR_ALL || e->op == DPR_ANY)
        *(unsigned char *)to = (unsigned char)t->re;
    else
        memcpy(to, e->elements[t->re + 128].bytes, dpr_dtype_size(e->dtype));
    if (n > 0 && e->op == DPR_MINMAX)
        memcpy((char *)to + dpr_dtype_size(e->dtype), e->elements[t->im + 128].bytes, dpr_dtype_size(e->dtype));
}

static void expect_segments(const bench_exact *e, const shape_array *a, unsigned char *to) {
    uint64_t end = shape_offset(a, 0);
    for (uint64_t i = 0; i < a->results; i++, to += e->result_bytes) {
        const uint64_t begin = end;
        tally t = neutral(e->op);
        end = shape_offset(a, i + 1);
        fold_run(e, &t, begin, 1, end - begin, 0);
        store(e, &t, end - begin, to);
    }
}

/* Goes to the next index of the dimensions in the set. 0 after the last one, and then it is the first again. */
static int advance(const shape_array *a, uint32_t dimensions, uint64_t index[DPR_MOST_DIMENSIONS]) {
    for (int d = DPR_MOST_DIMENSIONS - 1; d >= 0; d--) {
        if (d >= a->shape->dimensions)
            continue;
        if (!(dimensions >> d & 1))
            continue;
        if (++index[d] < a->extents[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

static uint64_t place_of(const shape_array *a, const uint64_t index[DPR_MOST_DIMENSIONS]) {
    uint64_t at = 0;
    for (int d = 0; d < a->shape->dimensions; d++)
        at += index[d] * (uint64_t)a->strides[d];
    return at;
}

static void expect_axes(const bench_exact *e, const shape_array *a, unsigned char *to) {
    const uint32_t reduced = a->shape->reduced, inner = reduced ? UINT32_C(1) << (31 - __builtin_clz(reduced)) : 0;
    const int last = inner ? __builtin_ctz(inner) : 0;
    const uint64_t step = inner ? (uint64_t)a->strides[last] : 0, n = inner ? a->extents[last] : 1;
    uint64_t index[DPR_MOST_DIMENSIONS] = {0};
    do {
        tally t = neutral(e->op);
        int64_t seen = 0;
        do {
            fold_run(e, &t, place_of(a, index), step, n, seen);
            seen += (int64_t)n;
        } while (advance(a, reduced & ~inner, index));
        store(e, &t, (uint64_t)seen, to);
        to += e->result_bytes;
    } while (advance(a, ~reduced, index));
}

void exact_expect(const bench_exact *e, const shape_array *a, void *out) {
    if (a->shape->dimensions)
        expect_axes(e, a, out);
    else
        expect_segments(e, a, out);
}
