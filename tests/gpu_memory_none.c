/* gpu_memory.h without CUDA: there is no GPU, and host memory is all there is. */
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"

const char *gpu_unavailable(void) {
    return "no CUDA device: this build has no CUDA";
}

const char *gpu_error(void) {
    return gpu_unavailable();
}

int gpu_count(void) {
    return 0;
}

int gpu_current(void) {
    return -1;
}

int gpu_use(int device) {
    (void)device;
    return 0;
}

int gpu_reset(void) {
    return 0;
}

size_t gpu_free_bytes(void) {
    return 0;
}

void *gpu_alloc(dpr_memory kind, size_t size) {
    return kind == DPR_MEMORY_HOST ? malloc(size ? size : 1) : NULL;
}

void gpu_free(dpr_memory kind, void *memory) {
    (void)kind;
    free(memory);
}

int gpu_copy(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
    return 1;
}

int gpu_repeat(void *to, size_t size, const void *pattern, size_t pattern_size) {
    (void)to, (void)size, (void)pattern, (void)pattern_size;
    return 0;
}

long gpu_kernel_local_bytes(const void *entry) {
    (void)entry;
    return -1;
}

dpr_stream gpu_stream_create(void) {
    return NULL;
}

int gpu_stream_destroy(dpr_stream stream) {
    (void)stream;
    return 0;
}

int gpu_stream_wait(dpr_stream stream) {
    (void)stream;
    return 0;
}

int gpu_copy_async(void *to, const void *from, size_t size, dpr_stream stream) {
    (void)to, (void)from, (void)size, (void)stream;
    return 0;
}

dpr_stream gpu_stream_per_thread(void) {
    return NULL;
}

int gpu_fill_async(void *to, int byte, size_t size, dpr_stream stream) {
    (void)to, (void)byte, (void)size, (void)stream;
    return 0;
}

int gpu_stream_after(dpr_stream stream, dpr_stream other) {
    (void)stream, (void)other;
    return 0;
}

int gpu_capture_begin(dpr_stream stream) {
    (void)stream;
    return 0;
}

gpu_graph *gpu_capture_end(dpr_stream stream) {
    (void)stream;
    return NULL;
}

int gpu_graph_launch(gpu_graph *graph, dpr_stream stream) {
    (void)graph, (void)stream;
    return 0;
}

void gpu_graph_destroy(gpu_graph *graph) {
    (void)graph;
}
