#include "value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_json.h"

dpr_kind value_kind(dpr_dtype dtype) {
    dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
    (void)dpr_dtype_describe(dtype, &info);
    return info.kind;
}

/* ---- Floating point --------------------------------------------------------------------------------------------- */

/* The type of a part of a complex number; other types are their own part. */
static dpr_dtype part_type(dpr_dtype dtype) {
    return dtype == DPR_C64 ? DPR_F32 : dtype == DPR_C128 ? DPR_F64 : dtype;
}

static size_t parts_in(dpr_dtype dtype) {
    return value_kind(dtype) == DPR_KIND_COMPLEX ? 2 : 1;
}

/* The bits of infinity are ones in the exponent and zeros in the fraction. */
int value_precision(dpr_dtype dtype) {
    return __builtin_ctzll(dpr_infinity(dtype)) + 1;
}

/* The bits of a type shorter than F32. */
static uint16_t round_to_bits(dpr_dtype dtype, double x) {
    const unsigned infinity = (unsigned)dpr_infinity(dtype), sign = signbit(x) ? (unsigned)dpr_sign_bit(dtype) : 0;
    const int fraction = value_precision(dtype) - 1, bias = (int)(infinity >> fraction) / 2;
    if (isnan(x))
        return (uint16_t)(sign | infinity | 1U << (fraction - 1));
    if (fabs(x) >= ldexp(1, bias + 1))
        return (uint16_t)(sign | infinity);
    int exponent = 1 - bias; /* that of subnormal numbers */
    if (fabs(x) >= ldexp(1, exponent))
        exponent = ilogb(x);
    /* The leading 1 of a normal number adds 1 to the exponent, and so does rounding up to the next power of two. */
    const unsigned units = (unsigned)lrint(ldexp(fabs(x), fraction - exponent));
    return (uint16_t)(sign | (((unsigned)(exponent + bias - 1) << fraction) + units));
}

void value_narrow(dpr_dtype dtype, const double *from, void *to, size_t count) {
    const dpr_dtype type = part_type(dtype);
    const size_t size = dpr_dtype_size(type);
    double *f64 = to;
    float *f32 = to;
    for (size_t i = 0; i < count * parts_in(dtype); i++)
        if (type == DPR_F64) {
            f64[i] = from[i];
        } else if (type == DPR_F32) {
            f32[i] = (float)from[i];
        } else {
            const uint16_t bits = round_to_bits(type, from[i]);
            memcpy((unsigned char *)to + i * size, &bits, size); /* little-endian */
        }
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* A number of the type at the start of the text, with *end after it; infinity only where the text says so. */
static int parse_part(dpr_dtype type, const char *text, double *x, char **end) {
    value v = {{0}};
    errno = 0;
    const double read = type == DPR_F64 ? strtod(text, end) : (double)strtof(text, end);
    value_narrow(type, &read, &v, 1);
    *x = dpr_element_load(type, &v).re;
    const int overflows = isinf(*x) && (errno == ERANGE || !isinf(read));
    return *end == text || isspace((unsigned char)*text) || overflows ? -1 : 0;
}

/* a, bi or a+bi. */
static int parse_parts(dpr_dtype dtype, const char *text, value *out) {
    double parts[2] = {0, 0};
    char *end;
    if (parse_part(part_type(dtype), text, &parts[0], &end) != 0)
        return -1;
    if (*end == '+' || *end == '-') {
        if (parse_part(part_type(dtype), end, &parts[1], &end) != 0 || !*end)
            return -1;
    } else if (*end) {
        parts[1] = parts[0];
        parts[0] = 0;
    }
    if (*end && (parts_in(dtype) == 1 || (*end != 'i' && *end != 'j') || end[1]))
        return -1;
    value_narrow(dtype, parts, out, 1);
    return 0;
}

static int parse_integer(dpr_dtype dtype, const char *text, value *out) {
    const int is_signed = value_kind(dtype) == DPR_KIND_SINT;
    char *end;
    errno = 0;
    out->u64 = is_signed ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[strspn(text, is_signed ? "+-" : "+")]) || errno || *end)
        return -1;
    /* The low bytes are the smaller type, because the machine is little-endian. */
    return dpr_element_load(dtype, out).bits == out->u64 ? 0 : -1;
}

static int parse_bool(const char *text, value *out) {
    const int is_true = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    out->bytes[0] = (unsigned char)is_true;
    return is_true || strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ? 0 : -1;
}

int value_parse(dpr_dtype dtype, const char *text, value *out) {
    const dpr_kind kind = value_kind(dtype);
    value v = {{0}};
    const int bad = kind == DPR_KIND_BOOL                    ? parse_bool(text, &v)
                    : kind & (DPR_KIND_SINT | DPR_KIND_UINT) ? parse_integer(dtype, text, &v)
                                                             : parse_parts(dtype, text, &v);
    if (!bad)
        *out = v;
    return bad;
}

