#include "gpu_memory.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[256] = "";

static int ok(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return 1;
    snprintf(last_error, sizeof last_error, "%s: %s", what, cudaGetErrorString(error));
    (void)cudaGetLastError();
    return 0;
}

#define OK(CALL) ok(CALL, #CALL)

const char *gpu_unavailable(void) {
    static _Thread_local char why[320];
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return NULL;
    (void)cudaGetLastError();
    snprintf(why, sizeof why, "no CUDA device: %s", error != cudaSuccess ? cudaGetErrorString(error) : "count is 0");
    return why;
}

const char *gpu_error(void) {
    return last_error;
}

int gpu_count(void) {
    int count = 0;
    return OK(cudaGetDeviceCount(&count)) ? count : 0;
}

int gpu_current(void) {
    int device = -1;
    return OK(cudaGetDevice(&device)) ? device : -1;
}

int gpu_use(int device) {
    return OK(cudaSetDevice(device));
}

int gpu_reset(void) {
    return OK(cudaDeviceReset());
}

size_t gpu_free_bytes(void) {
    size_t available = 0, total = 0;
    return OK(cudaMemGetInfo(&available, &total)) ? available : 0;
}

void *gpu_alloc(dpr_memory kind, size_t size) {
    void *memory = NULL;
    size = size ? size : 1;
    switch (kind) {
    case DPR_MEMORY_PINNED:
        return OK(cudaHostAlloc(&memory, size, cudaHostAllocDefault)) ? memory : NULL;
    case DPR_MEMORY_MANAGED:
        return OK(cudaMallocManaged(&memory, size, cudaMemAttachGlobal)) ? memory : NULL;
    case DPR_MEMORY_DEVICE:
        return OK(cudaMalloc(&memory, size)) ? memory : NULL;
    default:
        return malloc(size);
    }
}

void gpu_free(dpr_memory kind, void *memory) {
    if (kind == DPR_MEMORY_PINNED)
        (void)OK(cudaFreeHost(memory));
    else if (kind == DPR_MEMORY_MANAGED || kind == DPR_MEMORY_DEVICE)
        (void)OK(cudaFree(memory));
    else
        free(memory);
}

static int have_gpu;

static void find_gpu(void) {
    have_gpu = gpu_unavailable() == NULL;
}

int gpu_copy(void *to, const void *from, size_t size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_gpu);
    if (!have_gpu) { /* then host memory is all there is */
        memcpy(to, from, size);
        return 1;
    }
    return OK(cudaMemcpy(to, from, size, cudaMemcpyDefault)) && OK(cudaStreamSynchronize(NULL));
}

int gpu_repeat(void *to, size_t size, const void *pattern, size_t pattern_size) {
    size_t filled = pattern_size < size ? pattern_size : size;
    if (!gpu_copy(to, pattern, filled))
        return 0;
    while (filled < size) { /* what is there is whole patterns, so copies of it go on with them */
        const size_t more = filled < size - filled ? filled : size - filled;
        if (!gpu_copy((char *)to + filled, to, more))
            return 0;
        filled += more;
    }
    return 1;
}

long gpu_kernel_local_bytes(const void *entry) {
    struct cudaFuncAttributes attributes;
    return OK(cudaFuncGetAttributes(&attributes, entry)) ? (long)attributes.localSizeBytes : -1;
}

dpr_stream gpu_stream_create(void) {
    cudaStream_t stream = NULL;
    return OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) ? stream : NULL;
}

int gpu_stream_destroy(dpr_stream stream) {
    return OK(cudaStreamDestroy(stream));
}

int gpu_stream_wait(dpr_stream stream) {
    return OK(cudaStreamSynchronize(stream));
}

int gpu_copy_async(void *to, const void *from, size_t size, dpr_stream stream) {
    return OK(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream));
}

dpr_stream gpu_stream_per_thread(void) {
    return cudaStreamPerThread;
}

int gpu_fill_async(void *to, int byte, size_t size, dpr_stream stream) {
    return OK(cudaMemsetAsync(to, byte, size, stream));
}

/* An event that is destroyed while it is pending still does its work. */
int gpu_stream_after(dpr_stream stream, dpr_stream other) {
    cudaEvent_t event = NULL;
    if (!OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)))
        return 0;
    const int good = OK(cudaEventRecord(event, other)) && OK(cudaStreamWaitEvent(stream, event, 0));
    return OK(cudaEventDestroy(event)) && good;
}

int gpu_capture_begin(dpr_stream stream) {
    return OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

gpu_graph *gpu_capture_end(dpr_stream stream) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t run = NULL;
    if (!OK(cudaStreamEndCapture(stream, &graph)))
        return NULL;
    if (!OK(cudaGraphInstantiateWithFlags(&run, graph, 0)))
        run = NULL;
    (void)OK(cudaGraphDestroy(graph));
    return (gpu_graph *)run;
}

int gpu_graph_launch(gpu_graph *graph, dpr_stream stream) {
    return OK(cudaGraphLaunch((cudaGraphExec_t)graph, stream));
}

void gpu_graph_destroy(gpu_graph *graph) {
    if (graph)
        (void)OK(cudaGraphExecDestroy((cudaGraphExec_t)graph));
}
