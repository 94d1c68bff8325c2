#include "bench_known.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What arrays are made of, by operation. */
typedef enum style {
    ANYTHING,       /* pseudo-random */
    TRUTHS,         /* 0 and 1 */
    UNITS,          /* what a product of any length is exact of: odd integers, 1 and -1, complex units */
    LOWEST_LAST,    /* pseudo-random, and a last element below all others */
    HIGHEST_LAST,   /* the same, above */
    ONES_BUT_LAST,  /* all bits set, or 1; then one of other bits, or 0 */
    ZEROS_BUT_LAST, /* 0; then one of some bits, or 1 */
    BETWEEN,        /* pseudo-random, between the last two elements: the least, then the greatest */
    UNITS_BETWEEN   /* the same; a product of any length is exact */
} style;

/* An operation that is not here takes anything. */
static const style styles[DPR_OP_COUNT] = {
    [DPR_ROW(DPR_PROD)] = UNITS,         [DPR_ROW(DPR_MIN)] = LOWEST_LAST,     [DPR_ROW(DPR_MAX)] = HIGHEST_LAST,
    [DPR_ROW(DPR_ARGMIN)] = LOWEST_LAST, [DPR_ROW(DPR_ARGMAX)] = HIGHEST_LAST, [DPR_ROW(DPR_ALL)] = ONES_BUT_LAST,
    [DPR_ROW(DPR_ANY)] = ZEROS_BUT_LAST, [DPR_ROW(DPR_BAND)] = ONES_BUT_LAST,  [DPR_ROW(DPR_BOR)] = ZEROS_BUT_LAST,
    [DPR_ROW(DPR_COUNT)] = TRUTHS,       [DPR_ROW(DPR_MINMAX)] = LOWEST_LAST,
};

/* Truth values have an order of two, so that all but the last are the same. */
static style style_of_one(dpr_op op, dpr_dtype dtype) {
    const style s = styles[DPR_ROW(op)];
    if (dtype != DPR_BOOL)
        return s;
    return s == LOWEST_LAST || s == UNITS ? ONES_BUT_LAST : s == HIGHEST_LAST ? ZEROS_BUT_LAST : s;
}

