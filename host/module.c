#include "module.h"

#include <pthread.h>

#include "capture.h"
#include "driver.h"

/* Those of the library and of a program that has its own. */
enum { MOST_MODULES = 4, MOST_DEVICES = 64 };

typedef struct loaded_module {
    const dpr_module *module;
    CUlibrary library;
    dpr_module_arrival on[MOST_DEVICES];
} loaded_module;

static struct {
    pthread_mutex_t lock;
    int count;
    loaded_module loaded[MOST_MODULES];
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held. */
static cudaError_t load(const dpr_module *module, loaded_module **out) {
    for (int i = 0; i < modules.count; i++) {
        if (modules.loaded[i].module == module) {
            *out = &modules.loaded[i];
            return cudaSuccess;
        }
    }
    if (modules.count == MOST_MODULES)
        return cudaErrorInvalidValue;
    CUlibrary library;
    const CUresult result = dpr_driver()->library_load_data(&library, module->image, NULL, NULL, 0, NULL, NULL, 0);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    *out = &modules.loaded[modules.count++];
    (*out)->module = module;
    (*out)->library = library;
    return cudaSuccess;
}

static cudaError_t find(const dpr_module *module, loaded_module **out) {
    pthread_mutex_lock(&modules.lock);
    const cudaError_t error = load(module, out);
    pthread_mutex_unlock(&modules.lock);
    return error;
}

/* ---- Memory, which goes when the first kernel comes to a device ---- */

/* 0 if it cannot be asked. */
static size_t free_bytes(void) {
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess)
        (void)cudaGetLastError();
    return available;
}

/* The current device's number if no kernel of the module was asked for there before; else -1. */
static int device_of_first(loaded_module *m) {
    int device = -1;
    if (cudaGetDevice(&device) != cudaSuccess)
        (void)cudaGetLastError();
    if (device < 0 || device >= MOST_DEVICES)
        return -1;
    pthread_mutex_lock(&modules.lock);
    const int first = !m->on[device].there;
    m->on[device].there = 1;
    pthread_mutex_unlock(&modules.lock);
    return first ? device : -1;
}

/* Where memory was given back meanwhile, or cannot be asked for, nothing is learned. */
static dpr_module_arrival look(size_t before) {
    const size_t after = free_bytes();
    dpr_module_arrival now = {.there = 1};
    if (cudaDeviceGetLimit(&now.pending, cudaLimitDevRuntimePendingLaunchCount) != cudaSuccess)
        (void)cudaGetLastError();
    else if (after > 0 && before > after)
        now.bytes = before - after;
    return now;
}

static void note_arrival(loaded_module *m, int device, dpr_module_arrival arrival) {
    pthread_mutex_lock(&modules.lock);
    m->on[device] = arrival;
    pthread_mutex_unlock(&modules.lock);
}

/* ---- Kernels ---- */

static cudaError_t find_function(const loaded_module *m, const char *kernel, CUfunction *out) {
    CUkernel handle;
    cudaError_t error = (cudaError_t)dpr_driver()->library_get_kernel(&handle, m->library, kernel);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->kernel_get_function(out, handle);
    return error;
}

cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out) {
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    loaded_module *m;
    cudaError_t error = find(module, &m);
    const int device = error == cudaSuccess ? device_of_first(m) : -1;
    const size_t before = device >= 0 ? free_bytes() : 0;
    if (error == cudaSuccess)
        error = find_function(m, kernel, out);
    if (device >= 0)
        note_arrival(m, device, error == cudaSuccess ? look(before) : (dpr_module_arrival){0});
    dpr_capture_restore(mode);
    return error;
}

dpr_module_arrival dpr_module_arrived(const dpr_module *module, int device) {
    dpr_module_arrival arrival = {0};
    pthread_mutex_lock(&modules.lock);
    for (int i = 0; i < modules.count && device >= 0 && device < MOST_DEVICES; i++)
        if (modules.loaded[i].module == module)
            arrival = modules.loaded[i].on[device];
    pthread_mutex_unlock(&modules.lock);
    return arrival;
}

cudaError_t dpr_module_kernel_use(const dpr_module *module, const char *kernel, int *registers, int *shared_bytes) {
    CUfunction function;
    cudaError_t error = dpr_module_function(module, kernel, &function);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->func_get_attribute(registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (error == cudaSuccess)
        error =
            (cudaError_t)dpr_driver()->func_get_attribute(shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    return error;
}

cudaError_t dpr_module_variable(const dpr_module *module, const char *variable, void **out) {
    loaded_module *m;
    CUdeviceptr address;
    size_t bytes;
    cudaError_t error = find(module, &m);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->library_get_global(&address, &bytes, m->library, variable);
    if (error == cudaSuccess)
        *out = (void *)(uintptr_t)address;
    return error;
}
