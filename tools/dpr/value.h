/* Elements and results as text and as JSON. dpr_element_load() of cpu/element.h reads them. */
#ifndef DPR_TOOLS_VALUE_H
#define DPR_TOOLS_VALUE_H

#include <cjson/cJSON.h>

#include "cpu/element.h"

/* Memory for one element of any type, aligned for all. */
typedef union value {
    unsigned char bytes[16];
    int64_t i64;
    uint64_t u64;
    double f64;
    dpr_c128 c128;
} value;

enum { VALUE_TEXT = 80 };

/* What the elements of the type are. */
dpr_kind value_kind(dpr_dtype dtype);

/* The value in as few digits as give it back when read: true or false, integers, floating point, a+bi. */
void value_text(dpr_dtype dtype, const void *v, char text[VALUE_TEXT]);

/* The same for JSON: integers with all their digits, floating point with digits that give it back, NaN and infinities
 * as the strings "nan", "inf", "-inf", complex numbers as an array of two. NULL when out of memory. */
cJSON *value_json(dpr_dtype dtype, const void *v);

/* Reads what value_text() writes, and other usual forms of numbers. 0, or -1 if the text is no such value or a number
 * beyond the range of the type. */
int value_parse(dpr_dtype dtype, const char *text, value *out);

/* `count` floating-point elements as F64, complex ones as C128. */
void value_widen(dpr_dtype dtype, const void *from, double *to, size_t count);

/* `count` elements of a floating-point or complex type, of F64 and C128: to nearest, ties to even. */
void value_narrow(dpr_dtype dtype, const double *from, void *to, size_t count);

/* Bits of the significand of a floating-point type. */
int value_precision(dpr_dtype dtype);

#endif