/* A set of operations that need the same data has that. Any other set has data that serves all operations. */
static style style_of(const bench_ops *ops, dpr_dtype dtype) {
    const style first = style_of_one(ops->at[0], dtype);
    int i = 1;
    while (i < ops->n && style_of_one(ops->at[i], dtype) == first)
        i++;
    if (i == ops->n)
        return first;
    return ops_have(ops, DPR_PROD) && dtype != DPR_BOOL ? UNITS_BETWEEN : BETWEEN;
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

/* Makes integers odd, greater than the least odd one of the type, and less than the greatest. */
static void keep_between(dpr_dtype dtype, unsigned char *block) {
    const size_t size = dpr_dtype_size(dtype);
    for (size_t at = 0; at < KNOWN_BLOCK; at += size) {
        block[at] |= 3;
        block[at + size - 1] &= (unsigned char)~0x40;
    }
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
    else if (s >= BETWEEN && is_whole(dtype))
        keep_between(dtype, block);
    else if (s != ANYTHING && is_whole(dtype))
        set_low_bits(dtype, block, s != HIGHEST_LAST);
    else if (s == UNITS || s == UNITS_BETWEEN)
        fill_with(dtype, block, is_complex ? units : units + 2, is_complex ? 4 : 2);
}

/* An element below (or with `high` above) all of a block. That of integers between two is odd: a product shows it. */
static value extreme(style s, dpr_dtype dtype, int high) {
    const size_t size = dpr_dtype_size(dtype);
    value v = {{0}};
    if (dtype == DPR_BOOL) {
        v.bytes[0] = (unsigned char)high;
    } else if (!is_whole(dtype)) {
        v = number(dtype, high ? "4" : "-2");
    } else {
        memset(v.bytes, high ? 0xFF : 0, size);
        if (value_kind(dtype) == DPR_KIND_SINT)
            v.bytes[size - 1] ^= 0x80;
        v.bytes[0] |= s >= BETWEEN;
    }
    return v;
}

/* The element that is not as all others, which are 1 or 0, or have all bits or none. */
static value odd_one(style s, const bench_ops *ops, dpr_dtype dtype) {
    value v = {{0}};
    if (is_whole(dtype))
        memset(v.bytes, ops_have(ops, DPR_ALL) ? 0 : 0x5A, dpr_dtype_size(dtype));
    else
        v = number(dtype, s == ZEROS_BUT_LAST ? "1" : "0");
    return v;
}

static void add_mark(known *k, value v) {
    const size_t size = dpr_dtype_size(k->dtype);
    memcpy(k->mark + (size_t)k->marks++ * size, v.bytes, size);
}

/* Sets the last elements of arrays of the style. */
static void add_marks(known *k, style s) {
    if (s == LOWEST_LAST || s >= BETWEEN)
        add_mark(k, extreme(s, k->dtype, 0));
    if (s == HIGHEST_LAST || s >= BETWEEN)
        add_mark(k, extreme(s, k->dtype, 1));
    if (s == ONES_BUT_LAST || s == ZEROS_BUT_LAST)
        add_mark(k, odd_one(s, &k->ops, k->dtype));
}

dpr_status known_make(known *k, dpr_ctx *cpu, const bench_ops *ops, dpr_dtype dtype) {
    const style s = style_of(ops, dtype);
    *k = (known){.ops = *ops, .dtype = dtype, .cpu = cpu, .block = malloc(KNOWN_BLOCK)};
    if (!k->block)
        return DPR_ERR_OUT_OF_MEMORY;
    fill_block(s, dtype, k->block);
    add_marks(k, s);
    return DPR_OK;
}

void known_free(known *k) {
    free(k->block);
    k->block = NULL;
}

/* ---- Exact results ---------------------------------------------------------------------------------------------- */

enum { KNOWN_PARTIAL = 256 }; /* bytes of the largest partial result */

/* A partial result. */
typedef struct partial {
    _Alignas(16) unsigned char bytes[KNOWN_PARTIAL];
} partial;

static size_t per_block(const known *k) {
    return KNOWN_BLOCK / dpr_dtype_size(k->dtype);
}

/* The elements that are not the block's. */
static size_t marks_of(const known *k, size_t count) {
    return count < (size_t)k->marks ? count : (size_t)k->marks;
}

const unsigned char *known_mark(const known *k, size_t count, size_t *bytes) {
    const size_t size = dpr_dtype_size(k->dtype), n = marks_of(k, count);
    *bytes = n * size;
    return k->mark + ((size_t)k->marks - n) * size;
}

static dpr_status reduce(const known *k, dpr_op op, const void *in, size_t count, uint64_t first, partial *out) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.serial";
    return dpr_reduce_partial(k->cpu, in, out->bytes, count, k->dtype, op, first, &options);
}

/* *a becomes the partial result of two arrays one after the other. */
static dpr_status join(const known *k, dpr_op op, partial *a, const partial *b) {
    const size_t size = dpr_partial_size(op, k->dtype);
    _Alignas(16) unsigned char pair[2 * KNOWN_PARTIAL];
    memcpy(pair, a->bytes, size);
    memcpy(pair + size, b->bytes, size);
    return dpr_partial_merge(pair, 2, k->dtype, op, NULL, a->bytes);
}

/* Joins `blocks` whole blocks to *whole, by doubling. */
static dpr_status join_blocks(const known *k, dpr_op op, size_t blocks, partial *whole) {
    partial power;
    dpr_status status = reduce(k, op, k->block, per_block(k), 0, &power);
    for (; blocks && status == DPR_OK; blocks >>= 1) {
        if (blocks & 1)
            status = join(k, op, whole, &power);
        if (status == DPR_OK && blocks > 1)
            status = join(k, op, &power, &power);
    }
    return status;
}

