/* Numbers as people read them. The buffer's text is returned. */
#ifndef DPR_TOOLS_FIGURES_H
#define DPR_TOOLS_FIGURES_H

#include <stdint.h>

/* "1.5 GiB". */
const char *figure_bytes(uint64_t bytes, char text[32]);

/* "12.3 us". */
const char *figure_time(double seconds, char text[32]);

/* Three digits or so of a number from 0 on, without an exponent: "1.23", "12.3", "1234". */
const char *figure_digits(double x, char text[32]);

/* A number of elements: "2^20" or "1000". */
const char *figure_elements(uint64_t count, char text[32]);

/* Orders doubles, for qsort(). */
int figure_compare(const void *a, const void *b);

#endif
