/* Functions of the CUDA driver. They find out where a pointer points to without initialising a device, which the
 * runtime cannot do, and serve the path of every run, where the runtime's functions take 50 to 300 ns longer. Only in
 * builds with CUDA. */
#ifndef DPR_HOST_CUDA_DRIVER_H
#define DPR_HOST_CUDA_DRIVER_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device.h"

/* Number of devices that the driver shows; 0 if the driver cannot be used, with the reason in *why, a clause. */
int dpr_driver_devices(const char **why);

/* The cudaError_t of that reason; cudaSuccess if there is none. */
int dpr_driver_error(void);

/* Whether a device cannot be used again in this process after the error. */
int dpr_driver_is_final(cudaError_t error);

/* The driver's functions; driver.c has their names in cuda.h. The driver's error codes are the runtime's. */
typedef struct dpr_driver_calls {
    CUresult(CUDAAPI *pointer_get_attributes)(unsigned count, CUpointer_attribute *names, void **values, CUdeviceptr p);
    CUresult(CUDAAPI *ctx_get_current)(CUcontext *context);
    CUresult(CUDAAPI *ctx_get_device)(CUdevice *device);
    CUresult(CUDAAPI *ctx_get_id)(CUcontext context, unsigned long long *id);
    CUresult(CUDAAPI *ctx_push_current)(CUcontext context);
    CUresult(CUDAAPI *ctx_pop_current)(CUcontext *context);
    CUresult(CUDAAPI *primary_retain)(CUcontext *context, CUdevice device);
    CUresult(CUDAAPI *exchange_capture_mode)(CUstreamCaptureMode *mode);
    CUresult(CUDAAPI *event_query)(CUevent event);
    CUresult(CUDAAPI *launch_kernel_ex)(const CUlaunchConfig *config, CUfunction function, void **params, void **extra);
    CUresult(CUDAAPI *stream_get_id)(CUstream stream, unsigned long long *id);
    CUresult(CUDAAPI *stream_get_capture_info)(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                               CUgraph *graph, const CUgraphNode **dependencies, size_t *count);
    CUresult(CUDAAPI *library_load_data)(CUlibrary *library, const void *code, CUjit_option *jit_options,
                                         void **jit_values, unsigned jit_count, CUlibraryOption *options, void **values,
                                         unsigned count);
    CUresult(CUDAAPI *library_get_kernel)(CUkernel *kernel, CUlibrary library, const char *name);
    CUresult(CUDAAPI *library_get_global)(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name);
    CUresult(CUDAAPI *kernel_get_function)(CUfunction *function, CUkernel kernel);
    CUresult(CUDAAPI *graph_add_kernel)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        const CUDA_KERNEL_NODE_PARAMS *kernel);
    CUresult(CUDAAPI *graph_set_kernel)(CUgraphExec graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel);
    CUresult(CUDAAPI *func_get_attribute)(int *value, CUfunction_attribute attribute, CUfunction function);

    /* Since CUDA 12.4 and 12.5. If the driver lacks one of them, stream_get_contexts is NULL, and none is called. */
    CUresult(CUDAAPI *stream_get_contexts)(CUstream stream, CUcontext *regular, CUgreenCtx *green);
    CUresult(CUDAAPI *ctx_get_resource)(CUcontext context, CUdevResource *resource, CUdevResourceType type);
    CUresult(CUDAAPI *green_get_resource)(CUgreenCtx context, CUdevResource *resource, CUdevResourceType type);

    /* Conditional nodes, since CUDA 12.4. If the driver lacks one of these, graph_create_condition is NULL, and none is
     * called. */
    CUresult(CUDAAPI *graph_create_condition)(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                              unsigned value, unsigned flags);
    CUresult(CUDAAPI *graph_add_node)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                      CUgraphNodeParams *params);
    CUresult(CUDAAPI *stream_update_dependencies)(CUstream stream, CUgraphNode *dependencies, size_t count,
                                                  unsigned flags);
} dpr_driver_calls;

/* Valid only after dpr_driver_devices() has returned more than 0. Unlike the runtime's functions, these make no context
 * for a thread that has none. */
const dpr_driver_calls *dpr_driver(void);

/* dpr_device_place() for this room. */
dpr_status dpr_driver_place(const void *pointer, const char *argument, dpr_place *out);

#endif
