#include "figures.h"

#include <inttypes.h>
#include <stdio.h>

const char *figure_bytes(uint64_t bytes, char text[32]) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    char number[32];
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    if (unit == 0)
        snprintf(text, 32, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(text, 32, "%.20s %s", figure_digits(value, number), units[unit]);
    return text;
}

const char *figure_time(double seconds, char text[32]) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = seconds * 1e9;
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    snprintf(text, 32, "%.3g %s", value, units[unit]);
    if (unit == 3 && value >= 999.5)
        snprintf(text, 32, "%.0f s", value);
    return text;
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
