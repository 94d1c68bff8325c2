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
    case DPR_MINMAX:
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

/* The type of a part of a complex type, and the type itself otherwise. */
static dpr_dtype real_dtype(dpr_dtype dtype) {
    return dtype == DPR_C64 ? DPR_F32 : dtype == DPR_C128 ? DPR_F64 : dtype;
}

dpr_dtype ref_result_dtype(dpr_op op, dpr_dtype dtype) {
    const int is_real = types[ROW(dtype)].family >= REAL;
    switch (op) {
    case DPR_SUM:
    case DPR_PROD:
        return sum_dtype(dtype);
    case DPR_SUMSQ:
    case DPR_NORM1:
        return real_dtype(sum_dtype(dtype));
    case DPR_NORM2:
    case DPR_VAR:
        return is_real ? real_dtype(sum_dtype(dtype)) : DPR_F64;
    case DPR_MEAN:
        return is_real ? sum_dtype(dtype) : DPR_F64;
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

size_t ref_result_values(dpr_op op) {
    return op == DPR_MINMAX ? 2 : 1;
}

size_t ref_result_size(dpr_op op, dpr_dtype dtype) {
    return ref_result_values(op) * ref_size(ref_result_dtype(op, dtype));
}

int ref_takes_init(dpr_op op) {
    return op != DPR_ARGMIN && op != DPR_ARGMAX && op != DPR_NORM2 && op != DPR_MEAN && op != DPR_VAR;
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

/* An integer's sign and magnitude are those of the word, unless its type is unsigned. */
static ref_whole whole_of(dpr_dtype dtype, const void *element) {
    const uint64_t word = word_of(dtype, element);
    return types[ROW(dtype)].family == SIGNED ? (ref_whole)(int64_t)word : (ref_whole)word;
}

/* A truth value or integer rounded to F64, as NORM2 and VAR convert it; other elements as they are. */
static long double converted(dpr_dtype dtype, const void *element, int part) {
    const long double value = ref_value(dtype, element, part);
    return types[ROW(dtype)].family < REAL ? (long double)(double)value : value;
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

static void best_add(ref_best *best, int greatest, dpr_dtype dtype, const void *element, size_t index) {
    if (best->nan)
        return;
    const long double value = ref_value(dtype, element, 0);
    const int nan = isnan(value) != 0;
    if (best->index >= 0 && !nan && !(greatest ? precedes(best->value, value) : precedes(value, best->value)))
        return;
    best->nan = nan;
    best->value = value;
    best->index = (int64_t)index;
    memcpy(best->bytes, element, ref_size(dtype));
}

/* aa + bb of a + bi. In long double the square of any double is a normal number: the exponents go from -16382 to 16383,
 * and those of squares from -2148 to 2047. */
static long double square_of(dpr_dtype dtype, const void *element) {
    long double square = 0;
    for (int part = 0; part < parts_of(dtype); part++)
        square += converted(dtype, element, part) * converted(dtype, element, part);
    return square;
}

static long double magnitude_of(dpr_dtype dtype, const void *element) {
    return ref_is_complex(dtype) ? sqrtl(square_of(dtype, element)) : fabsl(ref_value(dtype, element, 0));
}

/* The square or the magnitude of an integer modulo 2^64, where the magnitude of -2^63 is 2^63. */
static uint64_t word_measure(dpr_op op, dpr_dtype dtype, const void *element) {
    const uint64_t word = word_of(dtype, element);
    if (op == DPR_SUMSQ)
        return word * word;
    return whole_of(dtype, element) < 0 ? 0 - word : word;
}

/* The elements of a variance are taken twice; this is the first time. */
static void spread_add(ref_state *state, dpr_dtype dtype, const void *element) {
    for (int part = 0; part < parts_of(dtype); part++) {
        const long double value = converted(dtype, element, part);
        sum_add(&state->sum[part], value);
        state->spread.greatest[part] = fmaxl(state->spread.greatest[part], fabsl(value));
    }
}

static int is_nonzero(dpr_dtype dtype, const void *element) {
    if (types[ROW(dtype)].family < REAL)
        return word_of(dtype, element) != 0;
    return ref_value(dtype, element, 0) != 0 || (ref_is_complex(dtype) && ref_value(dtype, element, 1) != 0);
}

static int is_left_out(const ref_state *state, dpr_dtype dtype, const void *element) {
    return state->nan == DPR_NAN_IGNORE && element_is_nan(dtype, element);
}

/* Adds a floating-point or complex element to what is a sum of such elements, of their squares or of their
 * magnitudes. */
static void add_real(ref_state *state, dpr_op op, dpr_dtype dtype, const void *element) {
    if (op == DPR_SUMSQ || op == DPR_NORM1)
        sum_add(&state->sum[0], op == DPR_SUMSQ ? square_of(dtype, element) : magnitude_of(dtype, element));
    else
        for (int part = 0; part < parts_of(dtype); part++)
            sum_add(&state->sum[part], ref_value(dtype, element, part));
}

static void add_integer(ref_state *state, dpr_op op, dpr_dtype dtype, const void *element) {
    if (op == DPR_MEAN)
        state->whole += whole_of(dtype, element);
    else
        state->word += op == DPR_SUM ? word_of(dtype, element) : word_measure(op, dtype, element);
}

/* The operation is the state's, except for initial values. */
static void add_element(ref_state *state, dpr_op op, dpr_dtype dtype, const void *element, size_t index) {
    const int real = types[ROW(dtype)].family >= REAL;
    state->count++;
    if (is_left_out(state, dtype, element))
        return;
    state->present++;
    switch (op) {
    case DPR_SUM:
    case DPR_SUMSQ:
    case DPR_NORM1:
    case DPR_MEAN:
        (real ? add_real : add_integer)(state, op, dtype, element);
        break;
    case DPR_NORM2:
        sum_add(&state->sum[0], square_of(dtype, element));
        break;
    case DPR_VAR:
        spread_add(state, dtype, element);
        break;
    case DPR_PROD:
        if (real)
            prod_add(state, ref_value(dtype, element, 0), ref_is_complex(dtype) ? ref_value(dtype, element, 1) : 0);
        else
            state->word *= word_of(dtype, element);
        break;
    case DPR_MIN:
    case DPR_ARGMIN:
        best_add(&state->best[0], 0, dtype, element, index);
        break;
    case DPR_MAX:
    case DPR_ARGMAX:
        best_add(&state->best[1], 1, dtype, element, index);
        break;
    case DPR_MINMAX:
        best_add(&state->best[0], 0, dtype, element, index);
        best_add(&state->best[1], 1, dtype, element, index);
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

/* A mean in two long doubles, which together have an error of some n 2^-128 of the mean of the magnitudes: fmal() makes
 * the remainder of the division, of which sum->value is a part, without rounding more than once. */
typedef struct pair {
    long double value, rest;
} pair;

static pair mean_of(const ref_sum *sum, size_t count) {
    const long double n = (long double)count, mean = (sum->value + sum->correction) / n;
    return (pair){mean, (fmal(-mean, n, sum->value) + sum->correction) / n};
}

/* The second pass of a variance. x - mean.value is rounded by at most 2^-64 of itself, and not at all where mean.rest
 * counts next to it, because x and mean.value are within a factor of 2 then (Sterbenz's lemma: Higham, Accuracy and
 * Stability of Numerical Algorithms, 2nd ed., theorem 2.5). The distance's relative error is thus some 2^-63 whatever
 * the mean is. An error e of the mean adds n ee to the sum of the squares, which is nothing next to it: elements of F64
 * are all equal, or the sum is at least some 2^-107 of the square of the greatest of them. */
static void find_spread(ref_state *state, const unsigned char *bytes, size_t count) {
    const size_t size = ref_size(state->dtype);
    pair mean[2];
    for (int part = 0; part < 2; part++)
        mean[part] = mean_of(&state->sum[part], state->present);
    for (size_t i = 0; i < count; i++) {
        long double square = 0;
        for (int part = 0; part < parts_of(state->dtype); part++) {
            const long double x = converted(state->dtype, bytes + i * size, part);
            const long double distance = (x - mean[part].value) - mean[part].rest;
            square += distance * distance;
        }
        if (!is_left_out(state, state->dtype, bytes + i * size))
            sum_add(&state->spread.squares, square);
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
    state->best[0].index = state->best[1].index = -1;
    for (size_t i = 0; i < count; i++)
        add_element(state, op, dtype, bytes + i * size, i);
    if (op == DPR_VAR)
        find_spread(state, bytes, count);
}

void ref_add_init(ref_state *state, const void *init) {
    const dpr_dtype result = state->result;
    const unsigned char *second = (const unsigned char *)init + ref_size(result);
    switch (state->op) {
    case DPR_COUNT:
        state->word += word_of(DPR_I64, init);
        break;
    case DPR_SUMSQ:
    case DPR_NORM1: /* a value of the result, not an element: it is added as it is */
        add_element(state, DPR_SUM, result, init, state->present);
        break;
    case DPR_MINMAX:
        add_element(state, DPR_MIN, result, init, state->present);
        add_element(state, DPR_MAX, result, second, state->present);
        break;
    default:
        add_element(state, state->op, result, init, state->present);
    }
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

static void put_best(const ref_state *state, int greatest, unsigned char *out) {
    const ref_best *best = &state->best[greatest];
    if (best->index < 0)
        put_extreme(state->result, greatest ? -1 : 1, out);
    else if (best->nan)
        put_nan(state->result, out);
    else if (state->result == DPR_BOOL)
        out[0] = best->value != 0;
    else
        memcpy(out, best->bytes, ref_size(state->result));
}

/* The bits of a result that is exact. */
static void put_expected(const ref_state *state, unsigned char *out) {
    const size_t size = ref_size(state->result);
    const uint64_t word = state->result == DPR_BOOL ? state->word & 1 : state->word;
    switch (state->op) {
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        memcpy(out, &state->best[state->op == DPR_ARGMAX].index, size);
        break;
    case DPR_MIN:
    case DPR_MAX:
        put_best(state, state->op == DPR_MAX, out);
        break;
    case DPR_MINMAX:
        put_best(state, 0, out);
        put_best(state, 1, out + size);
        break;
    default:
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

static int is_wide(dpr_dtype dtype) {
    return real_dtype(dtype) == DPR_F64;
}

/* Three facts about the type of a result's parts: the largest relative error of rounding to a normal number, the
 * distance between subnormal numbers, and the greatest number. */
static long double unit_of(dpr_dtype result) {
    return is_wide(result) ? 0x1p-53L : 0x1p-24L;
}

static long double step_of(dpr_dtype result) {
    return is_wide(result) ? 0x1p-1074L : 0x1p-149L;
}

static long double greatest_of(dpr_dtype result) {
    return is_wide(result) ? (long double)DBL_MAX : (long double)FLT_MAX;
}

/* The header promises log2 n + 8 roundings for results of F32. A sum of n elements rounds n - 1 times, and n times
 * where it is rounded to the result type. A partial sum overflows only if the sum of magnitudes does.
 *
 * F64 and C128: pairwise summation has an error of at most g sum|x|, g = k u / (1 - k u), k = ceil(log2 n) (Higham,
 * Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 4.6); practical pairwise summation adds runs of up to 8
 * in a row, which costs 7 u where log2 n is less. */
static bounds sum_bounds(const ref_state *state, const ref_sum *sum) {
    const long double unit = unit_of(state->result);
    const size_t n = state->present;
    const long double most =
        is_wide(state->result) ? (ceil_log2(n) > 8 ? ceil_log2(n) : 8) + 1 : log2l((long double)n) + 8;
    const long double k = n <= 1 ? 0 : fminl((long double)n, most);
    bounds b = {.value = sum->value + sum->correction};
    b.error = sum->magnitude * (k * unit / (1 - k * unit) + (n > 1 ? 0x1p-60L : 0));
    b.nan = sum->nans > 0 || (sum->plus_infs > 0 && sum->minus_infs > 0);
    if (sum->plus_infs > 0)
        b.value = INFINITY;
    else if (sum->minus_infs > 0)
        b.value = -INFINITY;
    b.may_leave = n > 1 && sum->magnitude * (1 + k * unit) > greatest_of(state->result);
    return b;
}

/* The relative error that the header promises for SUMSQ, the norms and VAR. What long double adds to it, and what is
 * neglected where roundings are counted, is the last term. */
static long double promised(const ref_state *state) {
    const long double n = (long double)state->present;
    return n > 0 ? (log2l(n) + 10) * unit_of(state->result) + 0x1p-60L : 0;
}

/* SUMSQ, NORM1 and NORM2. A negative initial value cancels, so the error is in relation to the sum of the magnitudes.
 * Without one nothing leaves the range before the result does, and the result is infinite then.
 *
 * The relative error does not hold where numbers are subnormal. Rounding the result there costs half a step, and one
 * step if it is rounded to F64 before. Squares in F64 that are subnormal lose up to half a step each, twice where the
 * type is complex, and so do the magnitudes of subnormal complex numbers, for which a hypot() has an error of at most 2
 * steps (CUDA C++ Programming Guide, mathematical functions). NORM2 may lose nothing there. */
static bounds measure_bounds(const ref_state *state) {
    const ref_sum *sum = &state->sum[0];
    const long double total = sum->value + sum->correction, n = (long double)state->present;
    const int loses = is_wide(state->result) && state->op != DPR_NORM2,
              cancels = total < sum->magnitude * (1 - 0x1p-40L) || sum->minus_infs > 0;
    bounds b = {.value = state->op == DPR_NORM2 ? sqrtl(total) : total};
    b.error = (state->op == DPR_NORM2 ? b.value : sum->magnitude) * promised(state)
              + (loses ? 2 * n + 1 : 1) * step_of(state->result);
    b.nan = sum->nans > 0 || (sum->plus_infs > 0 && sum->minus_infs > 0);
    if (sum->plus_infs > 0 || sum->minus_infs > 0)
        b.value = sum->plus_infs > 0 ? INFINITY : -INFINITY;
    b.may_leave = cancels && sum->magnitude * (1 + promised(state)) > greatest_of(state->result);
    return b;
}

/* A mean of integers: the sum is exact, so that only its conversion to F64 and the division round. */
static bounds mean_of_integers(const ref_state *state) {
    bounds b = {.value = (long double)state->whole / (long double)state->present, .nan = state->present == 0};
    b.error = fabsl(b.value) * (2 * 0x1p-53L + 0x1p-60L);
    return b;
}

/* The error of a sum divided by n, the rounding of the division, and a step where that is subnormal. */
static bounds mean_bounds(const ref_state *state, int part) {
    const long double n = (long double)state->present, unit = unit_of(state->result);
    if (types[ROW(state->dtype)].family < REAL)
        return mean_of_integers(state);
    bounds b = sum_bounds(state, &state->sum[part]);
    b.value /= n;
    b.nan |= state->present == 0;
    b.error = b.error / n + fabsl(b.value) * (unit + 0x1p-60L) + step_of(state->result);
    return b;
}

/* A variance. The header promises the relative error of the norms, plus the square of u M / deviation, where u is 2^-53
 * and M is the greatest magnitude. u M is by how much the mean of a part can be off, and a mean that is off by e adds
 * ee to the mean of the squares. The bound has (u M)^2 twice, because the header leaves open whether u M is the error
 * of a mean or of the distance between two means.
 *
 * Subnormal squares of distances lose at most one step each, and those of complex numbers two. The header does not
 * mention sums that leave the range of F64, nor squares of distances from the mean of a part, whose sum is at most 4 n
 * times that of distances from the mean of the array. */
static bounds spread_bounds(const ref_state *state) {
    const ref_sum *re = &state->sum[0], *im = &state->sum[1], *squares = &state->spread.squares;
    const long double *most = state->spread.greatest;
    const long double n = (long double)state->present, divisor = n - (state->sample != 0);
    const long double mean_error = 0x1p-106L * (most[0] * most[0] + most[1] * most[1]);
    bounds b = {.value = (squares->value + squares->correction) / divisor};
    b.nan = divisor <= 0 || squares->nans > 0 || squares->plus_infs > 0;
    b.error = b.value * promised(state) + 2 * mean_error * n / divisor + (2 * n / divisor + 1) * step_of(state->result);
    b.may_leave =
        is_wide(state->result) && fmaxl(fmaxl(re->magnitude, im->magnitude), 4 * n * squares->value) > DBL_MAX;
    return b;
}

/* n factors rounded n - 1 times in F64, whatever the order: relative error (n - 1) u / (1 - (n - 1) u), u = 2^-53
 * (Higham, lemma 3.1); complex factors: sqrt(5) u of the magnitude each (Brent, Percival, Zimmermann 2007). One
 * rounding to the result type, whose least step is 2^-149 or 2^-1074. */
static bounds prod_bounds(const ref_state *state, int part) {
    const int complex = ref_is_complex(state->result);
    const long double n = (long double)state->present, step = step_of(state->result);
    const long double rounding = is_wide(state->result) ? 0 : unit_of(state->result);
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

static bounds bounds_of(const ref_state *state, int part) {
    switch (state->op) {
    case DPR_SUM:
        return sum_bounds(state, &state->sum[part]);
    case DPR_PROD:
        return prod_bounds(state, part);
    case DPR_MEAN:
        return mean_bounds(state, part);
    case DPR_VAR:
        return spread_bounds(state);
    default:
        return measure_bounds(state);
    }
}

static int check_float(const ref_state *state, const void *got, char *why, size_t size) {
    const int complex = ref_is_complex(state->result);
    const long double greatest = greatest_of(state->result);
    const long double parts[2] = {ref_value(state->result, got, 0), complex ? ref_value(state->result, got, 1) : 0};
    if (state->op == DPR_PROD && complex && (state->prod.nans > 0 || state->prod.infs > 0)) {
        const int right = complex_product_is_right(state, parts);
        if (!right)
            snprintf(why, size, "got (%.17Lg, %.17Lg), a product of %zu with %zu NaNs and %zu infinities", parts[0],
                     parts[1], state->count, state->prod.nans, state->prod.infs);
        return right;
    }
    for (int part = 0; part <= complex; part++) {
        const bounds b = bounds_of(state, part);
        if (part_is_right(&b, parts[part], greatest))
            continue;
        snprintf(why, size, "%s part: got %.20Lg, expected %.20Lg%s, error %.3Lg, allowed %.3Lg",
                 part ? "imaginary" : "real", parts[part], b.value, b.nan ? " (NaN)" : "", fabsl(parts[part] - b.value),
                 b.error);
        return 0;
    }
    return 1;
}

/* One value of a result that is exact. */
static int check_exact(dpr_dtype result, const unsigned char *got, const unsigned char *expected, char *why,
                       size_t size) {
    const int bytes = (int)ref_size(result);
    uint64_t got_word = 0, expected_word = 0;
    memcpy(&got_word, got, (size_t)bytes);
    memcpy(&expected_word, expected, (size_t)bytes);
    if (got_word == expected_word)
        return 1;
    const long double got_value = ref_value(result, got, 0), expected_value = ref_value(result, expected, 0);
    snprintf(why, size, "got %.20Lg (0x%0*llx), expected %.20Lg (0x%0*llx)", got_value, bytes * 2,
             (unsigned long long)got_word, expected_value, bytes * 2, (unsigned long long)expected_word);
    return 0;
}

static int is_exact(const ref_state *state) {
    const int chooses = state->op == DPR_MIN || state->op == DPR_MAX || state->op == DPR_MINMAX;
    return chooses || types[ROW(state->result)].family < REAL;
}

int ref_check(const ref_state *state, const void *got, char *why, size_t size) {
    unsigned char expected[16];
    int good = 1;
    if (!is_exact(state))
        return check_float(state, got, why, size);
    put_expected(state, expected);
    for (size_t at = 0; at < ref_result_size(state->op, state->dtype) && good; at += ref_size(state->result))
        good = check_exact(state->result, (const unsigned char *)got + at, expected + at, why, size);
    return good;
}
