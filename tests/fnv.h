/* FNV-1a of 64 bits, by which host/plan/wisdom.c signs what it writes. */
#ifndef DPR_TESTS_FNV_H
#define DPR_TESTS_FNV_H

#include <stddef.h>
#include <stdint.h>

static inline unsigned long long fnv_1a(const char *text, size_t size) {
    uint64_t signature = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        signature = (signature ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return signature;
}

#endif
