/* Elements and results as text, as JSON, and generated. dpr_element_load() of cpu/element.h reads them. */
#ifndef DPR_TOOLS_VALUE_H
#define DPR_TOOLS_VALUE_H

#include <cjson/cJSON.h>

#include "element.h"

/* Memory for one element of any type, or one result of any pair, aligned for all. */
typedef union value {
    unsigned char bytes[16];
    int64_t i64;
    uint64_t u64;
    double f64;
    dpr_c128 c128;
} value;

/* Bytes of the text of a value, and of the values of a result, of which there are at most two. */
enum { VALUE_TEXT = 80, VALUES_TEXT = 2 * VALUE_TEXT };

/* What the elements of the type are. */
dpr_kind value_kind(dpr_dtype dtype);

/* The value in as few digits as give it back when read: true or false, integers, floating point, a+bi. */
void value_text(dpr_dtype dtype, const void *v, char text[VALUE_TEXT]);

/* The same for JSON: integers with all their digits, floating point with digits that give it back, NaN and infinities
 * as the strings "nan", "inf", "-inf", complex numbers as an array of two. NULL when out of memory. */
cJSON *value_json(dpr_dtype dtype, const void *v);

/* The same of `n` values of the type, which lie one behind the other: as text with a space between them, for JSON as an
 * array if there are several. */
void values_text(dpr_dtype dtype, size_t n, const void *v, char text[VALUES_TEXT]);
cJSON *values_json(dpr_dtype dtype, size_t n, const void *v);

/* Reads what value_text() writes, and other usual forms of numbers. 0, or -1 if the text is no such value or a number
 * beyond the range of the type. */
int value_parse(dpr_dtype dtype, const char *text, value *out);

/* Reads `n` values with a space between them, as many as have room in *out. 0 or -1. */
int values_parse(dpr_dtype dtype, size_t n, const char *text, value *out);

/* `count` elements of a floating-point or complex type, of F64 and C128: to nearest, ties to even. */
void value_narrow(dpr_dtype dtype, const double *from, void *to, size_t count);

/* Bits of the significand of a floating-point type. */
int value_precision(dpr_dtype dtype);

/* Fills elements `first` to first + count - 1 of a pseudo-random array of the type, the same on every machine. Element
 * i depends on i alone: it comes from the 64 bits of the i-th number of SplitMix64 with seed 0, and part p of a complex
 * number from those of number 2 i + p. Truth values are the top bit, integers the top bits, floating point the top p
 * bits over 2^p with p the bits of the type's significand (F64: 53, F32: 24, F16: 11, BF16: 8): uniform over all
 * integers of the type, and over [0, 1). */
void generate(dpr_dtype dtype, uint64_t first, void *to, size_t count);

#endif