/* The partial result of `count` elements of repeated blocks. The first of equals is in the first block. */
static dpr_status reduce_blocks(const known *k, dpr_op op, size_t count, partial *whole) {
    const size_t blocks = count / per_block(k);
    if (blocks > 0 && (op == DPR_ARGMIN || op == DPR_ARGMAX))
        return reduce(k, op, k->block, per_block(k), 0, whole);
    const dpr_status status = reduce(k, op, k->block, count % per_block(k), 0, whole);
    return status == DPR_OK ? join_blocks(k, op, blocks, whole) : status;
}

/* Joins the elements that end arrays. */
static dpr_status join_marks(const known *k, dpr_op op, size_t count, partial *whole) {
    const size_t marks = marks_of(k, count);
    size_t bytes;
    partial last;
    const dpr_status status = reduce(k, op, known_mark(k, count, &bytes), marks, count - marks, &last);
    return status == DPR_OK ? join(k, op, whole, &last) : status;
}

/* The result of `count` elements. */
static dpr_status combined(const known *k, dpr_op op, size_t count, value *out) {
    partial whole;
    dpr_status status = reduce_blocks(k, op, count - marks_of(k, count), &whole);
    if (status == DPR_OK)
        status = join_marks(k, op, count, &whole);
    return status == DPR_OK ? dpr_partial_finish(whole.bytes, 1, k->dtype, op, NULL, out) : status;
}

/* ---- Rounded results -------------------------------------------------------------------------------------------- */

/* Sums over an array. 64 bits of significand or more keep them exact enough for F64. */
typedef struct sums {
    long double n, re, im, squares, magnitudes; /* elements, and the sums of their parts, squares and magnitudes */
} sums;

/* The number that an element stands for, or the real part of it. */
static long double number_of(dpr_dtype dtype, dpr_element e) {
    if (!is_whole(dtype) && dtype != DPR_BOOL)
        return (long double)e.re;
    return value_kind(dtype) == DPR_KIND_SINT ? (long double)(int64_t)e.bits : (long double)e.bits;
}

/* Adds the first `count` elements at `from` `times` times. */
static void add_up(const known *k, const unsigned char *from, size_t count, size_t times, sums *s) {
    const size_t size = dpr_dtype_size(k->dtype);
    sums once = {.n = (long double)count};
    for (size_t i = 0; i < count && times > 0; i++) {
        const dpr_element e = dpr_element_load(k->dtype, from + i * size);
        const long double re = number_of(k->dtype, e), im = (long double)e.im, square = re * re + im * im;
        once.re += re;
        once.im += im;
        once.squares += square;
        once.magnitudes += sqrtl(square);
    }
    s->n += (long double)times * once.n;
    s->re += (long double)times * once.re;
    s->im += (long double)times * once.im;
    s->squares += (long double)times * once.squares;
    s->magnitudes += (long double)times * once.magnitudes;
}

/* Adds all elements of an array. */
static void add_array(const known *k, size_t count, sums *s) {
    const size_t marks = marks_of(k, count), of_blocks = count - marks;
    size_t bytes;
    add_up(k, k->block, per_block(k), of_blocks / per_block(k), s);
    add_up(k, k->block, of_blocks % per_block(k), 1, s);
    add_up(k, known_mark(k, count, &bytes), marks, 1, s);
}

/* A result before it is rounded. */
typedef struct unrounded {
    long double part[2];
    long double magnitude; /* an error of the library is relative to it */
    long double error;     /* of the parts: what subtracting long doubles has lost */
} unrounded;

/* What the sums say of the operation's result; 0 if it is none that they give. */
static int from_sums(dpr_op op, const sums *s, unrounded *out) {
    const long double re = s->re / s->n, im = s->im / s->n, square = s->squares / s->n;
    switch (op) {
    case DPR_SUM:
        *out = (unrounded){{s->re, s->im}, s->magnitudes, 0};
        return 1;
    case DPR_MEAN:
        *out = (unrounded){{re, im}, s->magnitudes / s->n, 0};
        return 1;
    case DPR_SUMSQ:
        *out = (unrounded){{s->squares}, s->squares, 0};
        return 1;
    case DPR_NORM1:
        *out = (unrounded){{s->magnitudes}, s->magnitudes, 0};
        return 1;
    case DPR_NORM2:
        *out = (unrounded){{sqrtl(s->squares)}, sqrtl(s->squares), 0};
        return 1;
    case DPR_VAR:
        *out = (unrounded){{square - (re * re + im * im)}, square - (re * re + im * im), square * 0x1p-59L};
        return 1;
    default:
        return 0;
    }
}

