/* Random bits for policies of recursions, which the host and the GPU compute alike. */
#ifndef DPR_TESTS_RANDOM_BITS_H
#define DPR_TESTS_RANDOM_BITS_H

#include <dpr_recursion.cuh>

DPR_BOTH inline uint64_t mixed(uint64_t x) { /* splitmix64 (Steele, Lea, Flood, 2014) */
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

#endif
