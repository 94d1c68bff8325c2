/* Numbers as 64-bit words that are the same on every machine, and functions that C and CUDA share. */
#ifndef DPR_CORE_WORDS_H
#define DPR_CORE_WORDS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define DPR_INLINE static inline __host__ __device__
#define DPR_FACT static inline __host__ __device__ constexpr /* C++ can assert what it returns */
#else
#define DPR_INLINE static inline __attribute__((always_inline))
#define DPR_FACT DPR_INLINE
#endif

/* The bits of a number; all NaNs have the same. */
DPR_INLINE uint64_t dpr_word_of(double x) {
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (x == x)
        memcpy(&bits, &x, sizeof bits);
    return bits;
}

DPR_INLINE double dpr_word_number(uint64_t word) {
    double x;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* What a sum has lost: nothing that counts once the sum is infinite or NaN. */
DPR_INLINE uint64_t dpr_word_of_lost(double sum, double lost) {
    return isfinite(sum) ? dpr_word_of(lost) : 0;
}

/* The low `size` bytes. */
DPR_INLINE uint64_t dpr_word_cut(size_t size, uint64_t bits) {
    return size < sizeof bits ? bits & ((UINT64_C(1) << (8 * size % 64)) - 1) : bits;
}

#endif
