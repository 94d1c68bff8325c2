#include "npy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const unsigned char magic[NPY_MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* Reads a Python literal; `at` only goes forward and never past `end`. */
typedef struct reader {
    const unsigned char *start, *at, *end;
    char *why;
} reader;

/* A string of the literal: its place in the text. */
typedef struct span {
    const char *text;
    size_t length;
} span;

static int fail(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(char *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, NPY_WHY, format, args);
    va_end(args);
    return -1;
}

static int unexpected(reader *r, const char *wanted) {
    if (r->at == r->end)
        return fail(r->why, "the header ends where %s should be", wanted);
    return fail(r->why, "the header has byte 0x%02X at offset %zu, where %s should be", *r->at,
                (size_t)(r->at - r->start), wanted);
}

static void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Takes the character if it is next. */
static int take(reader *r, char c) {
    skip_space(r);
    if (r->at == r->end || *r->at != (unsigned char)c)
        return 0;
    r->at++;
    return 1;
}

static int take_word(reader *r, const char *word) {
    size_t n = strlen(word);
    skip_space(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return 0;
    r->at += n;
    return 1;
}

static int read_string(reader *r, span *out) {
    skip_space(r);
    unsigned char quote = r->at < r->end ? *r->at : 0;
    if (quote != '\'' && quote != '"')
        return unexpected(r, "a string");
    const unsigned char *first = ++r->at;
    while (r->at < r->end && *r->at != quote) {
        if (*r->at < 0x20 || *r->at == '\\')
            return unexpected(r, "a plain character of a string");
        r->at++;
    }
    if (r->at == r->end)
        return unexpected(r, "the end of a string");
    *out = (span){(const char *)first, (size_t)(r->at - first)};
    r->at++;
    return 0;
}

static int span_is(span s, const char *text) {
    return s.length == strlen(text) && memcmp(s.text, text, s.length) == 0;
}

static int read_dimension(reader *r, uint64_t *out) {
    skip_space(r);
    if (r->at < r->end && *r->at == '-')
        return fail(r->why, "the shape has a negative dimension");
    if (r->at == r->end || *r->at < '0' || *r->at > '9')
        return unexpected(r, "a dimension of the shape");
    uint64_t value = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        unsigned digit = *r->at - (unsigned)'0';
        if (value > (UINT64_MAX - digit) / 10)
            return fail(r->why, "the shape has a dimension of more than 2^64 - 1");
        value = value * 10 + digit;
    }
    if (r->at < r->end && *r->at == 'L') /* as Python 2 wrote long integers */
        r->at++;
    *out = value;
    return 0;
}

static int read_shape(reader *r, npy_header *h) {
    if (!take(r, '('))
        return unexpected(r, "the tuple of the shape");
    while (!take(r, ')')) {
        if (h->dims == NPY_DIMS)
            return fail(r->why, "the shape has more than %d dimensions", NPY_DIMS);
        if (read_dimension(r, &h->shape[h->dims]) != 0)
            return -1;
        h->dims++;
        if (take(r, ','))
            continue;
        if (h->dims == 1) /* (3) is a number in Python, (3,) is a tuple */
            return unexpected(r, "the comma of a tuple of one");
        if (!take(r, ')'))
            return unexpected(r, "',' or ')'");
        break;
    }
    return 0;
}

