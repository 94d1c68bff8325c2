#include "generate.h"

#include <math.h>
#include <string.h>

#include "value.h"

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
    double numbers[PIECE];
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
