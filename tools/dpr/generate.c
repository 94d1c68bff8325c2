#include "generate.h"

#include <string.h>

#include "value.h"

/* Output number i of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t bits_of(uint64_t i) {
    uint64_t z = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static double unit(uint64_t bits, int precision) {
    return (double)(bits >> (64 - precision)) / (double)(UINT64_C(1) << precision);
}

static void floats(dpr_dtype dtype, uint64_t first, void *to, size_t count) {
    uint16_t *half = to;
    float *f32 = to;
    double *f64 = to;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = bits_of(first + i);
        if (dtype == DPR_F64)
            f64[i] = unit(bits, 53);
        else if (dtype == DPR_F32)
            f32[i] = (float)unit(bits, 24);
        else if (dtype == DPR_F16)
            half[i] = value_to_f16((float)unit(bits, 11));
        else
            half[i] = value_to_bf16((float)unit(bits, 8));
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
    if (dtype == DPR_C64)
        floats(DPR_F32, 2 * first, to, 2 * count);
    else if (dtype == DPR_C128)
        floats(DPR_F64, 2 * first, to, 2 * count);
    else if (value_kind(dtype) == DPR_KIND_FLOAT)
        floats(dtype, first, to, count);
    else
        integers(dtype, first, to, count);
}

const char *generate_text(dpr_dtype dtype) {
    switch (value_kind(dtype)) {
    case DPR_KIND_FLOAT:
        return "uniform in [0, 1)";
    case DPR_KIND_COMPLEX:
        return "both parts uniform in [0, 1)";
    default:
        return "uniform over all values";
    }
}
