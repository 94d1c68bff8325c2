#include "data.h"

#include <string.h>

#include "reference.h"

const char *data_pattern_name(data_pattern pattern) {
#define DATA_NAME_(NAME) #NAME,
    static const char *const names[] = {DATA_PATTERN_LIST(DATA_NAME_)};
#undef DATA_NAME_
    return names[pattern];
}

int data_pattern_is_of_sums(data_pattern pattern) {
    return pattern >= DATA_POWERS && pattern <= DATA_HALVES;
}

static int is_measure(dpr_op op) {
    return op == DPR_SUMSQ || op == DPR_NORM1 || op == DPR_NORM2;
}

/* Operations that add up elements, or what they make of each. */
static int adds_up(dpr_op op) {
    return op == DPR_SUM || op == DPR_MEAN || op == DPR_VAR || is_measure(op);
}

int data_pattern_applies(data_pattern pattern, dpr_op op, dpr_dtype dtype) {
    const int is_real = ref_is_float(dtype) || ref_is_complex(dtype);
    if (pattern < DATA_ZEROS)
        return 1;
    if (pattern >= DATA_FAR && pattern <= DATA_OUTLIER)
        return op == DPR_MEAN || op == DPR_VAR;
    if (pattern == DATA_LIMITS)
        return op == DPR_MEAN || op == DPR_VAR || (is_measure(op) && !is_real);
    if (pattern >= DATA_HUGE && !is_measure(op))
        return 0;
    if (data_pattern_is_of_sums(pattern) && op != DPR_SUM && op != DPR_MEAN && op != DPR_NORM1)
        return 0;
    return is_real;
}

uint64_t data_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint32_t data_below(uint64_t *state, uint32_t n) {
    return (uint32_t)(data_next(state) >> 32) % n;
}

/* ---- Floating point, by its bits ---- */

/* A binary format; complex types are two of it. */
typedef struct format {
    int parts, bytes, fraction_bits, bias;
} format;

static format format_of(dpr_dtype dtype) {
    switch (dtype) {
    case DPR_F16:
        return (format){1, 2, 10, 15};
    case DPR_BF16:
        return (format){1, 2, 7, 127};
    case DPR_F32:
        return (format){1, 4, 23, 127};
    case DPR_C64:
        return (format){2, 4, 23, 127};
    case DPR_C128:
        return (format){2, 8, 52, 1023};
    default:
        return (format){1, 8, 52, 1023};
    }
}

static uint64_t compose(format f, int negative, int exponent, uint64_t fraction) {
    const uint64_t mask = ((uint64_t)1 << f.fraction_bits) - 1;
    return (uint64_t)negative << (f.bytes * 8 - 1) | (uint64_t)(exponent + f.bias) << f.fraction_bits
           | (fraction & mask);
}

static uint64_t infinity(format f, int negative) {
    return compose(f, negative, f.bias + 1, 0);
}

static uint64_t greatest(format f, int negative) {
    return infinity(f, negative) - 1;
}

/* 2^exponent, or the least number above 0 if that is more. */
static uint64_t power(format f, int exponent) {
    const int below = 1 - f.bias - exponent; /* the least normal number */
    if (below <= 0)
        return compose(f, 0, exponent, 0);
    return below < f.fraction_bits ? (uint64_t)1 << (f.fraction_bits - below) : 1;
}

/* Quiet, with sign and payload, so that a result with the canonical pattern was made and not copied. */
static uint64_t nan_bits(format f, uint64_t payload) {
    return compose(f, 1, f.bias + 1, (uint64_t)1 << (f.fraction_bits - 1) | (payload & 15));
}

static void put(unsigned char *at, format f, uint64_t bits) {
    memcpy(at, &bits, (size_t)f.bytes); /* little-endian: the low bytes */
}

static void put_parts(unsigned char *at, format f, uint64_t re, uint64_t im) {
    put(at, f, re);
    if (f.parts == 2)
        put(at + f.bytes, f, im);
}

/* Sign and magnitude 2^-4 to 2^4. */
static uint64_t moderate(format f, uint64_t *state) {
    const uint64_t r = data_next(state);
    return compose(f, (int)(r & 1), (int)(r >> 1 & 7) - 4, r >> 4);
}

/* A factor near 1, so that a product of a million stays in range: off by up to 2^-13, or, one in 16, by up to 3 units
 * where the format is coarser; one in 1024 is twice or half that. */
