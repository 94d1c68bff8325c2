#define _GNU_SOURCE /* syscall() */
#include "driver.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"
#include "uncancelled.h"

/* The driver, found once in a process. A child forked afterwards inherits a copy, but cannot use the driver. */
static struct {
    pthread_once_t once;
    int devices;
    int present; /* 1: there are devices, so a pointer may be to memory that the host cannot read, even without CUDA */
    const char *why_not;
    cudaError_t error; /* behind why_not */
    dpr_driver_calls calls;
} driver = {.once = PTHREAD_ONCE_INIT};

static void in_child(void) {
    driver.devices = 0;
    driver.why_not = "CUDA cannot be used in a process forked after it was initialised";
}

/* Stores at `to` the address of a driver function, in the version that CUDA `version` declares. */
static cudaError_t find_call(const char *name, unsigned version, void *to) {
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found);
    if (error != cudaSuccess)
        return error;
    if (found != cudaDriverEntryPointSuccess || !entry)
        return cudaErrorSymbolNotFound;
    memcpy(to, &entry, sizeof entry);
    return cudaSuccess;
}

typedef struct named_call {
    const char *name;
    unsigned version;
    size_t at; /* offset in dpr_driver_calls */
} named_call;

static cudaError_t find_all(const named_call *named, size_t count, dpr_driver_calls *calls) {
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < count && error == cudaSuccess; i++)
        error = find_call(named[i].name, named[i].version, (char *)calls + named[i].at);
    return error;
}

static cudaError_t find_calls(dpr_driver_calls *calls) {
    static const named_call named[] = {
        {"cuPointerGetAttributes", 7000, offsetof(dpr_driver_calls, pointer_get_attributes)},
        {"cuCtxGetCurrent", 7000, offsetof(dpr_driver_calls, ctx_get_current)},
        {"cuCtxGetDevice", 7000, offsetof(dpr_driver_calls, ctx_get_device)},
        {"cuCtxGetId", 12000, offsetof(dpr_driver_calls, ctx_get_id)},
        {"cuCtxPushCurrent", 7000, offsetof(dpr_driver_calls, ctx_push_current)},
        {"cuCtxPopCurrent", 7000, offsetof(dpr_driver_calls, ctx_pop_current)},
        {"cuDevicePrimaryCtxRetain", 7000, offsetof(dpr_driver_calls, primary_retain)},
        {"cuThreadExchangeStreamCaptureMode", 10010, offsetof(dpr_driver_calls, exchange_capture_mode)},
        {"cuEventQuery", 7000, offsetof(dpr_driver_calls, event_query)},
        {"cuLaunchKernelEx", 11080, offsetof(dpr_driver_calls, launch_kernel_ex)},
        {"cuStreamGetId", 12000, offsetof(dpr_driver_calls, stream_get_id)},
        {"cuStreamGetCaptureInfo", 11030, offsetof(dpr_driver_calls, stream_get_capture_info)},
        {"cuLibraryLoadData", 12000, offsetof(dpr_driver_calls, library_load_data)},
        {"cuLibraryGetKernel", 12000, offsetof(dpr_driver_calls, library_get_kernel)},
        {"cuLibraryGetGlobal", 12000, offsetof(dpr_driver_calls, library_get_global)},
        {"cuKernelGetFunction", 12000, offsetof(dpr_driver_calls, kernel_get_function)},
        {"cuGraphAddKernelNode", 12000, offsetof(dpr_driver_calls, graph_add_kernel)},
        {"cuGraphExecKernelNodeSetParams", 12000, offsetof(dpr_driver_calls, graph_set_kernel)},
        {"cuFuncGetAttribute", 7000, offsetof(dpr_driver_calls, func_get_attribute)},
    };
    return find_all(named, sizeof named / sizeof named[0], calls);
}

/* If one of the functions for conditional nodes is missing, graph_create_condition is NULL and none is used. The last
 * two are those without data for edges. */
static void find_conditional_calls(dpr_driver_calls *calls) {
    static const named_call named[] = {
        {"cuGraphConditionalHandleCreate", 12040, offsetof(dpr_driver_calls, graph_create_condition)},
        {"cuGraphAddNode", 12020, offsetof(dpr_driver_calls, graph_add_node)},
        {"cuStreamUpdateCaptureDependencies", 11030, offsetof(dpr_driver_calls, stream_update_dependencies)},
    };
    if (find_all(named, sizeof named / sizeof named[0], calls) == cudaSuccess)
        return;
    calls->graph_create_condition = NULL;
    (void)cudaGetLastError();
}

