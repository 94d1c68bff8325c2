#include "bench_known.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What arrays are made of, by operation. */
typedef enum style {
    ANYTHING,      /* pseudo-random */
    TRUTHS,        /* 0 and 1 */
    UNITS,         /* what a product of any length is exact of: odd integers, 1 and -1, complex units */
    LOWEST_LAST,   /* pseudo-random, and a last element below all others */
    HIGHEST_LAST,  /* the same, above */
    ONES_BUT_LAST, /* all bits set, or 1; then one of other bits, or 0 */
    ZEROS_BUT_LAST /* 0; then one of some bits, or 1 */
} style;

/* An operation that is not here takes anything. */
static const style styles[] = {
    [DPR_ROW(DPR_PROD)] = UNITS,         [DPR_ROW(DPR_MIN)] = LOWEST_LAST,     [DPR_ROW(DPR_MAX)] = HIGHEST_LAST,
    [DPR_ROW(DPR_ARGMIN)] = LOWEST_LAST, [DPR_ROW(DPR_ARGMAX)] = HIGHEST_LAST, [DPR_ROW(DPR_ALL)] = ONES_BUT_LAST,
    [DPR_ROW(DPR_ANY)] = ZEROS_BUT_LAST, [DPR_ROW(DPR_BAND)] = ONES_BUT_LAST,  [DPR_ROW(DPR_BOR)] = ZEROS_BUT_LAST,
    [DPR_ROW(DPR_COUNT)] = TRUTHS,
};

/* Truth values have an order of two, so that all but the last are the same. */
static style style_of(dpr_op op, dpr_dtype dtype) {
    const style s = styles[DPR_ROW(op)];
    if (dtype != DPR_BOOL)
        return s;
    return s == LOWEST_LAST || s == UNITS ? ONES_BUT_LAST : s == HIGHEST_LAST ? ZEROS_BUT_LAST : s;
}

static int is_whole(dpr_dtype dtype) {
    return (value_kind(dtype) & (DPR_KIND_SINT | DPR_KIND_UINT)) != 0;
}

/* ---- Blocks ----------------------------------------------------------------------------------------------------- */

static value number(dpr_dtype dtype, const char *text) {
    value v = {{0}};
    (void)value_parse(dtype, text, &v);
    return v;
}

/* Element i is names[random bits], of as many names as there are, a power of two. */
static void fill_with(dpr_dtype dtype, unsigned char *block, const char *const names[], int n) {
    const size_t size = dpr_dtype_size(dtype);
    unsigned char bits[4096];
    value values[4];
    for (int i = 0; i < n; i++)
        values[i] = number(dtype, names[i]);
    for (size_t i = 0; i < KNOWN_BLOCK / size; i++) {
        if (i % sizeof bits == 0)
            generate(DPR_U8, i, bits, sizeof bits);
        memcpy(block + i * size, values[bits[i % sizeof bits] % n].bytes, size);
    }
}

/* Makes integers odd, which leaves the least of the type out, or even, which leaves the greatest out. */
static void set_low_bits(dpr_dtype dtype, unsigned char *block, int bit) {
    for (size_t at = 0; at < KNOWN_BLOCK; at += dpr_dtype_size(dtype))
        block[at] = (unsigned char)((block[at] & ~1) | bit);
}

static void fill_block(style s, dpr_dtype dtype, unsigned char *block) {
    static const char *const truths[] = {"0", "1"}, *const units[] = {"0+1i", "0-1i", "1", "-1"};
    const int is_complex = value_kind(dtype) == DPR_KIND_COMPLEX;
    generate(dtype, 0, block, KNOWN_BLOCK / dpr_dtype_size(dtype));
    if (s == TRUTHS)
        fill_with(dtype, block, truths, 2);
    else if (s == ZEROS_BUT_LAST)
        memset(block, 0, KNOWN_BLOCK);
    else if (s == ONES_BUT_LAST && is_whole(dtype))
        memset(block, 0xFF, KNOWN_BLOCK);
    else if (s == ONES_BUT_LAST)
        fill_with(dtype, block, truths + 1, 1);
    else if (s != ANYTHING && is_whole(dtype))
        set_low_bits(dtype, block, s != HIGHEST_LAST);
    else if (s == UNITS)
        fill_with(dtype, block, is_complex ? units : units + 2, is_complex ? 4 : 2);
}

/* The last element of arrays of the style. */
static value last_of(style s, dpr_op op, dpr_dtype dtype) {
    const size_t size = dpr_dtype_size(dtype);
    const int is_signed = value_kind(dtype) == DPR_KIND_SINT, high = s == HIGHEST_LAST;
    value v = {{0}};
    if (dtype == DPR_BOOL)
        v.bytes[0] = s == ZEROS_BUT_LAST;
    else if (!is_whole(dtype))
        v = number(dtype, high ? "2" : s == LOWEST_LAST ? "-1" : s == ZEROS_BUT_LAST ? "1" : "0");
    else if (s == ONES_BUT_LAST || s == ZEROS_BUT_LAST)
        memset(v.bytes, op == DPR_ALL ? 0 : 0x5A, size);
    else {
        memset(v.bytes, high ? 0xFF : 0, size);
        if (is_signed)
            v.bytes[size - 1] ^= 0x80;
    }
    return v;
}

enum { KNOWN_PARTIAL = 256 }; /* bytes of the largest partial result */

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* Sums of floating-point numbers depend on the order. */
static int is_rounded(const known *k) {
    return k->op == DPR_SUM && (value_kind(k->dtype) & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX));
}

/* A partial result. */
typedef struct partial {
    _Alignas(16) unsigned char bytes[KNOWN_PARTIAL];
} partial;

