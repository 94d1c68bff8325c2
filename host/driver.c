#define _GNU_SOURCE /* syscall() */
#include "driver.h"

#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"

typedef CUresult (*pointer_attributes)(unsigned, CUpointer_attribute *, void **, CUdeviceptr);

/* Found once in a process. A child forked afterwards inherits memory that belongs to a driver it cannot talk to. */
static struct {
    pthread_once_t once;
    int devices;
    int present; /* there were devices: memory that the host cannot read may be about, even if CUDA cannot be used */
    const char *why_not;
    pointer_attributes attributes;
} driver = {.once = PTHREAD_ONCE_INIT};

static void in_child(void) {
    driver.devices = 0;
    driver.why_not = "CUDA cannot be used in a process forked after it was initialised";
}

static void find_driver(void) {
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices == 0)
        error = cudaErrorNoDevice;
    driver.present = error == cudaSuccess;
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    if (error == cudaSuccess)
        error = cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &entry, 7000, cudaEnableDefault, &found);
    if (error == cudaSuccess && (found != cudaDriverEntryPointSuccess || !entry))
        error = cudaErrorSymbolNotFound;
    if (error != cudaSuccess) {
        driver.why_not = error == cudaErrorInsufficientDriver
                             ? "there is no CUDA driver, or it is too old for this build"
                             : cudaGetErrorString(error);
        (void)cudaGetLastError();
        return;
    }
    driver.attributes = (pointer_attributes)(uintptr_t)entry;
    driver.devices = devices;
    (void)pthread_atfork(NULL, NULL, in_child);
}

int dpr_driver_devices(const char **why) {
    (void)pthread_once(&driver.once, find_driver);
    *why = driver.why_not;
    return driver.devices;
}

/* Those of which the documentation of cudaError_t says that the process must be terminated and relaunched. */
int dpr_driver_is_final(cudaError_t error) {
    switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return 1;
    default:
        return 0;
    }
}

/* Whether the byte at `pointer` can be read, asked of the kernel: it reads the signal set at its second argument before
 * it finds the first to be invalid, and changes nothing. */
static int is_readable(const void *pointer) {
    const uintptr_t word = (uintptr_t)pointer & ~(uintptr_t)7; /* stays in the byte's page */
    return syscall(SYS_rt_sigprocmask, ~0L, word, NULL, (size_t)8) != -1 || errno != EFAULT;
}

static const dpr_place pageable = {DPR_MEMORY_HOST, -1};

/* The driver's error codes are the runtime's. A device that has failed makes it refuse to tell. */
static dpr_status place_unknown(CUresult result, const void *pointer, const char *argument, dpr_place *out) {
    const cudaError_t error = (cudaError_t)result;
    const int readable = is_readable(pointer);
    if (!readable && dpr_driver_is_final(error))
        return dpr_fail(DPR_ERR_CUDA,
                        "%s is %p: a device has failed before: %s (%s); CUDA cannot use it again in this "
                        "process",
                        argument, pointer, cudaGetErrorString(error), cudaGetErrorName(error));
    if (!readable)
        return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is %p, which is neither readable host memory nor known to the driver",
                        argument, pointer);
    *out = pageable;
    return DPR_OK;
}

dpr_status dpr_driver_place(const void *pointer, const char *argument, dpr_place *out) {
    const char *why;
    if (dpr_driver_devices(&why) == 0) {
        if (driver.present)
            return place_unknown(CUDA_SUCCESS, pointer, argument, out);
        *out = pageable;
        return DPR_OK;
    }
    /* These three hold for the whole process; other attributes depend on the context current in this thread. */
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &ordinal};
    const CUresult result =
        driver.attributes(sizeof names / sizeof names[0], names, values, (CUdeviceptr)(uintptr_t)pointer);
    if (result != CUDA_SUCCESS || type == 0)
        return place_unknown(result, pointer, argument, out);
    const dpr_memory memory = managed                      ? DPR_MEMORY_MANAGED
                              : type == CU_MEMORYTYPE_HOST ? DPR_MEMORY_PINNED
                                                           : DPR_MEMORY_DEVICE;
    *out = (dpr_place){memory, ordinal};
    return DPR_OK;
}