/* What a type code is for the user, when it is none that can be reduced. */
static const char *foreign_type(unsigned char code) {
    static const struct {
        unsigned char code;
        const char *what;
    } kinds[] = {{'O', "Python objects"}, {'S', "byte strings"}, {'a', "byte strings"}, {'U', "strings"},
                 {'V', "raw records"},    {'M', "dates"},        {'m', "time spans"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code)
            return kinds[i].what;
    return NULL;
}

static int set_dtype(reader *r, span descr, const dpr_dtype *as, npy_header *h) {
    span code = descr;
    char order = '=';
    if (code.length && strchr("<>=|", code.text[0])) {
        order = code.text[0];
        code.text++;
        code.length--;
    }
    dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
    for (dpr_dtype i = 0; dpr_dtype_describe(i, &info) == DPR_OK; i++) {
        char sized[32];
        snprintf(sized, sizeof sized, "V%zu", dpr_dtype_size(i));
        int opaque = as && *as == i && span_is(code, sized);
        if (opaque || (info.npy[0] && span_is(code, info.npy))) {
            h->dtype = i;
            h->swapped = order == '>' && dpr_dtype_size(i) > 1;
            return 0;
        }
    }
    const char *what = code.length ? foreign_type((unsigned char)code.text[0]) : NULL;
    int shown = descr.length > 32 ? 32 : (int)descr.length;
    if (what)
        return fail(r->why, "its elements are %s (dtype '%.*s'), which cannot be reduced", what, shown, descr.text);
    return fail(r->why, "its dtype '%.*s' is none that dpr reduces", shown, descr.text);
}

static int read_descr(reader *r, const dpr_dtype *as, npy_header *h) {
    skip_space(r);
    if (r->at < r->end && (*r->at == '[' || *r->at == '('))
        return fail(r->why, "its dtype is structured (records with fields), which cannot be reduced");
    span descr = {NULL, 0};
    return read_string(r, &descr) == 0 ? set_dtype(r, descr, as, h) : -1;
}

static int read_fortran(reader *r, npy_header *h) {
    h->fortran = take_word(r, "True");
    if (!h->fortran && !take_word(r, "False"))
        return unexpected(r, "True or False");
    return 0;
}

static int read_dict(reader *r, const dpr_dtype *as, npy_header *h) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    enum { KEYS = sizeof keys / sizeof *keys };
    int seen[KEYS] = {0};
    if (!take(r, '{'))
        return unexpected(r, "'{'");
    while (!take(r, '}')) {
        span key = {NULL, 0};
        if (read_string(r, &key) != 0)
            return -1;
        int k = 0;
        while (k < KEYS && !span_is(key, keys[k]))
            k++;
        if (k == KEYS)
            return fail(r->why, "the header has the unknown key '%.*s'", key.length > 32 ? 32 : (int)key.length,
                        key.text);
        if (seen[k]++)
            return fail(r->why, "the header has the key '%s' twice", keys[k]);
        if (!take(r, ':'))
            return unexpected(r, "':'");
        int bad = k == 0 ? read_descr(r, as, h) : k == 1 ? read_fortran(r, h) : read_shape(r, h);
        if (bad)
            return -1;
        if (take(r, ','))
            continue;
        if (!take(r, '}'))
            return unexpected(r, "',' or '}'");
        break;
    }
    for (int k = 0; k < KEYS; k++)
        if (!seen[k])
            return fail(r->why, "the header lacks the key '%s'", keys[k]);
    skip_space(r);
    return r->at == r->end ? 0 : unexpected(r, "only space");
}

/* The product of the shape. A dimension of 0 makes the array empty, whatever the others are. */
static int set_count(npy_header *h, char *why) {
    h->count = 1;
    for (int i = 0; i < h->dims; i++)
        if (h->shape[i] == 0)
            h->count = 0;
    uint64_t most = (uint64_t)PTRDIFF_MAX / dpr_dtype_size(h->dtype);
    for (int i = 0; i < h->dims && h->count; i++) {
        if (h->shape[i] > most / h->count)
            return fail(why, "its shape is of more elements than fit the address space");
        h->count *= h->shape[i];
    }
    return 0;
}

int npy_is(const unsigned char *bytes, size_t size) {
    return size >= NPY_MAGIC_BYTES && memcmp(bytes, magic, NPY_MAGIC_BYTES) == 0;
}

int npy_prefix(const unsigned char *bytes, size_t size, size_t *header_bytes, char why[NPY_WHY]) {
    if (size < NPY_MAGIC_BYTES + 2)
        return fail(why, "the header is cut off after %zu bytes", size);
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return fail(why, "version %u.%u of the .npy format is unknown (1.0, 2.0 and 3.0 are known)", major, minor);
    size_t prefix = major == 1 ? 10 : 12;
    if (size < prefix)
        return fail(why, "the header is cut off after %zu bytes", size);
    size_t text = bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1)
        text |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (text > NPY_HEADER_BYTES - NPY_PREFIX_BYTES)
        return fail(why, "the header claims %zu bytes; %d is the most that is read", text,
                    NPY_HEADER_BYTES - NPY_PREFIX_BYTES);
    *header_bytes = prefix + text;
    return 0;
}

int npy_parse(const unsigned char *bytes, size_t size, const dpr_dtype *as, npy_header *out, char why[NPY_WHY]) {
    npy_header h = {0};
    if (npy_prefix(bytes, size, &h.bytes, why) != 0)
        return -1;
    if (size < h.bytes)
        return fail(why, "the header is cut off: it claims %zu bytes and has %zu", h.bytes, size);
    reader r = {bytes, bytes + (bytes[6] == 1 ? 10 : 12), bytes + h.bytes, why};
    if (read_dict(&r, as, &h) != 0 || set_count(&h, why) != 0)
        return -1;
    *out = h;
    return 0;
}
