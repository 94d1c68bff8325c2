#include "module.h"

#include <pthread.h>

#include "capture.h"
#include "driver.h"

/* Those of the library and of a program that has its own. */
enum { MOST_MODULES = 4 };

static struct {
    pthread_mutex_t lock;
    int count;
    struct {
        const dpr_module *module;
        CUlibrary library;
    } loaded[MOST_MODULES];
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held. */
static cudaError_t load(const dpr_module *module, CUlibrary *out) {
    for (int i = 0; i < modules.count; i++) {
        if (modules.loaded[i].module == module) {
            *out = modules.loaded[i].library;
            return cudaSuccess;
        }
    }
    if (modules.count == MOST_MODULES)
        return cudaErrorInvalidValue;
    const CUresult result = dpr_driver()->library_load_data(out, module->image, NULL, NULL, 0, NULL, NULL, 0);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    modules.loaded[modules.count].module = module;
    modules.loaded[modules.count++].library = *out;
    return cudaSuccess;
}

static cudaError_t library_of(const dpr_module *module, CUlibrary *out) {
    pthread_mutex_lock(&modules.lock);
    const cudaError_t error = load(module, out);
    pthread_mutex_unlock(&modules.lock);
    return error;
}

cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out) {
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    CUlibrary library;
    CUkernel handle;
    cudaError_t error = library_of(module, &library);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->library_get_kernel(&handle, library, kernel);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->kernel_get_function(out, handle);
    dpr_capture_restore(mode);
    return error;
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
    CUlibrary library;
    CUdeviceptr address;
    size_t bytes;
    cudaError_t error = library_of(module, &library);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->library_get_global(&address, &bytes, library, variable);
    if (error == cudaSuccess)
        *out = (void *)(uintptr_t)address;
    return error;
}
