/* Pseudo-random arrays, the same on every machine. */
#ifndef DPR_TOOLS_GENERATE_H
#define DPR_TOOLS_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "dpr.h"

/* Fills elements `first` to first + count - 1 of the array of the type. Element i depends on i alone: it comes from the
 * 64 bits of the i-th number of SplitMix64 with seed 0; part p of a complex number from those of number 2 i + p.
 * Truth values are the top bit, integers the top bits, floating point the top p bits over 2^p with p the bits of the
 * type's significand (F64: 53, F32: 24, F16: 11, BF16: 8): uniform over all integers of the type, and over [0, 1). */
void generate(dpr_dtype dtype, uint64_t first, void *to, size_t count);

#endif