static uint64_t factor(format f, uint64_t *state) {
    const uint64_t r = data_next(state);
    const int coarse = f.fraction_bits <= 15, off_bits = coarse ? 2 : f.fraction_bits - 13;
    const uint64_t off = coarse && (r >> 2 & 15) ? 0 : r >> 16 & (((uint64_t)1 << off_bits) - 1);
    const int power = (r >> 6 & 1023) == 0;
    if (r >> 1 & 1 || off == 0)
        return compose(f, (int)(r & 1), r >> 1 & 1 ? power : -power, off);
    return compose(f, (int)(r & 1), -1 - power, -off * 2);
}

/* ---- Patterns ---- */

static void random_float(unsigned char *at, dpr_op op, format f, uint64_t *state) {
    const uint64_t choice = data_next(state);
    switch (op) {
    case DPR_PROD:
        put_parts(at, f, factor(f, state), choice & 63 ? 0 : compose(f, 0, -12, 0));
        break;
    case DPR_COUNT: /* a third of zeros of either sign */
        if (choice % 3 == 0)
            put_parts(at, f, (choice >> 8 & 1) << (f.bytes * 8 - 1), 0);
        else
            put_parts(at, f, choice % 3 == 1 ? moderate(f, state) : 0, moderate(f, state));
        break;
    case DPR_ANY:
        put_parts(at, f, choice % 3 << (f.bytes * 8 - 1), 0);
        break; /* zeros; data_fill() adds one other */
    default:
        put_parts(at, f, moderate(f, state), moderate(f, state));
    }
}

static void random_integer(unsigned char *at, dpr_op op, dpr_dtype dtype, uint64_t *state) {
    const size_t size = ref_size(dtype);
    const uint64_t r = data_next(state);
    uint64_t word = dtype == DPR_BOOL && r >> 61 == 0 ? 0 : r;
    switch (op) {
    case DPR_PROD:
        word |= 1;
        break; /* an even factor in 64 would leave nothing to see */
    case DPR_COUNT:
        word = r >> 62 == 0 ? 0 : word;
        break;
    case DPR_ALL:
        word |= 2;
        break;
    case DPR_ANY:
    case DPR_BOR:
        word = 0;
        break;
    case DPR_BAND:
        word = UINT64_MAX;
        break;
    default:
        break;
    }
    memcpy(at, &word, size);
}

/* A few elements that decide operations whose result a full random array would leave no choice. */
static void put_deciders(unsigned char *out, dpr_op op, dpr_dtype dtype, size_t count, uint64_t *state) {
    const size_t size = ref_size(dtype);
    const int decided = op == DPR_ALL || op == DPR_ANY || op == DPR_BAND || op == DPR_BOR;
    if (!decided || count == 0)
        return;
    for (int i = 0; i < 3; i++) {
        unsigned char *at = out + data_next(state) % count * size;
        const uint64_t bit = (uint64_t)1 << data_next(state) % (size < 8 ? size * 8 : 64);
        uint64_t word = op == DPR_ALL ? 0 : op == DPR_BAND ? ~bit : bit;
        if (ref_is_float(dtype) || ref_is_complex(dtype))
            word = op == DPR_ALL ? 0 : 1; /* the least subnormal */
        if (ref_is_complex(dtype))
            memset(at, 0, size);
        memcpy(at + (ref_is_complex(dtype) ? size / 2 : 0), &word, ref_is_complex(dtype) ? size / 2 : size);
    }
}

static void constant(unsigned char *at, dpr_op op, dpr_dtype dtype) {
    if (!ref_is_float(dtype) && !ref_is_complex(dtype)) {
        const uint64_t word = op == DPR_PROD ? 3 : 0xb5; /* negative as I8 */
        memcpy(at, &word, ref_size(dtype));
        return;
    }
    const format f = format_of(dtype);
    const uint64_t tenth = compose(f, 0, -4, 0x999999999999a >> (52 - f.fraction_bits));
    if (op != DPR_PROD)
        put_parts(at, f, tenth, tenth ^ (uint64_t)1 << (f.bytes * 8 - 1));
    else if (f.fraction_bits > 20)
        put_parts(at, f, compose(f, 0, 0, (uint64_t)1 << (f.fraction_bits - 20)), compose(f, 0, -20, 0));
    else
        put_parts(at, f, compose(f, 1, 0, 0), 0);
}

/* The exponent of the greatest of the extremes. F16 is added up in F32, where its range is small. */
static int extreme_exponent(dpr_op op, format f) {
    if (!adds_up(op) || f.bias == 15)
        return f.bias;
    return f.bias / (op == DPR_SUMSQ || op == DPR_VAR ? 4 : 2);
}

/* Extremes whose sums and products stay in range: the greatest magnitudes where nothing is added up; with sums up to
 * the square root of the range, and with sums of squares to that of it; with PROD at most one of each, else -1 and 1.
 */