/* Finds functions that older drivers lack. If one of them is missing, stream_get_contexts is NULL and none is used. */
static void find_later_calls(dpr_driver_calls *calls) {
    static const named_call named[] = {
        {"cuCtxGetDevResource", 12040, offsetof(dpr_driver_calls, ctx_get_resource)},
        {"cuGreenCtxGetDevResource", 12040, offsetof(dpr_driver_calls, green_get_resource)},
        {"cuStreamGetCtx", 12050, offsetof(dpr_driver_calls, stream_get_contexts)},
    };
    if (find_all(named, sizeof named / sizeof named[0], calls) == cudaSuccess)
        return;
    calls->stream_get_contexts = NULL;
    (void)cudaGetLastError();
}

static void find_driver(void) {
    int devices = 0;
    if (driver.why_not) /* in a child forked while another thread was here */
        return;
    (void)pthread_atfork(NULL, NULL, in_child);
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices == 0)
        error = cudaErrorNoDevice;
    driver.present = error == cudaSuccess;
    if (error == cudaSuccess)
        error = find_calls(&driver.calls);
    driver.error = error;
    if (error != cudaSuccess) {
        driver.why_not = error == cudaErrorInsufficientDriver
                             ? "there is no CUDA driver, or it is too old for this build"
                             : cudaGetErrorString(error);
        (void)cudaGetLastError();
        return;
    }
    find_later_calls(&driver.calls);
    find_conditional_calls(&driver.calls);
    driver.devices = devices;
}

static void find_driver_uncancelled(void) {
    const int cancel = dpr_cancel_hold();
    find_driver();
    dpr_cancel_release(cancel);
}

const dpr_driver_calls *dpr_driver(void) {
    return &driver.calls;
}

int dpr_driver_error(void) {
    return (int)driver.error;
}

int dpr_driver_devices(const char **why) {
    (void)pthread_once(&driver.once, find_driver_uncancelled);
    *why = driver.why_not;
    return driver.devices;
}

/* After these errors the process must be terminated and relaunched, by the documentation of cudaError_t. */
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

/* Asks the operating system whether the byte at `pointer` can be read. rt_sigprocmask() reads the signal set at its
 * second argument before it finds that the first argument is invalid, and changes nothing. */
static int ask_readable(const void *pointer) {
    const uintptr_t word = (uintptr_t)pointer & ~(uintptr_t)7; /* stays in the byte's page */
    return syscall(SYS_rt_sigprocmask, ~0L, word, NULL, (size_t)8) != -1 || errno != EFAULT;
}

/* Numbers of pages that this thread has lately found readable. 0 is no page, because no process may map page 0. */
enum { PAGES = 16, PAGE_BYTES = 4096 };
static _Thread_local uintptr_t known_readable[PAGES];

/* Like ask_readable(), without a system call for a page that was found readable before. If such a page has been
 * unmapped since, reading it faults, as in any other function that gets the pointer. */
static int is_readable(const void *pointer) {
    const uintptr_t page = (uintptr_t)pointer / PAGE_BYTES;
    if (page != 0 && known_readable[page % PAGES] == page)
        return 1;
    const int answer = ask_readable(pointer);
    if (answer)
        known_readable[page % PAGES] = page;
    return answer;
}

/* Forgets the page of memory that belongs to the driver: once freed, it may not be readable. */
static void forget_readable(const void *pointer) {
    const uintptr_t page = (uintptr_t)pointer / PAGE_BYTES;
    if (known_readable[page % PAGES] == page)
        known_readable[page % PAGES] = 0;
}

static const dpr_place pageable = {DPR_MEMORY_HOST, -1, NULL};

/* Finds the place of memory for which the driver gives `result`: an error, or that the memory is unknown. After a
 * device has failed, the driver answers every question with that error. */
static dpr_status place_unknown(CUresult result, const void *pointer, const char *argument, dpr_place *out) {
    const cudaError_t error = (cudaError_t)result;
    const int readable = is_readable(pointer);
    if (!readable && dpr_driver_is_final(error))
        return dpr_fail_cuda((int)error, DPR_ERR_CUDA,
                             "%s is %p: a device has failed before: %s (%s); CUDA cannot use the device again in this "
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
    /* These attributes hold for the whole process; others depend on the thread's current context. */
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    CUcontext context = NULL;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
    void *values[] = {&type, &managed, &ordinal, &context};
    const CUresult result = driver.calls.pointer_get_attributes(sizeof names / sizeof names[0], names, values,
                                                                (CUdeviceptr)(uintptr_t)pointer);
    if (result != CUDA_SUCCESS || type == 0)
        return place_unknown(result, pointer, argument, out);
    forget_readable(pointer);
    const dpr_memory memory = managed                      ? DPR_MEMORY_MANAGED
                              : type == CU_MEMORYTYPE_HOST ? DPR_MEMORY_PINNED
                                                           : DPR_MEMORY_DEVICE;
    *out = (dpr_place){memory, ordinal, context};
    return DPR_OK;
}
