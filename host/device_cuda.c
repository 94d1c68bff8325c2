/* Devices through the CUDA runtime. */
#include "device.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibration.h"
#include "capture.h"
#include "driver.h"
#include "error.h"
#include "home.h"
#include "kernels.h"
#include "mailbox.h"
#include "module.h"
#include "nested_host.h"
#include "nesting.h"
#include "registry.h"
#include "scratch.h"
#include "uncancelled.h"

struct dpr_device {
    dpr_home home;
    int sms;                   /* on which the home's work runs */
    int code;                  /* compute capability that the kernels were compiled for, times 10: 75, 90 */
    int concurrent_managed;    /* whether the host may touch managed memory while a kernel runs */
    int64_t pending;           /* launches from kernels that may be pending */
    _Atomic(cudaStream_t) own; /* for blocking calls where the legacy default stream may not be used; NULL at first */
    dpr_scratch *scratch;
    dpr_mail *mail;
    dpr_kernels *kernels;
    dpr_nesting *nesting;
    dpr_calibration *calibration;
};

int dpr_device_count(void) {
    const char *why;
    return dpr_driver_devices(&why);
}

const char *dpr_device_absent(void) {
    const char *why;
    return dpr_driver_devices(&why) == 0 ? why : NULL;
}

int dpr_device_current(void) {
    int ordinal = 0;
    if (cudaGetDevice(&ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return ordinal;
}

dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out) {
    return dpr_driver_place(pointer, argument, out);
}

typedef struct attribute {
    size_t offset;
    enum cudaDeviceAttr attribute;
} attribute;

#define DPR_ATTRIBUTE_ROW(A, NAME, ATTRIBUTE, ...) {offsetof(dpr_gpu_caps, NAME), cudaDevAttr##ATTRIBUTE},

static dpr_status read_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    static const attribute attributes[] = {DPR_GPU_CAPS_LIST(DPR_ATTRIBUTE_ROW, _)};
    dpr_gpu_caps caps = {0};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        int value = 0;
        const cudaError_t error = cudaDeviceGetAttribute(&value, attributes[i].attribute, ordinal);
        if (error != cudaSuccess)
            return dpr_cuda_failed(error, "cudaDeviceGetAttribute");
        *(int64_t *)(void *)((char *)&caps + attributes[i].offset) = value;
    }
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "cudaGetDeviceProperties");
    snprintf(name, 64, "%.63s", properties.name);
    caps.memory_bytes = (int64_t)properties.totalGlobalMem;
    dpr_nested_assume(&caps, DPR_FIRST_PENDING);
    *gpu = caps;
    return DPR_OK;
}

dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]) {
    const int cancel = dpr_cancel_hold();
    const dpr_status status = read_caps(ordinal, gpu, name);
    dpr_cancel_release(cancel);
    return status;
}

dpr_status dpr_device_pci(int ordinal, char bus_id[16]) {
    const cudaError_t error = cudaDeviceGetPCIBusId(bus_id, 16, ordinal);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "cudaDeviceGetPCIBusId");
}

/* In a home, relaxed. Before the code is loaded: an H200 (driver 580) that has too little memory for a large pool can
 * launch no kernels at all from then on. With a margin, because how much it takes is known of that device alone. */
