#include "fake_modules.h"

#include <stdint.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_cuda.h"
#include "fake_device.h"
#include "fake_kernel.h"
#include "fake_memory.h"
#include "fake_state.h"

enum { MOST_IMAGES = 8, MOST_KERNELS = 4096 };

/* A library's handle is its image, a kernel's the address of its name: the one that its strategy declares, or of
 * kernels that none declares the first that was asked for. */
static const void *images[MOST_IMAGES];
static const char *kernels[MOST_KERNELS];
static int image_count, kernel_count;
static int in_memory[FAKE_DEVICES]; /* whether a kernel of theirs has been asked for */

int fake_module_loads(void) {
    return image_count;
}

CUresult CUDAAPI fake_library_load_data(CUlibrary *library, const void *code, CUjit_option *jit_options,
                                        void **jit_values, unsigned jit_count, CUlibraryOption *options, void **values,
                                        unsigned count) {
    (void)jit_options, (void)jit_values, (void)options, (void)values;
    const cudaError_t injected = fake_begin_quietly("cuLibraryLoadData");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const int good = code && jit_count == 0 && count == 0 && image_count < MOST_IMAGES;
    if (good) {
        images[image_count++] = code;
        *library = (CUlibrary)(uintptr_t)code;
    }
    fake_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int is_loaded(CUlibrary library) {
    for (int i = 0; i < image_count; i++)
        if (images[i] == (const void *)library)
            return 1;
    fake_violate("a module is used that is not loaded");
    return 0;
}

static const char *given(const char *name) {
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i], name) == 0)
            return kernels[i];
    return NULL;
}

int fake_module_gave(const void *kernel) {
    for (int i = 0; i < kernel_count; i++)
        if (kernels[i] == kernel)
            return 1;
    return 0;
}

size_t fake_module_bytes(int device) {
    return in_memory[device] ? FAKE_MODULE_BYTES : 0;
}

/* Whether the image has kernels that no strategy declares is not looked at. */
CUresult CUDAAPI fake_library_get_kernel(CUkernel *kernel, CUlibrary library, const char *name) {
    const cudaError_t injected = fake_begin_quietly("cuLibraryGetKernel");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const char *found = is_loaded(library) ? given(name) : NULL;
    if (!found && is_loaded(library) && kernel_count < MOST_KERNELS) {
        const char *declared = fake_kernel_named(library, name);
        found = kernels[kernel_count++] = declared ? declared : name;
    }
    if (found)
        *kernel = (CUkernel)(uintptr_t)found;
    fake_unlock();
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The one variable that there is, of which each device has a copy. It stays, and is not among what is alive. */
CUresult CUDAAPI fake_library_get_global(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
    static void *copies[FAKE_DEVICES];
    const cudaError_t injected = fake_begin_in_context("cuLibraryGetGlobal");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    void **copy = &copies[fake_current_device()];
    const int known = is_loaded(library) && strcmp(name, "dpr_launch_table") == 0;
    if (known && !*copy) {
        *copy = fake_take(sizeof(unsigned), FAKE_DEVICE, fake_current_context());
        fake_count_objects(*copy ? -1 : 0);
    }
    if (known) {
        *address = (CUdeviceptr)(uintptr_t)*copy;
        *bytes = sizeof(unsigned);
    }
    fake_unlock();
    return !known ? CUDA_ERROR_NOT_FOUND : *copy ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI fake_kernel_get_function(CUfunction *function, CUkernel kernel) {
    const cudaError_t injected = fake_begin_in_context("cuKernelGetFunction");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    const int known = fake_module_gave(kernel);
    in_memory[fake_current_device()] |= known;
    if (known)
        *function = (CUfunction)(uintptr_t)kernel;
    fake_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI fake_func_get_attribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    const cudaError_t injected = fake_begin_in_context("cuFuncGetAttribute");
    if (injected != cudaSuccess)
        return (CUresult)injected;
    CUresult result = fake_module_gave(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && attribute == CU_FUNC_ATTRIBUTE_NUM_REGS)
        *value = 32;
    else if (result == CUDA_SUCCESS
             && (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES || attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES))
        *value = 0;
    else if (result == CUDA_SUCCESS)
        result = CUDA_ERROR_INVALID_VALUE;
    fake_unlock();
    return result;
}
