/* The resources that kernels use, and how many of their blocks a device holds. */
#include "opened.h"

#include "driver.h"
#include "error.h"
#include "home.h"
#include "module.h"

/* Asks whether the module may be loaded, unless it is loaded. Called in a home, relaxed (home.h). */
static dpr_status admit(const dpr_module *module, int ordinal) {
    return !module->admit || dpr_module_arrived(module).context ? DPR_OK : module->admit(module, ordinal);
}

/* ---- What a kernel uses ---- */

/* Finds the kernel's registers and its static shared memory. */
static dpr_status find_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    struct cudaFuncAttributes attributes = {0};
    cudaError_t error = cudaSuccess;
    if (kernel->module) {
        const dpr_status status = admit(kernel->module, ordinal);
        if (status != DPR_OK)
            return status;
        error = dpr_module_kernel_use(kernel->module, kernel->entry, &use->registers, &use->shared_bytes);
    } else {
        error = cudaFuncGetAttributes(&attributes, kernel->entry);
        use->registers = attributes.numRegs;
        use->shared_bytes = (int)attributes.sharedSizeBytes;
    }
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "asking what a kernel uses");
}

dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    dpr_home home;
    dpr_visit visit;
    dpr_kernel_use found = {.threads = kernel->threads};
    dpr_status status = dpr_device_home(ordinal, NULL, &home);
    if (status == DPR_OK)
        status = dpr_home_enter_relaxed(&home, &visit);
    if (status != DPR_OK)
        return status;
    status = find_use(ordinal, kernel, &found);
    dpr_home_leave(&visit);
    if (status != DPR_OK)
        return status;
    found.shared_bytes += kernel->shared_bytes;
    *use = found;
    return DPR_OK;
}

/* ---- How many blocks of a kernel the device holds ---- */

enum { PORTABLE_SHARED_BYTES = 48 * 1024, PORTABLE_CLUSTER = 8 }; /* no device asks a permission for these */

static cudaError_t count_blocks(const dpr_kernel *kernel, const dpr_residence *at, dpr_residency *out) {
    int blocks = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->entry, kernel->threads,
                                                                            (size_t)kernel->shared_bytes);
    *out = (dpr_residency){blocks * at->sms, 0};
    return error;
}

static cudaError_t count_in_clusters(const dpr_kernel *kernel, int cluster, const dpr_residence *at,
                                     dpr_residency *out) {
    int clusters = 0;
    cudaError_t error = cudaSuccess;
    if (cluster > PORTABLE_CLUSTER)
        error = cudaFuncSetAttribute(kernel->entry, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute of_cluster = {.id = cudaLaunchAttributeClusterDimension};
    of_cluster.val.clusterDim.x = (unsigned)cluster;
    of_cluster.val.clusterDim.y = of_cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {.attrs = &of_cluster, .numAttrs = 1, .stream = at->stream};
    config.gridDim = (dim3){(unsigned)(cluster * at->sms), 1, 1};
    config.blockDim = (dim3){(unsigned)kernel->threads, 1, 1};
    config.dynamicSmemBytes = (size_t)kernel->shared_bytes;
    error = cudaOccupancyMaxActiveClusters(&clusters, kernel->entry, &config);
    *out = (dpr_residency){clusters * cluster, cluster};
    return error;
}

/* Finds the largest cluster that the device has room for: of as many blocks as the kernel asks for, or else of 8, 4
 * or 2. */
static cudaError_t count_clusters(const dpr_kernel *kernel, const dpr_residence *at, dpr_residency *out) {
    cudaError_t error = count_in_clusters(kernel, kernel->cluster, at, out);
    for (int cluster = PORTABLE_CLUSTER; cluster > 1 && (error != cudaSuccess || out->blocks == 0); cluster /= 2) {
        if (cluster >= kernel->cluster)
            continue;
        (void)cudaGetLastError();
        error = count_in_clusters(kernel, cluster, at, out);
    }
    return error;
}

/* Loads the other kernels: a launch would do so, but it may be in a capture. */
static cudaError_t load_others(const dpr_kernel *kernel) {
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < DPR_OTHER_KERNELS && error == cudaSuccess; i++)
        if (kernel->others[i])
            error = cudaFuncGetAttributes(&attributes, kernel->others[i]);
    return error;
}

/* Called in the home. Also gives the kernel the permissions that its launches there need. */
static cudaError_t count_resident(const dpr_kernel *kernel, const dpr_residence *at, dpr_residency *out) {
    const cudaError_t others = load_others(kernel);
    if (others != cudaSuccess)
        return others;
    if (kernel->shared_bytes > PORTABLE_SHARED_BYTES) {
        const cudaError_t error =
            cudaFuncSetAttribute(kernel->entry, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel->shared_bytes);
        if (error != cudaSuccess)
            return error;
    }
    return kernel->cluster == 0 ? count_blocks(kernel, at, out) : count_clusters(kernel, at, out);
}

/* Loads the module. Its kernels do not wait for other blocks, so nobody needs to know how many are resident. */
static dpr_status check_module(const dpr_device *device, const dpr_kernel *kernel) {
    CUfunction function;
    const int ordinal = device->home.ordinal;
    const dpr_status status = admit(kernel->module, ordinal);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_module_function(kernel->module, kernel->entry, &function);
    if (error == cudaSuccess)
        return DPR_OK;
    (void)cudaGetLastError();
    if (dpr_driver_is_final(error) || error == cudaErrorMemoryAllocation)
        return dpr_cuda_failed(error, kernel->module->name);
    return dpr_fail_cuda((int)error, DPR_ERR_STRATEGY_UNABLE, "the code for %s cannot be loaded on device %d: %s (%s)",
                         kernel->module->name, ordinal, cudaGetErrorString(error), cudaGetErrorName(error));
}

dpr_status dpr_device_resident(void *user, const dpr_kernel *kernel, dpr_residency *out) {
    const dpr_residence *at = user;
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&at->device->home, &visit);
    if (status != DPR_OK)
        return status;
    *out = (dpr_residency){0, 0};
    if (kernel->module) {
        status = check_module(at->device, kernel);
    } else {
        const cudaError_t error = count_resident(kernel, at, out);
        if (error != cudaSuccess)
            status = dpr_cuda_failed(error, "asking for a kernel's occupancy");
    }
    dpr_home_leave(&visit);
    return status;
}

dpr_residence dpr_device_residence(dpr_device *device) {
    return (dpr_residence){device, NULL, device->sms};
}
