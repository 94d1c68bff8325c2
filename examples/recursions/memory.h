/* Memory that engines on the CPU and on the context's GPU reach. */
#ifndef DPR_EXAMPLES_RECURSION_MEMORY_H
#define DPR_EXAMPLES_RECURSION_MEMORY_H

#include <cstdlib>
#include <cstring>
#include <new>
#ifdef __CUDACC__
#include <cuda_runtime_api.h>
#endif

#include "example.h"

/* `count` elements, aligned to 16 bytes. Throws std::bad_alloc if there is no room for them. */
template <class T> class array {
  public:
    array(const dpr_ctx *ctx, size_t count) : on_gpu_(dpr_ctx_device(ctx) != DPR_DEVICE_CPU) {
        void *memory = nullptr;
#ifdef __CUDACC__
        if (on_gpu_ && cudaMallocManaged(&memory, count * sizeof(T)) != cudaSuccess)
            (void)cudaGetLastError(); /* nobody else is to take it for its own */
#endif
        if (!on_gpu_)
            memory = std::malloc(count * sizeof(T));
        if (!memory)
            throw std::bad_alloc();
        first_ = static_cast<T *>(memory);
    }
    array(const array &) = delete;
    array &operator=(const array &) = delete;
    ~array() {
#ifdef __CUDACC__
        if (on_gpu_)
            (void)cudaFree(first_);
#endif
        if (!on_gpu_)
            std::free(first_);
    }

    T *get() const {
        return first_;
    }
    T &operator[](size_t i) const {
        return first_[i];
    }

  private:
    bool on_gpu_;
    T *first_;
};

/* Runs an example. If there is no memory for it, the answer says so. */
template <recursion_run Run>
dpr_status within_memory(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                         recursion_answer *answer) {
    try {
        return Run(ctx, request, report, answer);
    } catch (const std::bad_alloc &) {
        (void)recursion_fail(answer, "there is not enough memory");
        return DPR_ERR_OUT_OF_MEMORY;
    }
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
