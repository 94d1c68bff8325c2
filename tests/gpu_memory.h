/* Memory, streams and graphs for the GPU tests, so that their bodies compile in builds without CUDA. Calls return 1 if
 * they worked, 0 or NULL if not, with the reason in gpu_error(). */
#ifndef DPR_TESTS_GPU_MEMORY_H
#define DPR_TESTS_GPU_MEMORY_H

#include "dpr.h"
#include "shim/shim.h"

typedef struct gpu_graph gpu_graph;

/* NULL if device 0 can be used, else why not. */
const char *gpu_unavailable(void);

/* Ends the test as skipped unless device 0 can be used. */
#define NEED_GPU()                                                                                                     \
    do {                                                                                                               \
        if (gpu_unavailable())                                                                                         \
            SKIP(gpu_unavailable());                                                                                   \
    } while (0)

const char *gpu_error(void);
int gpu_count(void);
int gpu_current(void);
int gpu_use(int device);
size_t gpu_free_bytes(void);

/* Resets the current device: all that the process has there is gone. */
int gpu_reset(void);

/* Memory of a kind; DPR_MEMORY_HOST needs no GPU. */
void *gpu_alloc(dpr_memory kind, size_t size);
void gpu_free(dpr_memory kind, void *memory);

/* Between any kinds; done on return. */
int gpu_copy(void *to, const void *from, size_t size);

/* Fills `size` bytes of device memory with copies of a pattern in host memory, cut at the end. */
int gpu_repeat(void *to, size_t size, const void *pattern, size_t pattern_size);

/* Bytes of local memory a thread of the kernel uses, for spilled registers and arrays; -1 if it cannot be told. */
long gpu_kernel_local_bytes(const void *entry);

dpr_stream gpu_stream_create(void);
int gpu_stream_destroy(dpr_stream stream);
int gpu_stream_wait(dpr_stream stream);
/* The calling thread's default stream. */
dpr_stream gpu_stream_per_thread(void);

/* In stream order. */
int gpu_copy_async(void *to, const void *from, size_t size, dpr_stream stream);
int gpu_fill_async(void *to, int byte, size_t size, dpr_stream stream);

/* What is enqueued in `stream` from here on waits for what is in `other` so far. While one of them is being captured,
 * the dependency is captured, and the other joins the capture. */
int gpu_stream_after(dpr_stream stream, dpr_stream other);

/* In the mode that has calls of other threads fail, too, unless these are prepared for it. */
int gpu_capture_begin(dpr_stream stream);
gpu_graph *gpu_capture_end(dpr_stream stream);
int gpu_graph_launch(gpu_graph *graph, dpr_stream stream);
void gpu_graph_destroy(gpu_graph *graph);

#endif
