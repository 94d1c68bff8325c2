/* The fake devices' contexts, as the GPU tests ask for them. */
#include "gpu_contexts.h"

#include "fake_contexts.h"
#include "fake_cuda.h"

gpu_context *gpu_context_create(int device) {
    return (gpu_context *)fake_ctx_create(device);
}

gpu_context *gpu_green_create(int device, unsigned sms) {
    return (gpu_context *)fake_green_create(device, (int)sms);
}

int gpu_context_destroy(gpu_context *context) {
    fake_ctx_destroy((CUcontext)context);
    return 1;
}

int gpu_context_push(gpu_context *context) {
    fake_ctx_push((CUcontext)context);
    return 1;
}

int gpu_context_pop(void) {
    return fake_ctx_pop() != NULL;
}

void *gpu_context_current(void) {
    return fake_current_context();
}

int gpu_primary_is_made(int device) {
    return fake_primary_is_made(device);
}

dpr_stream gpu_blocking_stream_create(void) {
    cudaStream_t stream = NULL;
    return cudaStreamCreateWithFlags(&stream, cudaStreamDefault) == cudaSuccess ? stream : NULL;
}
