#include "figures.h"

#include <inttypes.h>
#include <stdio.h>

/* The value in the unit that leaves it below `step`, or in the last one. */
static const char *in_units(double value, double step, const char *const units[], char text[32]) {
    char number[32];
    for (; value >= step - 0.5 && units[1]; units++)
        value /= step;
    snprintf(text, 32, "%.20s %s", figure_digits(value, number), *units);
    return text;
}

const char *figure_bytes(uint64_t bytes, char text[32]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
    if (bytes >= 1024)
        return in_units((double)bytes / 1024, 1024, units, text);
    snprintf(text, 32, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    return text;
}

const char *figure_time(double seconds, char text[32]) {
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return in_units(seconds * 1e9, 1000, units, text);
}

const char *figure_digits(double x, char text[32]) {
    snprintf(text, 32, "%.*f", x < 10 ? 2 : x < 100 ? 1 : 0, x);
    return text;
}

const char *figure_elements(uint64_t count, char text[32]) {
    int exponent = 0;
    while (count >> exponent > 1)
        exponent++;
    if (count == UINT64_C(1) << exponent)
        snprintf(text, 32, "2^%d", exponent);
    else
        snprintf(text, 32, "%" PRIu64, count);
    return text;
}

int figure_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