static dpr_status check_room(int ordinal, const dpr_module *module) {
    size_t pending = 0, available = 0, total = 0;
    if (dpr_module_arrived(module).context)
        return DPR_OK;
    cudaError_t error = dpr_nesting_pending(&pending);
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

/* Registers and static shared memory. */
static dpr_status find_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    struct cudaFuncAttributes attributes = {0};
    cudaError_t error = cudaSuccess;
    if (kernel->module) {
        const dpr_status status = check_room(ordinal, kernel->module);
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

/* Enters the home for work with memory of device `ordinal`. */
static dpr_status enter_device(int ordinal, void *owner, dpr_visit *visit) {
    dpr_home home;
    const dpr_status status = dpr_device_home(ordinal, owner, &home);
    return status == DPR_OK ? dpr_home_enter_relaxed(&home, visit) : status;
}

dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use) {
    dpr_visit visit;
    dpr_kernel_use found = {.threads = kernel->threads};
    dpr_status status = enter_device(ordinal, NULL, &visit);
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

/* A copy from pageable memory may return before it has arrived, so there is a wait after it. */
static cudaError_t copy_in_legacy(void *to, const void *from, size_t bytes) {
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, NULL);
    return error == cudaSuccess ? dpr_home_wait_for_legacy() : error;
}

static cudaError_t copy_after_legacy(void *to, const void *from, size_t bytes) {
    if (dpr_home_has_legacy())
        return copy_in_legacy(to, from, bytes);
    const cudaError_t error = dpr_home_wait();
    return error == cudaSuccess ? dpr_home_copy_apart(to, from, bytes) : error;
}

dpr_status dpr_device_put(dpr_place place, void *to, const void *host, size_t bytes) {
    dpr_visit visit;
    const dpr_status status = enter_device(place.device, place.owner, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = copy_after_legacy(to, host, bytes);
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "copying the result to the device");
}

dpr_status dpr_device_wait(dpr_place place) {
    dpr_visit visit;
    const dpr_status status = enter_device(place.device, place.owner, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_home_wait_for_legacy();
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "waiting for the default stream");
}

/* ---- An initialised device ---- */

/* Whether this build has machine code or PTX that the device runs, and what for: asked of the first kernel there is. */
static cudaError_t check_code(int *code) {
    const dpr_key key = {.f = {.op = DPR_SUM, .dtype = DPR_F32}};
    struct cudaFuncAttributes attributes;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (dpr_strategies[i]->side == DPR_ON_GPU) {
            const cudaError_t error = cudaFuncGetAttributes(&attributes, dpr_strategies[i]->kernel(&key).entry);
            *code = error == cudaSuccess ? attributes.ptxVersion : 0;
            return error;
        }
    }
    return cudaErrorNoKernelImageForDevice;
}

/* In its home. */
static cudaError_t open_here(dpr_device *device) {
    size_t pending = 0;
    cudaError_t error = check_code(&device->code);
    if (error == cudaSuccess)
        error = dpr_home_examine(&device->home, &device->sms);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&device->concurrent_managed, cudaDevAttrConcurrentManagedAccess,
                                       device->home.ordinal);
    if (error == cudaSuccess)
        error = dpr_nesting_pending(&pending);
    device->pending = (int64_t)pending;
    if (error == cudaSuccess)
        error = dpr_mail_create(&device->mail);
    if (error == cudaSuccess)
        error = dpr_scratch_create(&device->home, &device->scratch);
    if (error != cudaSuccess)
        return error;
    device->kernels = dpr_kernels_create();
    device->nesting = dpr_nesting_create(&device->home);
    device->calibration = dpr_calibration_create();
    return device->kernels && device->nesting && device->calibration ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Giving device memory back waits for the work that uses it: for all, as cudaDeviceSynchronize() would, which must not
 * be called here, because a stream may be captured in another thread. Unless the home is still `there` this frees host
 * memory alone. */
static void give_back(dpr_device *device, int there) {
    const cudaStream_t own = atomic_load(&device->own);
    dpr_scratch_destroy(device->scratch, there);
    dpr_nesting_destroy(device->nesting, there);
    dpr_calibration_destroy(device->calibration, there);
    dpr_mail_destroy(device->mail, there);
    dpr_kernels_destroy(device->kernels);
    if (there && own && cudaStreamDestroy(own) != cudaSuccess)
        (void)cudaGetLastError();
    free(device);
}