int values_parse(dpr_dtype dtype, size_t n, const char *text, value *out) {
    const size_t size = dpr_dtype_size(dtype);
    value all = {{0}};
    if (n == 1)
        return value_parse(dtype, text, out);
    for (size_t i = 0; i < n; i++) {
        const size_t length = i + 1 < n ? strcspn(text, " ") : strlen(text);
        char word[VALUE_TEXT];
        value one;
        if (length >= sizeof word)
            return -1;
        memcpy(word, text, length);
        word[length] = 0;
        if (value_parse(dtype, word, &one) != 0)
            return -1;
        memcpy(all.bytes + i * size, one.bytes, size);
        text += length + (text[length] == ' ');
    }
    *out = all;
    return 0;
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* The shortest decimal of the floating-point type that reads back. Whole numbers have no exponent up to 1e15, although
 * %g would turn to exponents at 1e5 when few digits are enough. */
static void float_text(dpr_dtype type, double x, char text[VALUE_TEXT]) {
    double back;
    char *end;
    if (isnan(x))
        strcpy(text, "nan");
    else if (fabs(x) < 1e15 && x == floor(x))
        snprintf(text, VALUE_TEXT, "%.0f", x);
    else
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, VALUE_TEXT, "%.*g", digits, x);
            if (parse_part(type, text, &back, &end) == 0 && back == x)
                break;
        }
}

void value_text(dpr_dtype dtype, const void *v, char text[VALUE_TEXT]) {
    const dpr_element e = dpr_element_load(dtype, v);
    char im[VALUE_TEXT];
    switch (value_kind(dtype)) {
    case DPR_KIND_BOOL:
        strcpy(text, e.bits ? "true" : "false");
        break;
    case DPR_KIND_SINT:
        snprintf(text, VALUE_TEXT, "%" PRId64, (int64_t)e.bits);
        break;
    case DPR_KIND_UINT:
        snprintf(text, VALUE_TEXT, "%" PRIu64, e.bits);
        break;
    default:
        float_text(part_type(dtype), e.re, text);
    }
    if (value_kind(dtype) == DPR_KIND_COMPLEX) {
        float_text(part_type(dtype), e.im, im);
        snprintf(text + strlen(text), VALUE_TEXT - strlen(text), "%s%.32si", *im == '-' ? "" : "+", im);
    }
}

cJSON *value_json(dpr_dtype dtype, const void *v) {
    const dpr_dtype part = part_type(dtype);
    char text[VALUE_TEXT];
    if (part != dtype) {
        cJSON *pair = cJSON_CreateArray();
        cli_json_append(pair, value_json(part, v));
        cli_json_append(pair, value_json(part, (const unsigned char *)v + dpr_dtype_size(part)));
        return pair;
    }
    value_text(dtype, v, text);
    return isfinite(dpr_element_load(dtype, v).re) ? cli_json_digits(text) : cJSON_CreateString(text);
}

void values_text(dpr_dtype dtype, size_t n, const void *v, char text[VALUES_TEXT]) {
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            *text++ = ' ';
        value_text(dtype, (const unsigned char *)v + i * dpr_dtype_size(dtype), text);
        text += strlen(text);
    }
}

cJSON *values_json(dpr_dtype dtype, size_t n, const void *v) {
    if (n == 1)
        return value_json(dtype, v);
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++)
        cli_json_append(array, value_json(dtype, (const unsigned char *)v + i * dpr_dtype_size(dtype)));
    return array;
}

/* ---- Generated -------------------------------------------------------------------------------------------------- */

/* Output number i of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t bits_of(uint64_t i) {
    uint64_t z = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* The numbers are made in F64 and narrowed in pieces. All types hold theirs exactly. */
static void floats(dpr_dtype dtype, uint64_t first, unsigned char *to, size_t count) {
    enum { PIECE = 256 };
    const int precision = value_precision(dtype);
    const double unit = ldexp(1, -precision);
    double numbers[PIECE] = {0};
    for (size_t at = 0; at < count; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;
        for (size_t i = 0; i < n; i++)
            numbers[i] = (double)(bits_of(first + at + i) >> (64 - precision)) * unit;
        value_narrow(dtype, numbers, to + at * dpr_dtype_size(dtype), n);
    }
}

/* Integers take the top bits, as do truth values. */
static void integers(dpr_dtype dtype, uint64_t first, unsigned char *to, size_t count) {
    unsigned size = (unsigned)dpr_dtype_size(dtype), shift = dtype == DPR_BOOL ? 63 : 64 - 8 * size;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = bits_of(first + i) >> shift;
        memcpy(to + i * size, &bits, size); /* little-endian, as the GPU is */
    }
}

void generate(dpr_dtype dtype, uint64_t first, void *to, size_t count) {
    if (value_kind(dtype) == DPR_KIND_COMPLEX)
        generate(dtype == DPR_C64 ? DPR_F32 : DPR_F64, 2 * first, to, 2 * count);
    else if (value_kind(dtype) == DPR_KIND_FLOAT)
        floats(dtype, first, to, count);
    else
        integers(dtype, first, to, count);
}