/* How many roundings a result of `count` elements may be off by: pairwise summation (Higham, "Accuracy and Stability of
 * Numerical Algorithms", 4.2), or what dpr.h promises of operations that do more than add; and one of what is expected.
 */
static double roundings(dpr_op op, size_t count) {
    const double levels = count > 1 ? ceil(log2((double)count)) : 0;
    return levels + (op == DPR_SUM ? 1 : 11);
}

static int parts_in(dpr_dtype dtype) {
    return dtype == DPR_F32 || dtype == DPR_F64 ? 1 : dtype == DPR_C64 || dtype == DPR_C128 ? 2 : 0;
}

/* Part i of the result at `at`. */
static double part_of(dpr_dtype dtype, const void *at, int i) {
    const dpr_dtype type = dtype == DPR_F32 || dtype == DPR_C64 ? DPR_F32 : DPR_F64;
    return dpr_element_load(type, (const unsigned char *)at + (size_t)i * dpr_dtype_size(type)).re;
}

/* 0 if the result is not one that is rounded. */
static int expect_rounded(const known *k, dpr_op op, size_t count, known_result *r) {
    const double unit = r->dtype == DPR_F64 || r->dtype == DPR_C128 ? 0x1p-53 : 0x1p-24;
    sums s = {0};
    unrounded u;
    if (!r->parts)
        return 0;
    add_array(k, count, &s);
    if (!from_sums(op, &s, &u))
        return 0;
    for (int i = 0; i < r->parts; i++)
        r->part[i] = (double)u.part[i];
    r->tolerance = roundings(op, count) * (double)u.magnitude * (unit + 0x1p-53) + (double)u.error;
    return 1;
}

static dpr_status expect_exact(const known *k, dpr_op op, size_t count, known_result *r) {
    const dpr_status status = combined(k, op, count, &r->exact);
    for (int i = 0; i < r->parts && status == DPR_OK; i++)
        r->part[i] = part_of(r->dtype, &r->exact, i);
    return status;
}

static dpr_status expect_one(const known *k, dpr_op op, size_t count, known_result *out) {
    const int values = (int)dpr_result_values(op);
    *out = (known_result){.dtype = dpr_result_dtype(op, k->dtype), .values = values};
    out->parts = values * parts_in(out->dtype);
    return expect_rounded(k, op, count, out) ? DPR_OK : expect_exact(k, op, count, out);
}

dpr_status known_expect(const known *k, size_t count, known_results *out) {
    known_results r = {.n = k->ops.n};
    dpr_status status = DPR_OK;
    for (int i = 0; i < r.n && status == DPR_OK; i++)
        status = expect_one(k, k->ops.at[i], count, &r.at[i]);
    if (status == DPR_OK)
        *out = r;
    return status;
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

void known_places(void *at, void *places[DPR_FUSED_MOST]) {
    for (int i = 0; i < DPR_FUSED_MOST; i++)
        places[i] = (unsigned char *)at + i * KNOWN_PLACE;
}

/* Infinity is itself. A NaN passes only where one is expected. */
static int is_near(double expected, double got, double tolerance) {
    return got == expected || fabs(got - expected) <= tolerance || (isnan(expected) && isnan(got));
}

static int matches(const known_result *expected, const void *at) {
    if (!expected->parts)
        return memcmp(expected->exact.bytes, at, (size_t)expected->values * dpr_dtype_size(expected->dtype)) == 0;
    for (int i = 0; i < expected->parts && i < 2; i++)
        if (!is_near(expected->part[i], part_of(expected->dtype, at, i), expected->tolerance))
            return 0;
    return 1;
}

int known_matches(const known_results *expected, const void *at) {
    int i = 0;
    while (i < expected->n && matches(&expected->at[i], (const unsigned char *)at + i * KNOWN_PLACE))
        i++;
    return i == expected->n;
}
