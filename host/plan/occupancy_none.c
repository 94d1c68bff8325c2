/* A build without CUDA has neither kernels nor the toolkit's calculation. */
#include "occupancy.h"

dpr_occupancy dpr_occupancy_of(const dpr_gpu_caps *gpu, dpr_kernel_use use) {
    (void)gpu, (void)use;
    return (dpr_occupancy){0, 0.0, "does not fit"};
}