static void extreme_float(unsigned char *at, dpr_op op, format f, size_t index, uint64_t *state) {
    const uint64_t r = data_next(state);
    const int negative = (int)(r & 1), large = extreme_exponent(op, f);
    const uint64_t one = compose(f, negative, 0, 0);
    if (op == DPR_PROD) {
        const int power = f.bias / (f.bias > 127 ? 3 : 1) - 1;
        put_parts(at, f, index == 1 ? compose(f, 0, power, 1) : index == 2 ? compose(f, 1, -power, 1) : one, 0);
        return;
    }
    const uint64_t values[] = {compose(f, negative, large, r >> 8),
                               compose(f, negative, 1 - f.bias, 0),
                               compose(f, negative, -f.bias, 1),
                               compose(f, negative, -f.bias, 0),
                               one,
                               adds_up(op) ? one : greatest(f, negative)};
    put_parts(at, f, values[(r >> 1) % 6], values[(r >> 4) % 6]);
}

static void extreme_integer(unsigned char *at, dpr_op op, dpr_dtype dtype, uint64_t *state) {
    const size_t size = ref_size(dtype);
    const uint64_t r = data_next(state), top = (uint64_t)1 << (size * 8 - 1);
    const uint64_t values[] = {top, top - 1, UINT64_MAX, 1, 0, top | 1};
    const uint64_t word = values[(r >> 1) % (op == DPR_PROD ? 4 : 6)];
    memcpy(at, &word, size);
}

/* Kinds that the array has, each with some chance, besides ones. Half of the arrays have but a few that are not ones.
 */
static void special_float(unsigned char *at, format f, size_t count, uint64_t kinds, uint64_t *state) {
    const uint64_t r = data_next(state), part[2] = {r >> 8 & 7, r >> 16 & 7};
    const int negative = (int)(r & 1), rare = (int)(kinds >> 8 & 1) && (r >> 24) % (count / 2 + 1) != 0;
    const uint64_t sign = (uint64_t)negative << (f.bytes * 8 - 1), one = compose(f, negative, 0, 0);
    const uint64_t values[8] = {infinity(f, negative),
                                nan_bits(f, r),
                                sign,
                                greatest(f, negative),
                                sign | 1,
                                infinity(f, 0),
                                infinity(f, 1),
                                sign | power(f, 1 - f.bias)};
    uint64_t bits[2];
    for (int i = 0; i < 2; i++)
        bits[i] = kinds >> part[i] & 1 && !rare ? values[part[i]] : one;
    put_parts(at, f, bits[0], bits[1]);
}

/* The tree of a sum, whoever adds what to what, has the first element meet other parts of the array one after another,
 * as a rule half of it, a quarter and so on, or neighbours, the next two and so on. Each of these parts has one number
 * that is lost if it is added by itself. */
static void power_float(unsigned char *at, format f, size_t index) {
    const uint64_t one = compose(f, 0, 0, 0), lost = power(f, f.bytes == 8 ? -53 : -24);
    const uint64_t bits = index == 0 ? one : (index & (index - 1)) == 0 ? lost : 0;
    put_parts(at, f, bits, bits);
}

static void greatest_float(unsigned char *at, format f, int negative) {
    put_parts(at, f, greatest(f, negative), greatest(f, negative));
}

/* The real parts are positive and the imaginary ones negative, so that nothing moves their means towards zero. */
static void put_apart(unsigned char *at, format f, int exponent, uint64_t re, uint64_t im) {
    put_parts(at, f, compose(f, 0, exponent, re), compose(f, 1, exponent, im));
}

/* Mean and standard deviation have a ratio of some 10^12 in F64: the last 12 bits are random. The steps of other
 * formats are coarser than 10^-8, so one element in 64 is off by a step, which gives a ratio of 10^8 in F32. */
static void far_float(unsigned char *at, format f, uint64_t *state) {
    const uint64_t r = data_next(state);
    if (f.fraction_bits == 52)
        put_apart(at, f, 1, r & 4095, r >> 12 & 4095);
    else
        put_apart(at, f, 1, (r & 63) == 0, (r >> 6 & 63) == 0);
}

/* From 1 to a little more, by as many steps as leave the ratio large and a slope to see. */
static void ramp_float(unsigned char *at, format f, size_t index, size_t count) {
    const int bits = f.fraction_bits == 52 ? 32 : f.fraction_bits == 23 ? 15 : f.fraction_bits - 2;
    const uint64_t at_index = (uint64_t)((double)index / (double)count * (double)((uint64_t)1 << bits));
    put_apart(at, f, 0, at_index, at_index);
}

