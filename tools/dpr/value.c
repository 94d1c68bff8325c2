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

/* ---- 16-bit floating point -------------------------------------------------------------------------------------- */

float value_from_f16(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float x = exponent == 31  ? (fraction ? NAN : INFINITY)
              : exponent == 0 ? ldexpf((float)fraction, -24)
                              : ldexpf((float)(fraction | 1024), exponent - 25);
    return bits >> 15 ? -x : x;
}

float value_from_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

uint16_t value_to_f16(float x) {
    unsigned sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return (uint16_t)(sign | 0x7e00);
    float a = fabsf(x);
    int exponent = -14; /* that of subnormal numbers */
    if (a >= 0x1p-14F)
        exponent = a >= 65536 ? 16 : ilogbf(a);
    unsigned units = exponent > 15 ? 2048 : (unsigned)lrintf(ldexpf(a, 10 - exponent)); /* may round up to 2048 */
    unsigned bits = units < 1024 ? units : (((unsigned)(exponent + 15) << 10) + units - 1024);
    return (uint16_t)(sign | (bits < 0x7c00 ? bits : 0x7c00));
}

uint16_t value_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Whether the text, read as the type, is x again. */
static int reads_back(dpr_dtype dtype, const char *text, double x) {
    switch (dtype) {
    case DPR_F16:
        return value_from_f16(value_to_f16(strtof(text, NULL))) == (float)x;
    case DPR_BF16:
        return value_from_bf16(value_to_bf16(strtof(text, NULL))) == (float)x;
    case DPR_F32:
        return strtof(text, NULL) == (float)x;
    default:
        return strtod(text, NULL) == x;
    }
}

/* The shortest decimal of the floating-point type that reads back; 32 bytes are enough. */
static void float_text(dpr_dtype dtype, double x, char *text) {
    if (isnan(x)) {
        strcpy(text, "nan");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, x);
        if (reads_back(dtype, text, x))
            break;
    }
}

/* The number as integers are usually written: %g would turn to exponents at 1e5 when few digits are enough. */
static void plain_text(dpr_dtype dtype, double x, char *text) {
    float_text(dtype, x, text);
    if (strchr(text, 'e') && fabs(x) < 1e15 && x == floor(x)) {
        char whole[32];
        snprintf(whole, sizeof whole, "%.0f", x);
        if (reads_back(dtype, whole, x))
            strcpy(text, whole);
    }
}

double value_parts(dpr_dtype dtype, const value *v, double *im) {
    *im = 0;
    switch (dtype) {
    case DPR_F16:
        return value_from_f16(v->u16);
    case DPR_BF16:
        return value_from_bf16(v->u16);
    case DPR_F32:
        return v->f32;
    case DPR_F64:
        return v->f64;
    case DPR_C64:
        *im = v->c64.im;
        return v->c64.re;
    default:
        *im = v->c128.im;
        return v->c128.re;
    }
}

void value_widen(dpr_dtype dtype, const void *from, double *to, size_t count) {
    const size_t parts = value_kind(dtype) == DPR_KIND_COMPLEX ? 2 * count : count;
    const uint16_t *bits = from;
    const float *x = from;
    if (dtype == DPR_F64 || dtype == DPR_C128)
        memcpy(to, from, parts * sizeof *to);
    else if (dtype == DPR_F32 || dtype == DPR_C64)
        for (size_t i = 0; i < parts; i++)
            to[i] = (double)x[i];
    else
        for (size_t i = 0; i < parts; i++)
            to[i] = (double)(dtype == DPR_F16 ? value_from_f16(bits[i]) : value_from_bf16(bits[i]));
}

static dpr_dtype part_type(dpr_dtype dtype) {
    return dtype == DPR_C64 ? DPR_F32 : dtype == DPR_C128 ? DPR_F64 : dtype;
}

static int64_t signed_integer(dpr_dtype dtype, const value *v) {
    unsigned shift = 64 - 8U * (unsigned)dpr_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, v->bytes, dpr_dtype_size(dtype));
    return (int64_t)(bits << shift) >> shift;
}

static uint64_t unsigned_integer(dpr_dtype dtype, const value *v) {
    uint64_t bits = 0;
    memcpy(&bits, v->bytes, dpr_dtype_size(dtype));
    return bits;
}

void value_text(dpr_dtype dtype, const value *v, char text[VALUE_TEXT]) {
    char re[32], im[32];
    double y, x;
    switch (value_kind(dtype)) {
    case DPR_KIND_BOOL:
        strcpy(text, v->bytes[0] ? "true" : "false");
        break;
    case DPR_KIND_SINT:
        snprintf(text, VALUE_TEXT, "%" PRId64, signed_integer(dtype, v));
        break;
    case DPR_KIND_UINT:
        snprintf(text, VALUE_TEXT, "%" PRIu64, unsigned_integer(dtype, v));
        break;
    case DPR_KIND_FLOAT:
        plain_text(dtype, value_parts(dtype, v, &y), text);
        break;
    default:
        x = value_parts(dtype, v, &y);
        plain_text(part_type(dtype), x, re);
        plain_text(part_type(dtype), y, im);
        snprintf(text, VALUE_TEXT, "%s%s%si", re, *im == '-' ? "" : "+", im);
    }
}