static dpr_status reduce(const known *k, const void *in, size_t count, partial *out) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.serial";
    return dpr_reduce_partial(k->cpu, in, out->bytes, count, k->dtype, k->op, 0, &options);
}

/* *a becomes the partial result of two arrays one after the other. */
static dpr_status join(const known *k, partial *a, const partial *b) {
    const size_t size = dpr_partial_size(k->op, k->dtype);
    _Alignas(16) unsigned char pair[2 * KNOWN_PARTIAL];
    memcpy(pair, a->bytes, size);
    memcpy(pair + size, b->bytes, size);
    return dpr_partial_merge(pair, 2, k->dtype, k->op, NULL, a->bytes);
}

/* Joins `blocks` whole blocks to *whole, by doubling. */
static dpr_status join_blocks(const known *k, size_t blocks, partial *whole) {
    partial power;
    dpr_status status = reduce(k, k->block, KNOWN_BLOCK / dpr_dtype_size(k->dtype), &power);
    for (; blocks && status == DPR_OK; blocks >>= 1) {
        if (blocks & 1)
            status = join(k, whole, &power);
        if (status == DPR_OK && blocks > 1)
            status = join(k, &power, &power);
    }
    return status;
}

/* The result of `count` elements, of which the last alone decides if it is marked. */
static dpr_status combined(const known *k, size_t count, value *out) {
    const size_t per_block = KNOWN_BLOCK / dpr_dtype_size(k->dtype);
    const int by_last = k->marked && count > 0;
    partial whole;
    dpr_status status = reduce(k, by_last ? k->last.bytes : k->block, by_last ? 1 : count % per_block, &whole);
    if (status == DPR_OK && !by_last)
        status = join_blocks(k, count / per_block, &whole);
    return status == DPR_OK ? dpr_partial_finish(whole.bytes, 1, k->dtype, k->op, NULL, out) : status;
}

dpr_status known_make(known *k, dpr_ctx *cpu, dpr_op op, dpr_dtype dtype) {
    const style s = style_of(op, dtype);
    *k = (known){.op = op, .dtype = dtype, .cpu = cpu, .block = malloc(KNOWN_BLOCK), .marked = s >= LOWEST_LAST};
    if (!k->block)
        return DPR_ERR_OUT_OF_MEMORY;
    fill_block(s, dtype, k->block);
    if (k->marked)
        k->last = last_of(s, op, dtype);
    return DPR_OK;
}

void known_free(known *k) {
    free(k->block);
    k->block = NULL;
}

/* What pairwise summation of `count` non-negative numbers whose sum is `sum` may be off by, for results of this type,
 * with the rounding of what is expected (Higham, "Accuracy and Stability of Numerical Algorithms", 4.2). */
static double sum_tolerance(dpr_dtype result, size_t count, double sum) {
    const int is_wide = result == DPR_F64 || result == DPR_C128;
    const double terms = count > 1 ? ceil(log2((double)count)) + 1 : 1;
    return terms * sum * (ldexp(1, is_wide ? -53 : -24) + ldexp(1, -53));
}

static int parts_in(dpr_dtype dtype) {
    return dtype == DPR_F32 || dtype == DPR_F64 ? 1 : dtype == DPR_C64 || dtype == DPR_C128 ? 2 : 0;
}

/* Adds up `count` elements of the block. 64 bits of significand or more keep that exact enough for F64. */
static void add_up(const known *k, size_t count, long double sum[2]) {
    const size_t size = dpr_dtype_size(k->dtype);
    for (size_t i = 0; i < count; i++) {
        const dpr_element e = dpr_element_load(k->dtype, k->block + i * size);
        sum[0] += (long double)e.re;
        sum[1] += (long double)e.im;
    }
}

static void expect_sum(const known *k, size_t count, known_result *r) {
    const size_t per_block = KNOWN_BLOCK / dpr_dtype_size(k->dtype), blocks = count / per_block;
    long double whole[2] = {0}, rest[2] = {0};
    add_up(k, per_block, whole);
    add_up(k, count % per_block, rest);
    for (int i = 0; i < r->parts; i++)
        r->part[i] = (double)((long double)blocks * whole[i] + rest[i]);
    r->tolerance = sum_tolerance(r->dtype, count, fmax(r->part[0], r->part[1]));
}

dpr_status known_expect(const known *k, size_t count, known_result *out) {
    known_result r = {.dtype = dpr_result_dtype(k->op, k->dtype)};
    r.parts = parts_in(r.dtype);
    if (is_rounded(k)) {
        expect_sum(k, count, &r);
        *out = r;
        return DPR_OK;
    }
    const dpr_status status = combined(k, count, &r.exact);
    if (status != DPR_OK)
        return status;
    if (k->op == DPR_ARGMIN || k->op == DPR_ARGMAX)
        r.exact.i64 = (int64_t)count - 1;
    const dpr_element e = dpr_element_load(r.dtype, r.exact.bytes);
    r.part[0] = e.re;
    r.part[1] = e.im;
    *out = r;
    return DPR_OK;
}

int known_matches(const known_result *expected, const void *at) {
    if (!expected->parts)
        return memcmp(expected->exact.bytes, at, dpr_dtype_size(expected->dtype)) == 0;
    const dpr_element e = dpr_element_load(expected->dtype, at);
    const double part[] = {e.re, e.im};
    /* Written so that infinity is itself and a NaN does not pass. */
    for (int i = 0; i < expected->parts && i < 2; i++)
        if (!(part[i] == expected->part[i] || fabs(part[i] - expected->part[i]) <= expected->tolerance))
            return 0;
    return 1;
}