/* The others still count in a sum of squares with that of the outlier, 2^50 in F64 and 2^24 in other types. */
static void outlier_float(unsigned char *at, format f, size_t index, uint64_t *state) {
    if (index == 0)
        put_apart(at, f, f.fraction_bits == 52 ? 25 : 12, 1, 1);
    else
        put_parts(at, f, moderate(f, state), moderate(f, state));
}

/* The greatest number or one of the seven below it. */
static void limit_float(unsigned char *at, format f, uint64_t *state) {
    const uint64_t r = data_next(state), mask = ((uint64_t)1 << f.fraction_bits) - 1;
    put_apart(at, f, f.bias, mask - (r & 7), mask - (r >> 3 & 7));
}

/* Some way from a quarter of the word's range: up to 3, or up to 2^22 for I64 and U64, whose neighbours there are the
 * same number in F64. */
static uint64_t far_word(size_t size, uint64_t *state) {
    const uint64_t r = data_next(state), quarter = (uint64_t)1 << (size * 8 - 2);
    return quarter + (size == 8 ? r >> 42 : r >> 62);
}

/* Next to the greatest or, of even counts, the least number of the type. */
static uint64_t limit_word(dpr_dtype dtype, size_t count, uint64_t *state) {
    const int is_unsigned = dtype == DPR_U8 || dtype == DPR_U16 || dtype == DPR_U32 || dtype == DPR_U64;
    const uint64_t off = data_next(state) & 15, end = (uint64_t)1 << (ref_size(dtype) * 8 - 1);
    if (is_unsigned)
        return count % 2 ? UINT64_MAX - off : off;
    return count % 2 ? end - 1 - off : end + off;
}

/* The patterns of means and variances. Truth values are true, except for one in 64 at random. */
static void apart_integer(unsigned char *at, dpr_dtype dtype, data_pattern pattern, size_t index, size_t count,
                          uint64_t *state) {
    const size_t size = ref_size(dtype);
    const uint64_t quarter = (uint64_t)1 << (size * 8 - 2);
    uint64_t word = 0;
    if (dtype == DPR_BOOL)
        word = data_next(state) % 64 != 0;
    else if (pattern == DATA_FAR)
        word = far_word(size, state);
    else if (pattern == DATA_RAMP)
        word = quarter + index % quarter;
    else if (pattern == DATA_LIMITS)
        word = limit_word(dtype, count, state);
    else
        word = index == 0 ? quarter : data_next(state) & 15;
    memcpy(at, &word, size);
}

static void apart_float(unsigned char *at, format f, data_pattern pattern, size_t index, size_t count,
                        uint64_t *state) {
    if (pattern == DATA_FAR)
        far_float(at, f, state);
    else if (pattern == DATA_RAMP)
        ramp_float(at, f, index, count);
    else if (pattern == DATA_OUTLIER)
        outlier_float(at, f, index, state);
    else
        limit_float(at, f, state);
}

/* Sign, fraction and one of `range` exponents from `least` on. */
static uint64_t scaled(format f, int least, int range, uint64_t *state) {
    const uint64_t r = data_next(state);
    const int exponent = least + (int)(r >> 1 & 0xffff) % range;
    const uint64_t sign = (r & 1) << (f.bytes * 8 - 1);
    return exponent < 1 - f.bias ? sign | power(f, exponent) : compose(f, (int)(r & 1), exponent, r >> 17);
}

/* Magnitudes for squares. The greatest leave 13 powers of two to the norm: some 2^24 elements, and two parts of each.
 * Subnormal numbers are powers of two. */
static void scale_float(unsigned char *at, format f, data_pattern pattern, size_t count, uint64_t *state) {
    const int half = f.bias / 2, most = f.bias > 15 ? f.bias - 13 : f.bias, least = 1 - f.bias - f.fraction_bits;
    int from = least, range = most - least + 1;
    if (pattern == DATA_HUGE) {
        from = half + 1;
        range = most - half;
    } else if (pattern == DATA_TINY) {
        range = -half - 12 - least;
    } else if (pattern == DATA_BRINK) {
        from = (count % 2 ? half : -half) - 2;
        range = 5;
    }
    const uint64_t re = scaled(f, from, range, state);
    put_parts(at, f, re, scaled(f, from, range, state));
}