static cJSON *float_json(dpr_dtype dtype, double x) {
    char text[32];
    plain_text(dtype, x, text);
    return isfinite(x) ? cli_json_digits(text) : cJSON_CreateString(text);
}

cJSON *value_json(dpr_dtype dtype, const value *v) {
    char text[VALUE_TEXT];
    double im, re;
    switch (value_kind(dtype)) {
    case DPR_KIND_BOOL:
        return cJSON_CreateBool(v->bytes[0] != 0);
    case DPR_KIND_FLOAT:
        return float_json(dtype, value_parts(dtype, v, &im));
    case DPR_KIND_COMPLEX: {
        re = value_parts(dtype, v, &im);
        cJSON *pair = cJSON_CreateArray();
        cli_json_append(pair, float_json(part_type(dtype), re));
        cli_json_append(pair, float_json(part_type(dtype), im));
        return pair;
    }
    default:
        value_text(dtype, v, text);
        return cJSON_CreateRaw(text);
    }
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static int parse_integer(dpr_dtype dtype, const char *text, value *out) {
    unsigned bits = 8U * (unsigned)dpr_dtype_size(dtype);
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    if (!isdigit((unsigned char)*digits))
        return -1;
    errno = 0;
    if (value_kind(dtype) == DPR_KIND_UINT) {
        uint64_t u = strtoull(text, &end, 10);
        if (*text == '-' || errno || *end || u > UINT64_MAX >> (64 - bits))
            return -1;
        out->u64 = u;
        return 0;
    }
    int64_t i = strtoll(text, &end, 10), most = INT64_MAX >> (64 - bits);
    if (errno || *end || i > most || i < -most - 1)
        return -1;
    out->u64 = (uint64_t)i; /* little-endian: the low bytes are the smaller type */
    return 0;
}

/* A number at the start of the text, with *end after it; infinity only where the text says so. */
static int parse_part(const char *text, int single, double *x, char **end) {
    if (isspace((unsigned char)*text))
        return -1;
    errno = 0;
    *x = single ? (double)strtof(text, end) : strtod(text, end);
    return *end == text || (errno == ERANGE && isinf(*x)) ? -1 : 0;
}

static int parse_real(const char *text, int single, double *x) {
    char *end;
    return parse_part(text, single, x, &end) != 0 || *end ? -1 : 0;
}

static int parse_complex(const char *text, int single, double *re, double *im) {
    char *end;
    *im = 0;
    if (parse_part(text, single, re, &end) != 0)
        return -1;
    if ((*end == 'i' || *end == 'j') && !end[1]) {
        *im = *re;
        *re = 0;
        return 0;
    }
    if (!*end)
        return 0;
    if ((*end != '+' && *end != '-') || parse_part(end, single, im, &end) != 0)
        return -1;
    return (*end == 'i' || *end == 'j') && !end[1] ? 0 : -1;
}

static int parse_bool(const char *text, value *out) {
    static const char *const words[] = {"false", "0", "true", "1"};
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(text, words[i]) == 0) {
            out->bytes[0] = i >= 2;
            return 0;
        }
    return -1;
}

int value_parse(dpr_dtype dtype, const char *text, value *out) {
    value v = {{0}};
    double re = 0, im = 0;
    const dpr_kind kind = value_kind(dtype);
    int bad = 0;
    if (kind == DPR_KIND_BOOL)
        bad = parse_bool(text, &v);
    else if (kind & (DPR_KIND_SINT | DPR_KIND_UINT))
        bad = parse_integer(dtype, text, &v);
    else if (kind == DPR_KIND_FLOAT)
        bad = parse_real(text, dpr_dtype_size(dtype) <= 4, &re);
    else
        bad = parse_complex(text, dpr_dtype_size(dtype) <= 8, &re, &im);
    if (bad)
        return -1;
    if (dtype == DPR_F16)
        v.u16 = value_to_f16((float)re);
    else if (dtype == DPR_BF16)
        v.u16 = value_to_bf16((float)re);
    else if (dtype == DPR_F32)
        v.f32 = (float)re;
    else if (dtype == DPR_F64)
        v.f64 = re;
    else if (dtype == DPR_C64)
        v.c64 = (dpr_c64){(float)re, (float)im};
    else if (dtype == DPR_C128)
        v.c128 = (dpr_c128){re, im};
    if (kind == DPR_KIND_FLOAT && isfinite(re) && !isfinite(value_parts(dtype, &v, &im))) /* beyond a 16-bit type */
        return -1;
    *out = v;
    return 0;
}

int value_is_nan(dpr_dtype dtype, const value *v) {
    double im, re;
    if (!(value_kind(dtype) & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX)))
        return 0;
    re = value_parts(dtype, v, &im);
    return isnan(re) || isnan(im);
}
