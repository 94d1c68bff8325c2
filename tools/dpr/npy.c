#include "npy.h"

#include <inttypes.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int npy_fail(char why[NPY_WHY], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, NPY_WHY, format, args);
    va_end(args);
    return -1;
}

/* ---- The header's text ------------------------------------------------------------------------------------------ */

/* The text is a Python dictionary of three items, in any order. A comma makes a tuple of one: (3) is a number. */
#define SPACE "[ \t\r\n]*"
#define ITEM(KEY, VALUE) "[\"']" KEY "[\"']" SPACE ":" SPACE VALUE
#define NUMBER SPACE "[0-9]+" SPACE
#define DESCR ITEM("descr", "[\"']([^\"']*)[\"']")
#define ORDER ITEM("fortran_order", "(True|False)")
#define SHAPE ITEM("shape", "\\((" SPACE "|(" NUMBER ",)+(" NUMBER ")?" SPACE ")\\)")
#define ANY SPACE "(" DESCR "|" ORDER "|" SHAPE ")" SPACE

/* Whether the text has the pattern; *found is what its first parentheses match. */
static int has(const char *text, const char *pattern, regmatch_t *found) {
    regex_t compiled;
    regmatch_t matches[2];
    if (regcomp(&compiled, pattern, REG_EXTENDED) != 0)
        return 0;
    const int is_there = regexec(&compiled, text, 2, matches, 0) == 0;
    regfree(&compiled);
    *found = matches[1];
    return is_there;
}

static int set_dtype(const char *descr, int length, const dpr_dtype *as, npy_header *h, char *why) {
    char name[32], opaque[8];
    snprintf(name, sizeof name, "%.*s", length, descr);
    const char *code = name + (*name && strchr("<>=|", *name));
    for (size_t i = 0; i < dpr_dtype_count(); i++) {
        const dpr_dtype dtype = dpr_dtype_at(i);
        dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
        (void)dpr_dtype_describe(dtype, &info);
        snprintf(opaque, sizeof opaque, "V%zu", dpr_dtype_size(dtype));
        const char *known = as && *as == dtype && *code == 'V' ? opaque : info.npy;
        if (*known && strcmp(code, known) == 0) {
            h->dtype = dtype;
            h->swapped = *name == '>' && dpr_dtype_size(dtype) > 1;
            return 0;
        }
    }
    return npy_fail(why, "its dtype '%s' is none that dpr reduces", name);
}

/* The dimensions, and the product of them. One of 0 makes the array empty, whatever the others are. */
static int set_shape(const char *at, const char *end, npy_header *h, char *why) {
    const uint64_t most = (uint64_t)PTRDIFF_MAX / dpr_dtype_size(h->dtype);
    int is_empty = 0, is_large = 0;
    char *after;
    h->count = 1;
    for (at += strspn(at, " \t\r\n"); at < end; at = after + strspn(after, ", \t\r\n")) {
        const uint64_t extent = strtoull(at, &after, 10); /* UINT64_MAX if it is more */
        if (h->dims == NPY_DIMS)
            return npy_fail(why, "its shape has more than %d dimensions", NPY_DIMS);
        h->shape[h->dims++] = extent;
        is_empty |= extent == 0;
        is_large |= extent > most / h->count;
        h->count *= extent && !is_large ? extent : 1;
    }
    if (is_empty)
        h->count = 0;
    return is_large && !is_empty ? npy_fail(why, "its shape is of more elements than fit the address space") : 0;
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

int npy_is(const unsigned char *bytes, size_t size) {
    return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

int npy_prefix(const unsigned char *bytes, size_t size, size_t *prefix, size_t *text, char why[NPY_WHY]) {
    const unsigned major = size > 6 ? bytes[6] : 1, minor = size > 7 ? bytes[7] : 0;
    if (major < 1 || major > 3 || minor != 0)
        return npy_fail(why, "version %u.%u of the .npy format is unknown (1.0, 2.0 and 3.0 are known)", major, minor);
    *prefix = major == 1 ? 10 : 12;
    if (size < *prefix)
        return npy_fail(why, "the header is cut off after %zu bytes", size);
    *text = bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1)
        *text |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*text > NPY_TEXT_BYTES)
        return npy_fail(why, "the header claims %zu bytes; %d is the most that is read", *text, NPY_TEXT_BYTES);
    return 0;
}

/* The characters of a header that a message shows, without the spaces that fill it up. */
static int shown(const char *text) {
    const size_t all = strlen(text);
    size_t length = all < 200 ? all : 200;
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    return (int)length;
}

int npy_parse(const char *text, size_t length, const dpr_dtype *as, npy_header *out, char why[NPY_WHY]) {
    regmatch_t all, descr, order, shape;
    npy_header h = {0};
    if (strlen(text) != length || !has(text, "^" SPACE "\\{" ANY "," ANY "," ANY ",?" SPACE "\\}" SPACE "$", &all)
        || !has(text, DESCR, &descr) || !has(text, ORDER, &order) || !has(text, SHAPE, &shape))
        return npy_fail(why, "its header is not that of a plain array: %.*s", shown(text), text);
    h.fortran = text[order.rm_so] == 'T';
    if (set_dtype(text + descr.rm_so, descr.rm_eo - descr.rm_so, as, &h, why) != 0
        || set_shape(text + shape.rm_so, text + shape.rm_eo, &h, why) != 0)
        return -1;
    *out = h;
    return 0;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

void npy_write_header(FILE *f, dpr_dtype dtype, int dims, const uint64_t *shape) {
    enum { ALIGN = 64, PREFIX = 10 };
    char text[128 + 22 * NPY_DIMS];
    dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
    const uint16_t one = 1;
    (void)dpr_dtype_describe(dtype, &info);
    const int is_little = *(const unsigned char *)&one, has_order = *info.npy && dpr_dtype_size(dtype) > 1;
    int length = snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                          !has_order  ? "|"
                          : is_little ? "<"
                                      : ">",
                          *info.npy ? info.npy : "V2");
    for (int d = 0; d < dims && d < NPY_DIMS; d++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%" PRIu64 ",", shape[d]);
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    const int padded = (PREFIX + length + 1 + ALIGN - 1) / ALIGN * ALIGN - PREFIX;
    (void)fprintf(f, "\x93NUMPY%c%c%c%c%-*s\n", 1, 0, padded & 255, padded >> 8, padded - 1, text);
}
