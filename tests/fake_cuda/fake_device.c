#include "fake_device.h"

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_cuda.h"
#include "fake_kernel.h"
#include "fake_memory.h"
#include "fake_modules.h"
#include "fake_state.h"
#include "fake_streams.h"
#include "plan/caps_text.h"

static dpr_caps machine;
static int code = 90;

void fake_set_code(int version) {
    code = version;
}

static void load_machine(void) {
    char text[8192];
    FILE *file = fopen(TEST_MACHINES "/h200.caps", "r");
    if (!file)
        abort();
    const size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    if (dpr_caps_parse(text, &machine) != DPR_OK)
        abort();
}

const dpr_caps *fake_machine(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load_machine);
    return &machine;
}

void fake_set_mps(int runs) {
    (void)fake_machine();
    machine.gpu.mps = runs;
}

/* ---- Devices ---- */

WRAP(cudaGetDeviceCount);
cudaError_t __wrap_cudaGetDeviceCount(int *count) {
    FAKE_BEGIN();
    *count = FAKE_DEVICES;
    return fake_end(cudaSuccess);
}

WRAP(cudaDriverGetVersion);
cudaError_t __wrap_cudaDriverGetVersion(int *version) {
    FAKE_BEGIN();
    *version = 13000;
    return fake_end(cudaSuccess);
}

static int concurrent_managed = 1;

void fake_set_concurrent_managed(int on) {
    concurrent_managed = on;
}

WRAP(cudaDeviceGetAttribute);
cudaError_t __wrap_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    FAKE_BEGIN();
    if (device < 0 || device >= FAKE_DEVICES)
        return fake_end(cudaErrorInvalidDevice);
    switch (attribute) {
#define ATTRIBUTE_CASE(A, NAME, ATTRIBUTE, ...)                                                                        \
    case cudaDevAttr##ATTRIBUTE:                                                                                       \
        *value = (int)fake_machine()->gpu.NAME;                                                                        \
        break;
        DPR_GPU_CAPS_LIST(ATTRIBUTE_CASE, _)
#undef ATTRIBUTE_CASE
    default:
        return fake_end(cudaErrorInvalidValue);
    }
    if (attribute == cudaDevAttrConcurrentManagedAccess)
        *value = concurrent_managed;
    return fake_end(cudaSuccess);
}

WRAP(cudaGetDeviceProperties);
cudaError_t __wrap_cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    FAKE_BEGIN();
    if (device < 0 || device >= FAKE_DEVICES)
        return fake_end(cudaErrorInvalidDevice);
    memset(properties, 0, sizeof *properties);
    memcpy(properties->name, fake_machine()->gpu_name, sizeof fake_machine()->gpu_name);
    properties->totalGlobalMem = (size_t)fake_machine()->gpu.memory_bytes;
    return fake_end(cudaSuccess);
}

WRAP(cudaDeviceGetPCIBusId);
cudaError_t __wrap_cudaDeviceGetPCIBusId(char *text, int length, int device) {
    FAKE_BEGIN();
    snprintf(text, (size_t)length, "0000:%02x:00.0", 0x3b + device);
    return fake_end(cudaSuccess);
}

WRAP(cudaFuncGetAttributes);
cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *entry) {
    FAKE_BEGIN();
    if (!fake_kernel_known(entry))
        return fake_end(cudaErrorInvalidDeviceFunction);
    memset(attributes, 0, sizeof *attributes);
    attributes->numRegs = 32;
    attributes->ptxVersion = code;
    attributes->maxThreadsPerBlock = 1024;
    return fake_end(cudaSuccess);
}

/* ---- Occupancy ---- */

/* What cudaFuncSetAttribute() has allowed, on both devices alike. */
enum { MOST_ALLOWED = 4096 };
static struct {
    const void *entry;
    int shared_bytes, large_clusters;
} allowed[MOST_ALLOWED];
static int allowed_count;

static int find_allowed(const void *entry) {
    int i = 0;
    while (i < allowed_count && allowed[i].entry != entry)
        i++;
    return i;
}

int fake_shared_bytes_allowed(const void *entry) {
    const int i = find_allowed(entry);
    return i < allowed_count && allowed[i].shared_bytes ? allowed[i].shared_bytes : 48 * 1024;
}

int fake_cluster_allowed(const void *entry) {
    const int i = find_allowed(entry);
    return i < allowed_count && allowed[i].large_clusters ? 16 : 8;
}

WRAP(cudaFuncSetAttribute);
cudaError_t __wrap_cudaFuncSetAttribute(const void *entry, enum cudaFuncAttribute attribute, int value) {
    FAKE_BEGIN();
    const int i = find_allowed(entry);
    if (!fake_kernel_known(entry) || i == MOST_ALLOWED)
        return fake_end(cudaErrorInvalidDeviceFunction);
    allowed[i].entry = entry;
    allowed_count += i == allowed_count;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value <= fake_machine()->gpu.shared_per_block_optin)
        allowed[i].shared_bytes = value;
    else if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        allowed[i].large_clusters = value;
    else
        return fake_end(cudaErrorInvalidValue);
    return fake_end(cudaSuccess);
}

