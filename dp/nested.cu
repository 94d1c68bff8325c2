#include "nested.cuh"

__device__ unsigned dpr_credits_taken;