dpr_status dpr_device_open(const dpr_home *home, dpr_device **out) {
    dpr_visit visit;
    dpr_device *device = calloc(1, sizeof *device);
    if (!device)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for device %d", home->ordinal);
    device->home = *home;
    const dpr_status status = dpr_home_enter_relaxed(home, &visit);
    if (status != DPR_OK) {
        free(device);
        return status;
    }
    const cudaError_t error = open_here(device);
    if (error != cudaSuccess)
        give_back(device, 1);
    dpr_home_leave(&visit);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "opening a device");
    *out = device;
    return DPR_OK;
}

void dpr_device_close(dpr_device *device) {
    dpr_visit visit;
    if (!device)
        return;
    const int there = dpr_home_enter_relaxed(&device->home, &visit) == DPR_OK;
    give_back(device, there);
    if (there)
        dpr_home_leave(&visit);
}

const dpr_home *dpr_device_home_of(const dpr_device *device) {
    return &device->home;
}

int dpr_device_is_gone(const dpr_device *device) {
    return dpr_home_is_gone(&device->home);
}

dpr_status dpr_device_upload(const dpr_device *device, const void *host, size_t bytes, size_t room, void **out) {
    dpr_visit visit;
    const dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, room);
    if (error == cudaSuccess) {
        error = dpr_home_copy_apart(memory, host, bytes);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    dpr_home_leave(&visit);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "copying to the device");
    *out = memory;
    return DPR_OK;
}

void dpr_device_free(const dpr_device *device, void *memory) {
    dpr_visit visit;
    if (dpr_home_enter_relaxed(&device->home, &visit) != DPR_OK)
        return;
    if (cudaFree(memory) != cudaSuccess)
        (void)cudaGetLastError();
    dpr_home_leave(&visit);
}

dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = dpr_nesting_allow(device->nesting, pending);
    dpr_home_leave(&visit);
    if (status == DPR_OK)
        device->pending = (int64_t)pending;
    return status;
}

/* Whether kernels may be launched ahead of the work before them: compiled for less they do not wait for it. */
static int waits_by_itself(const dpr_device *device) {
    return device->code >= 90;
}

void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu) {
    dpr_nested_assume(gpu, device->pending);
    gpu->sm_count = device->sms;
    if (gpu->cc_major * 10 + gpu->cc_minor <= device->code)
        return;
    gpu->cc_major = device->code / 10;
    gpu->cc_minor = device->code % 10;
    if (device->code < 90)
        gpu->cluster_launch = 0;
}

/* ---- What the device holds of a kernel ---- */

enum { PORTABLE_SHARED_BYTES = 48 * 1024, PORTABLE_CLUSTER = 8 }; /* what needs no permission on any device */

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

/* The largest clusters of which there is room for one: of as many blocks as the kernel asks for if that is more than
 * every device has, else of 8, 4 or 2. */
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

/* In the home. Gives the kernel the permissions that its launches there need. */
static cudaError_t count_resident(const dpr_kernel *kernel, const dpr_residence *at, dpr_residency *out) {
    if (kernel->shared_bytes > PORTABLE_SHARED_BYTES) {
        const cudaError_t error =
            cudaFuncSetAttribute(kernel->entry, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel->shared_bytes);
        if (error != cudaSuccess)
            return error;
    }
    return kernel->cluster == 0 ? count_blocks(kernel, at, out) : count_clusters(kernel, at, out);
}

/* Loads the module. Its kernels wait for no other blocks, so nobody needs to know how many are resident. */
static dpr_status check_module(const dpr_device *device, const dpr_kernel *kernel) {
    CUfunction function;
    const int ordinal = device->home.ordinal;
    const dpr_status status = check_room(ordinal, kernel->module);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_module_function(kernel->module, kernel->entry, &function);
    if (error == cudaSuccess)
        return DPR_OK;
    (void)cudaGetLastError();
    if (dpr_driver_is_final(error) || error == cudaErrorMemoryAllocation)
        return dpr_cuda_failed(error, kernel->module->name);
    return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "the code for %s cannot be loaded on device %d: %s (%s)",
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

/* ---- What nested launches cost ---- */

static dpr_status calibrate(dpr_device *device, const dpr_gpu_caps *gpu) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = dpr_calibrate(device->calibration, device, device->nesting, gpu);
    dpr_home_leave(&visit);
    return status;
}

dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu) {
    const dpr_residence *at = user;
    const dpr_status status = measure && !dpr_nested_refusal(gpu) ? calibrate(at->device, gpu) : DPR_OK;
    dpr_calibration_read(at->device->calibration, gpu);
    return status;
}

/* ---- Runs ---- */

static dpr_status wrong_stream(const dpr_device *device, dpr_stream stream) {
    (void)cudaGetLastError();
    return dpr_fail(DPR_ERR_WRONG_DEVICE, "stream is %p, which does not belong to the CUDA context of ctx on device %d",
                    (void *)stream, device->home.ordinal);
}

static dpr_status launch_failed(const dpr_device *device, const dpr_strategy *strategy, const dpr_run *run,
                                cudaError_t error, dpr_misfit *misfit) {
    if (error == cudaErrorInvalidResourceHandle && run->stream)
        return wrong_stream(device, run->stream);
    misfit->too_large = error == cudaErrorCooperativeLaunchTooLarge || error == cudaErrorInvalidClusterSize;
    if (!misfit->too_large)
        return dpr_cuda_failed(error, strategy->name);
    (void)cudaGetLastError();
    return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                    "strategy \"%s\" cannot run in this stream: its %d SMs cannot hold all blocks at once (%s)",
                    strategy->name, run->sms, cudaGetErrorName(error));
}

/* With run->scratch set. */
static cudaError_t enqueue(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, cudaGraph_t graph) {
    run->enqueue = dpr_kernels_enqueue;
    run->enqueuer = device->kernels;
    cudaError_t error = dpr_nesting_begin(device->nesting, strategy, run, graph);
    if (error == cudaSuccess)
        error = (cudaError_t)strategy->launch(run);
    const cudaError_t ended = dpr_nesting_end(run, error == cudaSuccess, graph);
    return error == cudaSuccess ? ended : error;
}

/* In the home. */
static dpr_status launch(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit) {
    dpr_slot *slot = NULL;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaSuccess;
    int sms = run->sms;
    if (run->shape.scratch_bytes > 0)
        error = dpr_scratch_pin(device->scratch, run->stream, &sms, &slot, &graph);
    if (error == cudaErrorInvalidResourceHandle && run->stream)
        return wrong_stream(device, run->stream);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "taking scratch memory");
    if (sms != run->sms) {
        misfit->sms = sms;
        return DPR_ERR_STRATEGY_UNABLE;
    }
    run->scratch = slot ? dpr_slot_memory(slot) : NULL;
    error = enqueue(device, strategy, run, graph);
    if (slot && error != cudaSuccess)
        dpr_scratch_clean(slot, run->stream);
    if (slot)
        dpr_scratch_unpin(slot);
    return error == cudaSuccess ? DPR_OK : launch_failed(device, strategy, run, error, misfit);
}

/* CUDA would refuse to use it, and spoil the other stream's capture. */
static int is_usable(cudaStream_t stream) {
    return (stream && stream != cudaStreamLegacy) || dpr_home_has_legacy();
}

dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    if (!is_usable(run->stream))
        status = dpr_fail(DPR_ERR_CUDA, "stream is the legacy default stream, and a stream that waits for it is being "
                                        "captured");
    run->programmatic = waits_by_itself(device) && run->stream && run->stream != cudaStreamLegacy;
    if (status == DPR_OK)
        status = launch(device, strategy, run, misfit);
    dpr_home_leave(&visit);
    return status;
}

/* ---- Blocking runs ---- */

