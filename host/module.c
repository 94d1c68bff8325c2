#include "module.h"

#include <pthread.h>

#include "capture.h"
#include "driver.h"

/* Modules of the library and of a program that has its own; contexts of the driver's, one for each device unless a
 * program has reset some: of more the earliest are forgotten. */
enum { MOST_MODULES = 4, MOST_CONTEXTS = 64 };

typedef struct known_module {
    const dpr_module *module;
    CUlibrary library; /* NULL: it is not loaded */
    unsigned arrivals;
    dpr_module_arrival in[MOST_CONTEXTS]; /* number i at i modulo its size */
} known_module;

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t arriving; /* a first kernel is on its way: taken before the other */
    int count;
    known_module known[MOST_MODULES];
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER, .arriving = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held. NULL if there are too many. */
static known_module *find(const dpr_module *module) {
    int i = 0;
    while (i < modules.count && modules.known[i].module != module)
        i++;
    if (i == MOST_MODULES)
        return NULL;
    modules.known[i].module = module;
    modules.count += i == modules.count;
    return &modules.known[i];
}

static cudaError_t load(const dpr_module *module, CUlibrary *out) {
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&modules.lock);
    known_module *m = find(module);
    if (!m)
        error = cudaErrorInvalidValue;
    else if (m->library)
        *out = m->library;
    else
        error = (cudaError_t)dpr_driver()->library_load_data(out, module->image, NULL, NULL, 0, NULL, NULL, 0);
    if (error == cudaSuccess)
        m->library = *out;
    pthread_mutex_unlock(&modules.lock);
    return error;
}

/* ---- Memory, which goes when the first kernel comes to a context ---- */

/* 0 if it cannot be asked. */
static size_t free_bytes(void) {
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess)
        (void)cudaGetLastError();
    return available;
}

/* 0 if there is none, or it cannot be told. */
static unsigned long long current_context(void) {
    unsigned long long id = 0;
    return dpr_driver()->ctx_get_id(NULL, &id) == CUDA_SUCCESS ? id : 0;
}

dpr_module_arrival dpr_module_arrived(const dpr_module *module) {
    const unsigned long long context = current_context();
    dpr_module_arrival arrival = {0};
    pthread_mutex_lock(&modules.lock);
    const known_module *m = context ? find(module) : NULL;
    for (unsigned i = 0; m && i < m->arrivals && i < MOST_CONTEXTS; i++)
        if (m->in[i].context == context)
            arrival = m->in[i];
    pthread_mutex_unlock(&modules.lock);
    return arrival;
}

/* Where memory was given back meanwhile, or cannot be asked for, nothing is learned. */
static void note_arrival(const dpr_module *module, size_t before) {
    const size_t after = free_bytes();
    dpr_module_arrival arrival = {.context = current_context()};
    if (cudaDeviceGetLimit(&arrival.pending, cudaLimitDevRuntimePendingLaunchCount) != cudaSuccess)
        (void)cudaGetLastError();
    else if (after > 0 && before > after)
        arrival.bytes = before - after;
    pthread_mutex_lock(&modules.lock);
    known_module *m = find(module);
    if (arrival.context)
        m->in[m->arrivals++ % MOST_CONTEXTS] = arrival;
    pthread_mutex_unlock(&modules.lock);
}

/* ---- Kernels ---- */

static cudaError_t find_function(const dpr_module *module, const char *kernel, CUfunction *out) {
    CUlibrary library;
    CUkernel handle;
    cudaError_t error = load(module, &library);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->library_get_kernel(&handle, library, kernel);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->kernel_get_function(out, handle);
    return error;
}

/* One thread at a time, so that each sees the memory that its own kernel took. */
static cudaError_t find_first(const dpr_module *module, const char *kernel, CUfunction *out) {
    pthread_mutex_lock(&modules.arriving);
    const int first = !dpr_module_arrived(module).context;
    const size_t before = first ? free_bytes() : 0;
    const cudaError_t error = find_function(module, kernel, out);
    if (first && error == cudaSuccess)
        note_arrival(module, before);
    pthread_mutex_unlock(&modules.arriving);
    return error;
}

cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out) {
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    const int there = dpr_module_arrived(module).context != 0;
    const cudaError_t error = there ? find_function(module, kernel, out) : find_first(module, kernel, out);
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
    cudaError_t error = load(module, &library);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->library_get_global(&address, &bytes, library, variable);
    if (error == cudaSuccess)
        *out = (void *)(uintptr_t)address;
    return error;
}
