#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "every 64-bit integer must be a long double");

/* ---- Types ---- */

typedef enum { TRUTH, SIGNED, UNSIGNED, REAL, COMPLEX } family;

#define ROW(DTYPE) ((DTYPE)-DPR_BOOL)

static const struct {
    size_t size;
    family family;
} types[] = {
    [ROW(DPR_BOOL)] = {1, TRUTH},   [ROW(DPR_I8)] = {1, SIGNED},    [ROW(DPR_U8)] = {1, UNSIGNED},
    [ROW(DPR_I16)] = {2, SIGNED},   [ROW(DPR_U16)] = {2, UNSIGNED}, [ROW(DPR_I32)] = {4, SIGNED},
    [ROW(DPR_U32)] = {4, UNSIGNED}, [ROW(DPR_I64)] = {8, SIGNED},   [ROW(DPR_U64)] = {8, UNSIGNED},
    [ROW(DPR_F16)] = {2, REAL},     [ROW(DPR_BF16)] = {2, REAL},    [ROW(DPR_F32)] = {4, REAL},
    [ROW(DPR_F64)] = {8, REAL},     [ROW(DPR_C64)] = {8, COMPLEX},  [ROW(DPR_C128)] = {16, COMPLEX},
};

size_t ref_size(dpr_dtype dtype) {
    return types[ROW(dtype)].size;
}

int ref_is_float(dpr_dtype dtype) {
    return types[ROW(dtype)].family == REAL;
}

int ref_is_complex(dpr_dtype dtype) {
    return types[ROW(dtype)].family == COMPLEX;
}

int ref_supported(dpr_op op, dpr_dtype dtype) {
    switch (op) {
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        return types[ROW(dtype)].family != COMPLEX;
    case DPR_BAND:
    case DPR_BOR:
    case DPR_BXOR:
        return types[ROW(dtype)].family <= UNSIGNED;
    default:
        return 1;
    }
}

static dpr_dtype sum_dtype(dpr_dtype dtype) {
    switch (types[ROW(dtype)].family) {
    case UNSIGNED:
        return DPR_U64;
    case REAL:
        return dtype == DPR_F64 ? DPR_F64 : DPR_F32;
    case COMPLEX:
        return dtype;
    default:
        return DPR_I64;
    }
}

dpr_dtype ref_result_dtype(dpr_op op, dpr_dtype dtype) {
    switch (op) {
    case DPR_SUM:
    case DPR_PROD:
        return sum_dtype(dtype);
    case DPR_ARGMIN:
    case DPR_ARGMAX:
    case DPR_COUNT:
        return DPR_I64;
    case DPR_ALL:
    case DPR_ANY:
        return DPR_BOOL;
    default:
        return dtype;
    }
}

/* ---- Elements ---- */