WRAP(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
cudaError_t __wrap_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *entry, int threads,
                                                                 size_t shared) {
    FAKE_BEGIN();
    if (!fake_kernel_known(entry) || threads < 1 || shared > (size_t)fake_shared_bytes_allowed(entry))
        return fake_end(cudaErrorInvalidDeviceFunction);
    *blocks = 2048 / threads;
    return fake_end(cudaSuccess);
}

WRAP(cudaOccupancyMaxActiveClusters);
cudaError_t __wrap_cudaOccupancyMaxActiveClusters(int *clusters, const void *entry, const cudaLaunchConfig_t *config) {
    FAKE_BEGIN();
    if (!fake_kernel_known(entry) || config->numAttrs != 1
        || config->attrs[0].id != cudaLaunchAttributeClusterDimension)
        return fake_end(cudaErrorInvalidValue);
    const unsigned cluster = config->attrs[0].val.clusterDim.x;
    const unsigned sms = (unsigned)fake_sms_of_stream(config->stream);
    if (cluster < 1 || cluster > (unsigned)fake_cluster_allowed(entry) || config->gridDim.x % cluster)
        return fake_end(cudaErrorInvalidClusterSize);
    *clusters = cluster > sms ? 0 : (int)(2048 / config->blockDim.x * sms / cluster);
    return fake_end(cudaSuccess);
}

/* ---- Limits ---- */

/* A device gives no more than MOST_PENDING, and takes numbers for mistakes from REFUSED_PENDING on. */
enum { FIRST_PENDING = 2048, MOST_PENDING = 1 << 20, REFUSED_PENDING = 1 << 24 };

static size_t pending[FAKE_DEVICES] = {FIRST_PENDING, FIRST_PENDING};
static size_t stack_bytes = 1024;

void fake_set_stack(size_t bytes) {
    stack_bytes = bytes;
}

size_t fake_pending_launches(void) {
    return pending[fake_current_device()];
}

WRAP(cudaDeviceGetLimit);
cudaError_t __wrap_cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    FAKE_BEGIN();
    if (limit != cudaLimitDevRuntimePendingLaunchCount && limit != cudaLimitStackSize)
        return fake_end(cudaErrorUnsupportedLimit);
    *value = limit == cudaLimitStackSize ? stack_bytes : pending[fake_current_device()];
    return fake_end(cudaSuccess);
}

WRAP(cudaDeviceSetLimit);
cudaError_t __wrap_cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    FAKE_BEGIN();
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    if (limit != cudaLimitDevRuntimePendingLaunchCount)
        return fake_end(cudaErrorUnsupportedLimit);
    if (value == 0 || value >= REFUSED_PENDING)
        return fake_end(cudaErrorInvalidValue);
    pending[fake_current_device()] = value < MOST_PENDING ? value : MOST_PENDING;
    return fake_end(cudaSuccess);
}

/* ---- Memory ---- */

static cudaError_t take(void **memory, size_t size, fake_kind kind) {
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    void *taken = fake_take(size, kind, fake_current_context()->regular);
    if (!taken)
        return fake_end(cudaErrorMemoryAllocation);
    *memory = taken;
    return fake_end(cudaSuccess);
}

WRAP(cudaMalloc);
cudaError_t __wrap_cudaMalloc(void **memory, size_t size) {
    FAKE_BEGIN();
    return take(memory, size, FAKE_DEVICE);
}

WRAP(cudaMallocManaged);
cudaError_t __wrap_cudaMallocManaged(void **memory, size_t size, unsigned flags) {
    FAKE_BEGIN();
    (void)flags;
    return take(memory, size, FAKE_MANAGED);
}

WRAP(cudaHostAlloc);
cudaError_t __wrap_cudaHostAlloc(void **memory, size_t size, unsigned flags) {
    FAKE_BEGIN();
    (void)flags;
    return take(memory, size, FAKE_PINNED);
}

WRAP(cudaFree);
cudaError_t __wrap_cudaFree(void *memory) {
    FAKE_BEGIN();
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    fake_wait_for_all();
    const int given = !memory || fake_pool_take_back(memory) || fake_give(memory, 0);
    return fake_end(given ? cudaSuccess : cudaErrorInvalidValue);
}

WRAP(cudaFreeHost);
cudaError_t __wrap_cudaFreeHost(void *memory) {
    FAKE_BEGIN();
    if (fake_capture_spoilt())
        return fake_end(cudaErrorStreamCaptureUnsupported);
    fake_wait_for_all();
    return fake_end(!memory || fake_give(memory, 1) ? cudaSuccess : cudaErrorInvalidValue);
}

static size_t memory_bytes = (size_t)1 << 30;

void fake_set_memory(size_t bytes) {
    fake_lock();
    memory_bytes = bytes;
    fake_unlock();
}

size_t fake_memory_left(void) {
    const int device = fake_current_device();
    const size_t taken = fake_module_bytes(device) + fake_taken(device);
    return memory_bytes > taken ? memory_bytes - taken : 0;
}

WRAP(cudaMemGetInfo);
cudaError_t __wrap_cudaMemGetInfo(size_t *available, size_t *total) {
    FAKE_BEGIN();
    *total = memory_bytes;
    *available = fake_memory_left();
    return fake_end(cudaSuccess);
}
