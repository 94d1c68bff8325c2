/* Admission of the module with the code for nested launches (dpr_module): is there enough memory? */
#include "cuda/home.h"
#include "error.h"
#include "nested_host.h"
#include "pending.h"

/* Called before the code is loaded: an H200 (driver 580) that has too little memory for a large pool cannot launch any
 * kernel from then on. It asks for a quarter more than needed, because the need is known for that device alone. */
dpr_status dpr_dp_admit(const dpr_module *module, int ordinal) {
    size_t pending = 0, available = 0, total = 0;
    cudaError_t error = dpr_pending_count(&pending);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&available, &total);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "asking for a device's memory");
    const size_t needed = (size_t)dpr_nested_bytes((int64_t)pending);
    if (available >= needed + needed / 4)
        return DPR_OK;
    return dpr_fail(DPR_ERR_OUT_OF_MEMORY,
                    "the code for %s and a pool of %zu pending launches take some %zu MiB, and device %d has %zu free",
                    module->name, pending, needed >> 20, ordinal, available >> 20);
}