/* IEEE 754 binary16 by its definition: sign, 5 bits of exponent with bias 15, 10 of fraction. */
static long double from_f16(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    long double magnitude;
    if (exponent == 31)
        magnitude = fraction ? (long double)NAN : (long double)INFINITY;
    else if (exponent == 0)
        magnitude = ldexpl(fraction, -24);
    else
        magnitude = ldexpl(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static float f16_values[65536];

__attribute__((constructor)) static void fill_f16_values(void) {
    for (unsigned bits = 0; bits < 65536; bits++)
        f16_values[bits] = (float)from_f16((uint16_t)bits);
}

static float from_bf16(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

#define LOAD_AS(TYPE, AT)                                                                                              \
    {                                                                                                                  \
        TYPE loaded;                                                                                                   \
        memcpy(&loaded, AT, sizeof loaded);                                                                            \
        return loaded;                                                                                                 \
    }

static uint16_t load_u16(const void *at) LOAD_AS(uint16_t, at) static int16_t load_i16(const void *at)
    LOAD_AS(int16_t, at) static uint32_t load_u32(const void *at) LOAD_AS(uint32_t, at) static int32_t
    load_i32(const void *at) LOAD_AS(int32_t, at) static uint64_t load_u64(const void *at)
        LOAD_AS(uint64_t, at) static int64_t load_i64(const void *at)
            LOAD_AS(int64_t, at) static float load_f32(const void *at)
                LOAD_AS(float, at) static double load_f64(const void *at) LOAD_AS(double, at)

                    long double ref_value(dpr_dtype dtype, const void *element, int part) {
    const unsigned char *at = element;
    switch (dtype) {
    case DPR_BOOL:
        return *at != 0;
    case DPR_I8:
        return (int8_t)*at;
    case DPR_U8:
        return *at;
    case DPR_I16:
        return load_i16(at);
    case DPR_U16:
        return load_u16(at);
    case DPR_I32:
        return load_i32(at);
    case DPR_U32:
        return load_u32(at);
    case DPR_I64:
        return (long double)load_i64(at);
    case DPR_U64:
        return (long double)load_u64(at);
    case DPR_F16:
        return f16_values[load_u16(at)];
    case DPR_BF16:
        return from_bf16(load_u16(at));
    case DPR_F32:
        return load_f32(at);
    case DPR_F64:
        return load_f64(at);
    case DPR_C64:
        return load_f32(at + 4 * part);
    case DPR_C128:
        return load_f64(at + 8 * part);
    case DPR_DTYPE_NONE:
        break;
    }
    return 0;
}

/* An integer or truth value modulo 2^64, signed ones in two's complement. */
static uint64_t word_of(dpr_dtype dtype, const void *element) {
    const unsigned char *at = element;
    switch (dtype) {
    case DPR_BOOL:
        return *at != 0;
    case DPR_I8:
        return (uint64_t)(int8_t)*at;
    case DPR_U8:
        return *at;
    case DPR_I16:
        return (uint64_t)load_i16(at);
    case DPR_U16:
        return load_u16(at);
    case DPR_I32:
        return (uint64_t)load_i32(at);
    case DPR_U32:
        return load_u32(at);
    default:
        return load_u64(at);
    }
}

static int parts_of(dpr_dtype dtype) {
    return ref_is_complex(dtype) ? 2 : 1;
}

static int element_is_nan(dpr_dtype dtype, const void *element) {
    if (types[ROW(dtype)].family < REAL)
        return 0;
    return isnan(ref_value(dtype, element, 0)) || (ref_is_complex(dtype) && isnan(ref_value(dtype, element, 1)));
}

/* ---- One element more ---- */

/* Neumaier's compensated summation: what the addition loses is summed apart, which leaves an error of about
 * 2^-64 of the sum plus n 2^-128 of the magnitudes. */
static void sum_add(ref_sum *sum, long double x) {
    sum->nans += isnan(x) != 0;
    sum->plus_infs += x > LDBL_MAX;
    sum->minus_infs += x < -LDBL_MAX;
    if (!isfinite(x))
        return;
    const long double total = sum->value + x;
    sum->correction += fabsl(sum->value) >= fabsl(x) ? (sum->value - total) + x : (x - total) + sum->value;
    sum->value = total;
    sum->magnitude += fabsl(x);
}

static void prod_add(ref_state *state, long double re, long double im) {
    if (state->count == 1) {
        state->prod.first[0] = re;
        state->prod.first[1] = im;
    }
    if (isnan(re) || isnan(im)) {
        state->prod.nans++;
        return;
    }
    if (signbit(re))
        state->prod.negative ^= 1;
    if (isinf(re) || isinf(im)) {
        state->prod.infs++;
        return;
    }
    if (re == 0 && im == 0) {
        state->prod.zeros++;
        return;
    }
    const long double magnitude = im == 0 ? fabsl(re) : sqrtl(re * re + im * im);
    if (magnitude > 1.25L)
        state->prod.log2_above += log2l(magnitude);
    else if (magnitude < 0.8L)
        state->prod.log2_below += log2l(magnitude);
    const long double old = state->prod.re;
    state->prod.re = old * re - state->prod.im * im;
    state->prod.im = old * im + state->prod.im * re;
    state->prod.magnitude *= magnitude;
}

/* Total order: -0 before +0. NaNs have been seen to. */
static int precedes(long double a, long double b) {
    return a < b || (a == b && signbit(a) && !signbit(b));
}

static void best_add(ref_state *state, const void *element, size_t index) {
    if (state->best.nan)
        return;
    const int least = state->op == DPR_MIN || state->op == DPR_ARGMIN;
    const long double value = ref_value(state->dtype, element, 0);
    const int nan = isnan(value) != 0;
    if (state->best.index >= 0 && !nan
        && !(least ? precedes(value, state->best.value) : precedes(state->best.value, value)))
        return;
    state->best.nan = nan;
    state->best.value = value;
    state->best.index = (int64_t)index;
    memcpy(state->best.bytes, element, ref_size(state->dtype));
}

static int is_nonzero(dpr_dtype dtype, const void *element) {
    if (types[ROW(dtype)].family < REAL)
        return word_of(dtype, element) != 0;
    return ref_value(dtype, element, 0) != 0 || (ref_is_complex(dtype) && ref_value(dtype, element, 1) != 0);
}

static void add_element(ref_state *state, dpr_dtype dtype, const void *element, size_t index) {
    const int real = types[ROW(dtype)].family >= REAL;
    state->count++;
    if (state->nan == DPR_NAN_IGNORE && element_is_nan(dtype, element))
        return;
    state->present++;
    switch (state->op) {
    case DPR_SUM:
        if (real)
            for (int part = 0; part < parts_of(dtype); part++)
                sum_add(&state->sum[part], ref_value(dtype, element, part));
        else
            state->word += word_of(dtype, element);
        break;
    case DPR_PROD:
        if (real)
            prod_add(state, ref_value(dtype, element, 0), ref_is_complex(dtype) ? ref_value(dtype, element, 1) : 0);
        else
            state->word *= word_of(dtype, element);
        break;
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        best_add(state, element, index);
        break;
    case DPR_ALL:
        state->word &= (uint64_t)is_nonzero(dtype, element);
        break;
    case DPR_ANY:
        state->word |= (uint64_t)is_nonzero(dtype, element);
        break;
    case DPR_BAND:
        state->word &= word_of(dtype, element);
        break;
    case DPR_BOR:
        state->word |= word_of(dtype, element);
        break;
    case DPR_BXOR:
        state->word ^= word_of(dtype, element);
        break;
    case DPR_COUNT:
        state->word += (uint64_t)is_nonzero(dtype, element);
        break;
    case DPR_OP_NONE:
        break;
    }
}

void ref_reduce(ref_state *state, dpr_op op, dpr_dtype dtype, dpr_nan nan, const void *in, size_t count) {
    const unsigned char *bytes = in;
    const size_t size = ref_size(dtype);
    memset(state, 0, sizeof *state);
    state->op = op;
    state->dtype = dtype;
    state->result = ref_result_dtype(op, dtype);
    state->nan = nan;
    state->word = op == DPR_PROD || op == DPR_ALL ? 1 : op == DPR_BAND ? UINT64_MAX : 0;
    state->prod.re = state->prod.magnitude = 1;
    state->best.index = -1;
    for (size_t i = 0; i < count; i++)
        add_element(state, dtype, bytes + i * size, i);
}

void ref_add_init(ref_state *state, const void *init) {
    if (state->op == DPR_COUNT)
        state->word += word_of(DPR_I64, init);
    else
        add_element(state, state->result, init, state->present);
}

/* ---- What is expected ---- */

/* The value of the type that nothing exceeds (sign 1) or falls below (sign -1). */
static void put_extreme(dpr_dtype dtype, int sign, unsigned char *out) {
    static const unsigned char f16_inf[2] = {0x00, 0x7c}, bf16_inf[2] = {0x80, 0x7f};
    const float f32 = INFINITY;
    const double f64 = INFINITY;
    const size_t size = ref_size(dtype);
    if (ref_is_float(dtype)) {
        const void *inf = dtype == DPR_F16    ? (const void *)f16_inf
                          : dtype == DPR_BF16 ? (const void *)bf16_inf
                          : dtype == DPR_F32  ? (const void *)&f32
                                              : (const void *)&f64;
        memcpy(out, inf, size);
        if (sign < 0)
            out[size - 1] ^= 0x80;
        return;
    }
    if (dtype == DPR_BOOL) {
        out[0] = sign > 0;
        return;
    }
    memset(out, sign > 0 ? 0xff : 0, size);
    if (types[ROW(dtype)].family == SIGNED)
        out[size - 1] ^= 0x80;
}

static void put_nan(dpr_dtype dtype, unsigned char *out) {
    static const uint16_t f16 = 0x7e00, bf16 = 0x7fc0;
    static const uint32_t f32 = 0x7fc00000;
    static const uint64_t f64 = 0x7ff8000000000000;
    const void *bits = dtype == DPR_F16    ? (const void *)&f16
                       : dtype == DPR_BF16 ? (const void *)&bf16
                       : dtype == DPR_F32  ? (const void *)&f32
                                           : (const void *)&f64;
    memcpy(out, bits, ref_size(dtype));
}

/* The bits of a result that is exact. */
static void put_expected(const ref_state *state, unsigned char *out) {
    const size_t size = ref_size(state->result);
    if (state->op == DPR_ARGMIN || state->op == DPR_ARGMAX) {
        memcpy(out, &state->best.index, size);
    } else if (state->op == DPR_MIN || state->op == DPR_MAX) {
        if (state->best.index < 0)
            put_extreme(state->result, state->op == DPR_MIN ? 1 : -1, out);
        else if (state->best.nan)
            put_nan(state->result, out);
        else if (state->result == DPR_BOOL)
            out[0] = state->best.value != 0;
        else
            memcpy(out, state->best.bytes, size);
    } else {
        const uint64_t word = state->result == DPR_BOOL ? state->word & 1 : state->word;
        memcpy(out, &word, size); /* little-endian: the low bytes */
    }
}

static int ceil_log2(size_t n) {
    int log = 0;
    while (log < 64 && ((size_t)1 << log) < n)
        log++;
    return log;
}

typedef struct bounds {
    long double value, error;
    int nan;       /* the result must be NaN */
    int may_leave; /* an intermediate result can leave the type's range: infinity and NaN are right too */
    int may_lose;  /* and so is every number, because it can be too small to be precise, or zero */
} bounds;

/* The header promises log2 n + 8 roundings for results of F32. A sum of n elements rounds n - 1 times, and n times
 * where it is rounded to the result type. A partial sum overflows only if the sum of magnitudes does.
 *
 * F64 and C128: pairwise summation has an error of at most g sum|x|, g = k u / (1 - k u), k = ceil(log2 n) (Higham,
 * Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 4.6); practical pairwise summation adds runs of up to 8
 * in a row, which costs 7 u where log2 n is less. */
static bounds sum_bounds(const ref_state *state, const ref_sum *sum) {
    const int in_f64 = state->result == DPR_F64 || state->result == DPR_C128;
    const long double unit = in_f64 ? 0x1p-53L : 0x1p-24L;
    const size_t n = state->present;
    const long double greatest = in_f64 ? (long double)DBL_MAX : (long double)FLT_MAX;
    const long double most = in_f64 ? (ceil_log2(n) > 8 ? ceil_log2(n) : 8) + 1 : log2l((long double)n) + 8;
    const long double k = n <= 1 ? 0 : fminl((long double)n, most);
    bounds b = {.value = sum->value + sum->correction};
    b.error = sum->magnitude * (k * unit / (1 - k * unit) + (n > 1 ? 0x1p-60L : 0));
    b.nan = sum->nans > 0 || (sum->plus_infs > 0 && sum->minus_infs > 0);
    if (sum->plus_infs > 0)
        b.value = INFINITY;
    else if (sum->minus_infs > 0)
        b.value = -INFINITY;
    b.may_leave = n > 1 && sum->magnitude * (1 + k * unit) > greatest;
    return b;
}

/* n factors rounded n - 1 times in F64, whatever the order: relative error (n - 1) u / (1 - (n - 1) u), u = 2^-53
 * (Higham, lemma 3.1); complex factors: sqrt(5) u of the magnitude each (Brent, Percival, Zimmermann 2007). One
 * rounding to the result type, whose least step is 2^-149 or 2^-1074. */
static bounds prod_bounds(const ref_state *state, int part) {
    const int in_f64 = state->result == DPR_F64 || state->result == DPR_C128;
    const int complex = ref_is_complex(state->result);
    const long double n = (long double)state->present;
    const long double rounding = in_f64 ? 0 : 0x1p-24L, step = in_f64 ? 0x1p-1074L : 0x1p-149L;
    bounds b = {.value = part ? state->prod.im : state->prod.re};
    b.nan = state->prod.nans > 0 || (state->prod.infs > 0 && state->prod.zeros > 0);
    /* Partial products in some order. */
    b.may_leave = state->prod.log2_above > 960 || state->prod.log2_below < -960;
    b.may_lose = b.may_leave && state->prod.infs == 0 && state->prod.zeros == 0;
    if (state->prod.infs > 0)
        b.value = INFINITY;
    else if (state->prod.zeros > 0)
        b.value = 0;
    if ((state->prod.infs > 0 || state->prod.zeros > 0) && state->prod.negative && !complex)
        b.value = -b.value;
    if (isfinite(b.value) && state->prod.zeros == 0 && state->present > 1) {
        const long double each = complex ? 3 * 0x1p-53L : 0x1p-53L;
        b.error = state->prod.magnitude * n * (each + 0x1p-60L) * 1.01L + fabsl(b.value) * rounding + n * step;
    }
    return b;
}

/* Whether a part is right. The sign of a zero is left open. */
static int part_is_right(const bounds *b, long double got, long double greatest) {
    if (b->nan)
        return isnan(got) != 0;
    if (b->may_lose || (b->may_leave && !isfinite(got)))
        return 1;
    if (isnan(got))
        return 0;
    if (isinf(b->value))
        return got == b->value;
    if (isinf(got)) /* the error may carry past the greatest finite value, on either side if it exceeds the value */
        return (got > 0 ? b->value : -b->value) + b->error >= greatest * (1 + 0x1p-60L);
    return fabsl(got - b->value) <= b->error;
}

static int is_alike(long double a, long double b) {
    return isnan(a) ? isnan(b) != 0 : a == b;
}

/* With parts that are infinite or NaN: (a + bi)(c + di) mixes the parts, and the mix depends on the order and on how
 * often 1 + 0i is a factor; but one factor stays as it is. */
static int complex_product_is_right(const ref_state *state, const long double got[2]) {
    if (state->count == 1)
        return is_alike(state->prod.first[0], got[0]) && is_alike(state->prod.first[1], got[1]);
    if (state->prod.nans > 0)
        return isnan(got[0]) || isnan(got[1]);
    return !isfinite(got[0]) || !isfinite(got[1]);
}

static int check_float(const ref_state *state, const void *got, char *why, size_t size) {
    const int complex = ref_is_complex(state->result);
    const long double greatest =
        ref_size(state->result) / (complex ? 2 : 1) == 8 ? (long double)DBL_MAX : (long double)FLT_MAX;
    const long double parts[2] = {ref_value(state->result, got, 0), complex ? ref_value(state->result, got, 1) : 0};
    if (state->op == DPR_PROD && complex && (state->prod.nans > 0 || state->prod.infs > 0)) {
        const int right = complex_product_is_right(state, parts);
        if (!right)
            snprintf(why, size, "got (%.17Lg, %.17Lg), a product of %zu with %zu NaNs and %zu infinities", parts[0],
                     parts[1], state->count, state->prod.nans, state->prod.infs);
        return right;
    }
    for (int part = 0; part <= complex; part++) {
        const bounds b = state->op == DPR_SUM ? sum_bounds(state, &state->sum[part]) : prod_bounds(state, part);
        if (part_is_right(&b, parts[part], greatest))
            continue;
        snprintf(why, size, "%s part: got %.20Lg, expected %.20Lg%s, error %.3Lg, allowed %.3Lg",
                 part ? "imaginary" : "real", parts[part], b.value, b.nan ? " (NaN)" : "", fabsl(parts[part] - b.value),
                 b.error);
        return 0;
    }
    return 1;
}

int ref_check(const ref_state *state, const void *got, char *why, size_t size) {
    if (types[ROW(state->result)].family >= REAL && (state->op == DPR_SUM || state->op == DPR_PROD))
        return check_float(state, got, why, size);
    unsigned char expected[16];
    const size_t bytes = ref_size(state->result);
    put_expected(state, expected);
    if (memcmp(expected, got, bytes) == 0)
        return 1;
    const int is_real = types[ROW(state->result)].family >= REAL;
    uint64_t got_word = 0, expected_word = 0;
    memcpy(&got_word, got, bytes);
    memcpy(&expected_word, expected, bytes);
    if (is_real)
        snprintf(why, size, "got %.20Lg (0x%0*llx), expected %.20Lg (0x%0*llx)", ref_value(state->result, got, 0),
                 (int)bytes * 2, (unsigned long long)got_word, ref_value(state->result, expected, 0), (int)bytes * 2,
                 (unsigned long long)expected_word);
    else
        snprintf(why, size, "got %.0Lf (0x%0*llx), expected %.0Lf (0x%0*llx)", ref_value(state->result, got, 0),
                 (int)bytes * 2, (unsigned long long)got_word, ref_value(state->result, expected, 0), (int)bytes * 2,
                 (unsigned long long)expected_word);
    return 0;
}
