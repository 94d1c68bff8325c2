/* CUDA contexts of the driver's for the GPU tests. Calls return 1 if they worked, 0 or NULL if not, with the reason in
 * gpu_error(). */
#ifndef DPR_TESTS_GPU_CONTEXTS_H
#define DPR_TESTS_GPU_CONTEXTS_H

#include "dpr.h"

typedef struct gpu_context gpu_context;

/* A further context of a device's; the calling thread's contexts stay as they are. */
gpu_context *gpu_context_create(int device);

/* A green context with `sms` SMs at least, made from the device's primary one. */
gpu_context *gpu_green_create(int device, unsigned sms);

/* Not while it is current. */
int gpu_context_destroy(gpu_context *context);

/* Makes it the calling thread's, and undoes that. */
int gpu_context_push(gpu_context *context);
int gpu_context_pop(void);

/* The calling thread's, a CUcontext; NULL if it has none. */
void *gpu_context_current(void);

/* Whether the device's primary context is there. */
int gpu_primary_is_made(int device);

/* A stream of the calling thread's context that the legacy default stream waits for. */
dpr_stream gpu_blocking_stream_create(void);

#endif
