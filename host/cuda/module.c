#include "module.h"

#include <pthread.h>

#include "capture.h"
#include "driver.h"
#include "log.h"

/* How many modules there can be, the library's and those of a program that has its own; and for how many CUDA contexts
 * a module's arrival is remembered. With more contexts, the earliest is forgotten. */
enum { MOST_MODULES = 4, MOST_CONTEXTS = 64 };

typedef struct known_module {
    const dpr_module *module;
    CUlibrary library; /* NULL: it is not loaded */
    unsigned arrivals;
    dpr_module_arrival in[MOST_CONTEXTS]; /* arrival i is at i modulo MOST_CONTEXTS */
} known_module;

static struct {
    pthread_mutex_t lock;
    int count;
    known_module known[MOST_MODULES];
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The caller holds the lock. NULL if there are too many modules. */
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

/* The caller holds the lock. */
static cudaError_t load(known_module *m) {
    CUlibrary library;
    if (m->library)
        return cudaSuccess;
    const CUresult result = dpr_driver()->library_load_data(&library, m->module->image, NULL, NULL, 0, NULL, NULL, 0);
    if (result == CUDA_SUCCESS)
        m->library = library;
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "module %s: %s", m->module->name,
                result == CUDA_SUCCESS ? "loaded" : "cannot be loaded");
    return (cudaError_t)result;
}

/* ---- Memory that a module's first kernel takes in a context ---- */

/* Free device memory in bytes; 0 if it is unknown. */
static size_t free_bytes(void) {
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess)
        (void)cudaGetLastError();
    return available;
}

/* The current context's number; 0 if there is none, or if it is unknown. */
static unsigned long long current_context(void) {
    unsigned long long id = 0;
    return dpr_driver()->ctx_get_id(NULL, &id) == CUDA_SUCCESS ? id : 0;
}

/* The caller holds the lock. */
static dpr_module_arrival arrival_of(const known_module *m) {
    const unsigned long long context = current_context();
    for (unsigned i = 0; context && i < m->arrivals && i < MOST_CONTEXTS; i++)
        if (m->in[i].context == context)
            return m->in[i];
    return (dpr_module_arrival){0};
}

/* The caller holds the lock. `before` is the free memory in bytes before the first kernel was loaded. If more is free
 * afterwards, or if either is unknown, the arrival's `bytes` stays 0. */
static void note_arrival(known_module *m, size_t before) {
    const size_t after = free_bytes();
    dpr_module_arrival arrival = {.context = current_context()};
    if (cudaDeviceGetLimit(&arrival.pending, cudaLimitDevRuntimePendingLaunchCount) != cudaSuccess)
        (void)cudaGetLastError();
    else if (after > 0 && before > after)
        arrival.bytes = before - after;
    if (cudaDeviceGetLimit(&arrival.stack, cudaLimitStackSize) != cudaSuccess)
        (void)cudaGetLastError();
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "module %s: its first kernel takes %zu bytes of device memory in this CUDA context",
                m->module->name, arrival.bytes);
    if (arrival.context)
        m->in[m->arrivals++ % MOST_CONTEXTS] = arrival;
}

dpr_module_arrival dpr_module_arrived(const dpr_module *module) {
    pthread_mutex_lock(&modules.lock);
    const known_module *m = find(module);
    const dpr_module_arrival arrival = m ? arrival_of(m) : (dpr_module_arrival){0};
    pthread_mutex_unlock(&modules.lock);
    return arrival;
}

cudaError_t dpr_module_has_stack(const dpr_module *module, int *out) {
    size_t now = 0;
    const cudaError_t error = cudaDeviceGetLimit(&now, cudaLimitStackSize);
    if (error != cudaSuccess)
        return error;
    *out = now >= dpr_module_arrived(module).stack;
    return cudaSuccess;
}

/* ---- Kernels ---- */

/* The caller holds the lock, so that no other kernel of a module is loaded while free memory is compared. */
static cudaError_t find_function(const dpr_module *module, const char *kernel, CUfunction *out) {
    known_module *m = find(module);
    CUkernel handle;
    if (!m)
        return cudaErrorInvalidValue;
    const int first = !arrival_of(m).context;
    const size_t before = first ? free_bytes() : 0;
    cudaError_t error = load(m);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->library_get_kernel(&handle, m->library, kernel);
    if (error == cudaSuccess)
        error = (cudaError_t)dpr_driver()->kernel_get_function(out, handle);
    if (first && error == cudaSuccess)
        note_arrival(m, before);
    return error;
}

cudaError_t dpr_module_function(const dpr_module *module, const char *kernel, CUfunction *out) {
    const int mode = dpr_capture_relax();
    pthread_mutex_lock(&modules.lock);
    const cudaError_t error = find_function(module, kernel, out);
    pthread_mutex_unlock(&modules.lock);
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

/* The caller holds the lock. */
static cudaError_t find_variable(const dpr_module *module, const char *variable, CUdeviceptr *out) {
    known_module *m = find(module);
    size_t bytes;
    const cudaError_t error = m ? load(m) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    return (cudaError_t)dpr_driver()->library_get_global(out, &bytes, m->library, variable);
}

cudaError_t dpr_module_variable(const dpr_module *module, const char *variable, void **out) {
    CUdeviceptr address;
    pthread_mutex_lock(&modules.lock);
    const cudaError_t error = find_variable(module, variable, &address);
    pthread_mutex_unlock(&modules.lock);
    if (error == cudaSuccess)
        *out = (void *)(uintptr_t)address;
    return error;
}