/* A stream of the device's own, made on first use. */
static cudaError_t own_stream(dpr_device *device, cudaStream_t *out) {
    cudaStream_t made, there = NULL;
    *out = atomic_load(&device->own);
    if (*out)
        return cudaSuccess;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return error;
    if (atomic_compare_exchange_strong(&device->own, &there, made)) {
        *out = made;
    } else { /* another thread was quicker */
        (void)cudaStreamDestroy(made);
        *out = there;
    }
    return cudaSuccess;
}

/* The legacy default stream, because blocking calls come after what the caller has enqueued there or in streams that it
 * waits for. While it may not be used, the device's own stream, after all work. */
static dpr_status stream_for_blocking(dpr_device *device, cudaStream_t *out) {
    *out = NULL;
    if (dpr_home_has_legacy())
        return DPR_OK;
    cudaError_t error = dpr_home_wait();
    if (error == cudaSuccess)
        error = own_stream(device, out);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "running while a stream is captured");
}

/* A capture may have begun since the run was enqueued that forbids the legacy default stream. */
static dpr_status synchronise(const dpr_strategy *strategy, cudaStream_t stream) {
    const cudaError_t error = stream ? cudaStreamSynchronize(stream) : dpr_home_wait_for_legacy();
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, strategy->name);
}

/* The result of an enqueued run. Polling spares the driver's wait; it also ends where the kernel has failed, whose
 * error the driver's wait then tells. */
static dpr_status collect(const dpr_strategy *strategy, const dpr_run *run, const dpr_mailbox *box, void *host_out,
                          size_t result_bytes) {
    if (!dpr_mailbox_wait(box, result_bytes)) {
        const dpr_status status = synchronise(strategy, run->stream);
        if (status != DPR_OK)
            return status;
        if (!dpr_mailbox_arrived(box, result_bytes))
            return dpr_fail(DPR_ERR_CUDA, "%s: the kernel ended without a result", strategy->name);
    }
    dpr_mailbox_read(box, host_out, result_bytes);
    return DPR_OK;
}

/* Whether the kernel must be at its end, and not only its result there: the report comes after the result, and
 * *host_out changes last; and the caller may touch managed memory next. */
static int must_end(const dpr_device *device, const dpr_run *run) {
    return run->nested || !device->concurrent_managed;
}

/* In the home. */
static dpr_status run_to_host(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                              size_t result_bytes, dpr_misfit *misfit) {
    dpr_mailbox *box = dpr_mailbox_take(device->mail, run);
    if (!box)
        return dpr_fail(DPR_ERR_CUDA, "device %d has failed: none of the runs before has written its result",
                        device->home.ordinal);
    dpr_status status = launch(device, strategy, run, misfit);
    const int enqueued = status == DPR_OK;
    if (enqueued && must_end(device, run))
        status = synchronise(strategy, run->stream);
    if (status == DPR_OK)
        status = collect(strategy, run, box, host_out, result_bytes);
    dpr_mailbox_return(device->mail, box, enqueued ? result_bytes : 0);
    return status;
}

static dpr_status run_and_wait(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                               size_t result_bytes, dpr_misfit *misfit) {
    dpr_status status = stream_for_blocking(device, &run->stream);
    if (status != DPR_OK)
        return status;
    if (host_out)
        return run_to_host(device, strategy, run, host_out, result_bytes, misfit);
    status = launch(device, strategy, run, misfit);
    return status == DPR_OK ? synchronise(strategy, run->stream) : status;
}

dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes, dpr_misfit *misfit) {
    dpr_visit visit;
    dpr_status status = dpr_home_enter_relaxed(&device->home, &visit);
    if (status != DPR_OK)
        return status;
    status = run_and_wait(device, strategy, run, host_out, result_bytes, misfit);
    dpr_home_leave(&visit);
    if (status == DPR_OK && run->nested && !run->report) /* in pageable memory, of a run without nested launches */
        *run->nested = (dpr_nested){0};
    return status;
}
