/* Memory that engines on the CPU and on the context's GPU reach. */
#ifndef DPR_EXAMPLES_RECURSION_MEMORY_H
#define DPR_EXAMPLES_RECURSION_MEMORY_H

#include <dpr.h>

#include <cstdlib>
#include <cstring>
#ifdef __CUDACC__
#include <cuda_runtime_api.h>
#endif

/* Room for `count` elements, aligned to 16 bytes; NULL if there is none. */
template <class T> T *allocate(const dpr_ctx *ctx, size_t count) {
    void *memory = nullptr;
#ifdef __CUDACC__
    if (dpr_ctx_device(ctx) != DPR_DEVICE_CPU)
        return cudaMallocManaged(&memory, count * sizeof(T)) == cudaSuccess ? static_cast<T *>(memory) : nullptr;
#endif
    (void)ctx;
    memory = std::malloc(count * sizeof(T));
    return static_cast<T *>(memory);
}

template <class T> void release(const dpr_ctx *ctx, T *memory) {
#ifdef __CUDACC__
    if (dpr_ctx_device(ctx) != DPR_DEVICE_CPU) {
        (void)cudaFree(memory);
        return;
    }
#endif
    (void)ctx;
    std::free(memory);
}

/* Moves managed memory to where the engine runs that is asked for, or else to where the last run was. Otherwise the run
 * would be timed with the moving of its pages. */
template <class T>
void prefetch(const dpr_ctx *ctx, const dpr_recursion_options *options, const dpr_recursion_report *last,
              const T *memory, size_t count) {
#ifdef __CUDACC__
    const char *engine = options->engine ? options->engine : last->engine ? last->engine : "";
    const int device = dpr_ctx_device(ctx);
    if (device == DPR_DEVICE_CPU)
        return;
    const bool on_cpu = std::strcmp(engine, "cpu") == 0 || std::strcmp(engine, "serial") == 0;
#if CUDART_VERSION >= 13000
    const cudaMemLocation to = {on_cpu ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, on_cpu ? 0 : device};
    (void)cudaMemPrefetchAsync(memory, count * sizeof(T), to, 0, nullptr);
#else
    (void)cudaMemPrefetchAsync(memory, count * sizeof(T), on_cpu ? cudaCpuDeviceId : device, nullptr);
#endif
    (void)cudaStreamSynchronize(nullptr);
#else
    (void)ctx, (void)options, (void)last, (void)memory, (void)count;
#endif
}

#endif