static void put_specials(unsigned char *out, dpr_dtype dtype, data_pattern pattern, size_t count) {
    const format f = format_of(dtype);
    const size_t size = ref_size(dtype), last = count - 1, middle = count / 2;
    const uint64_t zero = 0;
    switch (pattern) {
    case DATA_NAN_FIRST:
        put(out, f, nan_bits(f, 1));
        break;
    case DATA_NAN_MIDDLE: /* the later one must not win */
        put(out + last * size, f, nan_bits(f, 2));
        put(out + middle * size + (f.parts == 2 ? f.bytes : 0), f, nan_bits(f, 3));
        break;
    case DATA_NAN_LAST:
        put(out + last * size, f, nan_bits(f, 4));
        break;
    case DATA_INF_FIRST:
        put_parts(out, f, infinity(f, 0), zero);
        break;
    case DATA_INF_MIDDLE:
        put_parts(out + middle * size, f, infinity(f, 1), zero);
        break;
    case DATA_INF_LAST:
        put_parts(out + last * size, f, infinity(f, 0), infinity(f, 1));
        break;
    default:
        break;
    }
}

/* One element of a floating-point or complex type. */
static void put_float(unsigned char *at, dpr_op op, format f, data_pattern pattern, size_t index, size_t count,
                      uint64_t *state) {
    switch (pattern) {
    case DATA_EXTREMES:
        extreme_float(at, op, f, index, state);
        break;
    case DATA_ZEROS:
        put_parts(at, f, (data_next(state) & 1) << (f.bytes * 8 - 1), 0);
        break;
    case DATA_NAN_ALL:
        put_parts(at, f, nan_bits(f, index), nan_bits(f, index));
        break;
    case DATA_POWERS:
        power_float(at, f, index);
        break;
    case DATA_ALTERNATING:
        greatest_float(at, f, index % 2 == 1);
        break;
    case DATA_HALVES:
        greatest_float(at, f, index >= (count + 1) / 2);
        break;
    case DATA_FAR:
    case DATA_RAMP:
    case DATA_OUTLIER:
    case DATA_LIMITS:
        apart_float(at, f, pattern, index, count, state);
        break;
    case DATA_HUGE:
    case DATA_TINY:
    case DATA_SCALES:
    case DATA_BRINK:
        scale_float(at, f, pattern, count, state);
        break;
    default:
        random_float(at, op, f, state);
    }
}

static void put_integer(unsigned char *at, dpr_op op, dpr_dtype dtype, data_pattern pattern, size_t index, size_t count,
                        uint64_t *state) {
    if (pattern == DATA_EXTREMES)
        extreme_integer(at, op, dtype, state);
    else if (pattern >= DATA_FAR)
        apart_integer(at, dtype, pattern, index, count, state);
    else
        random_integer(at, op, dtype, state);
}

void data_fill(void *out, dpr_op op, dpr_dtype dtype, data_pattern pattern, size_t count) {
    const size_t size = ref_size(dtype);
    const int real = ref_is_float(dtype) || ref_is_complex(dtype);
    const format f = format_of(dtype);
    uint64_t state = (uint64_t)op << 40 | (uint64_t)dtype << 32 | (uint64_t)pattern << 24;
    uint64_t of_count = state + count, kinds = data_next(&of_count) & data_next(&of_count);
    unsigned char *at = out;
    for (size_t i = 0; i < count; i++, at += size) {
        if (pattern == DATA_CONSTANT)
            constant(at, op, dtype);
        else if (pattern == DATA_SPECIALS)
            special_float(at, f, count, kinds, &of_count);
        else if (real)
            put_float(at, op, f, pattern, i, count, &state);
        else
            put_integer(at, op, dtype, pattern, i, count, &state);
    }
    if (pattern == DATA_RANDOM)
        put_deciders(out, op, dtype, count, &state);
    if (count > 0)
        put_specials(out, dtype, pattern, count);
}

void data_init(void *out, dpr_op op, dpr_dtype result, data_pattern pattern) {
    const int follows = pattern == DATA_NAN_ALL || pattern >= DATA_SPECIALS;
    const data_pattern usual = op == DPR_MINMAX ? DATA_RANDOM : DATA_CONSTANT; /* two values that differ */
    data_fill(out, op, result, follows && data_pattern_applies(pattern, op, result) ? pattern : usual,
              ref_result_values(op));
    if (data_pattern_is_of_sums(pattern)) { /* what comes after others */
        unsigned char three[3 * 16];
        data_fill(three, op, result, pattern, 3);
        memcpy(out, three + (pattern == DATA_HALVES ? 2 : 1) * ref_size(result), ref_size(result));
    }
    if (op == DPR_ALL || op == DPR_ANY || op == DPR_BAND || op == DPR_BOR) /* a value that changes the result */
        memset(out, op == DPR_ALL || op == DPR_BAND ? 0 : 0x5a, ref_size(result));
}
