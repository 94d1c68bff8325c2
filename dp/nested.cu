#include "nested.cuh"

__device__ unsigned dpr_credits_taken;

extern "C" __global__ void __launch_bounds__(1024) dpr_go_on(const __grid_constant__ dpr_nested_args args) {
    reinterpret_cast<dpr::continuation>(args.go_on)(args);
}
